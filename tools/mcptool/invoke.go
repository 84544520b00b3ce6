package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const methodCall = "tools/call"

// invoker returns the innermost step of a call: one attempt. A server of the
// stateless era that asks something answers with the question; the call is then
// made again with what the caller said.
func (t *remoteTool) invoker(s *Server) tools.Invoker {
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if t.listed != nil && t.listed.hides(ctx, t.name, uriOf(args)) {
			return tools.ToolResult{}, t.noResource()
		}
		var input []byte
		for round := 0; ; round++ {
			answer, err := s.send(ctx, t, args, input)
			if err != nil && round < maxAuthorizations && s.authorized(ctx, err) {
				continue
			}
			if t.kind == tools.KindResourceTemplate && isNoResource(err) {
				return tools.ToolResult{}, t.noResource()
			}
			if err != nil {
				return tools.ToolResult{}, sinceAsked(input, s.failure(ctx, t.name, "calling the tool", err))
			}
			result, err := s.result(ctx, t, &answer)
			if err == nil {
				return result, nil
			}
			if err != errInputRequired || round >= maxRounds {
				return tools.ToolResult{}, s.answerFailure(t.name, err)
			}
			if input, err = s.askFor(ctx, t, answer.raw); err != nil {
				return tools.ToolResult{}, err
			}
		}
	}
}

// sinceAsked returns the failure to send what a caller said as that of the call, which
// had reached the server before, and may have had an effect.
func sinceAsked(input []byte, e *tools.Error) error {
	if input != nil && e.Delivery == tools.NotDelivered {
		e.Code, e.Delivery = nil, tools.DeliveryUnknown
	}
	return e
}

// noResource is the failure of a read of what does not exist, or is taken not to.
func (t *remoteTool) noResource() error {
	return &tools.Error{Tool: t.name, Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent,
		Delivery: tools.Answered, Err: errNoResource()}
}

// isNoResource reports whether a server says that there is no such resource, in
// whatever words. Servers of either era answer with one of the two codes.
func isNoResource(err error) bool {
	var rpc *RPCError
	return errors.As(err, &rpc) && (rpc.Code == mcpwire.CodeResourceNotFound || rpc.Code == mcpwire.CodeInvalidParams)
}

// An answer is what a server gave, in which era, and to whose connection.
type answer struct {
	raw   json.RawMessage
	era   mcpwire.Era
	scope scope
	kept  *aside // what of it was kept aside, and is not in raw; nil for nothing
}

// result returns the views of the answer to a call.
func (s *Server) result(ctx context.Context, t *remoteTool, a *answer) (tools.ToolResult, error) {
	r, err := s.views(ctx, t, a)
	if a.kept == nil || !a.kept.used() {
		return r, err
	}
	return a.kept.finish(r, err)
}

// views returns the views of what of the answer is in memory.
func (s *Server) views(ctx context.Context, t *remoteTool, a *answer) (tools.ToolResult, error) {
	switch t.kind {
	case tools.KindTool:
		call := tools.CallFrom(ctx)
		r, err := resultOf(a.raw, a.era, asksForTask(call))
		if err == nil && r.TaskID != "" {
			return s.begun(call, a.scope, r)
		}
		return r, err
	case tools.KindPrompt:
		return resultOfPrompt(a.raw)
	}
	return resultOfRead(a.raw)
}

// params returns the params of a call; the arguments are the bytes they are.
// logs is the level of log messages to ask for, or empty; more are further
// members, each behind a comma.
func (s *Server) params(t *remoteTool, args json.RawMessage, logs string, more []byte) json.RawMessage {
	head := t.head
	switch {
	case logs == "":
	case logs == s.cfg.LogLevel && t.logHead != nil:
		head = t.logHead
	default:
		head = t.headWithLogs(logs)
	}
	args = t.argument(args)
	out := make([]byte, 0, len(head)+len(args)+len(more)+1)
	out = append(out, head...)
	out = append(out, args...)
	out = append(out, more...)
	return append(out, '}')
}

