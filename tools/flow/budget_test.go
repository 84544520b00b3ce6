package flow_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

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

// Nothing is more than what is no number, so a budget in which there is one would
// hold nothing.
func TestNumbersOfABudgetAreFinite(t *testing.T) {
	for _, doc := range []string{
		"budget: {cost_cap: .nan}\nnodes: [{id: a, tool: math.add}]",
		"budget: {cost_cap: .inf}\nnodes: [{id: a, tool: math.add}]",
		"nodes: [{id: a, tool: math.add, cost: .nan}]",
		"nodes: [{id: a, tool: math.add, cost: .inf}]",
		"budget: {deadline_ms: -9223372036854775808}\nnodes: [{id: a, tool: math.add}]",
	} {
		def, err := flow.ParseYAML("f.yaml", []byte("name: f\nentry: a\nexit: a\n"+doc))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := flow.Compose(def, &flow.Options{Runner: exec.NewRunner(catalog(t, &tracker{}))}); !errors.Is(err, flow.ErrInvalid) {
			t.Errorf("%s: got %v", doc, err)
		}
	}
	def, err := flow.ParseYAML("f.yaml", []byte("name: f\nentry: a\nexit: a\nbudget: {deadline_ms: 18446744073709552}\nnodes: [{id: a, tool: math.add}]"))
	if want := time.Duration(math.MaxInt64).Truncate(time.Millisecond); err != nil || def.Budget.Deadline != want {
		t.Errorf("got %v, %v", def.Budget.Deadline, err)
	}
}

// A run takes no memory for nodes that it does not have.
func TestParallelIsNoMoreThanThereIs(t *testing.T) {
	f := compose(t, "name: f\nentry: a\nexit: a\nparallel: 1000000000\nnodes: [{id: a, tool: math.add, inputs: {a: 1}, for_each: {items: '[1]', parallel: 1000000000}}]", catalog(t, &tracker{}))
	if got := run(t, allowed(t.Context()), f, "{}"); got != `[{"sum":1}]` {
		t.Errorf("got %s", got)
	}
}
