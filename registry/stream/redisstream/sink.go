package redisstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// sink is a [stream.Sink]: one consumer of the stream's consumer group.
//
// Two goroutines fetch events: read waits for new ones, and sweep takes over what may be delivered again. Both put them
// into events, from which Receive takes.
type sink struct {
	queue    *queue
	name     string
	group    string // the name, as Redis has it
	consumer string
	lease    time.Duration
	options  stream.SinkOptions
	events   chan *lease

	reader *redis.Client // of read alone
	number func() int64  // of the reader's connection, as Redis counts them
	wake   *ear

	ctx    context.Context // ends when the intake does
	cancel context.CancelFunc
	work   sync.WaitGroup // read and sweep
	graves sync.WaitGroup // calls of Dead

	fetching sync.Mutex // one at a time takes over events, see recover and take
	stopping sync.Once

	changed chan struct{} // has room for one: there may be room for another event
	hurry   chan struct{} // has room for one: dueAt is sooner than it was

	mu      sync.Mutex
	held    map[string]*lease // what is not settled, by entry
	count   int               // of leases that are not settled
	out     int               // of those that Receive returned
	dead    int               // of those that Dead has, which are not in count
	ended   bool              // the intake
	settled chan struct{}     // closed and made anew when a lease is settled
	dueAt   time.Time         // when another worker said that something is due
	grace   time.Time         // until when nothing is taken over, see stumble
}

var _ stream.Sink = (*sink)(nil)

// Sink implements [stream.Stream].
func (q *queue) Sink(ctx context.Context, name string, opts *stream.SinkOptions) (stream.Sink, error) {
	if err := stream.CheckName("sink", name); err != nil {
		return nil, err
	}
	options, err := opts.Resolved()
	if err != nil {
		return nil, err
	}
	if err := q.client.isClosed(); err != nil {
		return nil, err
	}
	s := &sink{
		queue: q, name: name, group: escape(name), consumer: newID(), options: options,
		events: make(chan *lease, options.InFlight), held: map[string]*lease{},
		changed: make(chan struct{}, 1), hurry: make(chan struct{}, 1), settled: make(chan struct{}),
	}
	if s.lease, err = s.ensure(ctx, options.Lease); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(q.client.ctx)
	if err := q.client.keep(s); err != nil {
		s.cancel()
		return nil, err
	}
	reader, number := q.client.reader(s.lease)
	s.reader, s.number = reader, number.Load
	s.wake = &ear{name: q.client.channels.wake(q.name), hear: s.hearDue}
	q.client.hub.add(s.wake)
	s.work.Go(s.read)
	s.work.Go(s.sweep)
	return s, nil
}

// ensure makes the consumer group where Redis does not have it, and returns the lease that it has.
func (s *sink) ensure(ctx context.Context, want time.Duration) (time.Duration, error) {
	q := s.queue
	value, err := q.rerun(ctx, q.client.scripts.open, s.group, want.Milliseconds(), stream.DefaultLease.Milliseconds(), q.ttl.Milliseconds())
	if err != nil {
		return 0, err
	}
	switch value := value.(type) {
	case int64:
		return time.Duration(value) * time.Millisecond, nil
	case string:
		return 0, fmt.Errorf("%w: sink %q of stream %q: %s", stream.ErrConflict, s.name, q.name, value)
	}
	return 0, fmt.Errorf("redisstream: sink %q: an answer of another kind: %T", s.name, value)
}

// Lease implements [stream.Sink].
func (s *sink) Lease() time.Duration { return s.lease }

// Receive implements [stream.Sink].
func (s *sink) Receive(ctx context.Context) (stream.Event, error) {
	for {
		select {
		case <-s.ctx.Done():
			return stream.Event{}, stream.ErrClosed
		default:
		}
		select {
		case l := <-s.events:
			if s.handOut(ctx, l) {
				return l.event(), nil
			}
		case <-ctx.Done():
			return stream.Event{}, ctx.Err()
		case <-s.ctx.Done():
			return stream.Event{}, stream.ErrClosed
		}
	}
}

// handOut gives a lease to a worker. It returns false for one that is not to be worked on.
func (s *sink) handOut(ctx context.Context, l *lease) bool {
	s.hint() // There is room to fetch.
	if l.stale() && l.extend(ctx) != nil {
		if l.isLost() {
			s.drop(l)
		} else {
			s.events <- l // For the next Receive; this one's context ended.
		}
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		// Drain gives back what Receive has not returned.
		return false
	}
	l.out = true
	s.out++
	return true
}

// hint tells read that there may be room.
func (s *sink) hint() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// hold notes events that were fetched, and hands them to Receive. It returns the entries for which there is no room: read
// and sweep do not know of each other's events before they are here. What Redis delivers for the first time may be an
// event on which a worker has a lease already, where Redis lost what it knew of deliveries; that lease goes on.
func (s *sink) hold(fetched []*lease, from source) (excess []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range fetched {
		if before := s.held[l.id]; before != nil && from == fresh && before.goesOn() {
			continue
		}
		if s.ended || s.count >= s.options.InFlight {
			excess = append(excess, l.id)
			continue
		}
		s.know(l)
		s.count++
		s.events <- l // It has room for all that are counted.
	}
	return excess
}

// source is where an event was fetched from.
type source int

const (
	fresh source = iota // read, as new
	swept               // taken over, since a lease on it ended
)

