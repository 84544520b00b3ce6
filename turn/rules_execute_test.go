package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

type stateKey struct{}

// What a tool needs at run time is on its context: the run's identity and state,
// the catalog, the bus, the call, and the end of the turn.
func TestExecuteWithAccessToRuntime(t *testing.T) {
	c := newCrib(t)
	var problems []string
	c.add(tools.Tool{Name: "a"}, func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		who, _ := identity.QuadrupleFrom(ctx)
		if who.TenantID != "t" || who.RunID != "run" {
			problems = append(problems, "identity")
		}
		if ctx.Value(stateKey{}) != "state" {
			problems = append(problems, "state")
		}
		if cat, ok := tools.Catalog(ctx); !ok || cat == nil {
			problems = append(problems, "catalog")
		}
		if bus, ok := events.From(ctx); !ok || bus == nil {
			problems = append(problems, "bus")
		}
		if tools.CallFrom(ctx).ID != "1" {
			problems = append(problems, "call")
		}
		return tools.ToolResult{}, nil
	})
	ctx := identity.WithRun(context.WithValue(caller(), stateKey{}, "state"), "run")
	if _, err := c.begin(ctx, nil).Execute(ctx, []turn.Call{call("1", "a", `{}`)}); err != nil || problems != nil {
		t.Error(err, problems)
	}
}

func TestExecuteWithCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrib(t)
		running := make(chan struct{})
		c.add(tools.Tool{Name: "slow", SideEffects: tools.SideEffectWrite, Transport: tools.TransportHTTP}, func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			close(running)
			<-ctx.Done()
			return tools.ToolResult{}, ctx.Err()
		}).add(tools.Tool{Name: "quick"}, nil)
		ctx, cancel := context.WithCancel(caller())
		tn := c.begin(ctx, &turn.Options{Concurrency: 1})
		go func() {
			<-running
			cancel()
		}()
		results, err := tn.Execute(ctx, []turn.Call{call("1", "quick", `{}`), call("2", "slow", `{}`), call("3", "quick", `{}`)})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		want(t, results, turn.StatusCompleted, turn.StatusCancelled, turn.StatusNotRun)
		if !errors.Is(results[1].Err, tools.ErrOutcomeUnknown) || !strings.Contains(results[1].Text(), "not known whether it had its effect") {
			t.Errorf("%v: %s", results[1].Err, results[1].Text())
		}
		heard := c.heard()
		if got := countTerminal(heard); got != 3 {
			t.Errorf("%d terminal events for 3 calls", got)
		}
		last, ok := heard[len(heard)-1].Payload.(tools.ToolDeniedPayload)
		if !ok || last.Reason != "context canceled" || last.Stage != "entrance" {
			t.Errorf("the call that was not made is told of as %+v", heard[len(heard)-1])
		}
	})
}

func TestCheckToolCallLimits(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	run := turn.New(c.cat, &turn.Options{Turn: turn.Limits{Calls: 2}, Run: turn.Limits{Calls: 3}}).NewRun(turn.Usage{})
	three := []turn.Call{call("1", "a", `{}`), call("2", "a", `{}`), call("3", "a", `{}`)}
	for i, list := range [][]turn.Status{
		{turn.StatusCompleted, turn.StatusCompleted, turn.StatusNotRun},
		{turn.StatusCompleted, turn.StatusNotRun, turn.StatusNotRun},
	} {
		tn, err := run.Begin(caller())
		must(t, err)
		results, err := tn.Execute(caller(), three)
		if errors.Is(err, turn.ErrBudget) != (i == 1) {
			t.Errorf("turn %d: error %v", i, err)
		}
		want(t, results, list...)
		if r := results[2]; !errors.Is(r.Err, turn.ErrNotRun) || !errors.Is(r.Err, turn.ErrBudget) || !r.IsError {
			t.Errorf("turn %d: %v", i, r.Err)
		}
	}
	if got := countTerminal(c.heard()); got != 6 {
		t.Errorf("%d terminal events for 6 calls", got)
	}
	if got := run.Used().Calls; got != 3 {
		t.Errorf("the run used %d calls", got)
	}
}

