package tools_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/tools"
)

func TestTwoBusesEachOnce(t *testing.T) {
	second := events.NewBus(nil)
	sub := second.Subscribe(events.Filter{}, nil)
	w := watch(t, nil, descriptor("t", tools.WithBus(second)))
	d := descriptor("u", tools.WithBus(w.bus))
	if err := w.Register(d); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"t", "u"} {
		if _, err := tools.Invoke(adaCtx(), w, tool, json.RawMessage(`{"text":"x"}`)); err != nil {
			t.Fatal(err)
		}
	}
	sub.Close()
	n := 0
	for range sub.Events() {
		n++
	}
	if got := w.drain(); len(got) != 4 || n != 2 {
		t.Errorf("catalog's bus: %v, tool's bus: %d events", got, n)
	}
	if _, err := tools.Invoke(context.Background(), w, "t", json.RawMessage(`{"text":"x"}`)); err != nil || len(w.drain()) != 0 {
		t.Error("events without an identity")
	}
}

func TestToolsFindTheBus(t *testing.T) {
	own, callers := events.NewBus(nil), events.NewBus(nil)
	var got events.EventBus
	find := func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		got, _ = events.From(ctx)
		return tools.ToolResult{}, nil
	}
	w := watch(t, nil, plain("t", find))
	library := newCatalog(t, nil, plain("with", find, tools.WithBus(own)), plain("without", find))
	for name, c := range map[string]struct {
		ctx  context.Context
		cat  tools.ToolCatalog
		tool string
		want events.EventBus
	}{
		"the catalog's": {adaCtx(), w, "t", w.bus},
		"the caller's":  {events.With(adaCtx(), callers), w, "t", callers},
		"the tool's":    {adaCtx(), library, "with", own},
		"none":          {adaCtx(), library, "without", nil},
	} {
		if _, err := tools.Invoke(c.ctx, c.cat, c.tool, nil); err != nil || got != c.want {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
