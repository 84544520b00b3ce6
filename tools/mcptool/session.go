package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// Session says who shares a connection to a server. Each connection to a child
// process is a process.
type Session string

// The Session values.
const (
	// SessionShared: everybody shares one connection. A server of the stateful
	// era is told on it that nobody can be asked anything, because its
	// questions would not say whose call they belong to.
	SessionShared Session = "shared"
	// SessionPerUser: each user of a tenant has a connection. Nobody can be
	// asked on it either, since a user may have several clients.
	SessionPerUser Session = "per_user"
	// SessionPerSession: each session of a caller has a connection, which tells
	// the server what that caller can be asked. A call of a caller without a
	// session gets a connection for itself, to use again when it is over.
	SessionPerSession Session = "per_session"
)

const (
	defaultMaxSessions = 256
	defaultSessionIdle = 10 * time.Minute
	crowdedPause       = time.Second
	notifyWait         = 5 * time.Second
)

// A scope says whose calls share a connection. Unless everybody does, it always
// names the tenant.
type scope struct {
	tenant, user, session, client string
	// capabilities is what the server is told that the caller can be asked.
	capabilities string
	// lone: one call at a time.
	lone bool
}

// scopeOf returns the scope of a call. stateless: the server is of the era in
// which each request says what its caller can be asked.
func (m Session) scopeOf(ctx context.Context, call *tools.Call, stateless bool) scope {
	if m == SessionShared {
		return scope{}
	}
	id, _ := identity.From(ctx)
	s := scope{tenant: id.TenantID, user: id.UserID}
	if m == SessionPerUser {
		return s
	}
	s.session = id.SessionID
	if call == nil {
		return s
	}
	s.client = call.Client
	if !stateless && call.Capabilities.Any() {
		s.capabilities = string(carried(call, hasClient(call)))
		s.lone = call.Client == ""
	}
	return s
}

// A lane is one connection of a scope, kept by an uplink, and the calls on it.
type lane struct {
	*uplink
	scope scope

	users int         // guarded by lanes.mu
	since time.Time   // when users became 0
	timer *time.Timer // ends a lane that nobody uses; nil for everybody's

	gone bool // its client will make no more calls; guarded by lanes.mu

	mu      sync.Mutex
	flights []*flight
	client  *tools.Call // the last call, for what belongs to no call
}

// everybodys reports whether the lane is the shared one.
func (l *lane) everybodys() bool { return l.timer == nil }

// begin notes that a call goes out on conn, and returns what notes its end.
func (l *lane) begin(ctx context.Context, s *Server, conn *connection, call *tools.Call) (end func()) {
	if conn.era == mcpwire.EraStateful {
		s.follow(ctx, conn, call.LogLevel)
	}
	f := &flight{ctx, call}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flights = append(l.flights, f)
	l.client = call
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.flights = slices.DeleteFunc(l.flights, func(other *flight) bool { return other == f })
	}
}

// latest returns the call that began last. All calls of a lane are answered by
// the same caller.
func (l *lane) latest() (flight, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.flights) == 0 {
		return flight{}, false
	}
	return *l.flights[len(l.flights)-1], true
}

// notifyElicited tells that a page which a person was sent to has been completed.
// It may come when the call is over.
const notifyElicited = "notifications/elicitation/complete"

// heard takes what belongs to no call's own stream.
func (s *Server) heard(l *lane) func(string, json.RawMessage) {
	return func(method string, params json.RawMessage) {
		switch method {
		case notifyElicited:
			s.elicited(l, params)
		case notifyTaskStatus:
			s.taskNotice(l.ctx, l.scope, params, nil)
		case notifyToolsChanged, notifyResourcesChanged, notifyPromptsChanged, notifyUpdated, mcpwire.NotifyLog, mcpwire.NotifyProgress:
			s.notified(method, params)
		default:
			s.tellClient(l, method, params)
		}
	}
}

// elicited passes the notification on to the caller, unless several share the
// connection.
func (s *Server) elicited(l *lane, params json.RawMessage) {
	if l != nil && l.scope.capabilities != "" {
		s.tellClient(l, notifyElicited, params)
	}
}

// tellClient passes on to the client of a connection what is for it alone.
func (s *Server) tellClient(l *lane, method string, params json.RawMessage) {
	if l.everybodys() || l.scope.client == "" && !l.scope.lone {
		return
	}
	l.mu.Lock()
	call := l.client
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.ctx, notifyWait)
	defer cancel()
	s.dropped(call.Notify(ctx, method, params))
}

// follow asks for log messages from the level on that the caller wants, where
// no other caller is concerned.
func (s *Server) follow(ctx context.Context, conn *connection, level string) {
	if last := conn.level.Load(); level == "" || last == nil || *last == level {
		return
	}
	conn.level.Store(&level)
	s.setLevel(ctx, conn, level)
}

