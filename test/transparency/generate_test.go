package transparency

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A generator makes JSON text. The same seed makes the same text.
type generator struct {
	*rand.Rand
	// stateless says that the upstream, whose words are made here, speaks the stateless era.
	stateless bool
}

func newGenerator(seed uint64, stateless bool) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 2)), stateless}
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

// maybe is true n times out of a hundred.
func (g *generator) maybe(n int) bool { return g.IntN(100) < n }

func (g *generator) text() string {
	return g.one(`"plain"`, `""`, `"héllo ☃ 日本語"`, `"\u0000\u001f\u007f"`, `"\ud83d\ude00 😀"`, `"<b>&'\"\\/ \/"`, `"\u2028\u2029"`,
		`"line\nbreak\r\n\ttab"`, `"שלום"`, `"e\u0301 \u00e9"`, `" padded "`, `"\ud800 half"`, `"data: x\n\nid: 4"`, strconv.Quote(strings.Repeat("long ", 40)))
}

func (g *generator) number() string {
	return g.one("0", "-0", "1", "1.0", "-17", "0.1", "1e3", "1E+400", "-2.5e-300", "9007199254740993", "-9223372036854775809",
		"123456789012345678901234567890", "3.141592653589793238462643383279")
}

func (g *generator) scalar() string {
	switch g.IntN(5) {
	case 0:
		return g.one("null", "true", "false")
	case 1, 2:
		return g.number()
	}
	return g.text()
}

func (g *generator) value(depth int) string {
	switch {
	case depth == 0 || g.maybe(50):
		return g.scalar()
	case g.maybe(50):
		return g.object(depth - 1)
	}
	return g.array(depth - 1)
}

func (g *generator) array(depth int) string {
	list := make([]string, g.IntN(4))
	for i := range list {
		list[i] = g.value(depth)
	}
	return "[" + strings.Join(list, g.one(",", ", ", " ,\n")) + "]"
}

func (g *generator) object(depth int) string { return g.join(g.odd(4, depth)...) }

// odd are up to n members whose keys no protocol has.
func (g *generator) odd(n, depth int) []string {
	keys := []string{`""`, `"__proto__"`, `"constructor"`, `"a.b"`, `"a/b~c"`, `"x-y"`, `"ключ"`, `"\u0000"`, `"$comment"`, `"12"`, `"😀"`,
		`"\ud83d\ude80"`, `"q\"uote"`, `"Name"`, `"CONTENT"`, `"with space"`, `"toolcrib"`}
	g.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var out []string
	for _, key := range keys[:g.IntN(n+1)] {
		out = append(out, key+g.one(":", ": ")+g.value(depth))
	}
	return out
}

// join makes an object of members, in any order.
func (g *generator) join(members ...string) string {
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, g.one(",", ", ", ",\n  ")) + "}"
}

// some returns the member in n cases of a hundred.
func (g *generator) some(n int, key string, value func() string) []string {
	if !g.maybe(n) {
		return nil
	}
	return []string{strconv.Quote(key) + ":" + value()}
}

func member(key, value string) string { return strconv.Quote(key) + ":" + value }

func (g *generator) meta() string {
	members := g.odd(3, 2)
	if g.maybe(40) {
		members = append(members, member("com.example/trace", g.value(1)))
	}
	if g.maybe(20) {
		members = append(members, member("traceparent", `"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`))
	}
	return g.join(members...)
}

func (g *generator) annotations() string {
	members := g.odd(2, 1)
	members = append(members, g.some(50, "audience", func() string { return g.one(`["user"]`, `["assistant","user"]`, `[]`) })...)
	members = append(members, g.some(50, "priority", func() string { return g.one("0", "1", "0.30000000000000004", "1.0") })...)
	members = append(members, g.some(50, "lastModified", func() string { return `"2025-01-12T15:00:58Z"` })...)
	return g.join(members...)
}

