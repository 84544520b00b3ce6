package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// The methods that are served here; the wire itself serves the handshakes.
const (
	methodListTools = "tools/list"
	methodCallTool  = "tools/call"
	methodSetLevel  = "logging/setLevel"

	notifyToolsChanged = "notifications/tools/list_changed"
)

// handler is what the wire sees of a Server.
type handler struct{ server *Server }

// Describe says what the server is. It answers the handshake of both eras.
func (h handler) Describe(ctx context.Context, sess *mcpwire.Session) (*mcpwire.Description, error) {
	s := h.server
	if sess.Era() == mcpwire.EraStateful {
		s.welcome(ctx, sess)
	}
	return &mcpwire.Description{
		Capabilities: json.RawMessage(`{"logging":{},"tools":{"listChanged":true}}`),
		Instructions: s.opts.Instructions,
		TTL:          s.opts.ListTTL,
		CacheScope:   "private",
	}, nil
}

// ServeMCP answers one request.
func (h handler) ServeMCP(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	s := h.server
	if r.Notification {
		return nil, nil // none of a client's notifications is needed
	}
	ctx = withSession(ctx, r.Session)
	switch r.Method {
	case methodListTools:
		return s.listTools(ctx, r)
	case methodCallTool:
		return s.callTool(ctx, r)
	case mcpwire.MethodListen:
		return s.listen(ctx, r)
	case methodSetLevel:
		return setLevel(r)
	}
	return nil, mcpwire.Errorf(mcpwire.CodeMethodNotFound, "method not found: %q", shorten(r.Method, 128))
}

// shorten cuts what a client sent to at most n bytes, before it is repeated.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
