package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type numbers struct {
	A int `json:"a"`
	B int `json:"b,omitempty"`
}

type sum struct {
	Sum int `json:"sum"`
}

type tracker struct {
	mu    sync.Mutex
	calls []string
}

func (t *tracker) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, fmt.Sprintf(format, args...))
}

var errBroken = errors.New("broken")

// catalog has math.add, and tools that fail, wait and are noted.
func catalog(t testing.TB, tr *tracker) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	register := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	register(inproc.RegisterFunc(cat, "math.add", func(_ context.Context, in numbers) (sum, error) {
		tr.note("add %d %d", in.A, in.B)
		return sum{in.A + in.B}, nil
	}, tools.WithSideEffect(tools.SideEffectPure)))
	register(inproc.RegisterFunc(cat, "math.fail", func(context.Context, numbers) (sum, error) {
		tr.note("fail")
		return sum{}, errBroken
	}, tools.WithPolicy(tools.ToolPolicy{MaxRetries: -1}), tools.WithAuthScopes("math")))
	register(inproc.RegisterFunc(cat, "wait.for", func(ctx context.Context, _ struct{}) (sum, error) {
		tr.note("wait")
		<-ctx.Done()
		tr.note("cancelled")
		return sum{}, ctx.Err()
	}, tools.WithPolicy(tools.ToolPolicy{MaxRetries: -1, TimeoutMS: -1})))
	return cat
}

