package mcpserver

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// client is what the server remembers of a session of the stateful era.
type client struct {
	capabilities tools.Capabilities
	opened       atomic.Bool // the client has said that it is initialized
	level        atomic.Int32
	shown        [listCount]view.Shown

	mu      sync.Mutex
	who     identity.Quadruple
	scopes  identity.Scopes
	watched *watched // nil until a resource is watched
}

// welcome begins to remember a session. What the caller sees now is what later
// changes are measured by.
func (s *Server) welcome(ctx context.Context, sess *mcpwire.Session) {
	c := &client{capabilities: capabilitiesOf(sess)}
	c.level.Store(defaultLevel)
	ctx = withSession(ctx, sess)
	for kind := range s.lists {
		c.show(ctx, kind, s.listFor(ctx, kind, s.lists[kind].of(sess)))
	}
	sess.SetAttachment(c)
}

// sessionOpened notes that the session may be sent notifications.
func sessionOpened(sess *mcpwire.Session) {
	if c := clientOf(sess); c != nil {
		c.opened.Store(true)
	}
}

// clientOf returns what is remembered of a session, or nil in the stateless
// era.
func clientOf(sess *mcpwire.Session) *client {
	c, _ := sess.Attachment().(*client)
	return c
}

// show remembers who the caller is and what it was shown. Both can change while
// a session lasts, with a new token for instance.
func (c *client) show(ctx context.Context, kind int, list *view.List) {
	who, _ := identity.QuadrupleFrom(ctx)
	c.mu.Lock()
	c.who, c.scopes = who, identity.ScopesFrom(ctx)
	c.mu.Unlock()
	c.shown[kind].Show(list)
}

// as returns a context whose caller is that of the session.
func (c *client) as(ctx context.Context) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return identity.WithQuadruple(ctx, c.who, c.scopes...)
}

func (c *client) identity() identity.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.who.Identity
}

// withSession completes an identity that names no session.
func withSession(ctx context.Context, sess *mcpwire.Session) context.Context {
	q, ok := identity.QuadrupleFrom(ctx)
	if !ok || q.SessionID != "" {
		return ctx
	}
	if q.SessionID = sess.ID(); q.SessionID == "" {
		q.SessionID = "stateless"
	}
	return identity.WithQuadruple(ctx, q, identity.ScopesFrom(ctx)...)
}

// capabilitiesOf returns what the client says it can be asked. One that can
// elicit and names no mode can show forms.
func capabilitiesOf(sess *mcpwire.Session) tools.Capabilities {
	declared := sess.ClientCapabilities()
	if len(declared) <= len("{}") {
		return tools.Capabilities{}
	}
	c := tools.Capabilities{Declared: declared}
	has := func(path ...string) bool {
		v, ok := rawjson.Get(declared, path...)
		return ok && rawjson.KindOf(v) == rawjson.KindObject
	}
	c.Sampling, c.Roots = has("sampling"), has("roots")
	if has("elicitation") {
		c.ElicitURL = has("elicitation", "url")
		c.ElicitForm = has("elicitation", "form") || !c.ElicitURL
	}
	return c
}
