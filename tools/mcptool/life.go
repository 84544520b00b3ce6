package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

const (
	notifyToolsChanged     = "notifications/tools/list_changed"
	notifyResourcesChanged = "notifications/resources/list_changed"
	notifyPromptsChanged   = "notifications/prompts/list_changed"
	notifyUpdated          = "notifications/resources/updated"

	setLevelWait  = 5 * time.Second
	listenPause   = time.Second
	listenLimit   = time.Minute
	listenWait    = 200 * time.Millisecond
	silentPings   = 3 // unanswered in a row, until a connection is retired
	shortestAlive = time.Second
)

// inherited are the variables that every child gets from this process.
var inherited = [...]string{"PATH", "HOME", "LANG", "TMPDIR"}

// childEnv returns the whole environment of a child, sorted.
func childEnv(own map[string]string) []string {
	vars := make(map[string]string, len(own)+len(inherited))
	for _, k := range inherited {
		if v, ok := os.LookupEnv(k); ok {
			vars[k] = v
		}
	}
	maps.Copy(vars, own)
	env := make([]string, 0, len(vars))
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, k+"="+vars[k])
	}
	return env
}

// newUplink returns an uplink to the server; nothing connects yet. l is the lane
// that it is for, nil for everybody.
func (s *Server) newUplink(l *lane) *uplink {
	u := newUplink()
	u.timeout = s.cfg.ConnectTimeout
	u.open = func(ctx context.Context) (*mcpwire.Client, error) { return s.open(ctx, l) }
	u.opened = func(c *connection, first bool) { s.opened(u, c, first) }
	trouble := func(level slog.Level, text, doing string, cause error) {
		e := s.connectFailure(u.ctx, cause, doing)
		if l == nil {
			s.note(e)
		}
		s.log.Log(u.ctx, level, text, "error", e.Message)
	}
	// Whoever asked for the connection is told why there is none.
	u.failed = func(err error) { trouble(slog.LevelDebug, "no connection to the MCP server", "connecting", err) }
	u.lost = func(cause error) {
		trouble(slog.LevelWarn, "connection to the MCP server lost", "the connection", &dialError{cause})
	}
	u.unclear = func(err error) {
		s.log.Warn("the connection to the MCP server did not end well", "error", s.secrets.clean(err.Error()))
	}
	return u
}

// open makes one connection. A server of the stateful era is first asked for
// the revision that it spoke last time, which spares it the question whether
// it knows the other era: some are silent, and some end.
func (s *Server) open(ctx context.Context, l *lane) (*mcpwire.Client, error) {
	s.stderr.begin()
	if last := s.spoken.Load(); last != nil && s.cfg.Version == "" {
		client, err := s.dial(ctx, *last, l)
		var unanswered *mcpwire.CallError
		if err == nil || errors.As(err, &unanswered) {
			return client, err
		}
		s.spoken.Store(nil)
	}
	client, err := s.dial(ctx, s.cfg.Version, l)
	if err != nil {
		return nil, err
	}
	if peer := client.Server(); peer.Era == mcpwire.EraStateful {
		s.spoken.Store(&peer.Version)
	}
	return client, nil
}

// everything is what the connection that the lists are read on says it can be
// asked where callers have connections of their own: some servers list a tool
// that asks only for a client that can be asked.
var everything = json.RawMessage(`{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}`)

// nobodyAsked answers on that connection, on which no call goes out.
func nobodyAsked(_ context.Context, q *mcpwire.ServerRequest) (json.RawMessage, error) {
	if q.Method == "roots/list" {
		return json.RawMessage(`{"roots":[]}`), nil
	}
	return nil, mcpwire.Errorf(mcpwire.CodeInvalidRequest, "%s: this connection reads lists, and no call is under way on it", bound(q.Method, 128))
}

// dial opens a transport. A connection that callers share says that it has
// nobody to ask: a request of the server does not tell whose call it belongs to.
func (s *Server) dial(ctx context.Context, version string, l *lane) (*mcpwire.Client, error) {
	opts := &mcpwire.ClientOptions{
		Info:           s.cfg.ClientInfo,
		Capabilities:   json.RawMessage(`{}`),
		Version:        version,
		OnNotification: s.notified,
		Logger:         s.log,

		MaxMessageBytes: s.cfg.MaxMessageBytes,
		Scratch:         s.cfg.Scratch,
		LongBytes:       s.cfg.OffloadBytes,
	}
	switch {
	case l == nil && s.cfg.Session == SessionPerSession:
		opts.Capabilities, opts.OnRequest = everything, nobodyAsked
	case l != nil:
		opts.OnNotification = s.heard(l)
	}
	if l != nil && l.scope.capabilities != "" {
		opts.Capabilities = json.RawMessage(l.scope.capabilities)
		opts.OnRequest = s.request(l)
	}
	return s.connect(ctx, l, opts)
}

// opened starts what goes on beside a new connection that everybody shares.
func (s *Server) opened(u *uplink, c *connection, first bool) {
	peer := c.client.Server()
	s.note(nil)
	s.stateless.Store(peer.Era == mcpwire.EraStateless)
	s.greet(u, c)
	if params := listsToHearOf(peer); params != nil && peer.Era == mcpwire.EraStateless {
		s.hearOfLists(u, c, params)
	}
	if !first {
		s.changes.mark()
		u.work.Go(func() { s.resubscribe(c) })
	}
}

