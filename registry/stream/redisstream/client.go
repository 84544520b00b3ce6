package redisstream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// Client is a [stream.Client] on a Redis server. Connections are made again, without end, when they break.
type Client struct {
	settings   *redis.Options // of every connection
	redis      *redis.Client
	maxPayload int
	log        *slog.Logger
	denials    *stream.Denials
	scripts    *scripts
	channels   channels
	inbox      string // its channel

	ctx    context.Context // ends with the client
	cancel context.CancelFunc

	commands *pipe // what is waited for
	posts    *pipe // the bus and acknowledgements, in order
	hub      *hub
	asks     *asks

	mu     sync.Mutex
	closed atomic.Bool         // changed under mu
	open   map[closer]struct{} // sinks and subscriptions
}

var (
	_ stream.Client       = (*Client)(nil)
	_ stream.DenialTeller = (*Client)(nil)
)

// closer is a sink or a subscription, which ends with its client.
type closer interface{ Close() error }

// idLength is that of newID.
const idLength = 16

func newID() string {
	var b [idLength / 2]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

func newClient(settings *redis.Options, o *Options) *Client {
	c := &Client{
		settings: settings, maxPayload: o.maxPayload(), log: o.logger(), denials: &stream.Denials{}, scripts: newScripts(),
		channels: channelsOf(settings.DB), inbox: channelsOf(settings.DB).inbox(o.Inbox, newID()), open: map[closer]struct{}{},
	}
	c.redis = c.connect(stream.DefaultLease, c.scripts.load)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.commands, c.posts = newPipe(c), newPipe(c)
	c.hub = newHub(c.ctx, c.redis, c.log)
	c.asks = newAsks(c)
	return c
}

// OnDenied implements [stream.DenialTeller].
func (c *Client) OnDenied(tell func(stream.Denial)) (stop func()) { return c.denials.OnDenied(tell) }

// tellDenied tells of a command that the ACL does not permit.
func (c *Client) tellDenied(args []any, err error) {
	if errors.Is(err, stream.ErrForbidden) {
		c.denials.Tell(c.channels.denial(args, err))
	}
}

// MaxPayload implements [stream.Client].
func (c *Client) MaxPayload() int { return c.maxPayload }

// Close implements [stream.Client]. It waits five seconds at most for what is to be sent.
func (c *Client) Close() error {
	open, ok := c.beginClose()
	if !ok {
		return nil
	}
	limit := time.AfterFunc(closeTimeout, c.cancel)
	defer limit.Stop()
	var closing sync.WaitGroup
	for part := range open {
		closing.Go(func() { part.Close() }) //nolint:errcheck // They return nil.
	}
	closing.Wait()
	if c.commands.down.Load() || c.posts.down.Load() {
		c.cancel()
	}
	c.commands.close()
	c.posts.close()
	c.cancel()
	c.asks.fail()
	c.hub.close()
	if err := c.redis.Close(); err != nil {
		return fmt.Errorf("redisstream: close: %w", err)
	}
	return nil
}

func (c *Client) beginClose() (open map[closer]struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Swap(true) {
		return nil, false
	}
	open, c.open = c.open, nil
	return open, true
}

// keep notes a sink or subscription that ends with the client.
func (c *Client) keep(part closer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
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

// isClosed returns ErrClosed once the client was closed.
func (c *Client) isClosed() error {
	if c.closed.Load() {
		return stream.ErrClosed
	}
	return nil
}

// checkSend returns an error for what must not be sent.
func (c *Client) checkSend(what, name string, payload []byte) error {
	if err := c.isClosed(); err != nil {
		return err
	}
	if err := stream.CheckName(what, name); err != nil {
		return err
	}
	if len(payload) > c.maxPayload {
		return fmt.Errorf("%w: it has %d bytes, and at most %d are taken", stream.ErrTooLarge, len(payload), c.maxPayload)
	}
	return nil
}

// connect makes a client whose connections notice within a lease that the other side is gone.
func (c *Client) connect(lease time.Duration, onConnect func(context.Context, *redis.Conn) error) *redis.Client {
	settings := *c.settings
	settings.OnConnect = onConnect
	settings.Dialer = dialer(settings.TLSConfig, keepAlive(lease))
	settings.TLSConfig = nil // It is the dialer's.
	return redis.NewClient(&settings)
}

// reader makes a client of its own for reads that block, so that closing it ends them. The returned number is that of
// its connection on the server.
func (c *Client) reader(lease time.Duration) (*redis.Client, *atomic.Int64) {
	var number atomic.Int64
	return c.connect(lease, func(ctx context.Context, conn *redis.Conn) error {
		id, err := conn.ClientID(ctx).Result()
		number.Store(id)
		return err
	}), &number
}
