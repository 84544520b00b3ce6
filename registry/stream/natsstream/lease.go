package natsstream

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// lease is the right to one delivery of an event.
type lease struct {
	sink     *sink
	sequence uint64 // of the event in its stream

	mu      sync.Mutex
	reply   string // the subject that settles the latest delivery
	until   time.Time
	settled bool
}

// Ack implements [stream.Lease].
func (l *lease) Ack(context.Context) error { return l.settle("+ACK") }

// Nack implements [stream.Lease].
func (l *lease) Nack(_ context.Context, delay time.Duration) error {
	if delay <= 0 {
		return l.settle("-NAK")
	}
	return l.settle(`-NAK {"delay": ` + strconv.FormatInt(int64(delay), 10) + `}`)
}

func (l *lease) settle(verdict string) error {
	l.mu.Lock()
	if l.settled {
		l.mu.Unlock()
		return stream.ErrSettled
	}
	if err := l.sink.queue.client.conn.Publish(l.reply, []byte(verdict)); err != nil {
		l.mu.Unlock()
		return sendError(err)
	}
	l.settled = true
	l.mu.Unlock()
	l.sink.release(l)
	return nil
}

// Extend implements [stream.Lease].
func (l *lease) Extend(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case l.settled:
		return stream.ErrSettled
	case now.After(l.until):
		return stream.ErrLost
	}
	if err := l.sink.queue.client.conn.Publish(l.reply, []byte("+WPI")); err != nil {
		return sendError(err)
	}
	l.until = now.Add(l.sink.Lease())
	return nil
}

// renew lets the lease go on with another delivery of its event, and reports
// whether it could: not when it had ended.
func (l *lease) renew(reply string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled || now.After(l.until) {
		return false
	}
	l.reply, l.until = reply, now.Add(l.sink.Lease())
	return true
}
