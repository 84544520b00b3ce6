package gateway_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/turn"
)

func openFor(t *testing.T, yaml string) *gateway.Gateway {
	t.Helper()
	cfg, err := gateway.Parse("t.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Open(bounded(t), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(bounded(t)); err != nil {
			t.Error(err)
		}
	})
	return g
}

func TestRunnerMakesCallsAsThePlannerSays(t *testing.T) {
	for yaml, second := range map[string]turn.Status{
		"":                                      turn.StatusCompleted,
		"planner: {parallel_tool_calls: true}":  turn.StatusCompleted,
		"planner: {parallel_tool_calls: false}": turn.StatusNotRun,
	} {
		g := openFor(t, "tools: {built_in: [text.echo]}\n"+yaml)
		ctx := g.LocalContext(bounded(t))
		tn, err := g.Runner(nil).Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		call := turn.Call{Name: "text.echo", Args: json.RawMessage(`{"text":"x"}`)}
		results, err := tn.Execute(ctx, []turn.Call{call, call})
		if err != nil || results[0].Status != turn.StatusCompleted || results[1].Status != second {
			t.Errorf("%q: %v %+v", yaml, err, results)
		}
	}
}

// What a turn finds is declared in the turns of the same session, by whichever
// runner, and what the turn tells is heard on the gateway's bus.
func TestRunnersShareWhatASessionFound(t *testing.T) {
	g := openFor(t, "tools: {built_in: [text.echo, clock.now], entries: [{name: clock.now, loading_mode: deferred}]}")
	sub := g.Bus().Subscribe(events.Filter{Types: []events.EventType{turn.EventTypeArgsUnwrapped}}, nil)
	defer sub.Close()
	ctx := g.LocalContext(bounded(t))
	declares := func() []string {
		tn, err := g.Runner(&turn.Options{BadCalls: turn.Normalize}).Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		calls := []turn.Call{{Name: "tool_get", Args: json.RawMessage(`"{\"name\":\"clock.now\"}"`)}}
		if results, err := tn.Execute(ctx, calls); err != nil || results[0].Status != turn.StatusCompleted && results[0].Status != turn.StatusUnknown {
			t.Fatalf("%v %+v", err, results)
		}
		return tn.Names()
	}
	if first, second := declares(), declares(); slices.Contains(first, "clock.now") || !slices.Contains(second, "clock.now") {
		t.Errorf("declared %q, then %q", first, second)
	}
	if e := <-sub.Events(); e.Tool != "tool_get" {
		t.Errorf("%+v", e)
	}
}
