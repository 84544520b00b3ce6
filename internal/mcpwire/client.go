package mcpwire

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxMessageBytes is the size limit of one message where no other is
// given.
const DefaultMaxMessageBytes = 256 << 20

// ClientOptions configure [Connect]. The zero value serves.
type ClientOptions struct {
	// Info is the client's Implementation object; by default its name is
	// "mcpwire".
	Info json.RawMessage
	// Capabilities are the client's; {} by default.
	Capabilities json.RawMessage
	// Version pins the revision. When it is empty the stateless era is tried
	// first, and then the stateful one.
	Version string
	// ProbeTimeout bounds how long server/discover is waited for before
	// initialize is tried, 10 seconds by default: a server of the stateful era
	// may ignore what it does not know.
	ProbeTimeout time.Duration

	// OnNotification receives notifications that belong to no call, or to one
	// that has no function for them; one at a time, in order.
	OnNotification func(method string, params json.RawMessage)
	// OnRequest answers requests of the server, each on its own goroutine;
	// without it they are answered with [CodeMethodNotFound]. Ping never
	// arrives here.
	OnRequest func(ctx context.Context, r *ServerRequest) (json.RawMessage, error)

	// MaxMessageBytes limits one message, [DefaultMaxMessageBytes] by default.
	MaxMessageBytes int64
	// Scratch, where not nil, takes in answers with more than LongBytes bytes
	// while there are calls with CallOptions.Long. They are bounded by it, and not
	// by MaxMessageBytes.
	Scratch *Scratch
	// LongBytes is 256 KiB by default.
	LongBytes int64
	// Logger hears of what the peer does wrong; nil is silent.
	Logger *slog.Logger
}

