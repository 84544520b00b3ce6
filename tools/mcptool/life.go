package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

const (
	notifyToolsChanged = "notifications/tools/list_changed"

	setLevelWait  = 5 * time.Second
	listenPause   = time.Second
	listenLimit   = time.Minute
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

// newUplink returns an uplink to the server; nothing connects yet.
func (s *Server) newUplink() *uplink {
	u := newUplink()
	u.timeout = s.cfg.ConnectTimeout
	u.open = s.open
	u.opened = func(c *connection, first bool) { s.opened(u, c, first) }
	u.failed = func(err error) {
		e := s.connectFailure(u.ctx, err, "connecting")
		s.note(e)
		s.log.Warn("no connection to the MCP server", "error", e.Message)
	}
	u.lost = func(cause error) {
		e := s.connectFailure(u.ctx, &dialError{cause}, "the connection")
		s.note(e)
		s.log.Warn("connection to the MCP server lost", "error", e.Message)
	}
	u.unclear = func(err error) {
		s.log.Warn("the connection to the MCP server did not end well", "error", s.secrets.clean(err.Error()))
	}
	return u
}

// open makes one connection. A server of the stateful era is first asked for
// the revision that it spoke last time, which spares it the question whether
// it knows the other era: some are silent, and some end.
func (s *Server) open(ctx context.Context) (*mcpwire.Client, error) {
	s.stderr.begin()
	if last := s.spoken.Load(); last != nil && s.cfg.Version == "" {
		client, err := s.dial(ctx, *last)
		var unanswered *mcpwire.CallError
		if err == nil || errors.As(err, &unanswered) {
			return client, err
		}
		s.spoken.Store(nil)
	}
	client, err := s.dial(ctx, s.cfg.Version)
	if err != nil {
		return nil, err
	}
	if peer := client.Server(); peer.Era == mcpwire.EraStateful {
		s.spoken.Store(&peer.Version)
	}
	return client, nil
}

// dial opens a transport. A connection that callers share says that it has
// nobody to ask: a request of the server does not tell whose call it belongs to.
func (s *Server) dial(ctx context.Context, version string) (*mcpwire.Client, error) {
	return mcpwire.Connect(ctx, s.transport(), &mcpwire.ClientOptions{
		Info:           s.cfg.ClientInfo,
		Capabilities:   json.RawMessage(`{}`),
		Version:        version,
		OnNotification: s.notified,
		Logger:         s.log,
	})
}

// opened starts what goes on beside a new connection.
func (s *Server) opened(u *uplink, c *connection, first bool) {
	peer := c.client.Server()
	s.note(nil)
	s.log.Info("connected to the MCP server", "revision", peer.Version, "info", string(peer.Info))
	if _, ok := rawjson.Get(peer.Capabilities, "logging"); ok && peer.Era == mcpwire.EraStateful {
		s.setLevel(c)
	}
	if v, _ := rawjson.Get(peer.Capabilities, "tools", "listChanged"); string(v) == "true" && peer.Era == mcpwire.EraStateless {
		u.work.Go(func() { s.listen(u, c) })
	}
	if s.cfg.KeepAlive > 0 && peer.Era == mcpwire.EraStateful {
		u.work.Go(func() { s.keepAlive(c) })
	}
	if !first {
		s.changes.mark()
	}
}

// setLevel asks for log messages. Some servers send none until they are asked.
func (s *Server) setLevel(c *connection) {
	ctx, cancel := context.WithTimeout(c.ctx, setLevelWait)
	defer cancel()
	params := json.RawMessage(`{"level":"` + s.cfg.LogLevel + `"}`)
	if _, err := c.client.Call(ctx, "logging/setLevel", params, nil); err != nil {
		s.log.Debug("the server takes no log level", "error", s.secrets.clean(err.Error()))
	}
}

// notified takes what belongs to no call.
func (s *Server) notified(method string, params json.RawMessage) {
	switch method {
	case notifyToolsChanged:
		s.changes.mark()
	case mcpwire.NotifyLog:
		s.log.Debug("message of the server", "params", bound(s.secrets.clean(string(params)), maxStderrLine))
	}
}

// listen keeps a subscription to changes of the list for as long as the
// connection lives. What changed while there was none is found by reading the
// list again.
func (s *Server) listen(u *uplink, c *connection) {
	params := json.RawMessage(`{"notifications":{"toolsListChanged":true}}`)
	pause := listenPause
	for missed := false; ; missed = true {
		began := time.Now()
		_, err := c.client.Call(c.ctx, mcpwire.MethodListen, params, &mcpwire.CallOptions{
			Notification: func(method string, params json.RawMessage) {
				if method == mcpwire.NotifySubscribed && missed {
					s.changes.mark()
				}
				s.notified(method, params)
			},
		})
		var rpc *RPCError
		if c.ctx.Err() != nil || errors.As(err, &rpc) {
			return
		}
		if time.Since(began) > listenLimit {
			pause = listenPause
		}
		if !u.sleep(pause) {
			return
		}
		pause = min(2*pause, listenLimit)
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
