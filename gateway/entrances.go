package gateway

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// openEntrances makes the ways in: MCP and the JSON protocol.
func (g *Gateway) openEntrances() {
	cfg := g.config()
	g.discovery = view.NewDiscovery(g.found, cfg.MCP.discovery())
	g.mcp = mcpserver.New(g.cat, g.mcpOptions())
	opts := g.apiOptions()
	opts.Authenticate = g.apiCaller
	g.api = api.New(g.cat, opts)
}

// mcpOptions are those of the entrance to everything.
func (g *Gateway) mcpOptions() *mcpserver.Options {
	cfg := g.opened
	return &mcpserver.Options{
		Name:           "toolcrib",
		Version:        g.opts.Version,
		Instance:       g.opts.instance,
		Authenticate:   g.mcpCaller,
		AllowedHosts:   cfg.AllowedHosts,
		AllowedOrigins: cfg.AllowedOrigins,
		MaxBody:        cfg.Limits.MaxMessageBytes,
		MaxSessions:    cfg.MCP.MaxSessions,
		SessionIdle:    time.Duration(cfg.MCP.SessionIdle),
		Discovery:      g.discovery,
		Bounder:        g.mcpBounder(),
		Artifacts:      g.kept,
		Logger:         g.log,
	}
}

// Warm prepares what a client of the Handler's /mcp asks for first, the lists of
// the local caller. It is for a program that serves, once it is ready, and may
// run while the first clients come.
func (g *Gateway) Warm(ctx context.Context) { g.mcp.Warm(g.LocalContext(ctx)) }

// mcpBounder makes results small for clients of MCP, unless they get them whole.
func (g *Gateway) mcpBounder() mcpserver.Bounder {
	if m := g.config().MCP; !m.bounds() {
		return nil
	}
	return g.bounder()
}

func (g *Gateway) closeEntrances(ctx context.Context) error {
	return errors.Join(g.mcp.Shutdown(ctx), g.closeToolsets(ctx))
}

// mcpCaller says who calls over MCP. Its session is the one that it names, or that
// of the protocol.
func (g *Gateway) mcpCaller(r *http.Request) (context.Context, string, error) {
	return g.mcpCallerIn(r, "")
}

// mcpCallerIn is mcpCaller for a path that names a toolset, or none. A toolset that
// is named in the header as well must be that one: a client that is served more
// than it asked for would not notice.
func (g *Gateway) mcpCallerIn(r *http.Request, toolset string) (context.Context, string, error) {
	session, err := headerSession(r.Header, "")
	if err != nil {
		return nil, "", &mcpserver.Refusal{Status: http.StatusBadRequest, Message: SessionHeader + ": " + err.Error()}
	}
	for _, named := range r.Header.Values(ToolsetHeader) {
		if named != toolset {
			return nil, "", &mcpserver.Refusal{Status: http.StatusBadRequest, Message: ToolsetHeader + ": expected the toolset in the path, " + toolsetPath + "NAME"}
		}
	}
	ctx, principal := g.caller(r.Context(), session)
	return ctx, principal, nil
}

// caller returns the context of who calls over HTTP: the identity on the context
// of the request if there is one, else the local caller. A session that is not
// empty is the one that the caller named.
func (g *Gateway) caller(ctx context.Context, session string) (_ context.Context, principal string) {
	who, ok := identity.From(ctx)
	if !ok {
		return g.local(ctx, session), localName
	}
	if session != "" {
		who.SessionID = session
	}
	ctx = identity.With(ctx, who, identity.ScopesFrom(ctx)...)
	return events.With(ctx, g.bus), strconv.Quote(who.TenantID) + strconv.Quote(who.UserID)
}

// apiCaller says who calls over the JSON protocol, and in which toolset: without a
// named session, in the one of LocalContext, which is also the command line's.
func (g *Gateway) apiCaller(r *http.Request) (context.Context, error) {
	session, err := headerSession(r.Header, "")
	if err != nil {
		return nil, &api.Error{Code: api.CodeInvalidRequest, Message: SessionHeader + ": " + err.Error(), Class: tools.ErrClassPermanent}
	}
	if who, _ := identity.From(r.Context()); session == "" && who.SessionID == "" {
		session = localName
	}
	ctx, _ := g.caller(r.Context(), session)
	switch named := r.Header.Values(ToolsetHeader); {
	case len(named) > 1:
		return nil, &api.Error{Code: api.CodeInvalidRequest, Message: ToolsetHeader + ": expected one toolset, the request names several", Class: tools.ErrClassPermanent}
	case len(named) == 1:
		return g.WithToolset(ctx, named[0])
	}
	return ctx, nil
}

// LocalAPI returns the JSON protocol for Go callers: each call is made for the
// caller on its context, such as that of LocalContext.
func (g *Gateway) LocalAPI() *api.Server { return api.New(g.cat, g.apiOptions()) }

func (g *Gateway) apiOptions() *api.Options {
	return &api.Options{
		Sources:       g.apiSources,
		Unmatched:     g.apiUnmatched,
		Toolsets:      g.apiToolsets,
		Composed:      apiComposed{g},
		Workers:       g.apiWorkers,
		ForgetWorkers: g.apiForgetWorkers,
		DeadLetters:   g.apiDeadLetters,
		Approval:      g.approval,
		Search:        g.apiSearch,
		Artifacts:     g.kept,
		Bounder:       g.bounder(),
		MaxBodyBytes:  g.config().Limits.MaxMessageBytes,
	}
}

// approval says what the operator decided about the calls of a tool. A tool that
// needs confirmation is denied, as nobody can give it.
func (g *Gateway) approval(_ context.Context, t *tools.Tool) (policy, reason string) {
	for _, e := range g.config().Tools.Entries {
		if e.Name == t.Name && e.Approval != nil && e.Approval.Policy == approvalDenied {
			return approvalDenied, e.Approval.Reason
		}
	}
	if t.Safety.NeedsConfirmation == tools.Yes {
		return approvalDenied, "the tool needs confirmation, which nobody can give"
	}
	return "auto", ""
}