// know notes a lease, which ends one on the same entry. The caller holds mu.
func (s *sink) know(l *lease) {
	if before := s.held[l.id]; before != nil {
		before.lost = true
	}
	s.held[l.id] = l
}

// take hands events to Receive, and gives back those for which there is no room.
func (s *sink) take(fetched []*lease, from source) {
	excess := s.hold(fetched, from)
	if len(excess) == 0 || s.ctx.Err() != nil {
		return // Whoever ends the intake gives back the rest.
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.lease)
	defer cancel()
	_ = s.giveBack(ctx, 0, true, excess...) // Otherwise they are delivered again when their leases end.
}

// settle forgets a lease that its worker is done with. The last one of a sink that ended removes the consumer.
func (s *sink) settle(l *lease) {
	if left := s.drop(l); left == 0 {
		s.leave()
	}
}

// drop forgets a lease, and returns how many leases the workers of an ended sink still have, -1 for another sink.
func (s *sink) drop(l *lease) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[l.id] == l {
		delete(s.held, l.id)
	}
	s.count--
	if l.out {
		s.out--
	}
	close(s.settled)
	s.settled = make(chan struct{})
	s.hint()
	if !s.ended {
		return -1
	}
	return s.out
}

// room is how many events may be fetched.
func (s *sink) room() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.options.InFlight-s.count, 0)
}

// Drain implements [stream.Sink].
func (s *sink) Drain(ctx context.Context) error {
	s.stop()
	for {
		out, settled := s.working()
		if out == 0 {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.queue.client.ctx.Done():
			return stream.ErrClosed
		}
	}
}

func (s *sink) working() (out int, settled <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out, s.settled
}

// Close implements [stream.Sink].
func (s *sink) Close() error {
	s.stop()
	s.queue.client.forget(s)
	return nil
}

// stop ends the intake, gives back what no worker has, and returns when that is done.
func (s *sink) stop() {
	s.stopping.Do(func() {
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		s.cancel()
		s.queue.client.hub.remove(s.wake)
		s.endReader()
		s.graves.Wait()
		s.giveBackUnseen()
	})
}

// endReader ends the read that waits. It asks Redis to, because what Redis sends to a connection that is closed would be
// delivered to nobody until its lease ended.
func (s *sink) endReader() {
	ended := make(chan struct{})
	go func() { s.work.Wait(); close(ended) }()
	ctx, cancel := context.WithTimeout(s.queue.client.ctx, time.Second)
	defer cancel()
	for s.unblock(ctx) {
		timer := time.NewTimer(10 * time.Millisecond)
		select {
		case <-ended:
		case <-timer.C:
			continue
		case <-ctx.Done():
		}
		break
	}
	_ = s.reader.Close() // Its connection may be gone.
	<-ended
}

// unblock returns false when there is no use in trying again.
func (s *sink) unblock(ctx context.Context) bool {
	commands := s.queue.client.commands
	if s.number() == 0 || commands.down.Load() {
		return false
	}
	_, err := commands.do(ctx, &command{args: []any{"CLIENT", "UNBLOCK", s.number()}})
	return err == nil
}

// giveBackUnseen gives back what Redis says this consumer has and no worker does, and removes the consumer unless a worker
// has something.
func (s *sink) giveBackUnseen() {
	ctx, cancel := context.WithTimeout(s.queue.client.ctx, closeTimeout)
	defer cancel()
	if s.queue.client.commands.down.Load() {
		return // Others get it when the leases end.
	}
	if unseen, err := s.pending(ctx, func(l *lease) bool { return l != nil && (l.out || l.dead) }); err == nil && len(unseen) > 0 {
		if err := s.giveBack(ctx, 0, true, unseen...); err != nil {
			s.queue.client.log.Warn("events could not be given back", "stream", s.queue.name, "err", err)
		}
	}
	if out, _ := s.working(); out == 0 {
		s.leave()
	}
}

// leave removes the consumer once it has nothing. Other workers do it in time when this does not.
func (s *sink) leave() {
	command := s.queue.client.scripts.leave.call(s.queue.keys, s.group, s.consumer)
	command.again = true
	command.until = time.Now().Add(s.lease)
	_ = s.queue.client.posts.post(s.queue.client.ctx, command)
}

// pending lists the entries that Redis says this consumer has, but for those whose lease has is true for.
func (s *sink) pending(ctx context.Context, has func(*lease) bool) ([]any, error) {
	value, err := s.queue.client.commands.do(ctx, &command{
		args: []any{"XPENDING", s.queue.keys.stream, s.group, "-", "+", max(scanned, s.options.InFlight), s.consumer}, waits: true, again: true,
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []any
	list, _ := value.([]any)
	for _, item := range list {
		entry, _ := item.([]any)
		if len(entry) == 0 {
			continue
		}
		id, _ := entry[0].(string)
		if !has(s.held[id]) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// giveBack gives entries back after a delay. Of unseen entries the delivery does not count.
func (s *sink) giveBack(ctx context.Context, delay time.Duration, unseen bool, ids ...any) error {
	discount := 0
	if unseen {
		discount = 1
	}
	args := []any{s.group, s.consumer, delay.Milliseconds(), s.wake.name, discount}
	_, err := s.queue.rerun(ctx, s.queue.client.scripts.giveBack, append(args, ids...)...)
	return err
}
