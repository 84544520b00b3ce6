package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// The methods that are served here; the wire itself serves the handshakes.
const (
	methodListTools     = "tools/list"
	methodCallTool      = "tools/call"
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodReadResource  = "resources/read"
	methodSubscribe     = "resources/subscribe"
	methodUnsubscribe   = "resources/unsubscribe"
	methodListPrompts   = "prompts/list"
	methodGetPrompt     = "prompts/get"
	methodComplete      = "completion/complete"
	methodSetLevel      = "logging/setLevel"
	methodGetTask       = "tasks/get"
	methodTaskResult    = "tasks/result"
	methodListTasks     = "tasks/list"
	methodCancelTask    = "tasks/cancel"
	methodUpdateTask    = "tasks/update"

	notifyToolsChanged     = "notifications/tools/list_changed"
	notifyResourcesChanged = "notifications/resources/list_changed"
	notifyPromptsChanged   = "notifications/prompts/list_changed"
	notifyResourceUpdated  = "notifications/resources/updated"
	notifyRootsChanged     = "notifications/roots/list_changed"
)

// capabilities are always the same: a source that connects later may bring what
// is not there yet, and a client asks only once. Until then a list is empty.
const capabilities = `"completions":{},"logging":{},"prompts":{"listChanged":true},` +
	`"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}`

// capabilitiesFor are those of the revision of a session. Which of the tools may
// be a task, each of them says itself.
func capabilitiesFor(sess *mcpwire.Session) json.RawMessage {
	more := ""
	switch {
	case sess.Era() == mcpwire.EraStateless:
		more = `,"extensions":{"` + extensionTasks + `":{}}`
	case sess.Version() >= mcpwire.Version20251125:
		more = `,"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`
	}
	return json.RawMessage("{" + capabilities + more + "}")
}

// handler is what the wire sees of a Server.
type handler struct{ server *Server }

// Describe says what the server is. It answers the handshake of both eras.
func (h handler) Describe(ctx context.Context, sess *mcpwire.Session) (*mcpwire.Description, error) {
	s := h.server
	if sess.Era() == mcpwire.EraStateful {
		s.welcome(ctx, sess)
	}
	return &mcpwire.Description{
		Capabilities: capabilitiesFor(sess),
		Instructions: s.instructions(s.narrowed(withSession(ctx, sess))),
		TTL:          s.opts.ListTTL,
		CacheScope:   "private",
		Extra:        s.instance(),
	}, nil
}

// instance is what a handshake says beside what the protocol asks for.
func (s *Server) instance() json.RawMessage {
	if s.opts.Instance == "" {
		return nil
	}
	return append(rawjson.AppendQuoted([]byte(`{"_meta":{"`+mcpwire.MetaInstance+`":`), s.opts.Instance), `}}`...)
}

// ServeMCP answers one request.
func (h handler) ServeMCP(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	s := h.server
	if r.Notification {
		if r.Method == notifyRootsChanged {
			clientOf(r.Session).tell(r.Method, r.Params)
		}
		return nil, nil
	}
	ctx = s.withMemory(s.narrowed(withSession(ctx, r.Session)))
	switch r.Method {
	case methodListTools:
		return s.list(ctx, r, listOfTools)
	case methodCallTool:
		return s.callTool(ctx, r)
	case methodListResources:
		return s.list(ctx, r, listOfResources)
	case methodListTemplates:
		return s.list(ctx, r, listOfTemplates)
	case methodReadResource:
		return s.readResource(ctx, r)
	case methodSubscribe:
		return s.subscribe(ctx, r)
	case methodUnsubscribe:
		return s.unsubscribe(r)
	case methodListPrompts:
		return s.list(ctx, r, listOfPrompts)
	case methodGetPrompt:
		return s.getPrompt(ctx, r)
	case methodComplete:
		return s.complete(ctx, r)
	case mcpwire.MethodListen:
		return s.listen(ctx, r)
	case methodSetLevel:
		return setLevel(r)
	case methodListTasks:
		return s.listTasks(ctx, r)
	case methodGetTask, methodTaskResult, methodCancelTask, methodUpdateTask:
		return s.task(ctx, r)
	}
	return nil, methodNotFound(r)
}

func methodNotFound(r *mcpwire.Request) error {
	return mcpwire.Errorf(mcpwire.CodeMethodNotFound, "method not found: %q", shorten(r.Method, 128))
}

// shorten cuts what a client sent to at most n bytes, before it is repeated.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
