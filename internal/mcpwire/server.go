package mcpwire

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A Handler serves what clients ask. Its methods are called concurrently.
type Handler interface {
	// Describe says what the server is to this caller. It answers initialize
	// and server/discover.
	Describe(ctx context.Context, s *Session) (*Description, error)
	// ServeMCP answers a request with its result, which must be one JSON
	// value; nil is {}. An [*Error] is answered as it is, any other error as
	// [CodeInternalError] with its text, and a panic as [CodeInternalError]. Notifications arrive here too, and
	// what is returned for them is ignored. The wire itself serves initialize,
	// server/discover, ping, notifications/initialized and
	// notifications/cancelled.
	ServeMCP(ctx context.Context, r *Request) (json.RawMessage, error)
}

// Description is what a server says of itself.
type Description struct {
	// Capabilities is the ServerCapabilities object; {} by default.
	Capabilities json.RawMessage
	Instructions string
	// TTL and CacheScope ("public" or "private", the default) say how long and
	// for whom the answer to server/discover may be kept.
	TTL        time.Duration
	CacheScope string
	// Extra is an object whose members are added to the answer.
	Extra json.RawMessage
}

// ServerOptions configure a [Server]. The zero value serves, and is open to
// everyone who passes the checks of Host and Origin.
type ServerOptions struct {
	// Info is the server's Implementation object; by default its name is
	// "mcpwire".
	Info json.RawMessage

	// Authenticate admits an HTTP request. The context it returns, derived from
	// that of the request, is the one that the handler gets; the principal, any
	// text, is whom a session belongs to. A [*Refusal] is answered as it says,
	// any other error with 401. Nil admits everyone as the principal "".
	Authenticate func(*http.Request) (context.Context, string, error)

	// AllowedHosts are Host header values (without port) to accept besides the
	// default, which is any on a public address, and only loopback names on a
	// loopback address. AllowedOrigins are Origin values to accept besides the
	// server's own and, on a loopback address, those of loopback. "*" accepts
	// every one.
	AllowedHosts, AllowedOrigins []string

	// MaxMessageBytes limits one message, [DefaultMaxMessageBytes] by default.
	MaxMessageBytes int64
	// MaxInFlight limits the requests that one session, or one pipe, has in
	// progress; 1024 by default.
	MaxInFlight int
	// SessionIdle ends a session that has had neither a request nor an open
	// stream for so long; 30 minutes by default.
	SessionIdle time.Duration
	// MaxSessions limits open HTTP sessions, 10,000 by default. Beyond it, the
	// one that has been idle longest makes place.
	MaxSessions int
	// ReplayBytes is how much each session remembers for clients that resume a
	// stream; 1 MiB by default.
	ReplayBytes int
	// KeepAlive is how often an idle event stream carries a comment; 25
	// seconds by default, negative for never.
	KeepAlive time.Duration
	// WriteTimeout bounds one write to an event stream; 30 seconds by default.
	WriteTimeout time.Duration
	// BodyTimeout is how long a request body may bring nothing before it is
	// given up; 30 seconds by default, negative for no limit. One that brings less
	// than [httpbody.Slowest] is given up too.
	BodyTimeout time.Duration

	// SessionOpened and SessionClosed follow the sessions of the stateful era.
	// SessionOpened is called when the client has said that it is initialized.
	SessionOpened, SessionClosed func(*Session)

	// Logger hears of what clients do wrong; nil is silent.
	Logger *slog.Logger
}

func (o *ServerOptions) withDefaults() ServerOptions {
	out := ServerOptions{}
	if o != nil {
		out = *o
	}
	if out.Info == nil {
		out.Info = json.RawMessage(`{"name":"mcpwire","version":"0"}`)
	}
	if out.Authenticate == nil {
		out.Authenticate = func(r *http.Request) (context.Context, string, error) { return r.Context(), "", nil }
	}
	setDefault(&out.MaxMessageBytes, DefaultMaxMessageBytes)
	setDefault(&out.MaxInFlight, 1024)
	setDefault(&out.SessionIdle, 30*time.Minute)
	setDefault(&out.MaxSessions, 10_000)
	setDefault(&out.ReplayBytes, 1<<20)
	setDefault(&out.KeepAlive, 25*time.Second)
	setDefault(&out.WriteTimeout, 30*time.Second)
	setDefault(&out.BodyTimeout, 30*time.Second)
	if out.SessionOpened == nil {
		out.SessionOpened = func(*Session) {}
	}
	if out.SessionClosed == nil {
		out.SessionClosed = func(*Session) {}
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// A Refusal is an HTTP answer to a request that is not admitted.
type Refusal struct {
	Status  int
	Header  http.Header // such as WWW-Authenticate
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Server serves a [Handler] to MCP clients of both eras: over streamable HTTP,
// as an [http.Handler] for one endpoint, and over pipes.
type Server struct {
	handler Handler
	opts    ServerOptions
	gate    *gate

	mu       sync.Mutex
	sessions map[string]*Session
}

// NewServer returns a server for h.
func NewServer(h Handler, opts *ServerOptions) *Server {
	o := opts.withDefaults()
	return &Server{
		handler:  guarded{h, o.Logger},
		opts:     o,
		gate:     newGate(),
		sessions: make(map[string]*Session),
	}
}

// Sessions returns the open sessions of the stateful era, those of pipes
// included.
func (s *Server) Sessions() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		out = append(out, sess)
	}
	return out
}

// Shutdown takes no more requests, ends subscriptions, waits for the requests
// in flight until ctx ends, and closes every session. It returns ctx's error
// when some requests had to be cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.gate.drain(ctx)
	for _, sess := range s.Sessions() {
		sess.Close()
	}
	return err
}

