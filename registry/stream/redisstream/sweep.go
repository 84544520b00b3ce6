package redisstream

import (
	"context"
	"strconv"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

const (
	// owedWait is how soon a sweep comes after one that had no room for all that was due.
	owedWait = 250 * time.Millisecond
	// goneAfter is how long a consumer that has nothing may be silent. A live one reads more often.
	goneAfter = 10 * blocked
)

// sweep takes over, until the intake ends, what may be delivered again. It comes when the next lease may end, which Redis
// says, and when another worker says that it gave something back. In between it costs nothing.
func (s *sink) sweep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var next time.Time
	var pause backoff
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.hurry:
			if at := s.takeDue(); at.Before(next) {
				next = at
				timer.Reset(time.Until(next))
			}
			continue
		case <-timer.C:
		}
		if wait := s.graceLeft(); wait > 0 {
			timer.Reset(wait)
			continue
		}
		wait, err := s.sweepOnce()
		switch {
		case err == nil:
			pause.reset()
		case pause.wait(s.ctx):
			s.stumble(err)
			s.remake(err)
		default:
			return
		}
		next = time.Now().Add(wait)
		timer.Reset(wait)
	}
}

// hearDue hears from another worker in how many milliseconds something is due.
func (s *sink) hearDue(text string) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := time.Now().Add(time.Duration(ms) * time.Millisecond); s.dueAt.IsZero() || at.Before(s.dueAt) {
		s.dueAt = at
	}
	select {
	case s.hurry <- struct{}{}:
	default:
	}
}

func (s *sink) takeDue() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.dueAt
	s.dueAt = time.Time{}
	return at
}

// sweepOnce returns when to come again.
func (s *sink) sweepOnce() (time.Duration, error) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, s.lease)
	defer cancel()
	value, err := s.queue.run(ctx, s.queue.client.scripts.sweep, s.group, s.consumer, s.lease.Milliseconds(), s.room(),
		s.options.MaxDeliveries, s.gravesLeft(), scanned, goneAfter.Milliseconds(), s.queue.ttl.Milliseconds())
	if err != nil {
		return 0, err
	}
	list, _ := value.([]any)
	if len(list) < 3 {
		return s.lease, nil
	}
	var dead []*lease
	s.take(s.parse(list[2], &dead), swept)
	s.bury(dead)
	wait := time.Duration(count(value, 0)) * time.Millisecond
	if count(value, 1) > 0 {
		wait = min(wait, owedWait)
	}
	return wait, nil
}

func (s *sink) gravesLeft() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(maxGraves-s.dead, 0)
}

// parse reads entries from the answer of a script. Those that were delivered as often as they may be go to dead.
func (s *sink) parse(value any, dead *[]*lease) []*lease {
	list, _ := value.([]any)
	fetched := make([]*lease, 0, len(list))
	for _, item := range list {
		entry, _ := item.([]any)
		if len(entry) < 4 {
			continue
		}
		id, _ := entry[0].(string)
		name, payload, _ := fieldsOf(entry[2])
		l := s.newLease(id, name, payload, count(entry, 1))
		if count(entry, 3) > 0 && dead != nil {
			*dead = append(*dead, l)
		} else {
			fetched = append(fetched, l)
		}
	}
	return fetched
}

// bury hands events to Dead, each in a goroutine of its own.
func (s *sink) bury(dead []*lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range dead {
		l.dead = true
		s.know(l)
		s.dead++
		s.graves.Go(func() {
			s.buryOne(l)
			s.buried(l)
		})
	}
}

func (s *sink) buried(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead--
	if s.held[l.id] == l {
		delete(s.held, l.id)
	}
}

// buryOne hands an event to Dead, and extends its lease until Dead returns.
func (s *sink) buryOne(l *lease) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.options.Dead(ctx, l.facts()) }()
	tick := time.NewTicker(s.lease / 3)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err == nil {
				err = l.remove(s.queue.client.ctx)
			}
			if err != nil {
				s.queue.client.log.Warn("an event was not buried, and is again after a lease", "stream", s.queue.name, "id", l.id, "err", err)
			}
			return
		case <-tick.C:
			_ = l.extend(ctx) // When it is lost, another worker buries it too.
		}
	}
}

var _ stream.Lease = (*lease)(nil)
