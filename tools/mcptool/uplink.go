package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

const (
	// firstPause is how long an attempt to connect waits after two failures in
	// a row; the pause then doubles. After one failure it may begin at once.
	firstPause = 250 * time.Millisecond
	// callPause bounds how long a call is refused without an attempt.
	callPause = 10 * time.Second
	// idlePause bounds the pause between attempts that no call asks for.
	idlePause = time.Minute
	// steadyAfter is how long a connection lives before its end counts as the
	// first failure, and not as one more of a series.
	steadyAfter = 10 * time.Second
	// drainLimit bounds how long calls of a forgotten session are waited for.
	drainLimit = time.Minute
)

// errClosed is the cause of what fails because the Server was closed.
var errClosed = errors.New("the connection to the server was closed")

// An uplink keeps one connection to a server: it makes it when it is wanted,
// shares it among all who want it, and makes another when it is lost. It is
// safe for concurrent use.
type uplink struct {
	// open makes a connection, within ctx.
	open func(ctx context.Context) (*mcpwire.Client, error)
	// opened is called after each handshake, before anyone gets the
	// connection. first tells the first one.
	opened func(c *connection, first bool)
	// lost is called when a connection ended by itself, with the reason.
	lost func(cause error)
	// unclear is called when what is left of a connection could not be ended.
	unclear func(err error)
	// failed is called when a connection could not be made.
	failed  func(err error)
	timeout time.Duration
	// lazy leaves a lost connection until the next call wants one.
	lazy bool

	ctx    context.Context // ends with the uplink
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	conn     *connection // the last one made, alive or not
	dialing  *dial
	reviving bool
	failures int       // in a row
	failedAt time.Time // of the last failure
	lastErr  error     // why there is no connection
	made     int
	noise    int64 // of connections that have ended
	closed   bool
}

// A connection is the life of one handshake.
type connection struct {
	client   *mcpwire.Client
	era      mcpwire.Era
	logs     bool // each call has to ask for log messages
	since    time.Time
	inFlight atomic.Int64
	settled  chan struct{} // a call has returned
	// ctx ends with the connection; retire ends it, for a reason.
	ctx    context.Context
	retire context.CancelCauseFunc
	// gone is closed when nothing of a connection that ended is left.
	gone  chan struct{}
	level atomic.Pointer[string] // the log level that was asked for last
	// leveling is held while the level of a connection that callers share is
	// changed.
	leveling sync.Mutex
	buried   bool // its end is accounted for; guarded by uplink.mu
}

func (c *connection) alive() bool { return c.client.Err() == nil && c.ctx.Err() == nil }

// call counts the calls in flight around one.
func (c *connection) call(ctx context.Context, method string, params json.RawMessage, opts *mcpwire.CallOptions) (json.RawMessage, error) {
	c.inFlight.Add(1)
	defer func() {
		c.inFlight.Add(-1)
		select {
		case c.settled <- struct{}{}:
		default:
		}
	}()
	return c.client.Call(ctx, method, params, opts)
}

// drain waits until no call is in flight, within a limit.
func (c *connection) drain(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for c.inFlight.Load() > 0 {
		select {
		case <-c.settled:
		case <-ctx.Done():
			return
		}
	}
}

// cause returns why a connection ended.
func (c *connection) cause() error {
	if err := c.client.Err(); err != nil && !errors.Is(context.Cause(c.ctx), errSilent) {
		return err
	}
	return context.Cause(c.ctx)
}

// errSilent is why a connection is retired that gives no sign of life.
var errSilent = errors.New("the server does not answer")

// A dial is one attempt to connect, and whoever waits for it.
type dial struct {
	done chan struct{}
	conn *connection
	err  error
}

func newUplink() *uplink {
	u := &uplink{}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	return u
}

// A pausedError refuses a call while the next attempt to connect has to wait.
type pausedError struct {
	wait time.Duration
	last error
}

func (e *pausedError) Error() string { return e.last.Error() }
func (e *pausedError) Unwrap() error { return e.last }

// A dialError is a connection that was not made.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }

// Unwrap hides a JSON-RPC error, which answers a handshake and not a call.
func (e *dialError) Unwrap() error {
	var rpc *RPCError
	if errors.As(e.err, &rpc) {
		return nil
	}
	return e.err
}