func TestCheckConcurrencyLimits(t *testing.T) {
	for _, limit := range []int{1, 3, 0} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int32
			c := newCrib(t).add(tools.Tool{Name: "a"}, func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Second)
				return tools.ToolResult{Value: args}, nil
			})
			calls := make([]turn.Call, 20)
			for i := range calls {
				calls[i] = call("", "a", `{}`)
			}
			began := time.Now()
			c.execute(&turn.Options{Concurrency: limit}, calls...)
			allowed := limit
			if allowed == 0 {
				allowed = turn.DefaultConcurrency
			}
			rounds := (len(calls) + allowed - 1) / allowed
			if int(most.Load()) != allowed || time.Since(began) != time.Duration(rounds)*time.Second {
				t.Errorf("limit %d: %d at once, %v", limit, most.Load(), time.Since(began))
			}
		})
	}
}

// Started, before middleware, execution, after middleware, result, completed.
func TestExecutionLifecycle(t *testing.T) {
	c := newCrib(t)
	var order []string
	note := func(s string) { order = append(order, s) }
	c.add(tools.Tool{Name: "a"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		note("tool")
		return tools.ToolResult{Value: "x"}, nil
	})
	around := func(next turn.Handler) turn.Handler {
		return func(ctx context.Context, inv *turn.Invocation) (tools.ToolResult, error) {
			note("around, in")
			defer note("around, out")
			return next(ctx, inv)
		}
	}
	results := c.execute(&turn.Options{Middleware: []turn.Middleware{
		around,
		turn.Before(func(_ context.Context, inv *turn.Invocation) error {
			note("before " + inv.Tool.Name + " " + inv.ID)
			return nil
		}),
		turn.After(func(_ context.Context, _ *turn.Invocation, res *tools.ToolResult) error {
			note("after " + string(res.Structured))
			return nil
		}),
	}}, call("7", "a", `{}`))
	want(t, results, turn.StatusCompleted)
	if diff := cmp.Diff([]string{"around, in", "before a 7", "tool", `after "x"`, "around, out"}, order); diff != "" {
		t.Error(diff)
	}
	if got := story(c.heard()); !slices.Equal(got, []string{"tool.invoked a", "tool.completed a"}) {
		t.Errorf("events %q", got)
	}
}

// What middleware changes of the arguments is checked like what a model sends.
func TestBeforeMiddlewareIsValidated(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: object(`"n":{"type":"integer"}`)}, nil)
	for args, status := range map[string]turn.Status{`{"n":2}`: turn.StatusCompleted, `{"n":"two"}`: turn.StatusInvalid} {
		results := c.execute(&turn.Options{Middleware: []turn.Middleware{turn.Before(func(_ context.Context, inv *turn.Invocation) error {
			inv.Args = json.RawMessage(args)
			return nil
		})}}, call("1", "a", `{"n":1}`))
		want(t, results, status)
		if status == turn.StatusCompleted && string(results[0].Structured) != args {
			t.Errorf("%s", results[0].Structured)
		}
	}
}

func TestSerialExecution(t *testing.T) {
	c := newCrib(t)
	var order []string
	c.add(tools.Tool{Name: "a"}, func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
		order = append(order, string(args)) // races unless one runs after the other
		return tools.ToolResult{}, nil
	})
	c.execute(&turn.Options{Concurrency: 1}, call("1", "a", `1`), call("2", "a", `2`), call("3", "a", `3`), call("4", "a", `4`))
	if !slices.Equal(order, []string{"1", "2", "3", "4"}) {
		t.Errorf("order %q", order)
	}
}

