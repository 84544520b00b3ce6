package redisstream

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// blocked is how long one read waits.
	blocked = 30 * time.Second
	// most is how many new events one read fetches. Fewer go to a worker that is slow while others are idle.
	most = 32
)

// read fetches new events until the intake ends.
func (s *sink) read() {
	var pause backoff
	for s.waitForRoom() {
		fetched, err := s.readOnce()
		if err == nil {
			pause.reset()
			s.take(fetched, fresh)
			continue
		}
		if s.ctx.Err() != nil {
			return
		}
		s.stumble(err)
		if pause.next == 0 {
			s.queue.client.log.Log(s.ctx, levelOf(err), "reading a stream failed, and is tried again", "stream", s.queue.name, "err", err)
		}
		if !pause.wait(s.ctx) {
			return
		}
		if !s.remake(err) {
			s.recover()
		}
	}
}

// waitForRoom waits until there is room and Receive has taken what was fetched. It returns false when the intake ends.
func (s *sink) waitForRoom() bool {
	for s.room() == 0 || len(s.events) > 0 {
		select {
		case <-s.changed:
		case <-s.ctx.Done():
			return false
		}
	}
	return s.ctx.Err() == nil
}

// readOnce returns what is new, nothing when that is nothing.
func (s *sink) readOnce() ([]*lease, error) {
	streams, err := s.reader.XReadGroup(s.ctx, &redis.XReadGroupArgs{
		Group: s.group, Consumer: s.consumer, Streams: []string{s.queue.keys.stream, ">"},
		Count: int64(max(min(s.room(), most), 1)), Block: blocked,
	}).Result()
	if errors.Is(err, redis.Nil) || err == nil && len(streams) == 0 {
		return nil, nil
	}
	if err != nil {
		args := []any{"XREADGROUP", s.queue.keys.stream}
		err = denied(args, err)
		s.queue.client.tellDenied(args, err)
		return nil, err
	}
	fetched := make([]*lease, 0, len(streams[0].Messages))
	for _, message := range streams[0].Messages {
		name, _ := message.Values[nameField].(string)
		payload, _ := message.Values[payloadField].(string)
		fetched = append(fetched, s.newLease(message.ID, name, payload, 1))
	}
	return fetched, nil
}

// stumble notes that Redis was away. While it is, no worker can extend a lease, so that after it each gets the time to do
// so before anything is taken over.
func (s *sink) stumble(err error) {
	if judge(err) == answered {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grace = time.Now().Add(s.lease / 2)
}

// graceLeft is how long nothing is to be taken over.
func (s *sink) graceLeft() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.grace)
}

// remake makes a sink that Redis does not have any more. It returns false for another fault.
func (s *sink) remake(err error) bool {
	if !forgotten(err) {
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.lease)
	defer cancel()
	if _, err := s.ensure(ctx, s.lease); err != nil && s.ctx.Err() == nil {
		s.queue.client.log.Warn("a sink could not be made again", "stream", s.queue.name, "sink", s.name, "err", err)
	}
	return true
}

// recover takes what Redis says this consumer has and nobody here knows of, because the connection broke on which it was
// delivered. Only read calls it, when it waits for nothing.
func (s *sink) recover() {
	s.fetching.Lock()
	defer s.fetching.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, s.lease)
	defer cancel()
	unknown, err := s.pending(ctx, func(l *lease) bool { return l != nil })
	if err != nil || len(unknown) == 0 {
		return
	}
	if room := s.room(); len(unknown) > room {
		unknown = unknown[:room] // The others are delivered again when their leases end.
	}
	args := append([]any{s.group, s.consumer}, unknown...)
	value, err := s.queue.run(ctx, s.queue.client.scripts.take, args...)
	if err != nil {
		return
	}
	s.take(s.parse(value, nil), swept)
}
