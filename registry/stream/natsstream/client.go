package natsstream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// Client is a [stream.Client] on one connection to NATS. The connection is made
// again, without end, when it breaks.
type Client struct {
	conn     *nats.Conn
	js       jetstream.JetStream
	log      *slog.Logger
	prefix   string
	replicas int
	keeper   Keeper
	asks     *asks
	tries    tries
	denials  stream.Denials

	ctx    context.Context // ends with the client
	cancel context.CancelFunc
	up     broadcast // wakes whoever waits for the connection

	mu     sync.Mutex
	closed bool
	open   map[closer]struct{} // sinks and subscriptions
}

var (
	_ stream.Client       = (*Client)(nil)
	_ stream.DenialTeller = (*Client)(nil)
)

// closer is a sink or a subscription, which ends with its client.
type closer interface{ Close() error }

func newClient(conn *nats.Conn, opts *Options) (*Client, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, js: js, log: opts.logger(), prefix: opts.prefix(), replicas: opts.Replicas,
		keeper: opts.keeper(), open: map[closer]struct{}{}, tries: tries{under: map[*try]struct{}{}}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if c.asks, err = newAsks(conn); err != nil {
		return nil, err
	}
	return c, nil
}

// noKeeper leaves all to the server.
type noKeeper struct{}

func (noKeeper) Room() error                           { return nil }
func (noKeeper) Persist(context.Context, string) error { return nil }

// OnDenied implements [stream.DenialTeller]. That the client may not make a stream is no
// denial, as only who wants one knows whether the right is missing.
func (c *Client) OnDenied(tell func(stream.Denial)) (stop func()) { return c.denials.OnDenied(tell) }

// MaxPayload implements [stream.Client]. The server says how large a message
// may be.
func (c *Client) MaxPayload() int {
	return int(c.conn.MaxPayload()) - headroom
}

// headroom is what a message may need beside the payload: subject, reply and
// headers.
const headroom = 4096

// Close implements [stream.Client].
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	open := c.open
	c.open = nil
	c.mu.Unlock()

	closeAll(open, true)
	c.cancel()
	closeAll(open, false)
	if c.conn.IsConnected() {
		c.conn.FlushTimeout(closeTimeout) //nolint:errcheck // What a broken connection has not sent is lost.
	}
	c.conn.Close()
	c.asks.fail(stream.ErrClosed)
	return nil
}

// closeAll closes the sinks among parts, or the others, all at once.
func closeAll(parts map[closer]struct{}, sinks bool) {
	var closing sync.WaitGroup
	for part := range parts {
		if _, is := part.(*sink); is == sinks {
			closing.Go(func() { part.Close() }) //nolint:errcheck // It fails only for a connection that is gone.
		}
	}
	closing.Wait()
}

// keep notes a sink or subscription that ends with the client.
func (c *Client) keep(part closer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return stream.ErrClosed
	}
	c.open[part] = struct{}{}
	return nil
}

func (c *Client) forget(part closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, part)
}

// isClosed returns ErrClosed once the client is closed.
func (c *Client) isClosed() error {
	if c.ctx.Err() != nil {
		return stream.ErrClosed
	}
	return nil
}

// checkSend returns an error for what must not be sent.
func (c *Client) checkSend(what, event string, payload []byte) error {
	if err := c.isClosed(); err != nil {
		return err
	}
	if err := stream.CheckName(what, event); err != nil {
		return err
	}
	if limit := c.MaxPayload(); len(payload) > limit {
		return fmt.Errorf("%w: it has %d bytes, and the server takes %d", stream.ErrTooLarge, len(payload), limit)
	}
	return nil
}