// addSession registers a session, and makes place for it where there is none.
func (s *Server) addSession(sess *Session) error {
	s.mu.Lock()
	var evicted *Session
	if len(s.sessions) >= s.opts.MaxSessions {
		if evicted = s.longestIdle(); evicted == nil {
			s.mu.Unlock()
			return Errorf(CodeInternalError, "too many sessions (limit %d)", s.opts.MaxSessions)
		}
		delete(s.sessions, evicted.id)
	}
	s.sessions[sess.id] = sess
	s.mu.Unlock()
	if evicted != nil {
		evicted.Close()
	}
	return nil
}

func (s *Server) longestIdle() *Session {
	var oldest *Session
	var since time.Time
	for _, sess := range s.sessions {
		if at, idle := sess.use.idleSince(); idle && (oldest == nil || at.Before(since)) {
			oldest, since = sess, at
		}
	}
	return oldest
}

// findSession returns the session with that id, if it belongs to the principal.
func (s *Server) findSession(id, principal string) *Session {
	s.mu.Lock()
	sess := s.sessions[id]
	s.mu.Unlock()
	if sess == nil || sess.pipe || sess.principal != principal {
		return nil
	}
	return sess
}

func (s *Server) dropSession(sess *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[sess.id] == sess {
		delete(s.sessions, sess.id)
	}
}

// initializeResult is the answer to initialize.
func (s *Server) initializeResult(d *Description, version string) json.RawMessage {
	out := append([]byte(`{"protocolVersion":"`), version...)
	out = append(out, `","capabilities":`...)
	out = append(out, objectOr(d.Capabilities)...)
	out = append(out, `,"serverInfo":`...)
	out = append(out, s.opts.Info...)
	return append(appendDescription(out, d), '}')
}

// discoverResult is the answer to server/discover, which the stateless era's
// finishing completes.
func (s *Server) discoverResult(d *Description) json.RawMessage {
	versions, _ := json.Marshal(Versions())
	scope := d.CacheScope
	if scope == "" {
		scope = "private"
	}
	cache, _ := json.Marshal(struct {
		TTL   int64  `json:"ttlMs"`
		Scope string `json:"cacheScope"`
	}{d.TTL.Milliseconds(), scope})
	out := slices.Concat(cache[:len(cache)-1], []byte(`,"supportedVersions":`), versions,
		[]byte(`,"capabilities":`), objectOr(d.Capabilities))
	return append(appendDescription(out, d), '}')
}

func appendDescription(out []byte, d *Description) []byte {
	if d.Instructions != "" {
		text, _ := json.Marshal(d.Instructions)
		out = append(out, `,"instructions":`...)
		out = append(out, text...)
	}
	return (&metaEdit{}).mergeObject(out, d.Extra, nil)
}

func objectOr(v json.RawMessage) json.RawMessage {
	if v == nil {
		return json.RawMessage("{}")
	}
	return v
}

// A gate counts what is in progress, and lets nothing more in once it drains.
type gate struct {
	open  context.Context // ends when draining begins
	close context.CancelFunc

	mu     sync.Mutex
	inside int
	empty  chan struct{} // closed when the last one leaves while draining
}

func newGate() *gate {
	g := &gate{empty: make(chan struct{})}
	g.open, g.close = context.WithCancel(context.Background())
	return g
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open.Err() != nil {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.open.Err() != nil {
		close(g.empty)
	}
}

func (g *gate) drain(ctx context.Context) error {
	g.mu.Lock()
	if g.open.Err() == nil {
		g.close()
		if g.inside == 0 {
			close(g.empty)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
