package transparency

import (
	"strconv"
	"strings"
	"testing"
)

// A loss is a known difference that no normalisation takes away: in what the protocol forbids, and in what would tell
// what a caller may not see.
type loss struct {
	name    string
	applies func(r route) bool
	make    func(x *exchange)
}

// losses are all that are known. One that does not show any more fails the test, so that it is taken out of the list
// and its case moves among the exchanges.
func (b *bench) losses() []loss {
	told := func(method, level, params string) note { return note{method, level, params} }
	return []loss{
		{"progress that does not grow, which the protocol does not allow", always, func(x *exchange) {
			x.token = "7"
			same := told("notifications/progress", "", `{"progressToken":{token},"progress":1}`)
			x.script.notes = []note{same, same}
		}},
		{"how a server says that a resource of a template does not exist, as the gateway says it for what a caller may not see", always, func(x *exchange) {
			x.method, x.names, x.members = "resources/read", "", []string{`"uri":{name}`}
			x.target = strings.Replace(b.upstream.catalogue.templates[0].id, "{id}", "7", 1)
			x.script.member, x.script.value = "error", `{"code":-32602,"message":"no such thing"}`
		}},
	}
}

// knownLosses fails for those that are gone.
func (b *bench) knownLosses(t *testing.T) {
	t.Helper()
	for n, l := range b.losses() {
		if !l.applies(b.route) {
			continue
		}
		x := b.plainCall(n)
		if diff := b.compare(t, x); diff != "" {
			t.Errorf("a plain call: %s", diff)
		}
		l.make(x)
		if b.compare(t, x) == "" {
			t.Errorf("this is not lost any more: %s. Move its case among the exchanges", l.name)
		}
	}
}

// plainCall is a call of which nothing is lost.
func (b *bench) plainCall(n int) *exchange {
	x := &exchange{id: strconv.Itoa(n + 1), method: "tools/call", names: "tools/call", members: []string{`"name":{name}`}, target: b.plainTool()}
	x.script = script{member: "result", value: `{"content":[]}`}
	if b.route.upstream {
		x.script.value = `{"resultType":"complete","content":[]}`
	}
	return x
}

// plainTool is one that declares nothing of what it gives.
func (b *bench) plainTool() string {
	for _, d := range b.upstream.catalogue.tools {
		if d.output == "" {
			return d.id
		}
	}
	return ""
}