// listenCloser asks a server for log messages from a lower level on when a
// caller wants them, on a connection that callers share. Each is passed on what
// it wants alone.
func (s *Server) listenCloser(ctx context.Context, conn *connection, level string) {
	if last := conn.level.Load(); s.cfg.levelSet || last == nil || !isBelow(level, *last) {
		return
	}
	conn.leveling.Lock()
	defer conn.leveling.Unlock()
	if !isBelow(level, *conn.level.Load()) {
		return
	}
	s.setLevel(ctx, conn, level)
	if ctx.Err() == nil {
		conn.level.Store(&level)
	}
}

func isBelow(level, other string) bool {
	i := slices.Index(logLevels(), level)
	return i >= 0 && i < slices.Index(logLevels(), other)
}

// request answers a request of the server that came on no call's own stream.
func (s *Server) request(l *lane) func(context.Context, *mcpwire.ServerRequest) (json.RawMessage, error) {
	return func(ctx context.Context, q *mcpwire.ServerRequest) (json.RawMessage, error) {
		f, ok := l.latest()
		if !ok {
			return nil, mcpwire.Errorf(mcpwire.CodeInvalidRequest, "%s: no call is under way that this could belong to", bound(q.Method, 128))
		}
		return s.askCaller(ctx, f, q)
	}
}

var errCrowded = errors.New("too many sessions have a connection of their own to the server")

// lanes are the connections to a server beside the shared one. They are safe
// for concurrent use.
type lanes struct {
	server *Server
	shared *lane

	mu     sync.Mutex
	lanes  map[scope][]*lane
	count  int
	closed bool
	work   sync.WaitGroup // lanes that are being closed
}

// take returns the lane for a call, to be released when it is over.
func (p *lanes) take(ctx context.Context, call *tools.Call) (*lane, error) {
	s := p.server
	if s.cfg.Session == SessionShared {
		return p.shared, nil
	}
	sc := s.cfg.Session.scopeOf(ctx, call, s.stateless.Load())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	for _, l := range p.lanes[sc] {
		if !sc.lone || l.users == 0 {
			l.timer.Stop()
			l.users++
			return l, nil
		}
	}
	if p.count >= s.cfg.MaxSessions && !p.evict() {
		return nil, errCrowded
	}
	l := &lane{scope: sc, users: 1}
	l.uplink = s.newLaneUplink(l)
	l.timer = time.AfterFunc(s.cfg.SessionIdle, func() { p.expire(l) })
	l.timer.Stop()
	if p.lanes == nil {
		p.lanes = map[scope][]*lane{}
	}
	p.lanes[sc] = append(p.lanes[sc], l)
	p.count++
	if call != nil && call.ClientGone != nil && sc.client != "" {
		l.spawn(func() { p.follow(l, call.ClientGone) })
	}
	if sc.capabilities != "" && hasClient(call) && tellsOfRoots(call.Capabilities) {
		l.spawn(func() { s.passOnRoots(l, call.Peer()) })
	}
	return l, nil
}

// follow ends a lane with its client, or when its last call is over.
func (p *lanes) follow(l *lane, gone <-chan struct{}) {
	select {
	case <-gone:
	case <-l.ctx.Done():
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.gone = true; l.users == 0 {
		p.drop(l)
	}
}

func (p *lanes) release(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch l.users--; {
	case l.users > 0:
	case l.gone:
		p.drop(l)
	default:
		l.since = time.Now()
		l.timer.Reset(p.server.cfg.SessionIdle)
	}
}

func (p *lanes) expire(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users == 0 {
		p.drop(l)
	}
}

// evict ends the lane that has not been used for the longest time, if there is
// one. The caller holds the lock.
func (p *lanes) evict() bool {
	var oldest *lane
	for _, list := range p.lanes {
		for _, l := range list {
			if l.users == 0 && (oldest == nil || l.since.Before(oldest.since)) {
				oldest = l
			}
		}
	}
	if oldest == nil {
		return false
	}
	p.drop(oldest)
	return true
}

// drop ends a lane, once. The caller holds the lock.
func (p *lanes) drop(l *lane) {
	list := p.lanes[l.scope]
	i := slices.Index(list, l)
	if i < 0 || p.closed {
		return
	}
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(p.lanes, l.scope)
	} else {
		p.lanes[l.scope] = list
	}
	p.count--
	l.timer.Stop()
	p.work.Go(l.close)
}

// len returns how many lanes there are beside the shared one.
func (p *lanes) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// close ends all lanes and returns when nothing of them is left.
func (p *lanes) close() {
	p.mu.Lock()
	p.closed = true
	for _, list := range p.lanes {
		for _, l := range list {
			l.timer.Stop()
			p.work.Go(l.close)
		}
	}
	p.mu.Unlock()
	p.shared.close()
	p.work.Wait()
}

// newLaneUplink returns the uplink of a lane. It connects when a call wants it.
func (s *Server) newLaneUplink(l *lane) *uplink {
	u := s.newUplink(l)
	u.lazy = true
	u.opened = func(c *connection, _ bool) { s.greet(u, c) }
	return u
}
