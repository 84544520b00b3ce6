package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	// authorizeWait bounds how long a call waits for the person that was sent
	// to authorize it.
	authorizeWait = 5 * time.Minute
	// maxAuthorizations bounds how often one attempt at a call is authorized:
	// for a token, and for more scopes than it has.
	maxAuthorizations = 2
)

// A permission is the error of a request for which a person must agree first; the
// round tripper that holds the credentials returns it.
type permission interface {
	error
	AuthorizationID() string
	// AuthorizationURL is where the caller on ctx can agree, or empty.
	AuthorizationURL(ctx context.Context) string
	// Await returns nil once somebody has agreed, and otherwise why not.
	Await(ctx context.Context) error
}

// awaited returns the permission that a request failed for want of, or nil.
func awaited(cause error) permission {
	var p permission
	if errors.As(cause, &p) {
		return p
	}
	return nil
}

// authorized sends the caller of a call that failed for want of a permission to
// where it can agree, and waits until it has. It reports whether it has, so that
// the call is worth being sent again.
func (s *Server) authorized(ctx context.Context, cause error) bool {
	p, call := awaited(cause), tools.CallFrom(ctx)
	if p == nil || call == nil || !call.Capabilities.ElicitURL {
		return false
	}
	url := p.AuthorizationURL(ctx)
	if url == "" {
		return false
	}
	params, err := json.Marshal(map[string]string{"mode": "url", "elicitationId": p.AuthorizationID(), "url": url,
		"message": fmt.Sprintf("The MCP server %q needs your authorization.", s.cfg.Name)})
	if err != nil {
		return false
	}
	answer, err := call.Ask(ctx, tools.Question{Method: "elicitation/create", Params: params})
	if err != nil || !accepted(answer.Result) {
		return false
	}
	defer call.Suspend()()
	waiting, cancel := context.WithTimeout(ctx, authorizeWait)
	defer cancel()
	if err := p.Await(waiting); err != nil {
		s.log.Debug("a call was not authorized", "error", err)
		return false
	}
	id, err := json.Marshal(map[string]string{"elicitationId": p.AuthorizationID()})
	if err == nil {
		s.dropped(call.Notify(ctx, notifyElicited, id))
	}
	return true
}

func accepted(result json.RawMessage) bool {
	var r struct{ Action string }
	return json.Unmarshal(result, &r) == nil && r.Action == "accept"
}

// credentialFailure is the failure of a request that got no token, or nil for one
// that failed otherwise. The server has not seen the request.
func (s *Server) credentialFailure(ctx context.Context, tool string, cause error) *tools.Error {
	var given *tools.Error
	if !errors.As(cause, &given) {
		return nil
	}
	e := *given
	e.Tool = tool
	text := e.SafeMessage()
	if p := awaited(cause); p != nil {
		if url := p.AuthorizationURL(ctx); url != "" {
			text += ": open " + url + " in a browser, then call again"
		}
	}
	e.Message, e.Err = s.message(text), cause
	return &e
}

// onBehalf sends what belongs to no call, such as a handshake, in the name of the
// caller that the connection is for.
type onBehalf struct {
	http.RoundTripper
	caller identity.Identity
}

func (t onBehalf) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, ok := identity.From(req.Context()); !ok {
		req = req.WithContext(identity.With(req.Context(), t.caller))
	}
	return t.RoundTripper.RoundTrip(req)
}

// named lets the requests of a transport say whose they are, where credentials
// may depend on that.
func (s *Server) named(t mcpwire.Transport, l *lane) mcpwire.Transport {
	if s.cfg.HTTP == nil || l == nil || l.scope.tenant == "" {
		return t
	}
	caller := identity.Identity{TenantID: l.scope.tenant, UserID: l.scope.user, SessionID: l.scope.session}
	switch t := t.(type) {
	case *mcpwire.HTTPTransport:
		t.RoundTripper = onBehalf{t.RoundTripper, caller}
	case *mcpwire.SSETransport:
		t.RoundTripper = onBehalf{t.RoundTripper, caller}
	}
	return t
}
