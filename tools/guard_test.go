package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// heard returns a bus and what was published on it so far about calls.
func heard(t *testing.T) (*events.Bus, func() []events.Event) {
	t.Helper()
	bus := events.NewBus(nil)
	sub := bus.Subscribe(events.Filter{}, &events.SubscribeOptions{Buffer: 1000})
	t.Cleanup(sub.Close)
	return bus, func() []events.Event {
		var list []events.Event
		for {
			select {
			case e := <-sub.Events():
				if e.Type != tools.EventTypeCatalogChanged {
					list = append(list, e)
				}
			default:
				return list
			}
		}
	}
}

func someone() context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
}

func typesOf(list []events.Event) []events.EventType {
	var out []events.EventType
	for _, e := range list {
		out = append(out, e.Type)
	}
	return out
}

func TestGuardStandsOutsideOfEverything(t *testing.T) {
	bus, events := heard(t)
	var order []string
	mark := func(who string) tools.Middleware {
		return func(next tools.Invoker) tools.Invoker {
			return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
				order = append(order, who)
				return next(ctx, args)
			}
		}
	}
	cat := newCatalog(t, []tools.CatalogOption{tools.WithEvents(bus), tools.WithMiddleware(mark("middleware"))},
		tools.ToolDescriptor{Tool: tools.Tool{Name: "a", ArgsSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
			Invoke: func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
				order = append(order, "tool "+string(args))
				if _, err := tools.Invoke(ctx, tools.MustCatalog(ctx), "b", nil); err != nil {
					return tools.ToolResult{}, err
				}
				return tools.ToolResult{}, nil
			}},
		tools.ToolDescriptor{Tool: tools.Tool{Name: "b"}, Invoke: returning(tools.ToolResult{}, nil)})
	guard := func(ctx context.Context, tool *tools.Tool, args json.RawMessage, next tools.Invoker) (tools.ToolResult, error) {
		order = append(order, "guard of "+tool.Name)
		return next(ctx, json.RawMessage(`{"n":2}`))
	}
	ctx := tools.WithEntrance(someone(), tools.Entrance{CallID: "c", Guard: guard})
	res, err := tools.Invoke(ctx, cat, "a", json.RawMessage(`{"n":1}`))
	if err != nil || res.CallID != "c" {
		t.Fatal(res, err)
	}
	if want := []string{"guard of a", "middleware", `tool {"n":2}`, "middleware"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	if got, want := typesOf(events()), []string{"tool.invoked", "tool.invoked", "tool.completed", "tool.completed"}; len(got) != len(want) {
		t.Errorf("events %v", got)
	}
}

// What the guard passes on is checked like what a caller sends.
func TestWhatTheGuardChangesIsChecked(t *testing.T) {
	cat := newCatalog(t, nil, tools.ToolDescriptor{Tool: tools.Tool{Name: "a", ArgsSchema: json.RawMessage(`{"type":"object","required":["n"]}`)},
		Invoke: returning(tools.ToolResult{}, nil)})
	guard := func(ctx context.Context, _ *tools.Tool, _ json.RawMessage, next tools.Invoker) (tools.ToolResult, error) {
		return next(ctx, json.RawMessage(`{}`))
	}
	_, err := tools.Invoke(tools.WithEntrance(someone(), tools.Entrance{Guard: guard}), cat, "a", json.RawMessage(`{"n":1}`))
	if !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Error(err)
	}
}

func TestGuardRefusesWithOneEvent(t *testing.T) {
	for name, middleware := range map[string][]tools.CatalogOption{
		"alone":           nil,
		"with middleware": {tools.WithMiddleware(func(next tools.Invoker) tools.Invoker { return next })},
	} {
		t.Run(name, func(t *testing.T) {
			bus, events := heard(t)
			ran := false
			cat := newCatalog(t, append(middleware, tools.WithEvents(bus)), tools.ToolDescriptor{Tool: tools.Tool{Name: "a"},
				Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
					ran = true
					return tools.ToolResult{}, nil
				}})
			var kept tools.Invoker
			guard := func(_ context.Context, _ *tools.Tool, _ json.RawMessage, next tools.Invoker) (tools.ToolResult, error) {
				kept = next
				return tools.ToolResult{}, &tools.Error{Code: tools.ErrToolDenied, Message: "not now"}
			}
			ctx := tools.WithEntrance(someone(), tools.Entrance{Guard: guard})
			if _, err := tools.Invoke(ctx, cat, "a", nil); !errors.Is(err, tools.ErrToolDenied) {
				t.Error(err)
			}
			if _, err := kept(ctx, nil); err == nil || ran {
				t.Error("the guard went on with a call that it had ended")
			}
			list := events()
			if len(list) != 1 || list[0].Type != tools.EventTypeToolDenied {
				t.Fatalf("events %v", typesOf(list))
			}
			if p := list[0].Payload.(tools.ToolDeniedPayload); p.Stage != "entrance" || p.Reason != "not now" {
				t.Errorf("%+v", p)
			}
		})
	}
}

