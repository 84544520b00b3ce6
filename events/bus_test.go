package events_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
)

type note struct {
	events.SafeSealed
	N int
}

type other struct{ events.SafeSealed }

func registry(t testing.TB) *events.Registry {
	t.Helper()
	r, err := events.NewRegistry(events.Define[note]("note.made"), events.Define[note]("note.read"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func Example() {
	reg, _ := events.NewRegistry(events.Define[note]("note.made"))
	bus := events.NewBus(reg)
	sub := bus.Subscribe(events.Filter{TenantID: "acme"}, nil)
	who := identity.Quadruple{Identity: identity.Identity{TenantID: "acme"}}
	_ = bus.Publish(context.Background(), events.Event{Type: "note.made", Identity: who, Payload: note{N: 1}})
	sub.Close()
	for e := range sub.Events() {
		fmt.Println(e.Seq, e.Type, e.Payload.(note).N)
	}
	// Output: 1 note.made 1
}

func TestRegistryRefuses(t *testing.T) {
	bus := events.NewBus(registry(t))
	ctx := context.Background()
	if err := bus.Publish(ctx, events.Event{Type: "note.lost", Payload: note{}}); !errors.Is(err, events.ErrUnknownType) {
		t.Errorf("unknown type: %v", err)
	}
	if err := bus.Publish(ctx, events.Event{Type: "note.made", Payload: other{}}); !errors.Is(err, events.ErrWrongPayload) {
		t.Errorf("wrong payload: %v", err)
	}
	if err := bus.Publish(ctx, events.Event{Type: "note.made"}); !errors.Is(err, events.ErrWrongPayload) {
		t.Errorf("no payload: %v", err)
	}
	_, err := events.NewRegistry(events.Define[note]("x"), events.Define[other]("x"))
	if !errors.Is(err, events.ErrDuplicateType) {
		t.Errorf("duplicate: %v", err)
	}
	if _, err := events.NewRegistry(events.Definition{Type: "x"}); err == nil {
		t.Error("a definition without a payload was accepted")
	}
}

func TestSlowSubscriberIsToldWhatItMissed(t *testing.T) {
	bus := events.NewBus(registry(t))
	slow := bus.Subscribe(events.Filter{}, &events.SubscribeOptions{Buffer: 2})
	quick := bus.Subscribe(events.Filter{}, nil)
	publish := func(n int) {
		if err := bus.Publish(context.Background(), events.Event{Type: "note.made", Payload: note{N: n}}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 {
		publish(n)
	}
	if slow.Missed() != 8 || quick.Missed() != 0 {
		t.Fatalf("missed = %d and %d, want 8 and 0", slow.Missed(), quick.Missed())
	}
	<-slow.Events()
	<-slow.Events()
	publish(10)
	got := <-slow.Events()
	if m, ok := got.Payload.(events.MissedPayload); !ok || m.Count != 8 || got.Type != events.EventTypeMissed || got.Seq != 10 {
		t.Fatalf("want a report of 8 missed events up to 10, got %+v", got)
	}
	if got = <-slow.Events(); got.Payload.(note).N != 10 || got.Seq != 11 {
		t.Fatalf("after the report: %+v", got)
	}
	for n := range 11 {
		if e := <-quick.Events(); e.Payload.(note).N != n {
			t.Fatalf("quick got %d at place %d", e.Payload.(note).N, n)
		}
	}
}

func TestFilter(t *testing.T) {
	e := events.Event{Type: "note.made", Tool: "t", Identity: identity.Quadruple{
		Identity: identity.Identity{TenantID: "a", UserID: "b", SessionID: "c"}}}
	for _, c := range []struct {
		f    events.Filter
		want bool
	}{
		{events.Filter{}, true},
		{events.Filter{Types: []events.EventType{"x", "note.made"}, Tools: []string{"t"}, TenantID: "a", UserID: "b", SessionID: "c"}, true},
		{events.Filter{Types: []events.EventType{"x"}}, false},
		{events.Filter{Tools: []string{"u"}}, false},
		{events.Filter{TenantID: "z"}, false},
		{events.Filter{UserID: "z"}, false},
		{events.Filter{SessionID: "z"}, false},
	} {
		if got := c.f.Match(&e); got != c.want {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
}

func TestContext(t *testing.T) {
	bus := events.NewBus(nil)
	if events.MustFrom(events.With(context.Background(), bus)) != events.EventBus(bus) {
		t.Error("MustFrom returned another bus")
	}
	if _, ok := events.From(context.Background()); ok {
		t.Error("From found a bus on a bare context")
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, events.ErrNoBus) {
			t.Errorf("panic value = %v", err)
		}
	}()
	events.MustFrom(context.Background())
}

func TestPublishSubscribeCloseRace(t *testing.T) {
	bus := events.NewBus(registry(t))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 200 {
				_ = bus.Publish(context.Background(), events.Event{Type: "note.made", Payload: note{N: n}})
			}
		})
		wg.Go(func() {
			for range 50 {
				s := bus.Subscribe(events.Filter{}, &events.SubscribeOptions{Buffer: 1})
				s.Close()
				s.Close()
				for range s.Events() {
				}
			}
		})
	}
	wg.Wait()
}
