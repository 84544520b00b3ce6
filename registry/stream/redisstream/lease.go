package redisstream

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// lease is a [stream.Lease] on an entry of a stream.
type lease struct {
	sink       *sink
	id         string
	name       string
	payload    string
	deliveries int

	done atomic.Bool // settled

	// The sink's mu guards these.
	until time.Time // the lease goes on, by this process's clock
	lost  bool      // the entry was delivered again
	out   bool      // a worker has it
	dead  bool      // Dead has it
}

func (s *sink) newLease(id, name, payload string, deliveries int) *lease {
	return &lease{sink: s, id: id, name: name, payload: payload, deliveries: deliveries, until: time.Now().Add(s.lease)}
}

// goesOn reports whether a lease has not ended. The caller holds the sink's mu.
func (l *lease) goesOn() bool { return !l.lost && time.Now().Before(l.until) }

// stale reports whether a part of the lease is over.
func (l *lease) stale() bool {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	return l.lost || time.Until(l.until) < l.sink.lease*3/4
}

func (l *lease) isLost() bool {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	return l.lost
}

// renew notes that Redis extended the lease, or did not.
func (l *lease) renew(from time.Time, extended bool) {
	l.sink.mu.Lock()
	defer l.sink.mu.Unlock()
	l.lost = l.lost || !extended
	l.until = from.Add(l.sink.lease)
}

// facts are the event without a lease.
func (l *lease) facts() stream.Event {
	return stream.Event{ID: l.id, Name: l.name, Payload: []byte(l.payload), Added: added(l.id), Deliveries: l.deliveries}
}

func (l *lease) event() stream.Event {
	e := l.facts()
	e.Lease = l
	return e
}

// Ack implements [stream.Lease].
func (l *lease) Ack(ctx context.Context) error {
	if err := l.settle(); err != nil {
		return err
	}
	defer l.sink.settle(l)
	return l.remove(ctx)
}

// settle returns ErrSettled but for the first time.
func (l *lease) settle() error {
	if !l.done.CompareAndSwap(false, true) {
		return stream.ErrSettled
	}
	return nil
}

// remove removes the entry. It is tried again for as long as a lease, after which it may be delivered again anyway.
func (l *lease) remove(ctx context.Context) error {
	c := l.sink.queue.client
	command := c.scripts.ack.call(l.sink.queue.keys, l.sink.group, l.id)
	command.again = true
	command.until = time.Now().Add(l.sink.lease)
	return c.posts.post(ctx, command)
}

// Extend implements [stream.Lease].
func (l *lease) Extend(ctx context.Context) error {
	if l.done.Load() {
		return stream.ErrSettled
	}
	return l.extend(ctx)
}

func (l *lease) extend(ctx context.Context) error {
	if l.isLost() {
		return l.lostError()
	}
	s, begin := l.sink, time.Now()
	value, err := s.queue.rerun(ctx, s.queue.client.scripts.extend, s.group, s.consumer, l.id)
	if err != nil && !forgotten(err) {
		return err
	}
	n, _ := value.(int64)
	l.renew(begin, n > 0)
	if n == 0 {
		return l.lostError()
	}
	return nil
}

func (l *lease) lostError() error {
	return fmt.Errorf("%w: event %s of stream %q", stream.ErrLost, l.id, l.sink.queue.name)
}

// Nack implements [stream.Lease].
func (l *lease) Nack(ctx context.Context, delay time.Duration) error {
	if err := l.settle(); err != nil {
		return err
	}
	defer l.sink.settle(l)
	if l.isLost() {
		return nil // It is delivered again already.
	}
	err := l.sink.giveBack(ctx, max(delay, 0), false, l.id)
	if forgotten(err) {
		return nil
	}
	return err
}
