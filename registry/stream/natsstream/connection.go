package natsstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// hooks are what the connection calls from a goroutine of its own. The client
// is not there yet while the connection is made.
type hooks struct {
	log    *slog.Logger
	client atomic.Pointer[Client]
	denied reminders
}

func (h *hooks) disconnected(_ *nats.Conn, err error) {
	if client := h.client.Load(); client != nil && client.ctx.Err() == nil {
		h.log.Warn("connection to the stream server broke", "error", err)
		client.asks.fail(stream.ErrUnavailable)
	}
}

func (h *hooks) reconnected(conn *nats.Conn) {
	if client := h.client.Load(); client != nil {
		h.log.Info("connected to the stream server again", "server", conn.ConnectedServerName())
		client.reconnected()
	}
}

func (h *hooks) failed(_ *nats.Conn, sub *nats.Subscription, err error) {
	if d := denialOf(err); d != nil {
		h.deny(d)
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	h.log.Warn("the connection to the stream server reports", "subject", subject, "error", err)
}

// reconnectDelay spreads the clients of a server that comes back.
func reconnectDelay(attempts int) time.Duration {
	wait := min(reconnectFirst<<min(attempts, 10), reconnectMost)
	return wait/2 + rand.N(wait/2)
}

// reconnector is a part of a client that has something to do when the connection
// is there again.
type reconnector interface{ reconnected() }

func (c *Client) reconnected() {
	c.up.wake()
	c.mu.Lock()
	var parts []reconnector
	for part := range c.open {
		if r, ok := part.(reconnector); ok {
			parts = append(parts, r)
		}
	}
	c.mu.Unlock()
	for _, part := range parts {
		part.reconnected()
	}
}

// connected waits until there is a connection. Its error is that of a context
// that ended, or ErrClosed.
func (c *Client) connected(ctx context.Context) error {
	for {
		up := c.up.wait()
		if err := c.isClosed(); err != nil {
			return err
		}
		if c.conn.IsConnected() {
			return ctx.Err()
		}
		select {
		case <-up:
		case <-c.ctx.Done():
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", stream.ErrUnavailable, ctx.Err())
		}
	}
}

// tryTimeout bounds one request to the server. Its answer comes in milliseconds,
// so that one without is lost.
const tryTimeout = 5 * time.Second

// slowest is the rate, in bytes per second, at which a payload is expected to get to
// the server at least.
const slowest = 64 << 10

// retryFirst and retryMost are the waits between tries.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

// retry calls try until it works, fails for good, or ctx ends. One that asks the
// server about a JetStream stream goes by retryOn.
func (c *Client) retry(ctx context.Context, try func(context.Context) error) error {
	return c.retryOn(ctx, "", try)
}

// retryOn is retry for requests about a JetStream stream, which end at once when
// the server does not permit one of them.
func (c *Client) retryOn(ctx context.Context, inside string, attempt func(context.Context) error) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		if err := c.connected(ctx); err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, tryTimeout)
		err := c.tries.run(once, inside, attempt)
		cancel()
		if err == nil || !isTransient(err) {
			return err
		}
		if stop := c.pause(ctx, wait); stop != nil {
			return fmt.Errorf("%w: %w: %w", stream.ErrUnavailable, stop, err)
		}
	}
}

// pause waits, unless the context or the client ends first.
func (c *Client) pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return stream.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isTransient reports whether the server may answer otherwise in a moment.
func isTransient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503 && !isFullCode(api.ErrorCode)
	}
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.Is(err, stream.ErrUnavailable)
}

// Codes with which the server refuses what it has no room for.
const (
	codeAccountResources = 10002
	codeResources        = 10023
	codeStorage          = 10047
	codeStoreFailed      = 10077
	codeMessageTooLarge  = 10054
)

func isFullCode(code jetstream.ErrorCode) bool {
	return code == codeAccountResources || code == codeResources || code == codeStorage
}

// sendError translates an error of the connection.
func sendError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrConnectionClosed):
		return stream.ErrClosed
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", stream.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
}

// broadcast wakes all who wait.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// wait returns a channel that the next wake closes.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
