package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// openEntrances makes the ways in: MCP and the JSON protocol.
func (g *Gateway) openEntrances() {
	cfg := g.config()
	g.discovery = view.NewDiscovery(g.found, cfg.MCP.discovery())
	g.mcp = mcpserver.New(g.cat, &mcpserver.Options{
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
	})
	opts := g.apiOptions()
	opts.Authenticate = g.apiCaller
	g.api = api.New(g.cat, opts)
}

// mcpBounder makes results small for clients of MCP, unless they get them whole.
func (g *Gateway) mcpBounder() mcpserver.Bounder {
	if m := g.config().MCP; !m.bounds() {
		return nil
	}
	return g.bounder()
}

func (g *Gateway) closeEntrances(ctx context.Context) error { return g.mcp.Shutdown(ctx) }

// mcpCaller says who calls over MCP: on a loopback entrance, the local caller.
// Its session is the one that it names, or that of the protocol.
func (g *Gateway) mcpCaller(r *http.Request) (context.Context, string, error) {
	session, err := headerSession(r.Header, "")
	if err != nil {
		return nil, "", &mcpserver.Refusal{Status: http.StatusBadRequest, Message: SessionHeader + ": " + err.Error()}
	}
	return g.local(r.Context(), session), localName, nil
}

// apiCaller says who calls over the JSON protocol: without a named session, the
// one of LocalContext, which is also the command line's.
func (g *Gateway) apiCaller(r *http.Request) (context.Context, error) {
	session, err := headerSession(r.Header, localName)
	if err != nil {
		return nil, &api.Error{Code: api.CodeInvalidRequest, Message: SessionHeader + ": " + err.Error(), Class: tools.ErrClassPermanent}
	}
	return g.local(r.Context(), session), nil
}

// LocalAPI returns the JSON protocol for Go callers: each call is made for the
// caller on its context, such as that of LocalContext.
func (g *Gateway) LocalAPI() *api.Server { return api.New(g.cat, g.apiOptions()) }

func (g *Gateway) apiOptions() *api.Options {
	return &api.Options{
		Sources:      g.apiSources,
		Unmatched:    g.apiUnmatched,
		Approval:     g.approval,
		Search:       g.apiSearch,
		Artifacts:    g.kept,
		Bounder:      g.bounder(),
		MaxBodyBytes: g.config().Limits.MaxMessageBytes,
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