// Middleware judges by the metadata that a tool declares, and what a tool does
// not say is not taken for safe.
func TestSafetyMetadataIsEnforcedByMiddleware(t *testing.T) {
	declared := tools.Safety{ReadOnly: tools.Yes, Idempotent: tools.Yes, OpenWorld: tools.No, Filesystem: tools.No, Process: tools.No, Spend: tools.No, Destructive: tools.No}
	facts := map[string]struct {
		fact turn.Fact
		set  func(*tools.Safety, tools.Flag)
	}{
		"read-only":    {turn.ReadOnly, func(s *tools.Safety, f tools.Flag) { s.ReadOnly = f }},
		"destructive":  {turn.Destructive, func(s *tools.Safety, f tools.Flag) { s.ReadOnly, s.Destructive = tools.No, f }},
		"idempotent":   {turn.Idempotent, func(s *tools.Safety, f tools.Flag) { s.Idempotent = f }},
		"networked":    {turn.OpenWorld, func(s *tools.Safety, f tools.Flag) { s.OpenWorld = f }},
		"filesystem":   {turn.Filesystem, func(s *tools.Safety, f tools.Flag) { s.Filesystem = f }},
		"shell":        {turn.Process, func(s *tools.Safety, f tools.Flag) { s.Process = f }},
		"spend":        {turn.Spend, func(s *tools.Safety, f tools.Flag) { s.Spend = f }},
		"confirmation": {turn.NeedsConfirmation, func(s *tools.Safety, f tools.Flag) { s.NeedsConfirmation = f }},
	}
	approve := tools.WithStages(tools.Stages{Approver: agreeing{}})
	for name, f := range facts {
		for _, flag := range []tools.Flag{tools.Unset, tools.No, tools.Yes} {
			safety := declared
			f.set(&safety, flag)
			c := newCrib(t, approve).add(tools.Tool{Name: "a", Safety: safety}, nil)
			status := map[bool]turn.Status{true: turn.StatusCompleted, false: turn.StatusDenied}
			want(t, c.execute(&turn.Options{Middleware: []turn.Middleware{turn.Allow(turn.Is(f.fact))}}, call("1", "a", `{}`)), status[flag == tools.Yes])
			want(t, c.execute(&turn.Options{Middleware: []turn.Middleware{turn.Deny(turn.May(f.fact))}}, call("1", "a", `{}`)), status[flag == tools.No])
			if t.Failed() {
				t.Fatalf("%s %s", name, flag)
			}
		}
	}
}

// person decides as the arguments say.
type person struct{}

func (person) Approve(_ context.Context, req tools.ApprovalRequest) (json.RawMessage, error) {
	switch string(req.Args) {
	case `{"n":1}`:
		return nil, nil
	case `{"n":2}`:
		return json.RawMessage(`{"n":20}`), nil
	case `{"n":3}`:
		return json.RawMessage(`{"n":"x"}`), nil
	case `{"n":4}`:
		return nil, tools.ErrApprovalExpired
	}
	return nil, tools.ErrToolRejected
}

func TestHumanInTheLoop(t *testing.T) {
	c := newCrib(t, tools.WithStages(tools.Stages{Approver: person{}})).
		add(tools.Tool{Name: "a", Safety: tools.Safety{NeedsConfirmation: tools.Yes}, ArgsSchema: object(`"n":{"type":"integer"}`)}, nil)
	results := c.execute(&turn.Options{Concurrency: 1}, call("1", "a", `{"n":1}`), call("2", "a", `{"n":2}`), call("3", "a", `{"n":3}`), call("4", "a", `{"n":4}`), call("5", "a", `{"n":5}`))
	want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusInvalid, turn.StatusDenied, turn.StatusDenied)
	if string(results[1].Structured) != `{"n":20}` || !errors.Is(results[3].Err, tools.ErrApprovalExpired) || !errors.Is(results[4].Err, tools.ErrToolRejected) {
		t.Errorf("%s, %v, %v", results[1].Structured, results[3].Err, results[4].Err)
	}
}

// agreeing approves everything.
type agreeing struct{}

func (agreeing) Approve(context.Context, tools.ApprovalRequest) (json.RawMessage, error) {
	return nil, nil
}
