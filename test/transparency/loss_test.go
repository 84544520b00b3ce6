package transparency

import (
	"strconv"
	"testing"
)

// A loss is a known difference that no normalisation takes away: in what the protocol forbids or does not name, or in
// what the gateway does not pass on yet.
type loss struct {
	name    string
	applies func(r route) bool
	make    func(x *exchange)
}

func statefulUpstream(r route) bool { return !r.upstream }

// losses are all that are known. One that does not show any more fails the test, so that it is taken out of the list
// and its case moves among the exchanges.
func losses() []loss {
	told := func(method, level, params string) note { return note{method, level, params} }
	return []loss{
		{"a debug message on a connection that callers share, of which the gateway asks for info", statefulUpstream, func(x *exchange) {
			x.level = "debug"
			x.script.notes = []note{told("notifications/message", "debug", `{"level":"debug","data":1}`)}
		}},
		{"members of the params of a call that the protocol does not name", always, func(x *exchange) {
			x.members = append(x.members, `"com.example/unknown":1`)
		}},
		{"notifications before the answer that the protocol does not name", always, func(x *exchange) {
			x.script.notes = []note{told("notifications/com.example/unknown", "", `{"a":1}`)}
		}},
		{"progress of a completion", always, func(x *exchange) {
			x.method, x.token = "completion/complete", "7"
			x.members = []string{`"ref":{"type":"ref/resource","uri":{name}}`, `"argument":{"name":"id","value":""}`}
			x.script.notes = []note{told("notifications/progress", "", `{"progressToken":{token},"progress":1}`)}
		}},
		{"progress that does not grow, which the protocol does not allow", always, func(x *exchange) {
			x.token = "7"
			same := told("notifications/progress", "", `{"progressToken":{token},"progress":1}`)
			x.script.notes = []note{same, same}
		}},
		{"that a server which announces completion does not know the method: the gateway suggests nothing then", always, func(x *exchange) {
			x.method = "completion/complete"
			x.members = []string{`"ref":{"type":"ref/resource","uri":{name}}`, `"argument":{"name":"id","value":""}`}
			x.script.member, x.script.value = "error", `{"code":-32601,"message":"method not found"}`
		}},
	}
}

// knownLosses fails for those that are gone.
func (b *bench) knownLosses(t *testing.T) {
	t.Helper()
	for n, l := range losses() {
		if !l.applies(b.route) {
			continue
		}
		x := b.plainCall(n)
		if diff := b.compare(t, x); diff != "" {
			t.Errorf("a plain call: %s", diff)
		}
		l.make(x)
		if x.method == "completion/complete" {
			x.names, x.target = "", b.upstream.catalogue.templates[0].id
		}
		if b.compare(t, x) == "" {
			t.Errorf("this is not lost any more: %s. Move its case among the exchanges", l.name)
		}
	}
}

// plainCall is a call of which nothing is lost.
func (b *bench) plainCall(n int) *exchange {
	x := &exchange{id: strconv.Itoa(n + 1), method: "tools/call", names: "tools/call", members: []string{`"name":{name}`}, target: b.plainTool()}
	x.script = script{member: "result", value: `{"content":[],"completion":{"values":[]}}`}
	if b.route.upstream {
		x.script.value = `{"resultType":"complete","content":[],"completion":{"values":[]}}`
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
