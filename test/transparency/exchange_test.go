package transparency

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// An exchange is a request and what the upstream says to it.
type exchange struct {
	label  string
	method string
	// target is the upstream's own name or URI of what the request is for.
	target string
	// names is the method whose rules say what the target is called behind the gateway.
	names string
	// members are those of the params, without _meta; {name} stands for what the target is called.
	members []string
	meta    []string
	token   string // raw, or empty
	level   string // of log messages that are wanted, or empty
	id      string
	script  script
}

// request is what a client of the upstream sends, or one of the gateway.
func (x *exchange) request(through bool) request {
	name := x.target
	if through {
		name = throughName(x.names, name)
	}
	q := request{id: x.id, method: x.method, level: x.level, meta: x.meta}
	for _, m := range x.members {
		q.members = append(q.members, strings.ReplaceAll(m, "{name}", strconv.Quote(name)))
	}
	if x.token != "" {
		q.meta = append(slices.Clip(q.meta), member("progressToken", x.token))
	}
	if x.method != "completion/complete" {
		q.name = name
	}
	return q
}

// exchange makes one of any kind.
func (g *generator) exchange(c *catalogue, n int) *exchange {
	x := &exchange{id: g.one(strconv.Itoa(n+1), fmt.Sprintf(`"id-%d"`, n), fmt.Sprintf(`"é \u2028 %d"`, n), fmt.Sprint(9007199254740993+n))}
	x.script = script{member: "result", stream: g.maybe(40)}
	switch k := g.IntN(100); {
	case k < 62:
		g.toolCall(x, c)
	case k < 74:
		g.read(x, c)
	case k < 87:
		g.getPrompt(x, c)
	default:
		g.completion(x, c)
	}
	x.label = fmt.Sprintf("%s %s", x.method, x.target)
	if g.maybe(20) {
		x.script.member, x.script.value = "error", g.failure()
		if x.names == "templates" { // whose resources do not exist in the gateway's own words; see losses
			x.script.value = strings.NewReplacer("-32602", "-32000", "-32002", "-32000").Replace(x.script.value)
		}
	}
	if g.maybe(40) {
		x.meta = g.odd(3, 2)
	}
	if x.method != "completion/complete" && g.maybe(30) {
		x.members = append(x.members, g.strange()...)
	}
	g.notes(x)
	return x
}

// strange are members of params that the protocol does not name. One that is a known name in other letters is refused,
// since some server would take it for that.
func (g *generator) strange() []string {
	return slices.DeleteFunc(g.odd(3, 2), func(m string) bool { return strings.HasPrefix(m, `"Name"`) })
}

func pick[T any](g *generator, of []T) T { return of[g.IntN(len(of))] }

func (g *generator) toolCall(x *exchange, c *catalogue) {
	d := pick(g, c.tools)
	x.method, x.names, x.target, x.members = "tools/call", "tools/call", d.id, []string{`"name":{name}`}
	x.members = append(x.members, g.arguments()...)
	members := []string{member("content", g.list(4, g.block))}
	fails := g.maybe(20)
	if fails || g.maybe(10) {
		members = append(members, member("isError", strconv.FormatBool(fails)))
	}
	if s := g.structured(d.output, fails); s != "" {
		members = append(members, member("structuredContent", s))
	}
	x.script.value = g.complete(false, members...)
}

// arguments are any object, or none in one of three ways.
func (g *generator) arguments() []string {
	switch g.IntN(6) {
	case 0:
		return nil
	case 1:
		return []string{`"arguments":null`}
	case 2:
		return []string{`"arguments":{}`}
	}
	return []string{member("arguments", g.object(3))}
}

// structured is structured content as the tool declares it, or none.
func (g *generator) structured(declared string, fails bool) string {
	switch {
	case declared == "object" || declared == "anything" && !g.stateless:
		return g.object(3)
	case declared == "anything":
		return g.value(3)
	case fails || g.maybe(50):
		return ""
	}
	return g.value(3)
}

