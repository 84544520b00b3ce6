package events

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrNoBus is the value that MustFrom panics with when the context carries no
// bus.
var ErrNoBus = errors.New("events: no event bus on the context")

// EventBus carries events from whoever publishes to whoever subscribed.
// Implementations are safe for concurrent use, and Publish never waits for a
// subscriber.
type EventBus interface {
	// Publish hands e to every subscriber whose filter selects it. It returns
	// an error only for an event that no subscriber could understand: an
	// unregistered type or a payload of the wrong type.
	Publish(ctx context.Context, e Event) error
	// Subscribe starts a subscription. nil options are the defaults.
	Subscribe(f Filter, opts *SubscribeOptions) *Subscription
}

// DefaultBuffer is how many events a subscription holds for a slow reader when
// SubscribeOptions does not say.
const DefaultBuffer = 256

// SubscribeOptions tune one subscription.
type SubscribeOptions struct {
	// Buffer is how many undelivered events are held, in events. What comes
	// while it is full is dropped, counted and reported by EventTypeMissed.
	// Zero or less means DefaultBuffer.
	Buffer int
}

// Bus is the in-process EventBus.
type Bus struct {
	registry *Registry
	seq      atomic.Uint64
	mu       sync.Mutex // guards changes of subs
	subs     atomic.Pointer[[]*Subscription]
}

// NewBus returns a bus for the events of a registry. A nil registry accepts
// every event.
func NewBus(r *Registry) *Bus { return &Bus{registry: r} }

// Publish implements EventBus.
func (b *Bus) Publish(_ context.Context, e Event) error {
	if b.registry != nil {
		if err := b.registry.Check(&e); err != nil {
			return err
		}
	}
	e.Seq = b.seq.Add(1)
	subs := b.subs.Load()
	if subs == nil || len(*subs) == 0 {
		return nil
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	for _, s := range *subs {
		s.offer(&e)
	}
	return nil
}

// Subscribe implements EventBus.
func (b *Bus) Subscribe(f Filter, opts *SubscribeOptions) *Subscription {
	size := DefaultBuffer
	if opts != nil && opts.Buffer > 0 {
		size = opts.Buffer
	}
	f.Types = append([]EventType(nil), f.Types...)
	f.Tools = append([]string(nil), f.Tools...)
	s := &Subscription{bus: b, filter: f, events: make(chan Event, size)}
	b.change(func(list []*Subscription) []*Subscription { return append(list, s) })
	return s
}

// change replaces the list of subscribers by a changed copy, so that Publish
// reads it without a lock.
func (b *Bus) change(edit func([]*Subscription) []*Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next []*Subscription
	if old := b.subs.Load(); old != nil {
		next = append(next, *old...)
	}
	next = edit(next)
	b.subs.Store(&next)
}

// Subscription receives the events that its filter selects, in order.
type Subscription struct {
	bus    *Bus
	filter Filter
	events chan Event

	mu      sync.Mutex // guards the fields below and sends on events
	closed  bool
	pending uint64 // dropped and not yet reported
	last    uint64 // Seq of the last event that was dropped
	missed  atomic.Uint64
}

// Events returns the channel of events. It is closed by Close.
func (s *Subscription) Events() <-chan Event { return s.events }

// Missed returns how many events this subscription dropped so far because its
// reader was slow.
func (s *Subscription) Missed() uint64 { return s.missed.Load() }

// Close ends the subscription and closes its channel; events that are already
// in it can still be read. It may be called more than once.
func (s *Subscription) Close() {
	s.bus.change(func(list []*Subscription) []*Subscription {
		kept := list[:0]
		for _, other := range list {
			if other != s {
				kept = append(kept, other)
			}
		}
		return kept
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.flush()
		close(s.events)
	}
}

// offer delivers e if it is selected and there is room, and counts it as
// missed otherwise.
func (s *Subscription) offer(e *Event) {
	if !s.filter.Match(e) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.flush() {
		select {
		case s.events <- *e:
			return
		default:
		}
	}
	s.pending++
	s.last = e.Seq
	s.missed.Add(1)
}

// flush reports dropped events to the reader once there is room, and says
// whether nothing remains to be reported. The caller holds the lock.
func (s *Subscription) flush() bool {
	if s.pending == 0 {
		return true
	}
	note := Event{Seq: s.last, Type: EventTypeMissed, Time: time.Now(), Payload: MissedPayload{Count: s.pending}}
	select {
	case s.events <- note:
		s.pending = 0
		return true
	default:
		return false
	}
}

// ContextKey is the key of the bus on a context, for contexts that supply one
// of their own. Everybody else uses With and From.
type ContextKey struct{}

// With returns a context that carries the bus.
func With(ctx context.Context, bus EventBus) context.Context {
	return context.WithValue(ctx, ContextKey{}, bus)
}

// From returns the bus on the context, if there is one.
func From(ctx context.Context) (EventBus, bool) {
	b, ok := ctx.Value(ContextKey{}).(EventBus)
	return b, ok && b != nil
}

// MustFrom returns the bus on the context. It panics with ErrNoBus when there
// is none.
func MustFrom(ctx context.Context) EventBus {
	b, ok := From(ctx)
	if !ok {
		panic(ErrNoBus)
	}
	return b
}