func allowed(ctx context.Context) context.Context {
	return identity.With(ctx, identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"}, "math")
}

func compose(t testing.TB, doc string, cat tools.LiveCatalog) *flow.Flow {
	t.Helper()
	def, err := flow.ParseYAML("f.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	f, err := flow.ComposeFor(allowed(context.Background()), def, &flow.Options{Runner: exec.NewRunner(cat)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func run(t testing.TB, ctx context.Context, f *flow.Flow, inputs string) string {
	t.Helper()
	out, err := f.Run(ctx, json.RawMessage(inputs))
	if err != nil {
		t.Fatal(err)
	}
	enc, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(enc)
}

const diamond = `
name: diamond
inputs: {type: object, properties: {n: {type: integer}}, required: [n]}
entry: start
exit: end
nodes:
  - id: start
    tool: math.add
    inputs: {a: "${{ inputs.n }}", b: 1}
    next: [{to: small, when: "nodes.start.sum < 10"}, {to: large, when: "nodes.start.sum >= 10"}, {to: always}]
  - {id: small, tool: math.add, inputs: {a: "${{ nodes.start.sum }}", b: 100}, next: [{to: end}]}
  - {id: large, tool: math.add, inputs: {a: "${{ nodes.start.sum }}", b: 1000}, next: [{to: end}]}
  - {id: always, tool: math.add, inputs: {a: 5}, next: [{to: end}]}
  - id: end
    tool: math.add
    inputs: {a: "${{ has(nodes.small) ? nodes.small.sum : nodes.large.sum }}", b: "${{ nodes.always.sum }}"}
output: {total: "${{ nodes.end.sum }}"}
`

func TestBranchesAndJoins(t *testing.T) {
	var tr tracker
	f := compose(t, diamond, catalog(t, &tr))
	if got := run(t, t.Context(), f, `{"n":1}`); got != `{"total":107}` {
		t.Errorf("got %s", got)
	}
	if got := run(t, t.Context(), f, `{"n":20}`); got != `{"total":1026}` {
		t.Errorf("got %s", got)
	}
	if len(tr.calls) != 8 {
		t.Errorf("got %v", tr.calls)
	}
}

func TestJoinAllWaitsForEveryEdge(t *testing.T) {
	f := compose(t, strings.Replace(diamond, "- id: end", "- id: end\n    join: all", 1), catalog(t, &tracker{}))
	if _, err := f.Run(t.Context(), json.RawMessage(`{"n":1}`)); !errors.Is(err, flow.ErrExitNotReached) {
		t.Errorf("got %v", err)
	}
}

func one(node string) string {
	return "name: f\nentry: a\nexit: a\nnodes:\n  - " + node
}

func TestForEach(t *testing.T) {
	ctx := allowed(t.Context())
	var tr tracker
	cat := catalog(t, &tr)
	each := func(more string) string {
		return strings.Replace(one(`{id: a, tool: math.add, inputs: {a: "${{ item.v }}", b: "${{ index }}"}, for_each: {items: "inputs.list"`+more+`}}`),
			"entry", "inputs: {type: object, properties: {list: {type: array, items: {type: object, properties: {v: {type: integer}}}}}}\nentry", 1)
	}
	for _, parallel := range []string{"", ", parallel: 4"} {
		if got := run(t, ctx, compose(t, each(parallel), cat), `{"list":[{"v":10},{"v":20},{"v":30}]}`); got != `[{"sum":10},{"sum":21},{"sum":32}]` {
			t.Errorf("got %s", got)
		}
	}
	if got := run(t, ctx, compose(t, each(""), cat), `{"list":[]}`); got != `[]` {
		t.Errorf("got %s", got)
	}
	_, err := compose(t, each(", limit: 2"), cat).Run(ctx, json.RawMessage(`{"list":[{"v":1},{"v":2},{"v":3}]}`))
	if err == nil || !strings.Contains(err.Error(), "inputs.list gives 3 elements; at most 2 are allowed") {
		t.Errorf("got %v", err)
	}
	_, err = compose(t, strings.ReplaceAll(each(""), "math.add", "math.fail"), cat).Run(ctx, json.RawMessage(`{"list":[{"v":1},{"v":2}]}`))
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "element 0") {
		t.Errorf("got %v", err)
	}
}

const failing = `
name: f
entry: a
exit: z
nodes:
  - {id: a, tool: math.add, inputs: {a: 1}, undo: undo_a, next: [{to: b}]}
  - {id: b, tool: math.add, inputs: {a: 2}, undo: undo_b, next: [{to: c}]}
  - {id: c, tool: math.fail, inputs: {a: 3}, on_error: {HANDLING}, next: [{to: z}]}
  - {id: z, tool: math.add, inputs: {a: "${{ nodes.c == null ? 0 : nodes.c.sum }}"}}
  - {id: undo_a, tool: math.add, inputs: {a: 100, b: "${{ nodes.a.sum }}"}}
  - {id: undo_b, tool: math.add, inputs: {a: 200, b: "${{ nodes.b.sum }}"}}
  - {id: spare, tool: math.add, inputs: {a: 7, b: "${{ error.contains('broken') ? 1 : 2 }}"}}
`

func TestOnError(t *testing.T) {
	ctx := allowed(t.Context())
	for handling, want := range map[string]struct {
		out   string
		calls []string
	}{
		"do: fail":                  {"", []string{"add 1 0", "add 2 0", "fail"}},
		"do: skip":                  {`{"sum":0}`, []string{"add 1 0", "add 2 0", "fail", "add 0 0"}},
		"do: fallback, node: spare": {`{"sum":8}`, []string{"add 1 0", "add 2 0", "fail", "add 7 1", "add 8 0"}},
		"do: compensate":            {"", []string{"add 1 0", "add 2 0", "fail", "add 200 2", "add 100 1"}},
	} {
		t.Run(handling, func(t *testing.T) {
			var tr tracker
			doc := strings.Replace(failing, "HANDLING", handling, 1)
			if !strings.Contains(handling, "spare") {
				doc = doc[:strings.Index(doc, "  - {id: spare")]
			}
			f := compose(t, doc, catalog(t, &tr))
			out, err := f.Run(ctx, nil)
			if want.out == "" {
				var failed *flow.NodeError
				if !errors.As(err, &failed) || failed.Node != "c" || !errors.Is(err, errBroken) {
					t.Errorf("got %v, %v", out, err)
				}
			} else if enc, _ := json.Marshal(out); err != nil || string(enc) != want.out {
				t.Errorf("got %s, %v", enc, err)
			}
			if !slices.Equal(tr.calls, want.calls) {
				t.Errorf("got %v, want %v", tr.calls, want.calls)
			}
		})
	}
}

func TestComposeRefuses(t *testing.T) {
	cat := catalog(t, &tracker{})
	for doc, want := range map[string]string{
		one(`{id: b, tool: math.add}`):                                                              `f.yaml:2:8: entry: there is no node "a"; expected one of b`,
		one(`{id: a, tool: nosuch}`):                                                                `f.yaml:5:19: nodes[0].tool: tools: tool not found: "nosuch"`,
		one(`{id: a}`):                                                                              `expected just one of tool, func, flow and ask`,
		one(`{id: a, tool: math.add, inputs: {a: x}}`):                                              `node "a": /a: expected integer, got string`,
		one(`{id: a, tool: math.add, inputs: {}}`):                                                  `missing required property "a"`,
		one(`{id: a, tool: math.add, inputs: {a: "${{ nodes.b }}"}}`):                               `nodes.b cannot be read`,
		one(`{id: a, tool: math.add, inputs: {a: 1}, next: [{to: q}]}`):                             `f.yaml:5:52: nodes[0].next[0]: there is no node "q"`,
		one("{id: a, tool: math.add, inputs: {a: 1}}\n  - {id: a, tool: math.add}"):                 `"a" is the id of node 1 too`,
		one("{id: a, tool: math.add, inputs: {a: 1}}\n  - {id: b, tool: math.add, inputs: {a: 1}}"): `f.yaml:6:5: nodes[1]: no path leads from the entry "a" to "b"`,
		"name: f\nentry: a\nexit: d\nnodes:\n  - {id: a, tool: math.add, inputs: {a: 1}, next: [{to: b}]}\n  - {id: b, tool: math.add, inputs: {a: 1}, next: [{to: c}]}\n" +
			"  - {id: c, tool: math.add, inputs: {a: 1}, next: [{to: b}, {to: d}]}\n  - {id: d, tool: math.add, inputs: {a: 1}}": `the edges go round in a circle: `,
		one(`{id: a, tool: math.add, inputs: {a: 1}, on_error: {do: explode}}`):                                                                                            `"explode": expected fail, skip, fallback or compensate`,
		one(`{id: a, tool: math.add, inputs: {a: 1}, on_error: {do: fallback, node: a}}`):                                                                                  `the node cannot be its own fallback`,
		one(`{id: a, tool: math.add, inputs: {a: 1}, join: some}`):                                                                                                         `expected any or all`,
		one(`{id: a, tool: math.add, inputs: {a: 1}, for_each: {items: "1"}}`):                                                                                             `expected a list`,
		"name: f\nentry: a\nexit: b\nnodes:\n  - {id: a, tool: math.add, inputs: {a: 1}, next: [{to: b, when: nodes.a.sum}]}\n  - {id: b, tool: math.add, inputs: {a: 1}}": `nodes[0].next[0].when: expected true or false, got integer`,
		"name: f x\nentry: a\nexit: a\nnodes: [{id: a, tool: math.add, inputs: {a: 1}}]":                                                                                   `f.yaml:1:7: name:`,
		"name: f\nentry: a\nexit: a\nnodes: []":                                                                                                                            `there are no nodes`,
	} {
		def, err := flow.ParseYAML("f.yaml", []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		_, err = flow.ComposeFor(allowed(t.Context()), def, &flow.Options{Runner: exec.NewRunner(cat)})
		if !errors.Is(err, flow.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", doc, err, want)
		}
	}
	for doc, want := range map[string]string{
		"name: f\nnods: []":          `f.yaml:2:1: unknown field "nods"`,
		"name: f\nnodes: [{idd: a}]": `f.yaml:2:10: unknown field "idd"`,
	} {
		if _, err := flow.ParseYAML("f.yaml", []byte(doc)); !errors.Is(err, flow.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
