package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// A flow that is called as a tool and meets a limit of its own has failed like any
// tool: what the node says about failures is done. A limit that holds the outer flow
// too ends both.
func TestABudgetOfAToolIsItsOwnAffair(t *testing.T) {
	ctx := allowed(t.Context())
	cat := catalog(t, &tracker{})
	inner := func(name string, b flow.Budget, tool string, inputs any) {
		f, err := flow.ComposeFor(ctx, flow.Definition{Name: name, Entry: "a", Exit: "b", Budget: b, Nodes: []flow.Node{
			{ID: "a", Tool: "math.add", Inputs: map[string]any{"a": 1}, Next: []flow.Edge{{To: "b"}}}, {ID: "b", Tool: tool, Inputs: inputs},
		}}, &flow.Options{Runner: exec.NewRunner(cat)})
		if err != nil {
			t.Fatal(err)
		}
		if err := flow.RegisterAsTool(cat, f); err != nil {
			t.Fatal(err)
		}
	}
	inner("inner.calls", flow.Budget{Calls: 1}, "math.add", map[string]any{"a": 1})
	inner("inner.late", flow.Budget{Deadline: time.Millisecond}, "wait.for", nil)
	inner("inner.free", flow.Budget{}, "math.add", map[string]any{"a": 1})
	for name, tc := range map[string]struct {
		tool   string
		budget flow.Budget
		ends   bool
	}{
		"its calls":         {"inner.calls", flow.Budget{}, false},
		"its time":          {"inner.late", flow.Budget{}, false},
		"calls of both":     {"inner.free", flow.Budget{Calls: 2}, true},
		"time of the outer": {"wait.for", flow.Budget{Deadline: time.Millisecond}, true},
	} {
		t.Run(name, func(t *testing.T) {
			outer, err := flow.ComposeFor(ctx, flow.Definition{Name: "outer", Entry: "a", Exit: "z", Budget: tc.budget, Nodes: []flow.Node{
				{ID: "a", Tool: tc.tool, OnError: flow.OnError{Do: flow.Skip}, Next: []flow.Edge{{To: "z"}}},
				{ID: "z", Func: flow.Func(func(_ context.Context, _ struct{}) (sum, error) { return sum{1}, nil })},
			}}, &flow.Options{Runner: exec.NewRunner(cat)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := outer.Run(ctx, nil); errors.Is(err, flow.ErrFlowBudgetExceeded) != tc.ends || (err != nil) != tc.ends {
				t.Errorf("got %v", err)
			}
		})
	}
}