// get returns the live connection. Without one it waits for an attempt to make
// it, which is begun at once if insist is set, and otherwise not before the
// pause after a failure is over.
func (u *uplink) get(ctx context.Context, insist bool) (*connection, error) {
	conn, attempt, err := u.begin(insist)
	if attempt == nil {
		return conn, err
	}
	select {
	case <-attempt.done:
		return attempt.conn, attempt.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin returns the live connection, or the attempt to wait for.
func (u *uplink) begin(insist bool) (*connection, *dial, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return nil, nil, errClosed
	case u.conn != nil && u.conn.alive():
		return u.conn, nil, nil
	case u.dialing != nil:
		return nil, u.dialing, nil
	}
	u.bury(u.conn)
	if wait := u.pause(callPause); wait > 0 && !insist && awaited(u.lastErr) == nil {
		return nil, nil, &pausedError{wait: wait, last: u.lastErr}
	}
	d := &dial{done: make(chan struct{})}
	u.dialing = d
	prev := u.conn
	u.work.Go(func() { u.dial(d, prev) })
	return nil, d, nil
}

// pause returns how long it is until the next attempt is due, when the pauses
// are at most limit.
func (u *uplink) pause(limit time.Duration) time.Duration {
	if u.failures < 2 {
		return 0
	}
	p := firstPause << min(u.failures-2, 16)
	return time.Until(u.failedAt.Add(min(p, limit)))
}

// bury accounts for the end of a connection, once.
func (u *uplink) bury(c *connection) {
	if c == nil || c.buried {
		return
	}
	c.buried = true
	u.lastErr = &dialError{c.cause()}
	u.failedAt = time.Now()
	if time.Since(c.since) >= steadyAfter {
		u.failures = 0
	}
	u.failures++
}

// dial makes one attempt. It begins when nothing is left of the connection
// before, so that there are never two children.
func (u *uplink) dial(d *dial, prev *connection) {
	conn, err := u.connect(prev)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dialing = nil
	if err != nil {
		u.failures++
		u.failedAt = time.Now()
		u.lastErr = err
		u.failed(err)
	} else {
		u.made++
		u.conn = conn
		u.lastErr = nil
		u.work.Go(func() { u.watch(conn) })
	}
	d.conn, d.err = conn, err
	close(d.done)
}

func (u *uplink) connect(prev *connection) (*connection, error) {
	ctx, cancel := context.WithTimeout(u.ctx, u.timeout)
	defer cancel()
	if prev != nil {
		select {
		case <-prev.gone:
		case <-ctx.Done():
			return nil, u.dialFailure(ctx.Err())
		}
	}
	client, err := u.open(ctx)
	if err != nil {
		return nil, u.dialFailure(err)
	}
	peer := client.Server()
	conn := &connection{client: client, era: peer.Era, logs: asksForLogs(peer), since: time.Now(),
		settled: make(chan struct{}, 1), gone: make(chan struct{})}
	conn.ctx, conn.retire = context.WithCancelCause(u.ctx)
	u.opened(conn, prev == nil)
	return conn, nil
}

func (u *uplink) dialFailure(err error) error {
	if u.ctx.Err() != nil {
		return errClosed
	}
	return &dialError{err}
}

// watch waits for the end of a connection, clears away what is left of it, and
// sees to the next one.
func (u *uplink) watch(c *connection) {
	select {
	case <-c.client.Done():
	case <-c.ctx.Done():
	}
	cause := c.cause()
	c.retire(cause)
	if errors.Is(cause, mcpwire.ErrSessionLost) {
		u.work.Go(func() { u.clear(c) })
	} else {
		u.clear(c)
	}
	u.mu.Lock()
	u.bury(c)
	died := !u.closed
	revive := died && !u.lazy && !u.reviving
	u.reviving = u.reviving || revive
	u.mu.Unlock()
	if died {
		u.lost(cause)
	}
	if revive {
		u.revive()
	}
}

// clear ends what is left of a connection and accounts for it. Calls of a
// session that the server forgot are left to learn that by themselves, as each
// is then known not to have run; the next session does not wait for them.
func (u *uplink) clear(c *connection) {
	if errors.Is(c.cause(), mcpwire.ErrSessionLost) {
		close(c.gone)
		c.drain(u.ctx, drainLimit)
	} else {
		defer close(c.gone)
	}
	if err := c.client.Close(); err != nil {
		u.unclear(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.noise += c.client.Stats().Noise
}

// revive makes a connection again after one was lost, however long that takes.
func (u *uplink) revive() {
	for u.lacking() {
		u.mu.Lock()
		wait := u.pause(idlePause)
		u.mu.Unlock()
		if !u.sleep(wait + rand.N(firstPause/2)) {
			return
		}
		_, _ = u.get(u.ctx, true) // a failure is kept as lastErr
	}
}

// lacking reports whether a connection is still to be revived; when not, the
// next one that dies finds nobody at it.
func (u *uplink) lacking() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reviving = !u.closed && !u.conn.alive()
	return u.reviving
}

// spawn runs f on a goroutine that close waits for.
func (u *uplink) spawn(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.work.Go(f)
	}
}

// sleep waits and reports whether the uplink is still open.
func (u *uplink) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-u.ctx.Done():
		return false
	}
}

// close ends the connection and everything that runs, and returns when nothing
// of it is left.
func (u *uplink) close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.cancel()
	u.work.Wait()
}

// An uplinkState is what there is to say of an uplink at one moment.
type uplinkState struct {
	conn  *connection // alive, or nil
	err   error       // why it is nil; nil before the first attempt
	made  int
	noise int64
}

func (u *uplink) state() uplinkState {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := uplinkState{err: u.lastErr, made: u.made, noise: u.noise}
	switch {
	case u.conn == nil:
	case u.conn.alive():
		s.conn = u.conn
		s.noise += u.conn.client.Stats().Noise
	case !u.conn.buried:
		s.err = u.conn.cause()
	}
	return s
}
