package mcpwire

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

// An outlet is where messages to a client go.
type outlet interface {
	send(ctx context.Context, msg []byte) error
}

// Session is what is known of the client that a request comes from. In the
// stateful era it is one handshake's; in the stateless era each request has a
// Session of its own.
type Session struct {
	server       *Server
	id           string
	version      string
	principal    string
	clientInfo   json.RawMessage
	capabilities json.RawMessage
	pipe         bool
	attachment   atomic.Pointer[any]

	// What follows is used in the stateful era only.
	calls       calls
	requests    inflight
	out         outlet    // for what belongs to no request
	log         *eventLog // for HTTP
	use         usage
	initialized atomic.Bool

	ctx     context.Context
	cancel  context.CancelFunc
	closing sync.Once
}

// ID returns the session's id: the HTTP session id, a name of the pipe, or ""
// in the stateless era.
func (s *Session) ID() string { return s.id }

// Version returns the protocol revision in use.
func (s *Session) Version() string { return s.version }

// Era returns the era of the revision.
func (s *Session) Era() Era { return EraOf(s.version) }

// Principal returns whom the session belongs to, as Authenticate said.
func (s *Session) Principal() string { return s.principal }

// ClientInfo returns the client's Implementation object, nil if it sent none.
func (s *Session) ClientInfo() json.RawMessage { return s.clientInfo }

// ClientCapabilities returns the client's capabilities object, nil if it sent
// none.
func (s *Session) ClientCapabilities() json.RawMessage { return s.capabilities }

// Pipe reports whether the client is at the other end of a pipe, and not of
// HTTP.
func (s *Session) Pipe() bool { return s.pipe }

// Attachment returns what SetAttachment kept, or nil.
func (s *Session) Attachment() any {
	if p := s.attachment.Load(); p != nil {
		return *p
	}
	return nil
}

// SetAttachment keeps a value with the session.
func (s *Session) SetAttachment(v any) { s.attachment.Store(&v) }

// Done is closed when the session has ended. It is nil in the stateless era.
func (s *Session) Done() <-chan struct{} {
	if s.ctx == nil {
		return nil
	}
	return s.ctx.Done()
}

// Notify sends a notification that belongs to no request. Over HTTP it waits
// for a client that has no stream open, as far as ReplayBytes go, and Notify
// does not block. The error is [ErrUnsupported] in the stateless era, where
// such notifications belong to a subscription, and [ErrClosed] after the end.
func (s *Session) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if s.out == nil {
		return ErrUnsupported
	}
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	return s.out.send(ctx, AppendRequest(nil, "", method, params))
}

// Call sends a request to the client on the session's own stream and returns
// its result. The error is the client's [*Error], or a [*CallError]; the cause
// is [ErrUnsupported] in the stateless era.
func (s *Session) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return s.callOn(ctx, s.out, method, params)
}

func (s *Session) callOn(ctx context.Context, out outlet, method string, params json.RawMessage) (json.RawMessage, error) {
	if s.out == nil || s.Era() == EraStateless {
		return nil, &CallError{Method: method, Delivery: NotDelivered, Err: ErrUnsupported}
	}
	k := &call{method: method, done: make(chan struct{})}
	if err := s.calls.add(k); err != nil {
		return nil, &CallError{Method: method, Delivery: NotDelivered, Err: err}
	}
	defer s.calls.forget(k)
	if err := out.send(ctx, AppendRequest(nil, k.wireID(), method, params)); err != nil {
		return nil, &CallError{Method: method, Delivery: NotDelivered, Err: err}
	}
	select {
	case <-k.done:
		return k.outcome()
	case <-s.ctx.Done():
		return nil, &CallError{Method: method, Delivery: MaybeDelivered, Err: ErrClosed}
	case <-ctx.Done():
		cancelled := appendCancelled(nil, k.wireID(), context.Cause(ctx).Error())
		if err := out.send(s.ctx, cancelled); err != nil {
			s.server.opts.Logger.Debug("cancellation not sent", "method", method, "error", err)
		}
		return nil, &CallError{Method: method, Delivery: MaybeDelivered, Err: ctx.Err()}
	}
}

// Close ends the session: its requests are cancelled, its streams end, and a
// client that uses its id again is told that it is gone.
func (s *Session) Close() {
	if s.cancel == nil {
		return
	}
	s.closing.Do(func() {
		s.server.dropSession(s)
		s.use.stop()
		s.calls.close(ErrClosed)
		s.cancel()
		if s.initialized.Load() {
			s.server.opts.SessionClosed(s)
		}
	})
}

// open makes a session of the stateful era ready for use.
func (s *Session) open() {
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.requests.max = s.server.opts.MaxInFlight
}

// receiveAnswer takes in an answer to a request that was sent to the client.
func (s *Session) receiveAnswer(f Frame) { s.calls.finish(f) }

// receiveInitialized handles notifications/initialized.
func (s *Session) receiveInitialized() {
	if s.initialized.CompareAndSwap(false, true) {
		s.server.opts.SessionOpened(s)
	}
}

// readInitialize reads the params of initialize into the session.
func (s *Session) readInitialize(params json.RawMessage) error {
	var p struct {
		Version      *string         `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Info         json.RawMessage `json:"clientInfo"`
	}
	if err := json.Unmarshal(params, &p); params == nil || err != nil || p.Version == nil {
		return Errorf(CodeInvalidParams, `initialize: params must have a "protocolVersion"`)
	}
	if err := checkSelf(p.Info, p.Capabilities); err != nil {
		return err
	}
	s.version = negotiateStateful(*p.Version)
	s.capabilities, s.clientInfo = p.Capabilities, p.Info
	return nil
}

// maxSelf bounds each of the objects in which a client says what it is, and
// which are kept for as long as its session.
const maxSelf = 64 << 10

func checkSelf(info, capabilities json.RawMessage) error {
	for name, v := range map[string]json.RawMessage{"clientInfo": info, "capabilities": capabilities} {
		if len(v) > maxSelf {
			return Errorf(CodeInvalidParams, "%s has %d bytes, and may have %d", name, len(v), maxSelf)
		}
	}
	return nil
}

// usage says whether a session is being used, and ends it when it has not been
// for too long.
type usage struct {
	mu    sync.Mutex
	users int
	since time.Time
	idle  time.Duration
	timer *time.Timer
}

func (u *usage) start(idle time.Duration, expire func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since, u.idle = time.Now(), idle
	if idle > 0 {
		u.timer = time.AfterFunc(idle, expire)
	}
}

func (u *usage) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users++
	if u.timer != nil {
		u.timer.Stop()
	}
}

func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users--
	u.since = time.Now()
	if u.users == 0 && u.timer != nil {
		u.timer.Reset(u.idle)
	}
}

func (u *usage) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer != nil {
		u.timer.Stop()
		u.timer = nil
	}
}

func (u *usage) idleSince() (time.Time, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.since, u.users == 0 && !u.since.IsZero()
}

var errDuplicateInitialize = &Error{Code: CodeInvalidRequest, Message: "invalid request: initialize was already received on this session"}
