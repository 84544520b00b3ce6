package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/internal/httpbody"
	"github.com/toolcrib/toolcrib/tools"
)

// Handler serves everything that the gateway offers over HTTP: MCP at /mcp, and at
// /mcp/NAME for a toolset, the JSON protocol below /v1/, the pages of those who
// authorize sources below /oauth/, and /healthz and /readyz. Everyone who calls is
// the local caller, but for requests on whose context a program has put an
// identity and scopes before it passed them on; the tenant "local" operates the
// gateway. So a request is refused that
// arrived at an address which other machines reach, or whose Host or Origin is not
// of this machine, as a page in a browser would send it.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", g.mcp)
	mux.HandleFunc(toolsetPath, g.serveToolset)
	mux.Handle("/v1/", g.patient(g.api))
	mux.Handle("/oauth/", g.oauthPages())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeState(w, http.StatusOK, state{Status: "ok"}) })
	mux.HandleFunc("GET /readyz", g.readyz)
	return g.guard(mux)
}

// bodyPause is how long the body of a request may bring nothing.
const bodyPause = 30 * time.Second

// patient bounds how long a body is waited for, which a client may never send
// to its end: MCP does so by itself.
func (g *Gateway) patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := httpbody.New(g.life, w, r, bodyPause)
		defer body.Close()
		bounded := *r
		bounded.Body = body
		next.ServeHTTP(w, &bounded)
	})
}

// state is the body of /healthz and /readyz.
type state struct {
	Status  string        `json:"status"`
	Sources []sourceBrief `json:"sources,omitempty"`
	// UnmatchedEntries are names of tools.entries that no tool has.
	UnmatchedEntries []string `json:"unmatched_entries,omitempty"`
}

type sourceBrief struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Unmatched []string `json:"unmatched,omitempty"`
}

// readyz answers 200 once every source had its first attempt, and 503 before
// and while the gateway drains. What names tools is for who operates the gateway.
func (g *Gateway) readyz(w http.ResponseWriter, r *http.Request) {
	status, body := http.StatusOK, state{Status: "ready"}
	ctx, err := g.apiCaller(r)
	shown := err == nil && operates(ctx)
	if shown {
		body.UnmatchedEntries = g.unmatchedEntries()
	}
	for _, s := range g.Sources() {
		brief := sourceBrief{Name: s.Name, State: s.State}
		if shown {
			brief.Unmatched = s.Unmatched
		}
		body.Sources = append(body.Sources, brief)
		if s.State == SourceConnecting {
			status, body.Status = http.StatusServiceUnavailable, "starting"
		}
	}
	if g.calls.isClosed() {
		status, body.Status = http.StatusServiceUnavailable, "closing"
	}
	writeState(w, status, body)
}

func writeState(w http.ResponseWriter, status int, body state) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// guard refuses requests that a page of a foreign site could have caused.
func (g *Gateway) guard(next http.Handler) http.Handler {
	cfg := g.config()
	hosts, origins := cfg.AllowedHosts, cfg.AllowedOrigins
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && !sameMachine(addr) {
			forbid(w, "this address is reached by other machines, and there is no authentication")
			return
		}
		if !allowedHost(r.Host, hosts) {
			forbid(w, "this Host is not served; add it to allowed_hosts")
			return
		}
		for _, origin := range r.Header.Values("Origin") { // Several are from no browser, and none may be foreign.
			if origin != "" && !allowedOrigin(origin, origins) {
				forbid(w, "pages of this Origin may not call; add it to allowed_origins")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// forbid refuses a request as the JSON protocol refuses one.
func forbid(w http.ResponseWriter, message string) {
	api.WriteError(w, &api.Error{Code: api.CodeDenied, Message: message, Class: tools.ErrClassPermanent})
}

// sameMachine reports whether addr is reached from this machine only: loopback, or
// not of a network at all.
func sameMachine(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback()
}

func allowedHost(host string, more []string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return ownHost(name) || containsFold(more, host) || containsFold(more, name)
}

func allowedOrigin(origin string, more []string) bool {
	u, err := url.Parse(origin)
	return containsFold(more, origin) || err == nil && u.Host != "" && ownHost(u.Hostname())
}

func ownHost(name string) bool {
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && ip.IsLoopback()
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, s) })
}

// ServeStdio answers one MCP client on a pair of pipes until in ends, and
// returns nil then. It does not close the gateway.
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	session, err := namedSession(g.opts.Session, "")
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	server := g.mcp
	if g.opts.Toolset != "" {
		t, err := g.toolset(g.local(ctx, session), g.opts.Toolset)
		if err != nil {
			return err
		}
		if server = t.server(); server == nil {
			return ErrClosed
		}
	}
	return server.ServeStdio(g.local(ctx, session), in, out)
}
