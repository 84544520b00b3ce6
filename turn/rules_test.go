package turn_test

import (
	"bytes"
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

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/turn"
)

// The tests of this file are named after the rules of the published design of a
// harness's tool feature, in its order.

func TestRegisterNamedTools(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil).add(tools.Tool{Name: "b"}, nil)
	if got := c.begin(caller(), nil).Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("declared %q", got)
	}
}

func TestToolNamesAreRejected(t *testing.T) {
	c := newCrib(t, tools.WithStrictNames()).add(tools.Tool{Name: "taken"}, nil)
	for why, name := range map[string]string{
		"empty": "", "duplicate": "taken", "spaces": "two words", "too long": strings.Repeat("n", 65), "provider escaping": "a/b", "not snake case": "getWeather",
	} {
		if c.cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: name}, Invoke: echo}) == nil {
			t.Errorf("%s: %q was registered", why, name)
		}
	}
	if got := c.begin(caller(), nil).Names(); !slices.Equal(got, []string{"taken"}) {
		t.Errorf("declared %q", got)
	}
}

// Events name the tool as the catalog does, whatever a provider was shown.
func TestCanonicalNamesInEvents(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "weather.get_current"}, nil)
	c.execute(nil, call("1", "weather.get_current", `{}`))
	if got := story(c.heard()); !slices.Equal(got, []string{"tool.invoked weather.get_current", "tool.completed weather.get_current"}) {
		t.Errorf("events %q", got)
	}
}

type findArgs struct {
	Query  string `json:"query"`
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
	Key    string `json:"api_key"`
	Store  string `json:"store"`
}

type secrets map[string]string

func (s secrets) Secret(_ context.Context, name string) (string, error) { return s[name], nil }

// hidingCrib has a tool with every kind of hidden argument, which keeps what it
// was given.
func hidingCrib(t *testing.T) (*crib, *findArgs) {
	t.Helper()
	c := newCrib(t, tools.WithStages(tools.Stages{Secrets: secrets{"SEARCH_KEY": "hunter2"}}))
	got := new(findArgs)
	err := inproc.RegisterFunc(c.cat, "find", func(_ context.Context, in findArgs) (struct{}, error) { *got = in; return struct{}{}, nil },
		tools.WithInjected(
			tools.Injected{Arg: "tenant", From: tools.InjectTenant}, tools.Injected{Arg: "run", From: tools.InjectRun},
			tools.Injected{Arg: "api_key", From: "secret:SEARCH_KEY"},
			tools.Injected{Arg: "store", Value: func(context.Context) (any, error) { return "handle", nil }}))
	if err != nil {
		t.Fatal(err)
	}
	return c, got
}

func TestHiddenValuesNeverAppearInTheSchema(t *testing.T) {
	c, _ := hidingCrib(t)
	tn := c.begin(caller(), nil)
	shown := []byte(tn.Tools()[0].ArgsSchema)
	for _, p := range adapter.Providers() {
		a, err := adapter.New(p, nil)
		must(t, err)
		shown = append(shown, tn.Declare(a).JSON()...)
	}
	for _, hidden := range []string{"tenant", "run", "api_key", "SEARCH_KEY", "hunter2", "store"} {
		if bytes.Contains(shown, []byte(`"`+hidden)) || bytes.Contains(shown, []byte(hidden+`"`)) {
			t.Errorf("%q is shown: %s", hidden, shown)
		}
	}
	if !bytes.Contains(shown, []byte("query")) {
		t.Errorf("the argument that a model chooses is missing: %s", shown)
	}
}

func TestHiddenValuesNeverAppearInTheDefinition(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: object(`"tenant":{"type":"string"}`), Definition: json.RawMessage(`{"name":"a","inputSchema":{"properties":{"tenant":{}}}}`),
		Injected: []tools.Injected{{Arg: "tenant", From: tools.InjectTenant}}}, nil)
	var chosen []tools.Tool
	opts := &turn.Options{Select: func(_ context.Context, list []tools.Tool) ([]string, error) { chosen = list; return []string{"a"}, nil }}
	for _, list := range [][]tools.Tool{c.begin(caller(), opts).Tools(), chosen} {
		if len(list) != 1 || len(list[0].Definition) > 0 || len(list[0].Injected) > 0 {
			t.Errorf("shown: %+v", list)
		}
	}
}

