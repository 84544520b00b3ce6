package main

import (
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

func TestEventsOfACallThatIsRefused(t *testing.T) {
	registry, err := events.NewRegistry(tools.EventDefinitions()...)
	if err != nil {
		t.Fatal(err)
	}
	bus := events.NewBus(registry)
	cat := tools.NewCatalog(tools.WithEvents(bus))
	if err := NewShop().Register(cat); err != nil {
		t.Fatal(err)
	}
	sub := bus.Subscribe(events.Filter{Tools: []string{"orders.cancel"}}, nil)
	defer sub.Close()

	id := identity.Identity{TenantID: "local", UserID: "ada", SessionID: "test"}
	if _, err := tools.Invoke(identity.With(t.Context(), id, "orders.write"), cat, "orders.cancel", []byte(`{"id":2}`)); err == nil {
		t.Error("an order that was shipped is cancelled")
	}
	var seen []string
	for range 2 {
		e := <-sub.Events()
		switch p := e.Payload.(type) {
		case tools.ToolFailedPayload:
			seen = append(seen, string(e.Type)+": "+p.ErrorMessage)
		default:
			seen = append(seen, string(e.Type))
		}
	}
	want := []string{"tool.invoked", "tool.failed: order 2 is on its way and can only be returned"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}
