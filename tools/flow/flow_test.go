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
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/events"
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

func TestRetriesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		def := flow.Definition{Name: "f", Entry: "a", Exit: "a", Nodes: []flow.Node{{
			ID: "a", Retry: flow.Retry{Attempts: 4, Backoff: time.Second},
			Func: flow.Func(func(context.Context, struct{}) (sum, error) {
				if at = append(at, time.Since(began)); len(at) < 4 {
					return sum{}, errBroken
				}
				return sum{4}, nil
			}),
		}}}
		f, err := flow.Compose(def, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, t.Context(), f, ``); got != `{"sum":4}` {
			t.Errorf("got %s", got)
		}
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("got %v, want %v", at, want)
		}
	})
}

func TestBudgetsStopTheFlow(t *testing.T) {
	chain := "name: f\nentry: a\nexit: c\nbudget: {BUDGET}\nnodes:\n" +
		"  - {id: a, tool: math.add, inputs: {a: 1}, cost: 2, next: [{to: b}]}\n" +
		"  - {id: b, tool: math.add, inputs: {a: 2}, cost: 2, next: [{to: c}]}\n" +
		"  - {id: c, tool: math.add, inputs: {a: 3}, cost: 2}\n"
	for budget, want := range map[string]struct {
		axis  flow.Axis
		calls int
	}{
		"hop_budget: 2": {flow.AxisHops, 2}, "calls: 1": {flow.AxisCalls, 1}, "cost_cap: 5": {flow.AxisCost, 2}, "hop_budget: 3, calls: 3, cost_cap: 6": {"", 3},
	} {
		t.Run(budget, func(t *testing.T) {
			var tr tracker
			registry, err := events.NewRegistry(append(flow.EventDefinitions(), tools.EventDefinitions()...)...)
			if err != nil {
				t.Fatal(err)
			}
			bus := events.NewBus(registry)
			sub := bus.Subscribe(events.Filter{Types: []events.EventType{flow.EventTypeBudgetExceeded}}, nil)
			ctx := events.With(allowed(t.Context()), bus)
			_, err = compose(t, strings.Replace(chain, "BUDGET", budget, 1), catalog(t, &tr)).Run(ctx, nil)
			sub.Close()
			e, more := <-sub.Events()
			if len(tr.calls) != want.calls {
				t.Errorf("got %v", tr.calls)
			}
			if want.axis == "" {
				if err != nil || more {
					t.Errorf("got %v, %v", err, e)
				}
				return
			}
			var exceeded *flow.BudgetError
			if !errors.As(err, &exceeded) || !errors.Is(err, flow.ErrFlowBudgetExceeded) || exceeded.Axis != want.axis || exceeded.Flow != "f" {
				t.Errorf("got %v", err)
			}
			if p, ok := e.Payload.(flow.BudgetExceededPayload); !ok || p.Axis != want.axis || p.Identity.TenantID != "t" || p.Flow != "f" {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestTheSmallerBudgetCounts(t *testing.T) {
	var tr tracker
	f := compose(t, "name: outer\nentry: a\nexit: a\nnodes:\n  - id: a\n    flow:\n      name: inner\n      entry: x\n      exit: y\n      budget: {calls: 5}\n      nodes:\n"+
		"        - {id: x, tool: math.add, inputs: {a: 1}, next: [{to: y}]}\n        - {id: y, tool: math.add, inputs: {a: 2}}\n", catalog(t, &tr))
	ctx, cancel := flow.WithBudget(allowed(t.Context()), flow.Budget{Calls: 1})
	defer cancel()
	_, err := f.Run(ctx, nil)
	var exceeded *flow.BudgetError
	if !errors.As(err, &exceeded) || exceeded.Flow != "" || exceeded.Axis != flow.AxisCalls || len(tr.calls) != 1 {
		t.Errorf("got %v after %v", err, tr.calls)
	}
	if _, err := f.Run(ctx, nil); !errors.Is(err, flow.ErrFlowBudgetExceeded) {
		t.Errorf("a budget that is spent stays so: got %v", err)
	}
}

func TestDeadlineAndCancellationReachTheNodes(t *testing.T) {
	doc := "name: f\nentry: a\nexit: z\nBUDGETnodes:\n  - {id: a, tool: math.add, inputs: {a: 1}, next: [{to: b}, {to: c}]}\n" +
		"  - {id: b, tool: wait.for, next: [{to: z}]}\n  - {id: c, tool: wait.for, next: [{to: z}]}\n  - {id: z, tool: math.add, inputs: {a: 1}}\n"
	synctest.Test(t, func(t *testing.T) {
		var tr tracker
		f := compose(t, strings.Replace(doc, "BUDGET", "budget: {deadline_ms: 5000}\n", 1), catalog(t, &tr))
		began := time.Now()
		_, err := f.Run(t.Context(), nil)
		var exceeded *flow.BudgetError
		if !errors.As(err, &exceeded) || exceeded.Axis != flow.AxisDeadline || time.Since(began) != 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if n := strings.Count(strings.Join(tr.calls, " "), "cancelled"); n != 2 {
			t.Errorf("got %v", tr.calls)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var tr tracker
		f := compose(t, strings.Replace(doc, "BUDGET", "", 1), catalog(t, &tr))
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if _, err := f.Run(ctx, nil); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNodeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := compose(t, one(`{id: a, tool: wait.for, timeout_ms: 3000}`), catalog(t, &tracker{}))
		began := time.Now()
		_, err := f.Run(t.Context(), nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

func TestFunctionsAreContained(t *testing.T) {
	for name, f := range map[string]func(context.Context, struct{}) (sum, error){
		"panic":  func(context.Context, struct{}) (sum, error) { panic("secret") },
		"failed": func(context.Context, struct{}) (sum, error) { return sum{}, errBroken },
	} {
		composed, err := flow.Compose(flow.Definition{Name: "f", Entry: "a", Exit: "a", Nodes: []flow.Node{{ID: "a", Func: flow.Func(f)}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := composed.Run(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// asked answers every question with a fixed result.
type asked struct {
	tools.Peer
	result    string
	questions []string
}

func (a *asked) Ask(_ context.Context, q tools.Question) (tools.Answer, error) {
	a.questions = append(a.questions, string(q.Params))
	return tools.Answer{Result: json.RawMessage(a.result)}, nil
}

func (a *asked) Progress(context.Context, tools.ProgressNote) error { return nil }

func TestANodeAsksTheCaller(t *testing.T) {
	cat := catalog(t, &tracker{})
	f := compose(t, "name: ask_first\ninputs: {type: object, properties: {what: {type: string}}}\nentry: ok\nexit: a\nnodes:\n"+
		"  - {id: ok, ask: {message: \"Delete ${{ inputs.what }}?\"}, next: [{to: a}]}\n  - {id: a, tool: math.add, inputs: {a: 1}}\n", cat)
	if err := flow.RegisterAsTool(cat, f, tools.WithDescription("Asks first.")); err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]error{
		`{"action":"accept","content":{"approved":true}}`:  nil,
		`{"action":"accept","content":{"approved":false}}`: flow.ErrDeclined,
		`{"action":"decline"}`:                             flow.ErrDeclined,
	} {
		peer := &asked{result: answer}
		ctx := tools.WithEntrance(t.Context(), tools.Entrance{Peer: peer, Capabilities: tools.Capabilities{ElicitForm: true}})
		_, err := tools.Invoke(ctx, cat, "ask_first", json.RawMessage(`{"what":"it all"}`))
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v", answer, err)
		}
		if len(peer.questions) != 1 || !strings.Contains(peer.questions[0], "Delete it all?") {
			t.Errorf("got %v", peer.questions)
		}
	}
	if _, err := tools.Invoke(t.Context(), cat, "ask_first", json.RawMessage(`{"what":"it"}`)); !errors.Is(err, tools.ErrAskUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestFlowIsATool(t *testing.T) {
	cat := catalog(t, &tracker{})
	f := compose(t, diamond, cat)
	if err := flow.RegisterAsTool(cat, f, tools.WithDescription("A diamond.")); err != nil {
		t.Fatal(err)
	}
	result, err := tools.Invoke(t.Context(), cat, "diamond", json.RawMessage(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := result.JSON(); string(raw) != `{"total":107}` {
		t.Errorf("got %s", raw)
	}
	d, _ := cat.Resolve("diamond")
	if d.Tool.SideEffects != tools.SideEffectPure || d.Tool.Transport != tools.TransportFlow || d.Tool.Category != "flow" {
		t.Errorf("got %+v", d.Tool)
	}
	if _, err := tools.Invoke(t.Context(), cat, "diamond", json.RawMessage(`{"n":"x"}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("got %v", err)
	}
	guarded := compose(t, strings.ReplaceAll(one(`{id: a, tool: math.fail, inputs: {a: 1}}`), "name: f", "name: guarded"), cat)
	if err := flow.RegisterAsTool(cat, guarded); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Invoke(t.Context(), cat, "guarded", nil); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("a caller without the scope of a node: got %v", err)
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

func TestRunsAreKeptAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr tracker
		kept := flow.NewLog(nil)
		def, err := flow.ParseYAML("f.yaml", []byte(one(`{id: a, tool: wait.for}`)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := flow.Compose(def, &flow.Options{Runner: exec.NewRunner(catalog(t, &tr)), Recorder: kept})
		if err != nil {
			t.Fatal(err)
		}
		mine := allowed(t.Context())
		other := identity.With(t.Context(), identity.Identity{TenantID: "t", UserID: "other", SessionID: "s"})
		ended := make(chan error)
		go func() { _, err := f.Run(mine, nil); ended <- err }()
		synctest.Wait()
		list := kept.List(mine)
		if len(list) != 1 || list[0].Flow != "f" || len(list[0].Nodes) != 1 || list[0].Nodes[0].Status != flow.Started || !list[0].Ended.IsZero() {
			t.Fatalf("got %+v", list)
		}
		id := list[0].ID
		if len(kept.List(other)) != 0 || !errors.Is(kept.Cancel(other, id), flow.ErrRunNotFound) {
			t.Error("another user reached the run")
		}
		if _, err := kept.Get(other, id); !errors.Is(err, flow.ErrRunNotFound) {
			t.Errorf("got %v", err)
		}
		if err := kept.Cancel(mine, id); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, flow.ErrCanceled) {
			t.Errorf("got %v", err)
		}
		if state, err := kept.Get(mine, id); err != nil || state.Ended.IsZero() || !strings.Contains(state.Error, "cancelled") {
			t.Errorf("got %+v, %v", state, err)
		}
	})
}

func TestResumeDoesNotRepeatWhatIsDone(t *testing.T) {
	ctx := allowed(t.Context())
	var tr tracker
	kept, broken := flow.NewLog(nil), true
	def := flow.Definition{Name: "f", Entry: "a", Exit: "b", Nodes: []flow.Node{
		{ID: "a", Tool: "math.add", Inputs: map[string]any{"a": 1}, Next: []flow.Edge{{To: "b"}}},
		{ID: "b", Inputs: map[string]any{"a": "${{ nodes.a.sum }}"}, Func: flow.Func(func(_ context.Context, in numbers) (sum, error) {
			if broken {
				return sum{}, errBroken
			}
			return sum{in.A + 41}, nil
		})},
	}}
	f, err := flow.ComposeFor(ctx, def, &flow.Options{Runner: exec.NewRunner(catalog(t, &tr)), Recorder: kept})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(ctx, nil); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	broken = false
	out, err := f.Resume(ctx, kept.List(ctx)[0].ID)
	if diff := cmp.Diff(map[string]any{"sum": json.Number("42")}, out); err != nil || diff != "" {
		t.Errorf("got %v, %v", out, err)
	}
	if len(tr.calls) != 1 {
		t.Errorf("got %v", tr.calls)
	}
	if _, err := f.Resume(ctx, "nosuch"); !errors.Is(err, flow.ErrRunNotFound) {
		t.Errorf("got %v", err)
	}
}

// crashed loads a run that ended while a node with effects ran.
type crashed struct{ *flow.Log }

func (crashed) Load(context.Context, string) (flow.Run, []flow.NodeRecord, error) {
	return flow.Run{ID: "r", Flow: "f"}, []flow.NodeRecord{{Node: "a", Ran: "a", Status: flow.Started}}, nil
}

func TestResumeRepeatsNothingWhoseOutcomeIsUnknown(t *testing.T) {
	ctx := allowed(t.Context())
	for tool, want := range map[string]error{"math.add": nil, "math.fail": tools.ErrOutcomeUnknown} {
		var tr tracker
		def, err := flow.ParseYAML("f.yaml", []byte(one(`{id: a, tool: `+tool+`, inputs: {a: 1}}`)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := flow.ComposeFor(ctx, def, &flow.Options{Runner: exec.NewRunner(catalog(t, &tr)), Recorder: crashed{flow.NewLog(nil)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Resume(ctx, "r"); !errors.Is(err, want) || want != nil && len(tr.calls) != 0 {
			t.Errorf("%s: got %v after %v", tool, err, tr.calls)
		}
	}
}

func TestMermaid(t *testing.T) {
	got := compose(t, strings.Replace(failing, "HANDLING", "do: fallback, node: spare", 1), catalog(t, &tracker{})).Mermaid()
	for _, want := range []string{"flowchart TD\n", `n0(["a<br/>math.add"])`, "n0 --> n1", `n2 -.->|"on error"| n6`, `n0 -.->|"undo"| n4`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// Concurrent runs of one flow never see each other.
func TestRunsDoNotMix(t *testing.T) {
	f := compose(t, diamond, catalog(t, &tracker{}))
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			want := fmt.Sprintf(`{"total":%d}`, i+1+100+5)
			if i+1 >= 10 {
				want = fmt.Sprintf(`{"total":%d}`, i+1+1000+5)
			}
			for range 10 {
				if got := run(t, t.Context(), f, fmt.Sprintf(`{"n":%d}`, i)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}