func (o *ClientOptions) withDefaults() ClientOptions {
	out := ClientOptions{}
	if o != nil {
		out = *o
	}
	if out.Info == nil {
		out.Info = json.RawMessage(`{"name":"mcpwire","version":"0"}`)
	}
	if out.Capabilities == nil {
		out.Capabilities = json.RawMessage(`{}`)
	}
	if out.ProbeTimeout <= 0 {
		out.ProbeTimeout = 10 * time.Second
	}
	if out.MaxMessageBytes <= 0 {
		out.MaxMessageBytes = DefaultMaxMessageBytes
	}
	if out.LongBytes <= 0 {
		out.LongBytes = defaultLong
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out
}

const defaultLong = 256 << 10

// CallOptions are what one call adds. The functions are called one at a time,
// and never after Call has returned.
type CallOptions struct {
	// Long takes in a result that is too long for memory, where the connection
	// has a Scratch, and returns what Call is to return. It is called by Call
	// itself, so that what it waits for holds up nobody else.
	Long func(r *LongResult) (json.RawMessage, error)
	// Progress receives the params of the notifications/progress of this call.
	// The progressToken in them is the connection's own.
	Progress func(params json.RawMessage)
	// Notification receives the other notifications that certainly belong to
	// this call, because they came on its own stream or name its subscription.
	Notification func(method string, params json.RawMessage)
	// Request answers requests of the server that came on this call's own
	// stream.
	Request func(ctx context.Context, r *ServerRequest) (json.RawMessage, error)
	// Meta is an object whose members are put into the _meta of the params.
	Meta json.RawMessage
	// Header is added to the HTTP request of this call.
	Header http.Header
	// Info and Capabilities, where not nil, stand in for those of the
	// connection in the _meta of this call, so that one stateless connection
	// can speak for many clients. The stateful era has no place for them.
	Info, Capabilities json.RawMessage
}

// ServerRequest is a request from a server to a client.
type ServerRequest struct {
	Method string
	Params json.RawMessage
	ID     ID
}

// Peer is what a server said of itself.
type Peer struct {
	Version      string
	Era          Era
	Info         json.RawMessage // its Implementation object, nil if unsaid
	Capabilities json.RawMessage
	Instructions string
	// Raw is the whole result of initialize or server/discover.
	Raw json.RawMessage
}

// Stats count what a connection dropped.
type Stats struct {
	// Noise is the number of lines or events that were no message.
	Noise int64
	// UnknownAnswers is the number of answers to no open call.
	UnknownAnswers int64
	// DroppedNotifications is the number of notifications that a receiver was
	// too slow for.
	DroppedNotifications int64
}

// Client is a connection to one server. It is safe for concurrent use.
type Client struct {
	opts     ClientOptions
	link     link
	server   atomic.Pointer[Peer]
	calls    calls
	requests inflight
	mail     *mailbox
	cancels  *gate // cancellations being sent
	// sessionsOnly: the transport has no stateless era to ask for.
	sessionsOnly bool

	noise, droppedMail atomic.Int64

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards adding to work
	ended   bool
	closing sync.Once
	done    chan struct{}
	err     error // valid once done is closed
}

// A link carries messages for a client over one transport.
type link interface {
	// call sends a request and returns nil once k is done. The other returns
	// are how far the request got, and why no answer will come.
	call(ctx context.Context, k *call, msg []byte) (Delivery, error)
	// send delivers a notification, or an answer, whose method is "".
	send(ctx context.Context, method string, msg []byte) error
	// established tells the link what was negotiated.
	established(Peer)
	// ready follows the end of the handshake.
	ready()
	// cancelByMessage reports whether a call is cancelled by a notification,
	// and not by the end of its stream.
	cancelByMessage() bool
	// queuesMail reports whether the goroutine inside call delivers the call's
	// notifications, and not the one that reads them.
	queuesMail() bool
	sessionID() string
	// close releases everything and returns when nothing is left behind.
	close() error
}

// Transport says how to reach a server: a [ChildTransport], an
// [HTTPTransport], an [SSETransport] or a [StreamTransport].
type Transport interface {
	open(ctx context.Context, c *Client) (link, error)
}

func newClient(opts *ClientOptions) *Client {
	c := &Client{opts: opts.withDefaults(), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.requests.max = 256
	c.server.Store(&Peer{})
	c.cancels = newGate()
	c.mail = newMailbox(&c.droppedMail)
	c.work.Go(func() { c.mail.run(c.ctx.Done()) })
	return c
}

// Server returns what the server said of itself in the handshake.
func (c *Client) Server() Peer { return *c.server.Load() }

// SessionID returns the id of the HTTP session, if there is one.
func (c *Client) SessionID() string { return c.link.sessionID() }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended, nil while it lives. After Close it is
// [ErrClosed].
func (c *Client) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Stats returns what was dropped so far.
func (c *Client) Stats() Stats {
	return Stats{
		Noise:                c.noise.Load(),
		UnknownAnswers:       c.calls.dropped.Load(),
		DroppedNotifications: c.droppedMail.Load(),
	}
}

// Call sends a request and returns the result as it stands in the answer. The
// error is the server's [*Error], or a [*CallError] when no answer came. When
// ctx ends first, the server is told that the request is cancelled.
//
// The connection owns the progress token and, in the stateless era, the
// protocol version, client info and client capabilities in the _meta of
// params: what stands there is replaced. Everything else is sent as it is.
func (c *Client) Call(ctx context.Context, method string, params json.RawMessage, opts *CallOptions) (json.RawMessage, error) {
	if opts == nil {
		opts = &CallOptions{}
	}
	return c.callAs(ctx, method, params, opts, *c.server.Load())
}

func (c *Client) callAs(ctx context.Context, method string, params json.RawMessage, opts *CallOptions, as Peer) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, &CallError{Method: method, Delivery: NotDelivered, Err: err}
	}
	k := &call{method: method, opts: opts, done: make(chan struct{})}
	if c.link.queuesMail() && (opts.Progress != nil || opts.Notification != nil) {
		k.mail = newMailbox(&c.droppedMail)
	}
	err := c.calls.add(k)
	if err != nil {
		return nil, &CallError{Method: method, Delivery: NotDelivered, Err: err}
	}
	defer c.calls.forget(k)
	if opts.Long != nil {
		c.calls.long.Add(1)
		defer c.calls.long.Add(-1)
	}
	params, err = c.stamp(params, k, as)
	if err != nil {
		return nil, &CallError{Method: method, Delivery: NotDelivered, Err: err}
	}
	msg := make([]byte, 0, len(params)+len(method)+64)
	k.params = params
	delivery, err := c.link.call(ctx, k, AppendRequest(msg, k.wireID(), method, params))
	if err == nil && k.long != nil {
		return c.longOutcome(k, k.long)
	}
	if err == nil {
		return k.outcome()
	}
	if ctx.Err() != nil && delivery == MaybeDelivered && as.Version != "" && method != MethodDiscover {
		c.tellCancelled(ctx, k)
	}
	return nil, &CallError{Method: method, Delivery: delivery, Err: err}
}

