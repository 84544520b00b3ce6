package events

import (
	"sync"
	"sync/atomic"
	"time"
)

// lull is how long a subscription waits before it wakes its reader again.
//
// To wake a goroutine that waits for an event costs the publisher more than to
// make the event. The first event after a lull therefore goes to the reader at
// once, and those that follow within it are held back and handed over together
// at its end.
const lull = 500 * time.Microsecond

// Subscription receives the events that its filter selects, in order.
type Subscription struct {
	bus    *Bus
	filter Filter
	events chan Event

	mu sync.Mutex // guards the fields below and sends on events
	// held are events that are not in the channel yet. There is always room
	// for them in it, because both together have at most cap(events).
	held   []Event
	timer  *time.Timer // ends the lull
	lulled bool        // the timer runs
	closed bool

	pending uint64 // dropped and not yet reported
	last    uint64 // Seq of the last event that was dropped
	missed  atomic.Uint64
}

func newSubscription(b *Bus, f Filter, size int) *Subscription {
	s := &Subscription{bus: b, filter: f, events: make(chan Event, size)}
	s.timer = time.AfterFunc(time.Hour, s.wake)
	s.timer.Stop()
	return s
}

// Events returns the channel of events, which is closed by Close. A reader that
// waits gets an event at once, or a fraction of a millisecond after the one
// before. A reader that does not wait calls Events each time it looks: whatever
// was published before is in the channel then.
func (s *Subscription) Events() <-chan Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.handOver()
	}
	return s.events
}

// Missed returns how many events this subscription dropped so far because its
// reader was slow.
func (s *Subscription) Missed() uint64 { return s.missed.Load() }

// Close ends the subscription and closes its channel; events that were
// published before can still be read. It may be called more than once.
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
	if s.closed {
		return
	}
	s.closed = true
	s.timer.Stop()
	s.report()
	s.handOver()
	close(s.events)
}

// offer delivers e if it is selected and there is room, and counts it as
// missed otherwise.
func (s *Subscription) offer(e *Event) {
	if !s.filter.Match(e) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.report() && s.put(e) {
		return
	}
	s.pending++
	s.last = e.Seq
	s.missed.Add(1)
}

// report tells the reader of dropped events once there is room, and says
// whether nothing remains to be told. The caller holds the lock.
func (s *Subscription) report() bool {
	if s.pending == 0 {
		return true
	}
	note := Event{Seq: s.last, Type: EventTypeMissed, Time: time.Now(), Payload: MissedPayload{Count: s.pending}}
	if !s.put(&note) {
		return false
	}
	s.pending = 0
	return true
}

// put takes an event in, and reports false when there is no room. The caller
// holds the lock.
func (s *Subscription) put(e *Event) bool {
	waiting := len(s.events)
	switch room := cap(s.events) - waiting - len(s.held); {
	case room == 0:
		return false
	case len(s.held) == 0 && (waiting > 0 || !s.lulled):
		// While something waits in the channel the reader does not.
		s.events <- *e
		s.rest()
	default:
		s.held = append(s.held, *e)
		if len(s.held)*2 >= cap(s.events) {
			s.handOver()
		}
	}
	return true
}

// rest begins a lull, unless there is one. The caller holds the lock.
func (s *Subscription) rest() {
	if !s.lulled && !s.closed {
		s.lulled = true
		s.timer.Reset(lull)
	}
}

// wake ends a lull, and begins the next one when there was something to hand
// over.
func (s *Subscription) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lulled = false
	if len(s.held) > 0 && !s.closed {
		s.handOver()
		s.rest()
	}
}

// handOver puts the events that were held back into the channel. The caller
// holds the lock.
func (s *Subscription) handOver() {
	for i := range s.held {
		s.events <- s.held[i]
	}
	clear(s.held)
	s.held = s.held[:0]
}