// A guard that goes on from two goroutines at once harms neither the call nor
// its event.
func TestGuardGoesOnFromManyGoroutines(t *testing.T) {
	bus, events := heard(t)
	cat := newCatalog(t, []tools.CatalogOption{tools.WithEvents(bus), tools.WithMiddleware(func(next tools.Invoker) tools.Invoker { return next })},
		tools.ToolDescriptor{Tool: tools.Tool{Name: "a"}, Invoke: returning(tools.ToolResult{}, nil)})
	var all sync.WaitGroup
	guard := func(ctx context.Context, _ *tools.Tool, _ json.RawMessage, next tools.Invoker) (tools.ToolResult, error) {
		for range 8 {
			all.Go(func() { _, _ = next(ctx, nil) })
		}
		return next(ctx, nil)
	}
	_, _ = tools.Invoke(tools.WithEntrance(someone(), tools.Entrance{Guard: guard}), cat, "a", nil)
	all.Wait()
	terminal := 0
	for _, e := range events() {
		if e.Type != tools.EventTypeToolInvoked {
			terminal++
		}
	}
	if terminal != 1 {
		t.Errorf("%d terminal events", terminal)
	}
}

func TestGuardSeesTheTargetOfARedirect(t *testing.T) {
	redirect := func(context.Context, json.RawMessage) (string, json.RawMessage, error) {
		return "b", json.RawMessage(`{"x":1}`), nil
	}
	cat := newCatalog(t, nil,
		tools.ResolveOptions(tools.WithRedirect(redirect)).Descriptor(tools.Tool{Name: "a"}, returning(tools.ToolResult{}, nil)),
		tools.ToolDescriptor{Tool: tools.Tool{Name: "b"}, Invoke: returning(tools.ToolResult{}, nil)})
	var seen []string
	guard := func(ctx context.Context, tool *tools.Tool, args json.RawMessage, next tools.Invoker) (tools.ToolResult, error) {
		seen = append(seen, tool.Name+string(args))
		return next(ctx, args)
	}
	if _, err := tools.Invoke(tools.WithEntrance(someone(), tools.Entrance{Guard: guard}), cat, "a", nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []string{`b{"x":1}`}) {
		t.Errorf("the guard saw %q", seen)
	}
	d, _ := cat.Resolve("a")
	if name, args, ok := d.Target(t.Context(), nil); name != "b" || string(args) != `{"x":1}` || !ok {
		t.Error(name, string(args), ok)
	}
	if d, _ = cat.Resolve("b"); d.Tool.Name != "b" {
		t.Fatal(d.Tool)
	}
	if _, _, ok := d.Target(t.Context(), nil); ok {
		t.Error("a tool that is run itself has a target")
	}
}

func TestEntranceRefusesForgedArguments(t *testing.T) {
	bus, events := heard(t)
	ran := 0
	cat := newCatalog(t, []tools.CatalogOption{tools.WithEvents(bus)}, tools.ToolDescriptor{
		Tool: tools.Tool{Name: "a", Injected: []tools.Injected{{Arg: "tenant", From: tools.InjectTenant}}},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			ran++
			return tools.ToolResult{}, nil
		}})
	forged := json.RawMessage(`{"tenant":"other"}`)
	_, err := tools.Invoke(tools.WithEntrance(someone(), tools.Entrance{RefuseForged: true}), cat, "a", forged)
	if !errors.Is(err, tools.ErrToolInvalidArgs) || ran != 0 {
		t.Error(err, ran)
	}
	if got, want := typesOf(events()), []string{"tool.forged_args", "tool.invalid_args"}; len(got) != 2 || string(got[0]) != want[0] || string(got[1]) != want[1] {
		t.Errorf("events %v, want %v", got, want)
	}
	if _, err := tools.Invoke(someone(), cat, "a", forged); err != nil || ran != 1 {
		t.Error(err, ran)
	}
}
