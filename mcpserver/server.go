package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// Options configure a [Server]. The zero value, like nil, serves whoever passes
// the checks of Host and Origin, with the identity that is on the request's
// context.
type Options struct {
	// Name, Title and Version are what the server calls itself; the name is
	// "toolcrib" by default, the version "0".
	Name, Title, Version string
	// Instance, when not empty, names this server in the _meta of handshakes, so
	// that a program which reaches itself knows it.
	Instance string
	// Instructions tell a model how to use the server. Empty sends none.
	Instructions string

	// Authenticate admits an HTTP request. The context it returns, derived from
	// that of the request, carries the caller's identity and scopes; the
	// principal, any text, is whom a session belongs to, and nobody else can
	// use the session. A *[Refusal] is answered as it says, any other error
	// with 401. Nil admits everyone as the principal "".
	//
	// An identity whose session is empty gets that of the MCP session or, where
	// the protocol has none, "stateless:" and the client's name. The same holds for the context
	// given to ServeStdio.
	Authenticate func(*http.Request) (ctx context.Context, principal string, err error)

	// AllowedHosts are Host header values (without port) to accept besides the
	// default, which is any on a public address, and only loopback names on a
	// loopback address. AllowedOrigins are Origin values to accept besides the
	// server's own and, on a loopback address, those of loopback. "*" accepts
	// every one.
	AllowedHosts, AllowedOrigins []string

	// MaxBody limits one message of a client, in bytes; 64 MiB by default. A
	// larger one is answered with an error that says so.
	MaxBody int64
	// PageSize is how many entries one page of a list has, 1000 by default.
	PageSize int
	// ListTTL is how long a client of revision 2026-07-28 may keep a list
	// without asking again. Zero says that a list is stale at once.
	ListTTL time.Duration
	// SessionIdle ends an HTTP session that has had neither a request nor an
	// open stream for so long; 30 minutes by default.
	SessionIdle time.Duration
	// MaxSessions limits open HTTP sessions, 10,000 by default. Beyond it, the
	// one that has been idle longest makes place.
	MaxSessions int

	// ParkedCalls limits how many calls of the stateless era wait at once for
	// their client to come back with what the tool asks, 1024 by default, and
	// a quarter of them for one caller.
	ParkedCalls int
	// ParkedTTL is how long such a call waits; 10 minutes by default.
	ParkedTTL time.Duration

	// Part, when not nil, is the part of the catalog that is served, such as the
	// Part method of a set: nothing else is listed, found, read or called. Who
	// serves several parts has a server for each, with a Discovery of its own.
	Part tools.PartFunc

	// Discovery decides which of the tools that a caller sees are listed, and
	// which it has to find first; it should be of ToolsOnly. Tools that are not
	// listed can be called all the same. Nil lists all.
	Discovery *view.Discovery

	// Bounder makes large results small; clients get links to what it kept of
	// them. As such a result need not satisfy the tool's output schema, none is
	// listed. If it is a tools.Sink, it takes in what is too large to pass
	// through memory. Nil passes results on whole.
	Bounder Bounder
	// Artifacts is what clients read as resources of the scheme "artifact". Nil
	// offers none.
	Artifacts *artifacts.Store

	// Logger hears of what clients do wrong; nil is silent.
	Logger *slog.Logger
}

// Bounder makes a result small enough for a model. It is safe for concurrent use.
type Bounder interface {
	Bound(ctx context.Context, tool *tools.Tool, result tools.ToolResult) (tools.ToolResult, error)
}

// Refusal is an error of [Options].Authenticate that says how to answer: an
// HTTP status, headers such as WWW-Authenticate, and a message.
type Refusal = mcpwire.Refusal

const (
	defaultMaxBody  = 64 << 20
	defaultPageSize = 1000

	defaultParkedCalls = 1024
	defaultParkedTTL   = 10 * time.Minute
)

// Server serves a catalog to MCP clients. It is an [http.Handler] for one
// endpoint, and serves pipes as well. It is safe for concurrent use.
type Server struct {
	cat      tools.LiveCatalog
	opts     Options
	wire     *mcpwire.Server
	lists    [listCount]formats
	audience audience
	parked   parking
	tasks    *tasks
	logger   *slog.Logger
}

// New returns a server of cat. It must be closed with Shutdown.
func New(cat tools.LiveCatalog, opts *Options) *Server {
	s := &Server{cat: cat, tasks: newTasks()}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.MaxBody = cmp.Or(s.opts.MaxBody, defaultMaxBody)
	s.opts.PageSize = cmp.Or(max(s.opts.PageSize, 0), defaultPageSize)
	s.opts.ParkedCalls = cmp.Or(max(s.opts.ParkedCalls, 0), defaultParkedCalls)
	s.opts.ParkedTTL = cmp.Or(max(s.opts.ParkedTTL, 0), defaultParkedTTL)
	s.logger = s.opts.Logger
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.lists = s.newFormats()
	s.parked.start(s.opts.ParkedCalls, s.opts.ParkedTTL, s.logger)
	s.wire = mcpwire.NewServer(handler{s}, &mcpwire.ServerOptions{
		Info:            s.info(),
		Authenticate:    s.opts.Authenticate,
		AllowedHosts:    s.opts.AllowedHosts,
		AllowedOrigins:  s.opts.AllowedOrigins,
		MaxMessageBytes: s.opts.MaxBody,
		SessionIdle:     s.opts.SessionIdle,
		MaxSessions:     s.opts.MaxSessions,
		SessionOpened:   sessionOpened,
		SessionClosed:   func(sess *mcpwire.Session) { s.tasks.forgetSession(sess.Principal(), sess.ID()) },
		Logger:          s.logger,
	})
	s.audience.start(s)
	return s
}

// info is the Implementation object of the server.
func (s *Server) info() json.RawMessage {
	info, _ := json.Marshal(struct { // strings always encode
		Name    string `json:"name"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version"`
	}{cmp.Or(s.opts.Name, "toolcrib"), s.opts.Title, cmp.Or(s.opts.Version, "0")})
	return info
}

// ServeHTTP serves the streamable HTTP transport of both eras.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.wire.ServeHTTP(w, r) }

// ServeStdio serves one client over a pair of pipes, until in ends (the result
// is nil then) or ctx does. The identity on ctx is the client's.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.wire.ServeStdio(ctx, in, out)
}

// Shutdown takes no more requests, waits for those in flight until ctx ends,
// and closes every session. It returns ctx's error when some requests had to be
// cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.wire.Shutdown(ctx)
	s.parked.stop()
	s.audience.stop()
	return err
}