func TestHiddenValuesAreInjectedAtExecution(t *testing.T) {
	c, got := hidingCrib(t)
	ctx := identity.WithQuadruple(context.Background(), identity.Quadruple{Identity: identity.Identity{TenantID: "acme", UserID: "u", SessionID: "s"}, RunID: "r1"})
	results, err := c.begin(ctx, nil).Execute(ctx, []turn.Call{call("1", "find", `{"query":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, results, turn.StatusCompleted)
	if diff := cmp.Diff(findArgs{Query: "x", Tenant: "acme", Run: "r1", Key: "hunter2", Store: "handle"}, *got); diff != "" {
		t.Error(diff)
	}
}

func TestForgedHiddenArgumentsAreNotExecuted(t *testing.T) {
	c, got := hidingCrib(t)
	results := c.execute(nil, call("1", "find", `{"query":"x","tenant":"other"}`))
	want(t, results, turn.StatusInvalid)
	if *got != (findArgs{}) {
		t.Error("the tool ran")
	}
	if got := story(c.heard()); !slices.Equal(got, []string{"tool.forged_args find", "tool.invalid_args find"}) {
		t.Errorf("events %q", got)
	}
	if text := results[0].Text(); strings.Contains(text, "other") {
		t.Errorf("the message repeats the value: %s", text)
	}
}

func TestValidateToolNameExists(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "get_weather"}, nil)
	results := c.execute(nil, call("1", "get_wether", `{}`))
	want(t, results, turn.StatusUnknown)
	if r := results[0]; !errors.Is(r.Err, tools.ErrToolNotFound) || !r.IsError || !strings.Contains(r.Text(), `Did you mean "get_weather"?`) {
		t.Errorf("%v: %s", r.Err, r.Text())
	}
	if got := story(c.heard()); !slices.Equal(got, []string{"tool.unknown get_wether"}) {
		t.Errorf("events %q", got)
	}
}

func TestValidateArgumentsAgainstTheInputSchema(t *testing.T) {
	ran := 0
	c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			ran++
			return tools.ToolResult{}, nil
		})
	results := c.execute(nil, call("1", "a", `{"n":"secret text"}`), call("2", "a", `{}`), call("3", "a", `{"n":1}`))
	want(t, results, turn.StatusInvalid, turn.StatusInvalid, turn.StatusCompleted)
	if r := results[0]; ran != 1 || !errors.Is(r.Err, tools.ErrToolInvalidArgs) || strings.Contains(r.Text(), "secret text") || !strings.Contains(r.Text(), "/n") {
		t.Errorf("ran %d: %s", ran, r.Text())
	}
}

// A tool that the caller may see and that was not declared in this turn is as
// unknown as one that does not exist, also to a model that remembers it.
func TestValidateAgainstTheToolsAdvertisedInThisTurn(t *testing.T) {
	ran := 0
	count := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		ran++
		return tools.ToolResult{}, nil
	}
	c := newCrib(t).add(tools.Tool{Name: "first"}, count)
	tn := c.begin(caller(), nil)
	c.add(tools.Tool{Name: "later"}, count).add(tools.Tool{Name: "hidden", AuthScopes: []string{"admin"}}, count)
	results, err := tn.Execute(caller(), []turn.Call{call("1", "later", `{}`), call("2", "hidden", `{}`), call("3", "nothing", `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, results, turn.StatusUnknown, turn.StatusUnknown, turn.StatusUnknown)
	if ran != 0 {
		t.Error("a tool ran that was not declared")
	}
	for i, name := range []string{"later", "hidden", "nothing"} {
		if got := strings.ReplaceAll(results[i].Text(), name, "X"); got != `There is no tool "X" in this turn.` {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := countTerminal(c.heard()); got != 3 {
		t.Errorf("%d terminal events for 3 calls", got)
	}
}

func TestWhatWasAdvertisedIsCheckedAgainAtExecution(t *testing.T) {
	ran := 0
	count := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		ran++
		return tools.ToolResult{}, nil
	}
	c := newCrib(t)
	for _, name := range []string{"same", "gone", "changed", "quarantined"} {
		c.add(tools.Tool{Name: name, Description: "as declared"}, count)
	}
	tn := c.begin(caller(), nil)
	must(t, c.cat.Deregister("gone"))
	must(t, c.cat.Quarantine("quarantined", true))
	must(t, c.cat.Replace([]tools.ToolDescriptor{{Tool: tools.Tool{Name: "changed", Description: "otherwise"}, Invoke: count}}))
	results, err := tn.Execute(caller(), []turn.Call{call("1", "same", `{}`), call("2", "gone", `{}`), call("3", "changed", `{}`), call("4", "quarantined", `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, results, turn.StatusCompleted, turn.StatusUnknown, turn.StatusNotRun, turn.StatusUnknown)
	if ran != 1 || !strings.Contains(results[2].Text(), "changed since it was declared") {
		t.Errorf("ran %d: %s", ran, results[2].Text())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

func TestValidationFailuresAreModelConsumable(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: object(`"n":{"type":"integer"}`)}, nil)
	for _, bad := range []turn.Call{call("1", "a", `{"n":true}`), call("1", "a", `{"n":`), call("1", "b", `{}`)} {
		results, err := c.begin(caller(), nil).Execute(caller(), []turn.Call{bad})
		if err != nil || len(results) != 1 || !results[0].IsError || results[0].Text() == "" {
			t.Errorf("%s: %v %+v", bad.Args, err, results)
		}
	}
}

func TestValidationFailuresAreHardWhenPolicyForbidsRepair(t *testing.T) {
	deny := []turn.Middleware{turn.Deny(turn.Named("denied"))}
	for _, bad := range []turn.Call{call("1", "a", `{"n":true}`), call("1", "a", `{"n":`), call("1", "b", `{}`), call("1", "denied", `{}`)} {
		c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: object(`"n":{"type":"integer"}`)}, nil).add(tools.Tool{Name: "denied"}, nil)
		tn := c.begin(caller(), &turn.Options{BadCalls: turn.Fail, Concurrency: 1, Middleware: deny})
		results, err := tn.Execute(caller(), []turn.Call{call("0", "a", `{}`), bad, call("2", "a", `{}`)})
		if !errors.Is(err, turn.ErrBadCall) || len(results) != 3 {
			t.Errorf("%s %s: %v", bad.Name, bad.Args, err)
		}
		want(t, results, turn.StatusCompleted, results[1].Status, turn.StatusNotRun)
		if !slices.Contains([]turn.Status{turn.StatusInvalid, turn.StatusUnknown, turn.StatusDenied}, results[1].Status) {
			t.Errorf("status %s", results[1].Status)
		}
		if got := countTerminal(c.heard()); got != 3 {
			t.Errorf("%d terminal events for 3 calls", got)
		}
	}
}

func TestMalformedArgumentsAreNotReplacedWithEmptyDefaults(t *testing.T) {
	ran := map[string]int{}
	counting := func(name string) tools.Invoker {
		return func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			ran[name]++
			return tools.ToolResult{}, nil
		}
	}
	all := object(`"force":{"type":"boolean"}`)
	for _, policy := range []turn.BadCalls{turn.ReturnError, turn.Normalize} {
		clear(ran)
		c := newCrib(t).
			add(tools.Tool{Name: "delete_all", SideEffects: tools.SideEffectWrite, ArgsSchema: all}, counting("delete_all")).
			add(tools.Tool{Name: "unclassified", ArgsSchema: all}, counting("unclassified")).
			add(tools.Tool{Name: "list_all", SideEffects: tools.SideEffectRead, ArgsSchema: all}, counting("list_all")).
			add(tools.Tool{Name: "reset", SideEffects: tools.SideEffectWrite, ArgsSchema: object("")}, counting("reset"))
		opts := &turn.Options{BadCalls: policy, Concurrency: 1}
		for _, args := range []string{`{"force":`, `{force:true}`, `{}{}`, `{"force":true,"force":false}`, `nil`, `"{\"force\":true}"`, `[]`} {
			results := c.execute(opts, call("1", "delete_all", args), call("2", "unclassified", args))
			want(t, results, turn.StatusInvalid, turn.StatusInvalid)
		}
		for _, none := range []string{"", "null", " "} {
			results := c.execute(opts, call("1", "delete_all", none), call("2", "unclassified", none), call("3", "list_all", none), call("4", "reset", none))
			want(t, results, turn.StatusInvalid, turn.StatusInvalid, turn.StatusCompleted, turn.StatusCompleted)
		}
		if diff := cmp.Diff(map[string]int{"list_all": 3, "reset": 3}, ran); diff != "" {
			t.Errorf("%s: %s", policy, diff)
		}
	}
}

func TestToolCallIDsArePreserved(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	calls := []turn.Call{call("x", "a", `{"n":1}`), call("x", "a", `{"n":2}`), call("", "a", `{"n":3}`), call("", "no", `{}`), call("x", "no", `{}`), call("x", "a", `{`)}
	results := c.execute(nil, calls...)
	if len(results) != len(calls) {
		t.Fatalf("%d results for %d calls", len(results), len(calls))
	}
	for i, r := range results {
		if r.ID != calls[i].ID || r.Name != calls[i].Name {
			t.Errorf("result %d is of %q %q, the call was %q %q", i, r.ID, r.Name, calls[i].ID, calls[i].Name)
		}
	}
	for i := range 3 {
		if string(results[i].Structured) != string(calls[i].Args) {
			t.Errorf("result %d is %s", i, results[i].Structured)
		}
	}
	ids := map[string]bool{}
	for _, e := range c.heard() {
		if e.Type == tools.EventTypeToolCompleted {
			ids[e.CallID] = true
		}
	}
	if len(ids) != 3 || !ids["x"] {
		t.Errorf("events name the calls %v", ids)
	}
}

func TestAllowlistViolationsEmitEventsAndAppendRepairableResults(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "read", Safety: readOnly}, nil).add(tools.Tool{Name: "write"}, nil)
	only := &turn.Options{Select: turn.Only(turn.Is(turn.ReadOnly))}
	tn := c.begin(caller(), only)
	if got := tn.Names(); !slices.Equal(got, []string{"read"}) {
		t.Errorf("declared %q", got)
	}
	results := c.execute(only, call("1", "write", `{}`), call("2", "read", `{}`))
	want(t, results, turn.StatusUnknown, turn.StatusCompleted)
	heard := c.heard()
	denied := slices.IndexFunc(heard, func(e events.Event) bool { return e.Type == tools.EventTypeToolDenied })
	if denied < 0 || heard[denied].Payload.(tools.ToolDeniedPayload).Stage != "entrance" || heard[denied].Tool != "write" {
		t.Errorf("events %q", story(heard))
	}
}

func TestToolSelectionMiddlewareAndDynamicExposure(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil).add(tools.Tool{Name: "b"}, nil).add(tools.Tool{Name: "c"}, nil)
	keep := []string{"b", "nowhere"}
	run := turn.New(c.cat, &turn.Options{Select: func(context.Context, []tools.Tool) ([]string, error) { return keep, nil }}).NewRun(turn.Usage{})
	for _, now := range [][]string{{"b", "nowhere"}, {"c", "a"}, nil} {
		keep = now
		tn, err := run.Begin(caller())
		must(t, err)
		var shown []string
		for _, tool := range tn.Tools() {
			shown = append(shown, tool.Name)
		}
		var kept []string
		for _, name := range []string{"a", "b", "c"} {
			if slices.Contains(now, name) {
				kept = append(kept, name)
			}
			if tn.Has(name) != slices.Contains(now, name) {
				t.Errorf("%v: Has(%q)", now, name)
			}
		}
		if !slices.Equal(shown, kept) || !slices.Equal(tn.Names(), kept) {
			t.Errorf("%v: shown %q, names %q", now, shown, tn.Names())
		}
	}
	fails := errors.New("no")
	if _, err := turn.New(c.cat, &turn.Options{Select: func(context.Context, []tools.Tool) ([]string, error) { return nil, fails }}).Begin(caller()); !errors.Is(err, fails) {
		t.Error(err)
	}
}

func TestResultsKeepStructuredOutputsAndArtifacts(t *testing.T) {
	full := tools.ToolResult{Content: []tools.Content{tools.TextContent("see the file"), tools.ImageContent([]byte{1}, "image/png")},
		Structured: json.RawMessage(`{"big":9007199254740993}`), Artifacts: []tools.ArtifactRef{{Ref: "art-1", MIME: "text/csv", SizeBytes: 5}},
		Provider: map[string]any{"http_status": 200}, Meta: map[string]any{"k": "v"}}
	c := newCrib(t).add(tools.Tool{Name: "a"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) { return full, nil })
	got := c.execute(nil, call("1", "a", `{}`))[0]
	if got.CallID == "" || got.Attempts != 1 || got.Elapsed < 0 || got.ID != "1" || got.Name != "a" || got.Tool != "a" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(full.Content, got.Content); diff != "" || string(got.Structured) != string(full.Structured) || !cmp.Equal(got.Artifacts, full.Artifacts) ||
		!cmp.Equal(got.Provider, full.Provider) || !cmp.Equal(got.Meta, full.Meta) {
		t.Errorf("%+v", got)
	}
}

// shelf is a Bounder that keeps what has more than 100 bytes.
type shelf struct{ kept map[string][]byte }

func (s *shelf) Bound(_ context.Context, tool *tools.Tool, res tools.ToolResult) (tools.ToolResult, error) {
	if tool.Name == "broken" {
		return tools.ToolResult{}, errors.New("the disk is full")
	}
	if len(res.Structured) <= 100 {
		return res, nil
	}
	s.kept["art-1"] = res.Structured
	return tools.ToolResult{Content: []tools.Content{tools.TextContent("a preview; see artifact_fetch art-1")},
		Artifacts: []tools.ArtifactRef{{Ref: "art-1", MIME: "application/json", SizeBytes: int64(len(res.Structured))}}, CallID: res.CallID}, nil
}

func TestLargeOutputsAreStoredAsArtifacts(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	give := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: large}, nil
	}
	c := newCrib(t).add(tools.Tool{Name: "large"}, give).add(tools.Tool{Name: "broken"}, give).add(tools.Tool{Name: "small"}, nil)
	s := &shelf{kept: map[string][]byte{}}
	results := c.execute(&turn.Options{Bounder: s, Concurrency: 1}, call("1", "large", `{}`), call("2", "small", `{}`), call("3", "broken", `{}`))
	want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusFailed)
	if r := results[0]; len(r.Artifacts) != 1 || strings.Contains(r.Text(), "xxx") || string(s.kept["art-1"]) != string(large) {
		t.Errorf("%+v", r)
	}
	if text := results[2].Text(); strings.Contains(text, "xxx") || !strings.Contains(text, "the call was made") {
		t.Errorf("%s", text)
	}
}

func TestClassifyToolErrors(t *testing.T) {
	fail := func(err error) tools.Invoker {
		return func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, err }
	}
	c := newCrib(t).
		add(tools.Tool{Name: "retry"}, fail(&tools.Error{Class: tools.ErrClassTransient, Message: "busy", RetryAfter: 7 * time.Second})).
		add(tools.Tool{Name: "repair"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{IsError: true, Content: []tools.Content{tools.TextContent("no such city")}}, nil
		}).
		add(tools.Tool{Name: "hard"}, fail(&tools.Error{Class: tools.ErrClassPermanent, Message: "broken for good"})).
		add(tools.Tool{Name: "panics"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) { panic("a secret") })
	results := c.execute(nil, call("1", "retry", `{}`), call("2", "repair", `{}`), call("3", "hard", `{}`), call("4", "panics", `{}`))
	want(t, results, turn.StatusFailed, turn.StatusCompleted, turn.StatusFailed, turn.StatusFailed)
	for i, text := range []string{`"retry" failed: busy. It may be called again after 7s.`, "no such city", `"hard" failed: broken for good.`, `"panics" failed: the tool panicked.`} {
		if results[i].Text() != text || !results[i].IsError {
			t.Errorf("%q, want %q", results[i].Text(), text)
		}
	}
	var e *tools.Error
	if !errors.As(results[0].Err, &e) || !e.Retryable || e.Class != tools.ErrClassTransient {
		t.Errorf("%+v", e)
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