// argument is what of the arguments follows the head of the params.
func (t *remoteTool) argument(args json.RawMessage) json.RawMessage {
	switch t.kind {
	case tools.KindResource:
		return nil // the head says it all
	case tools.KindResourceTemplate:
		uri, _ := rawjson.Get(args, "uri")
		return uri
	}
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

// asksForLogs reports whether each call has to ask for log messages.
func asksForLogs(p mcpwire.Peer) bool {
	if p.Era != mcpwire.EraStateless {
		return false
	}
	_, ok := rawjson.Get(p.Capabilities, "logging")
	return ok
}

// send sends one call and returns the result as it came. A call that certainly
// was not delivered because the session or the child is gone is sent on the
// connection that follows: it is still the first that reaches the server.
func (s *Server) send(ctx context.Context, t *remoteTool, args json.RawMessage, input []byte) (answer, error) {
	call := tools.CallFrom(ctx)
	l, err := s.lanes.take(ctx, call)
	if err != nil {
		return answer{}, err
	}
	if !l.everybodys() {
		defer s.lanes.release(l)
	}
	for again := true; ; again = false {
		conn, err := l.get(ctx, false)
		if err != nil {
			return answer{}, err
		}
		switch {
		case call == nil:
		case l.everybodys():
			s.listenCloser(ctx, conn, call.LogLevel)
		default:
			defer l.begin(ctx, s, conn, call)()
		}
		params := s.params(t, args, s.logLevel(conn, call), append(extraMembers(call), input...))
		opts := s.callOptions(ctx, l, t, params, conn.era)
		kept := s.keepsAside(ctx, t, opts)
		raw, err := conn.call(ctx, t.method, params, opts)
		lost := mcpwire.DeliveryOf(err) == mcpwire.NotDelivered && !conn.alive()
		if !lost || !again || ctx.Err() != nil {
			return answer{raw, conn.era, l.scope, kept}, err
		}
	}
}

// logLevel is the level of log messages that a call asks for, or empty.
func (s *Server) logLevel(conn *connection, call *tools.Call) string {
	switch {
	case !conn.logs || call == nil:
		return ""
	case call.LogLevel != "":
		return call.LogLevel
	}
	return s.cfg.LogLevel
}

// callOptions connects what comes before the answer to the call on ctx.
func (s *Server) callOptions(ctx context.Context, l *lane, t *remoteTool, params json.RawMessage, era mcpwire.Era) *mcpwire.CallOptions {
	opts := &mcpwire.CallOptions{Header: t.header(s, params, era)}
	call := tools.CallFrom(ctx)
	if call == nil {
		return opts
	}
	if rawjson.KindOf(call.Meta) == rawjson.KindObject {
		opts.Meta = metaFor(era, call.Meta)
	}
	s.connectCaller(ctx, opts, l, era, call)
	return opts
}

// connectCaller lets the server speak to the caller of a request, and know what
// it can be asked.
func (s *Server) connectCaller(ctx context.Context, opts *mcpwire.CallOptions, l *lane, era mcpwire.Era, call *tools.Call) {
	s.relayNotes(ctx, opts, l, call)
	switch {
	case era == mcpwire.EraStateless:
		opts.Capabilities = carried(call, false)
	case l.scope.capabilities != "":
		opts.Request = func(asked context.Context, q *mcpwire.ServerRequest) (json.RawMessage, error) {
			return s.askCaller(asked, flight{ctx, call}, q)
		}
	}
}

// metaFor is the caller's _meta for a server of an era. The level of log messages
// stands in it in the stateless era alone.
func metaFor(era mcpwire.Era, meta json.RawMessage) json.RawMessage {
	if era == mcpwire.EraStateless {
		return meta
	}
	if rest, err := rawjson.Delete(meta, mcpwire.MetaLogLevel); err == nil {
		return rest
	}
	return meta
}

// header returns the headers that repeat arguments, where the era has them.
func (t *remoteTool) header(s *Server, params json.RawMessage, era mcpwire.Era) http.Header {
	if t.headers == nil || era != mcpwire.EraStateless || s.cfg.TransportMode != TransportStreamableHTTP {
		return nil
	}
	return mcpwire.ParamHeaders(t.headers, params)
}

// extraMembers are the members of the caller's own request that are not known
// here, each behind a comma.
func extraMembers(call *tools.Call) []byte {
	if call == nil || len(call.Extra) == 0 {
		return nil
	}
	extra := call.Extra
	if !call.Tasks {
		extra = without(extra, "task")
	}
	if len(extra) <= len("{}") {
		return nil
	}
	return append([]byte{','}, extra[1:len(extra)-1]...)
}
