package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// Server is one MCP server whose tools are offered. It implements
// [tools.ToolProvider], [tools.ChangeNotifier] and [tools.Refuser], and is safe
// for concurrent use.
type Server struct {
	cfg     *Config
	log     *slog.Logger
	filter  filter
	options tools.ResolvedDescriptorConfig
	secrets secrets
	stderr  *stderrLog
	http    http.RoundTripper
	changes changes
	// shared is the connection that the lists are read on, and that all calls
	// go out on unless lanes has others for them.
	shared     *uplink
	lanes      lanes
	subscribed subscriptions
	tasks      taskCallers
	// stateless says that the server is of the era without sessions, as far as
	// is known.
	stateless atomic.Bool
	// spoken is the revision of the last connection of the stateful era.
	spoken atomic.Pointer[string]
	// transport returns the transport of one connection.
	transport func() mcpwire.Transport
	// guesses says that the transport of the server's URL is to be found out;
	// legacy that it was HTTP+SSE the last time.
	guesses bool
	legacy  atomic.Bool

	listing sync.Mutex                // one reading of the lists at a time
	known   map[tools.Kind]*entryList // as read last; guarded by listing

	mu      sync.Mutex
	listed  bool // once, successfully
	count   int
	refused []tools.Refusal
	lastErr string

	closing sync.Once
	closed  chan struct{}
}

var (
	_ tools.ToolProvider   = (*Server)(nil)
	_ tools.ChangeNotifier = (*Server)(nil)
	_ tools.Refuser        = (*Server)(nil)
)

// New returns the server that cfg describes, without connecting to it. The
// error says everything that is wrong with cfg.
func New(cfg *Config) (*Server, error) {
	c, err := cfg.resolved()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:     c,
		log:     c.Logger,
		filter:  newFilter(c),
		options: tools.ResolveOptions(c.Options...),
		secrets: newSecrets(c),
		closed:  make(chan struct{}),
		known:   map[tools.Kind]*entryList{},
	}
	s.stderr = newStderrLog(s.log, s.secrets)
	s.http = c.HTTP
	if s.http == nil && c.TransportMode != TransportStdio {
		s.http = newHTTPTransport()
	}
	s.transport = s.newTransport
	s.guesses = c.TransportMode == TransportStreamableHTTP && cfg.TransportMode != TransportStreamableHTTP
	s.shared = s.newUplink(nil)
	s.lanes.server, s.lanes.shared = s, &lane{uplink: s.shared}
	return s, nil
}

// newHTTPTransport keeps as many connections open as calls are usually in
// flight. Compression is left out: it costs more than the network saves.
func newHTTPTransport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 128, 128
	t.DisableCompression = true
	return t
}

// SourceID returns "mcp:" and the server's name.
func (s *Server) SourceID() tools.ToolSourceID { return tools.ToolSourceID("mcp:" + s.cfg.Name) }

// OnChange sets the function that is called when the server says that its list
// of tools changed, when a lost connection was made again, and when the time to
// live of the list has ended: once for a burst of them, from a goroutine of its
// own. It must not call Close.
func (s *Server) OnChange(f func()) { s.changes.onChange(f) }

// Connect makes the connection. The error is a *[tools.Error] whose message
// says what kept it from being made; for a child process, with the last lines
// that it printed on its standard error. A later Discover, or a call, tries
// again.
func (s *Server) Connect(ctx context.Context) error {
	if _, err := s.shared.get(ctx, true); err != nil {
		return s.connectFailure(ctx, err, "connecting")
	}
	return nil
}

// connectFailure is for the operator: a child's last words belong to it.
func (s *Server) connectFailure(ctx context.Context, err error, what string) *tools.Error {
	e := s.failure(ctx, "", what, err)
	if last := s.stderr.tail(); last != "" {
		e.Message += fmt.Sprintf(" (its stderr ends with: %s)", last)
	}
	return e
}

// Refused returns the tools that the last Discover left out because they
// cannot be described, or because another tool of the server has their name.
func (s *Server) Refused() []tools.Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]tools.Refusal(nil), s.refused...)
}

// Clean returns text without the secrets that the configuration gives the
// server, such as the values of Env and Headers, in whatever form they stand
// there. It is for texts that repeat what the server said.
func (s *Server) Clean(text string) string { return s.secrets.clean(text) }

// Close ends the connection: a session is deleted; a child's input ends, and
// what is left of it is terminated and then killed, within about ten seconds.
// Calls in flight fail. Close returns when nothing is left behind or when ctx
// ends; then the rest goes on by itself. It may be called more than once.
func (s *Server) Close(ctx context.Context) error {
	s.closing.Do(func() {
		go func() {
			defer close(s.closed)
			s.lanes.close()
			s.changes.close() // a call of it that reads the list has failed by now
			if t, ok := s.http.(*http.Transport); ok && s.cfg.HTTP == nil {
				t.CloseIdleConnections()
			}
			if t, ok := s.http.(io.Closer); ok {
				_ = t.Close()
			}
		}()
	})
	select {
	case <-s.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("mcptool: server %q: closing goes on in the background: %w", s.cfg.Name, ctx.Err())
	}
}

// Status is what an operator wants to know of a server.
type Status struct {
	// Connected tells whether there is a live connection. An HTTP server that
	// went away is noticed at the next call.
	Connected bool
	// Revision is the protocol revision of the connection, or empty.
	Revision string
	// ServerInfo is the Implementation object of the server, or nil.
	ServerInfo json.RawMessage
	// Instructions is what the server says about its use.
	Instructions string
	// Tools is how many tools the last Discover returned.
	Tools int
	// Sessions is how many connections there are beside the one that is asked
	// for the lists; see Config.Session.
	Sessions int
	// LastError is why there is no connection, or why the last Discover
	// failed; empty when all is well.
	LastError string
	// Restarts is how often the connection was made again.
	Restarts int
	// Noise is how many lines or events of the server were no message.
	Noise int64
}

// Status returns the state of the server at this moment.
func (s *Server) Status() Status {
	u := s.shared.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Tools: s.count, Sessions: s.lanes.len(), LastError: s.lastErr, Restarts: max(0, u.made-1), Noise: u.noise}
	if u.conn == nil {
		return st
	}
	peer := u.conn.client.Server()
	st.Connected = true
	st.Revision, st.ServerInfo, st.Instructions = peer.Version, peer.Info, peer.Instructions
	return st
}

// note keeps the last error for Status; nil clears it.
func (s *Server) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = ""
	if err != nil {
		s.lastErr = err.Error()
	}
}

// newTransport returns the transport that the configuration asks for.
func (s *Server) newTransport() mcpwire.Transport {
	if s.cfg.TransportMode == TransportStdio {
		return &mcpwire.ChildTransport{Command: s.cfg.Command, Dir: s.cfg.Dir, Env: childEnv(s.cfg.Env), Stderr: s.stderr.line, Nursery: s.cfg.Nursery}
	}
	if s.cfg.TransportMode == TransportSSE {
		return s.sseTransport()
	}
	return &mcpwire.HTTPTransport{URL: s.cfg.URL, RoundTripper: s.http, Header: s.header()}
}
