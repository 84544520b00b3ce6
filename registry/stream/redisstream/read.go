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
		if pause.next == 0 {
			s.queue.client.log.Warn("reading a stream failed, and is tried again", "stream", s.queue.name, "err", err)
		}
		if !pause.wait(s.ctx) {
			return
		}
		s.repair(err)
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
		Count: int64(min(s.room(), most)), Block: blocked,
	}).Result()
	if errors.Is(err, redis.Nil) || err == nil && len(streams) == 0 {
		return nil, nil
	}
	if err != nil {
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

// repair makes what Redis lost, and takes what it delivered on a connection that broke.
func (s *sink) repair(err error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.lease)
	defer cancel()
	if forgotten(err) {
		if _, err := s.ensure(ctx, s.lease); err != nil {
			s.queue.client.log.Warn("a sink could not be made again", "stream", s.queue.name, "sink", s.name, "err", err)
		}
		return
	}
	s.recover(ctx)
}

// recover takes what Redis says this consumer has and nobody here knows of.
func (s *sink) recover(ctx context.Context) {
	s.fetching.Lock()
	defer s.fetching.Unlock()
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