// hearOfLists subscribes to changes of the lists and waits a moment until that
// holds, so that nothing is missed between reading a list and hearing of its
// changes. Of a subscription that holds later, the lists are read again.
func (s *Server) hearOfLists(u *uplink, c *connection, params json.RawMessage) {
	var late atomic.Bool
	holds := make(chan struct{})
	first := sync.OnceFunc(func() { close(holds) })
	u.work.Go(func() {
		_ = s.listen(c.ctx, c, params, func(again bool) {
			first()
			s.catchUp(again || late.Load())
		})
		first() // the server refuses
	})
	wait := time.NewTimer(listenWait)
	defer wait.Stop()
	select {
	case <-holds:
	case <-wait.C:
		late.Store(true)
	case <-c.ctx.Done():
	}
}

// greet starts what goes on beside any new connection.
func (s *Server) greet(u *uplink, c *connection) {
	peer := c.client.Server()
	s.log.Info("connected to the MCP server", "revision", peer.Version, "info", bound(s.secrets.clean(string(peer.Info)), maxStderrLine))
	if declares(peer, "logging") && peer.Era == mcpwire.EraStateful {
		c.level.Store(&s.cfg.LogLevel)
		s.setLevel(c.ctx, c, s.cfg.LogLevel)
	}
	if s.cfg.KeepAlive > 0 && peer.Era == mcpwire.EraStateful {
		u.work.Go(func() { s.keepAlive(c) })
	}
}

// listsToHearOf are the params of a subscription to changes of the lists that
// the server tells of, or nil.
func listsToHearOf(p mcpwire.Peer) json.RawMessage {
	out := []byte("{")
	for _, list := range []string{"tools", "prompts", "resources"} {
		if v, _ := rawjson.Get(p.Capabilities, list, "listChanged"); string(v) == "true" {
			out = append(comma(out), `"`+list+`ListChanged":true`...)
		}
	}
	if len(out) == 1 {
		return nil
	}
	return append(append([]byte(`{"notifications":`), out...), "}}"...)
}

// catchUp: what changed while nobody listened is found by reading the lists
// again.
func (s *Server) catchUp(again bool) {
	if again {
		s.changes.mark()
	}
}

// setLevel asks for log messages. Some servers send none until they are asked.
func (s *Server) setLevel(ctx context.Context, c *connection, level string) {
	ctx, cancel := context.WithTimeout(ctx, setLevelWait)
	defer cancel()
	params := json.RawMessage(`{"level":"` + level + `"}`)
	if _, err := c.client.Call(ctx, "logging/setLevel", params, nil); err != nil {
		s.log.Debug("the server takes no log level", "error", s.secrets.clean(err.Error()))
	}
}

// notified takes what belongs to no call.
func (s *Server) notified(method string, params json.RawMessage) {
	switch method {
	case notifyToolsChanged, notifyResourcesChanged, notifyPromptsChanged:
		s.changes.mark()
	case notifyUpdated:
		s.subscribed.tell(params)
	case notifyTaskStatus:
		s.taskNotice(s.shared.ctx, scope{}, params, nil)
	case mcpwire.NotifyLog:
		s.log.Debug("message of the server", "params", bound(s.secrets.clean(string(params)), maxStderrLine))
	}
}

// listen keeps a subscription for as long as ctx lasts, which ends with the
// connection at the latest, or until the server refuses it. subscribed is called
// whenever it holds; again says that it did before, and that something may have
// been missed.
func (s *Server) listen(ctx context.Context, c *connection, params json.RawMessage, subscribed func(again bool)) error {
	wait := listenPause
	for again := false; ; again = true {
		began := time.Now()
		_, err := c.client.Call(ctx, mcpwire.MethodListen, params, &mcpwire.CallOptions{
			Notification: func(method string, params json.RawMessage) {
				if method == mcpwire.NotifySubscribed {
					subscribed(again)
				}
				s.notified(method, params)
			},
		})
		var rpc *RPCError
		if ctx.Err() != nil || errors.As(err, &rpc) {
			return err
		}
		if time.Since(began) > listenLimit {
			wait = listenPause
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, listenLimit)
	}
}

// keepAlive pings the server, and retires a connection on which nothing is
// answered while no call runs. Any answer is a sign of life.
func (s *Server) keepAlive(c *connection) {
	every := max(s.cfg.KeepAlive, shortestAlive)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for silent := 0; silent < silentPings; {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
		if s.ping(c, every) || c.inFlight.Load() > 0 {
			silent = 0
		} else {
			silent++
		}
	}
	s.log.Warn("the MCP server gives no sign of life", "pings", silentPings)
	c.retire(errSilent)
}

func (s *Server) ping(c *connection, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(c.ctx, wait)
	defer cancel()
	_, err := c.client.Call(ctx, mcpwire.MethodPing, nil, nil)
	return mcpwire.DeliveryOf(err) == mcpwire.Answered
}
