package natsstream

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolcrib/toolcrib/registry/stream"
)

const (
	// beat is how often the server says that it has not forgotten a pull.
	beat = 30 * time.Second

	// pullExpires is how long a pull waits on the server.
	pullExpires = 10 * time.Minute

	// maxPulls bounds the pulls of all workers of a sink.
	maxPulls = 16_384

	// pullBytes bounds what one pull brings, at least one event of any size, so
	// that the server need not hold more for a slow connection.
	pullBytes = 8 << 20
)

// pull asks the server for events when enough places are free that it is worth a
// request: half of all, or one when nothing is asked for. s.mu is held.
func (s *sink) pull() {
	free := s.opts.InFlight - s.holding - s.asked
	if s.stop || free <= 0 || s.asked > 0 && free < max(1, s.opts.InFlight/2) || !s.queue.client.conn.IsConnected() {
		return
	}
	request := make([]byte, 0, 128)
	request = append(request, `{"batch":`...)
	request = strconv.AppendInt(request, int64(free), 10)
	request = append(request, `,"expires":`...)
	request = strconv.AppendInt(request, int64(pullExpires), 10)
	request = append(request, `,"idle_heartbeat":`...)
	request = strconv.AppendInt(request, int64(beat), 10)
	request = append(request, `,"max_bytes":`...)
	request = strconv.AppendInt(request, max(pullBytes, s.queue.client.conn.MaxPayload()+2*headroom), 10)
	request = append(request, '}')
	if err := s.queue.client.conn.PublishRequest(s.next, s.inbox, request); err == nil {
		s.asked += free
	}
}

// told takes a status that the server sent instead of events.
func (s *sink) told(status string, msg *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	if status == statusHeartbeat {
		return
	}
	// A pull ended before it brought all it asked for. The server says how many
	// it did not bring, but where all pulls ended with what they were made to.
	left, err := strconv.Atoi(msg.Header.Get("Nats-Pending-Messages"))
	if err == nil {
		s.asked = max(0, s.asked-left)
		s.pull()
		return
	}
	s.asked = 0
	s.queue.client.log.Debug("the server ended a request for events", "stream", s.queue.name, "sink", s.name,
		"status", status, "reason", msg.Header.Get("Description"))
	select {
	case s.broken <- struct{}{}:
	default:
	}
}

// reconnected asks again for what was asked for on the connection before.
func (s *sink) reconnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	s.asked = 0
	s.pull()
}

// keep makes sure that the consumer is there and knows of the pulls, until the
// intake ends.
func (s *sink) keep() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.running.Go(func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	})
	var last time.Time
	for wait := retryFirst; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.broken:
		case now := <-ticker.C:
			if !s.forgotten(now) {
				continue
			}
		}
		// A server that refuses what a sink asks for does so again and again.
		wait = min(2*wait, reconnectMost)
		if time.Since(last) > 2*beat {
			wait = retryFirst
		}
		s.repair(ctx, wait)
		last = time.Now()
	}
}

// forgotten reports whether the server has been silent about a pull for too long.
func (s *sink) forgotten(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked > 0 && now.Sub(s.heard) > 2*beat+beat/2
}

// repair makes the consumer, where it is gone, and pulls anew. It goes on until
// that worked or ctx ends. A pause comes first: the server may be just about to stop
// or to choose another keeper of the stream.
func (s *sink) repair(ctx context.Context, wait time.Duration) {
	for ; ; wait = min(2*wait, max(wait, retryMost)) {
		if s.queue.client.pause(ctx, wait) != nil {
			return
		}
		err := s.queue.client.retryOn(ctx, s.queue.inside, s.open)
		if err == nil {
			s.reconnected()
			return
		}
		if errors.Is(err, stream.ErrClosed) || isContext(err) && ctx.Err() != nil {
			return
		}
		s.queue.client.log.Warn("the sink of a stream cannot be opened again", "stream", s.queue.name, "sink", s.name, "error", err)
	}
}