// stamp puts what the connection owns into the _meta of params.
func (c *Client) stamp(params json.RawMessage, k *call, as Peer) (json.RawMessage, error) {
	edit := metaEdit{drop: ownedMeta}
	if k.opts.Meta != nil {
		edit.merge = []json.RawMessage{k.opts.Meta}
	}
	if as.Era == EraStateless {
		version, _ := json.Marshal(as.Version)
		edit.set = append(edit.set,
			metaMember{MetaProtocolVersion, version},
			metaMember{MetaClientInfo, either(k.opts.Info, c.opts.Info)},
			metaMember{MetaClientCapabilities, either(k.opts.Capabilities, c.opts.Capabilities)})
	}
	if k.opts.Progress != nil {
		edit.set = append(edit.set, metaMember{metaProgressToken, json.RawMessage(k.wireID())})
	}
	return editMeta(params, &edit)
}

func either(v, otherwise json.RawMessage) json.RawMessage {
	if v == nil {
		return otherwise
	}
	return v
}

var ownedMeta = []string{MetaProtocolVersion, MetaClientInfo, MetaClientCapabilities, metaProgressToken}

// tellCancelled tells the server that a request is given up; the caller does
// not wait for that.
func (c *Client) tellCancelled(ctx context.Context, k *call) {
	if !c.link.cancelByMessage() || c.ctx.Err() != nil {
		return
	}
	if !c.cancels.enter() {
		return
	}
	reason := context.Cause(ctx).Error()
	c.goWorkOr(func() {
		defer c.cancels.leave()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
		defer cancel()
		if err := c.link.send(ctx, NotifyCancelled, appendCancelled(nil, k.wireID(), reason)); err != nil {
			c.opts.Logger.Debug("cancellation not sent", "method", k.method, "error", err)
		}
	}, c.cancels.leave)
}

// cancelWait bounds how long a cancellation may take to be sent.
const cancelWait = 2 * time.Second

// Notify sends a notification and returns when it has left. A failure is a
// [*CallError].
func (c *Client) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := checkRaw("params", params); err != nil {
		return &CallError{Method: method, Delivery: NotDelivered, Err: err}
	}
	err := c.link.send(ctx, method, AppendRequest(nil, "", method, params))
	var he *HTTPError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &he):
		return &CallError{Method: method, Delivery: he.delivery(), Err: err}
	}
	return &CallError{Method: method, Delivery: MaybeDelivered, Err: err}
}

// Close ends the connection: an HTTP session is deleted, a child process is
// ended with its whole group. Calls in flight fail. Close returns when nothing
// is left behind, the functions of the options included; it must not be called
// from one of them.
func (c *Client) Close() error {
	if c.Err() == nil { // let the server hear of what was cancelled before
		ctx, cancel := context.WithTimeout(context.Background(), cancelWait)
		_ = c.cancels.drain(ctx)
		cancel()
	}
	c.fail(ErrClosed)
	c.cancel()
	err := c.link.close()
	c.work.Wait()
	return err
}

// fail ends the connection for the given reason; the first one stays. Requests
// that are under way when the server forgets the session go on until Close:
// each learns by its own answer that it was not processed.
func (c *Client) fail(err error) {
	c.closing.Do(func() {
		c.err = err
		c.calls.close(err)
		c.mu.Lock()
		c.ended = true
		c.mu.Unlock()
		close(c.done)
		if !errors.Is(err, ErrSessionLost) {
			c.cancel()
		}
	})
}

// goWork runs f on a goroutine that Close waits for, unless the connection has
// ended already.
func (c *Client) goWork(f func()) { c.goWorkOr(f, func() {}) }

// goWorkOr is goWork that runs instead here when the connection has ended.
func (c *Client) goWorkOr(f, instead func()) {
	c.mu.Lock()
	ended := c.ended
	if !ended {
		c.work.Go(f)
	}
	c.mu.Unlock()
	if ended {
		instead()
	}
}

// asCallCause is the cause to report for a call that the end of the
// connection, or of its context, left without an answer.
func (c *Client) asCallCause(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if cause := c.Err(); cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}
