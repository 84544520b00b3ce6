package mcpserver

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
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
	// ears are who hears what the client tells at any time.
	ears map[*func(string, json.RawMessage)]struct{}
}

// welcome begins to remember a session. What the caller sees now is what later
// changes are measured by.
func (s *Server) welcome(ctx context.Context, sess *mcpwire.Session) {
	c := &client{capabilities: capabilitiesOf(sess)}
	c.level.Store(defaultLevel)
	ctx = s.narrowed(withSession(ctx, sess))
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

// narrowed returns a context whose caller sees what is served.
func (s *Server) narrowed(ctx context.Context) context.Context {
	if s.opts.Part == nil {
		return ctx
	}
	return tools.WithPart(ctx, s.opts.Part)
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

// tell passes on what the client tells that belongs to no call.
func (c *client) tell(method string, params json.RawMessage) {
	if c == nil {
		return
	}
	c.mu.Lock()
	ears := slices.Collect(maps.Keys(c.ears))
	c.mu.Unlock()
	for _, hear := range ears {
		(*hear)(method, params)
	}
}

// OnClientNote implements [tools.ClientPeer]. A client of the stateless era tells
// nothing.
func (p *peer) OnClientNote(f func(method string, params json.RawMessage)) (stop func()) {
	c := clientOf(p.session)
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ears == nil {
		c.ears = map[*func(string, json.RawMessage)]struct{}{}
	}
	c.ears[&f] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ears, &f)
	}
}

// withSession completes an identity that names no session.
func withSession(ctx context.Context, sess *mcpwire.Session) context.Context {
	q, ok := identity.QuadrupleFrom(ctx)
	if !ok || q.SessionID != "" {
		return ctx
	}
	if q.SessionID = sess.ID(); q.SessionID == "" {
		q.SessionID = statelessSession(sess)
	}
	return identity.WithQuadruple(ctx, q, identity.ScopesFrom(ctx)...)
}

// maxClientName bounds how much of a client's name is part of an identity.
const maxClientName = 64

// statelessSession is the session of a client of the era that has none: all that
// it does as the same user is one, and clients that call themselves by different
// names are apart.
func statelessSession(sess *mcpwire.Session) string {
	raw, _ := rawjson.Get(sess.ClientInfo(), "name")
	if name, ok := rawjson.Unquote(raw); ok && name != "" {
		return "stateless:" + name[:min(len(name), maxClientName)]
	}
	return "stateless"
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