func (g *generator) read(x *exchange, c *catalogue) {
	x.method, x.target = "resources/read", pick(g, c.resources).id
	if g.maybe(40) {
		x.names = "templates"
		x.target = strings.Replace(pick(g, c.templates).id, "{id}", g.one("7", "a-b", "%C3%A9"), 1)
	}
	x.members = []string{`"uri":{name}`}
	x.script.value = g.complete(true, member("contents", g.list(3, func() string { return g.content(strconv.Quote(x.target)) })))
}

func (g *generator) getPrompt(x *exchange, c *catalogue) {
	x.method, x.names, x.target, x.members = "prompts/get", "prompts/get", pick(g, c.prompts).id, []string{`"name":{name}`}
	x.members = append(x.members, g.promptArguments()...)
	members := []string{member("messages", g.list(3, func() string {
		return g.adorned(member("role", g.one(`"user"`, `"assistant"`)), member("content", g.block()))
	}))}
	x.script.value = g.complete(false, append(members, g.some(50, "description", g.text)...)...)
}

func (g *generator) promptArguments() []string {
	switch g.IntN(4) {
	case 0:
		return nil
	case 1:
		return []string{`"arguments":{}`}
	}
	return []string{`"arguments":{"topic":` + g.text() + `,"стиль":` + g.text() + `}`}
}

func (g *generator) completion(x *exchange, c *catalogue) {
	x.method, x.target = "completion/complete", pick(g, c.templates).id
	ref := `"ref":{"type":"ref/resource","uri":{name}}`
	if g.maybe(50) {
		x.names, x.target = "prompts/get", pick(g, c.prompts).id
		ref = g.one(`"ref":{"type":"ref/prompt","name":{name}}`, `"ref":{"name":{name},"title":"T","type":"ref/prompt"}`)
	}
	x.members = []string{ref, `"argument":{"name":"topic","value":` + g.text() + `}`}
	x.members = append(x.members, g.some(40, "context", func() string { return `{"arguments":{"a":` + g.text() + `}}` })...)
	members := g.odd(1, 1)
	members = append(members, member("values", g.list(4, g.text)))
	members = append(members, g.some(50, "total", g.number)...)
	members = append(members, g.some(50, "hasMore", func() string { return g.one("true", "false") })...)
	x.script.value = g.complete(false, member("completion", g.join(members...)))
}

// notes are told before the answer: progress, which grows, log messages, and what no protocol names.
func (g *generator) notes(x *exchange) {
	if g.maybe(45) {
		x.token = g.one("1", `"token"`, `"é/\u0000"`, "9007199254740993", strconv.Itoa(g.IntN(1000)))
	}
	if !g.maybe(50) {
		return
	}
	x.level = pick(g, levels) // as what a client gets that says none is its server's choice, in each era another
	at := 0.0
	for range g.IntN(5) {
		switch k := g.IntN(100); {
		case k < 40:
			at += float64(1+g.IntN(4)) / 4
			x.script.notes = append(x.script.notes, g.progress(at))
		case k < 80:
			x.script.notes = append(x.script.notes, g.log())
		default:
			x.script.notes = append(x.script.notes, note{method: "notifications/" + g.one("com.example/unknown", "tools/unknown"), params: g.object(2)})
		}
	}
}

func (g *generator) progress(at float64) note {
	members := []string{`"progressToken":{token}`, member("progress", strconv.FormatFloat(at, 'f', -1, 64))}
	members = append(members, g.some(50, "total", g.number)...)
	members = append(members, g.some(50, "message", g.text)...)
	return note{method: "notifications/progress", params: g.adorned(members...)}
}

func (g *generator) log() note {
	n := note{method: "notifications/message", level: pick(g, levels)}
	members := []string{member("level", strconv.Quote(n.level)), member("data", g.value(3))}
	n.params = g.adorned(append(members, g.some(50, "logger", g.text)...)...)
	return n
}

// The same seed makes the same exchanges, so that a failure can be looked at again.
func TestGeneratorRepeatsItself(t *testing.T) {
	t.Parallel()
	a, b := newGenerator(1, true), newGenerator(1, true)
	ca, cb := a.catalogue(), b.catalogue()
	if fmt.Sprint(ca, a.exchange(ca, 1)) != fmt.Sprint(cb, b.exchange(cb, 1)) {
		t.Error("two generators of one seed differ")
	}
}
