package turn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/turn"
	"github.com/toolcrib/toolcrib/view"
)

// seekingCrib has a deferred tool and the meta-tools.
func seekingCrib(t *testing.T) *crib {
	t.Helper()
	c := newCrib(t, tools.WithSearchCache(search.New(nil)))
	c.add(tools.Tool{Name: "orbit.compute", Description: "Compute the orbital elements of a satellite.", Loading: tools.LoadingDeferred,
		ArgsSchema: object(`"body":{"type":"string"}`)}, nil)
	c.add(tools.Tool{Name: "weather.get", Description: "Get the weather.", Loading: tools.LoadingAlways}, nil)
	if err := builtin.RegisterMeta(c.cat, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTwoTurnRule(t *testing.T) {
	c := seekingCrib(t)
	run := turn.New(c.cat, nil).NewRun(turn.Usage{})
	first, err := run.Begin(caller())
	must(t, err)
	if first.Has("orbit.compute") || !first.Has("tool_search") || first.Deferred() != 1 {
		t.Errorf("the first turn declares %q", first.Names())
	}
	// To search and to call in one response fails for the call, for the first turn.
	results, err := first.Execute(caller(), []turn.Call{
		call("1", "tool_search", `{"query":"orbital elements"}`), call("2", "orbit.compute", `{"body":"moon"}`)})
	must(t, err)
	want(t, results, turn.StatusCompleted, turn.StatusUnknown)
	if text := results[1].Text(); !strings.Contains(text, `found with "tool_search"`) {
		t.Errorf("%s", text)
	}
	results, err = first.Execute(caller(), []turn.Call{call("3", "orbit.compute", `{"body":"moon"}`)})
	must(t, err)
	want(t, results, turn.StatusUnknown)

	second, err := run.Begin(caller())
	must(t, err)
	if !second.Has("orbit.compute") {
		t.Errorf("the second turn declares %q", second.Names())
	}
	results, err = second.Execute(caller(), []turn.Call{call("4", "orbit.compute", `{"body":"moon"}`)})
	must(t, err)
	want(t, results, turn.StatusCompleted)

	other, err := turn.New(c.cat, nil).NewRun(turn.Usage{}).Begin(caller())
	must(t, err)
	if other.Has("orbit.compute") {
		t.Error("another run is declared what this one found")
	}
}

// With a discovery of the operator's, finds are kept for the session.
func TestDiscoveryIsShared(t *testing.T) {
	c := seekingCrib(t)
	opts := &turn.Options{Discovery: view.NewDiscovery(nil, nil)}
	c.execute(opts, call("1", "tool_get", `{"name":"orbit.compute"}`))
	if tn := c.begin(caller(), opts); !tn.Has("orbit.compute") {
		t.Errorf("declared %q", tn.Names())
	}
	mem := view.NewMemory(nil)
	if tn := c.begin(view.WithMemory(caller(), mem), opts); tn.Has("orbit.compute") {
		t.Error("the memory on the context is not the one that is used")
	}
}

func TestRedirectIsJudgedAsItsTarget(t *testing.T) {
	c := seekingCrib(t).
		add(tools.Tool{Name: "drop", Loading: tools.LoadingDeferred, Safety: tools.Safety{Destructive: tools.Yes}}, nil).
		add(tools.Tool{Name: "secret", Loading: tools.LoadingDeferred, AuthScopes: []string{"admin"}}, nil).
		add(tools.Tool{Name: "once", Loading: tools.LoadingDeferred, CostHint: "10"}, nil)
	opts := &turn.Options{Concurrency: 1, Turn: turn.Limits{Cost: 12}, Middleware: []turn.Middleware{turn.Deny(turn.Is(turn.Destructive))}}
	results := c.execute(opts,
		call("1", "tool_call", `{"name":"orbit.compute","args":{"body":"moon"}}`),
		call("2", "tool_call", `{"name":"orbit.compute","args":{"body":1}}`),
		call("3", "tool_call", `{"name":"drop","args":{}}`),
		call("4", "tool_call", `{"name":"secret","args":{}}`),
		call("5", "tool_call", `{"name":"orbit.compte","args":{}}`),
		call("6", "tool_call", `{"name":"tool_call","args":{}}`),
		call("7", "tool_call", `{"args":{}}`),
		call("8", "tool_call", `{"name":"once","args":{}}`),
		call("9", "tool_call", `{"name":"once","args":{}}`))
	want(t, results, turn.StatusCompleted, turn.StatusInvalid, turn.StatusDenied, turn.StatusUnknown, turn.StatusUnknown, turn.StatusUnknown,
		turn.StatusInvalid, turn.StatusCompleted, turn.StatusNotRun)
	for i, tool := range []string{"orbit.compute", "orbit.compute", "drop", "", "", "", "", "once", ""} {
		if results[i].Tool != tool || results[i].Name != "tool_call" {
			t.Errorf("result %d is of %q by way of %q, want %q", i, results[i].Tool, results[i].Name, tool)
		}
	}
	if text := results[4].Text(); !strings.Contains(text, `"orbit.compte"`) || !strings.Contains(text, `Did you mean "orbit.compute"?`) {
		t.Errorf("%s", text)
	}
	heard := c.heard()
	if got := countTerminal(heard); got != len(results) {
		t.Errorf("%d terminal events for %d calls: %q", got, len(results), story(heard))
	}
	if slices.Contains(story(heard), "tool.completed tool_call") {
		t.Error("an event tells of the way and not of the target")
	}
}

// What the selection leaves out cannot be reached by a detour, nor can what it
// would leave out.
func TestSelectionHoldsForRedirects(t *testing.T) {
	c := seekingCrib(t).add(tools.Tool{Name: "drop", Loading: tools.LoadingDeferred, SideEffects: tools.SideEffectWrite}, nil).
		add(tools.Tool{Name: "peek", Loading: tools.LoadingDeferred, SideEffects: tools.SideEffectRead}, nil).
		add(tools.Tool{Name: "wipe", Loading: tools.LoadingAlways, SideEffects: tools.SideEffectWrite}, nil)
	opts := &turn.Options{Select: turn.Only(turn.Is(turn.ReadOnly))}
	results := c.execute(opts, call("1", "tool_call", `{"name":"drop"}`), call("2", "tool_call", `{"name":"peek"}`), call("3", "tool_call", `{"name":"wipe"}`))
	want(t, results, turn.StatusUnknown, turn.StatusCompleted, turn.StatusUnknown)
	noCall := &turn.Options{Select: func(_ context.Context, list []tools.Tool) ([]string, error) {
		return []string{"weather.get", "peek"}, nil
	}}
	results = c.execute(noCall, call("1", "tool_call", `{"name":"peek"}`))
	want(t, results, turn.StatusUnknown)
}

type forgetful struct{ view.Memory }

func (forgetful) Found(context.Context) ([]string, error) { return nil, errForgot }

var errForgot = errors.New("the store is down")

func TestBeginFailsWhenTheMemoryDoes(t *testing.T) {
	c := seekingCrib(t)
	_, err := turn.New(c.cat, &turn.Options{Discovery: view.NewDiscovery(forgetful{}, nil)}).Begin(caller())
	if !errors.Is(err, errForgot) {
		t.Error(err)
	}
}

// A provider that has a search of its own is shown everything, and the model may
// call in the same turn what that search finds.
func TestNativeDeferral(t *testing.T) {
	c := seekingCrib(t).add(tools.Tool{Name: "drop", Loading: tools.LoadingDeferred, SideEffects: tools.SideEffectWrite}, nil).
		add(tools.Tool{Name: "hidden", Loading: tools.LoadingDeferred, AuthScopes: []string{"admin"}}, nil)
	a, err := adapter.New(adapter.Anthropic, &adapter.Options{NativeDeferral: true})
	must(t, err)
	for _, narrowed := range []bool{false, true} {
		opts := &turn.Options{NativeDeferral: true}
		names, drop := []string{"drop", "orbit.compute", "weather.get"}, turn.StatusCompleted
		if narrowed {
			opts.Select = func(context.Context, []tools.Tool) ([]string, error) {
				return []string{"orbit.compute", "weather.get"}, nil
			}
			names, drop = names[1:], turn.StatusUnknown
		}
		tn := c.begin(caller(), opts)
		if got := tn.Names(); !slices.Equal(got, names) {
			t.Errorf("declared %q, want %q", got, names)
		}
		for _, d := range tn.Declare(a).Tools {
			if d.Deferred != (d.Tool != "weather.get") {
				t.Errorf("%s is deferred: %t", d.Tool, d.Deferred)
			}
		}
		results, err := tn.Execute(caller(), []turn.Call{call("1", "orbit.compute", `{"body":"moon"}`), call("2", "drop", `{}`), call("3", "hidden", `{}`), call("4", "tool_search", `{"query":"x"}`)})
		must(t, err)
		want(t, results, turn.StatusCompleted, drop, turn.StatusUnknown, turn.StatusUnknown)
	}
}