// adorned adds what any object of the protocol may have.
func (g *generator) adorned(members ...string) string {
	members = append(members, g.some(25, "_meta", g.meta)...)
	if g.maybe(25) {
		members = append(members, g.odd(2, 2)...)
	}
	return g.join(members...)
}

// block is a block of content, of a type that the protocol knows or of another.
func (g *generator) block() string {
	members := g.some(30, "annotations", g.annotations)
	kind := g.one("text", "text", "image", "audio", "resource", "resource_link", "vendor/hologram", "tool_result", "")
	if kind != "" { // a block without a type is a block all the same
		members = append(members, member("type", strconv.Quote(kind)))
	}
	switch kind {
	case "text":
		members = append(members, member("text", g.text()))
	case "image", "audio":
		members = append(members, member("data", g.one(`"AAECAw=="`, `""`, `"/+8="`)), member("mimeType", g.one(`"image/png"`, `"audio/wav"`)))
	case "resource":
		members = append(members, member("resource", g.content(g.uri())))
	case "resource_link":
		members = append(members, member("uri", g.uri()), member("name", g.text()))
		members = append(members, g.some(50, "size", g.number)...)
		members = append(members, g.some(50, "icons", g.icons)...)
	case "tool_result":
		members = append(members, member("toolUseId", g.text()), member("content", g.array(2)))
	default:
		members = append(members, member("payload", g.one(g.value(3), `{"twice":1,"twice":2}`)))
	}
	return g.adorned(members...)
}

func (g *generator) uri() string {
	return g.one(`"file:///a%20b.txt"`, `"https://example.com/é?x=1&y=%2F#z"`, `"urn:isbn:0-486-27557-4"`, `"ui://x/page"`)
}

// content is what a resource holds.
func (g *generator) content(uri string) string {
	members := []string{member("uri", uri)}
	members = append(members, g.some(60, "mimeType", func() string { return g.one(`"text/plain"`, `"application/json; charset=utf-8"`) })...)
	if g.maybe(60) {
		return g.adorned(append(members, member("text", g.text()))...)
	}
	return g.adorned(append(members, member("blob", g.one(`"AAECAw=="`, `""`)))...)
}

func (g *generator) icons() string {
	return g.one(`[]`, `[{"src":"https://example.com/i.svg","sizes":["any"],"theme":"dark"}]`, `[{"src":"data:image/png;base64,AA==","x":null}]`)
}

func (g *generator) list(n int, element func() string) string {
	list := make([]string, g.IntN(n+1))
	for i := range list {
		list[i] = element()
	}
	return "[" + strings.Join(list, ",") + "]"
}

// complete adds what the stateless era demands of a result, and what any result may have.
func (g *generator) complete(cached bool, members ...string) string {
	meta := g.some(40, "_meta", g.meta)
	if g.stateless {
		members = append(members, `"resultType":"complete"`)
		meta = g.some(60, "_meta", func() string {
			return `{"io.modelcontextprotocol/serverInfo":{"name":"upstream","version":"1"},"a":[1]}`
		})
	}
	if g.stateless && cached {
		members = append(members, `"ttlMs":60000`, fmt.Sprintf(`"cacheScope":%q`, g.one("public", "private")))
	}
	members = append(members, meta...)
	if g.maybe(25) {
		members = append(members, g.odd(2, 2)...)
	}
	return g.join(members...)
}

// failure is a JSON-RPC error.
func (g *generator) failure() string {
	codes := []string{"-32602", "-32603", "-32601", "-32000", "-32001", "-32002", "-32042", "-32099", "-32600", "-32700", "42", "0", "-1", "9007199254740993", "-32000.0",
		"123456789012345678901234567890"}
	members := []string{member("code", g.one(codes...)), member("message", g.text())}
	members = append(members, g.some(60, "data", func() string { return g.value(3) })...)
	if g.maybe(20) {
		members = append(members, g.odd(2, 1)...)
	}
	return g.join(members...)
}
