package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const methodCall = "tools/call"

// invoker returns the innermost step of a call: one attempt.
func (t *remoteTool) invoker(s *Server) tools.Invoker {
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		raw, era, err := s.send(ctx, t, args)
		if err != nil {
			return tools.ToolResult{}, s.failure(ctx, t.name, "calling the tool", err)
		}
		result, err := resultOf(raw, era)
		if err != nil {
			return tools.ToolResult{}, s.answerFailure(t.name, err)
		}
		return result, nil
	}
}

// params returns the params of a call; the arguments are the bytes they are.
func (t *remoteTool) params(args json.RawMessage, logs bool) json.RawMessage {
	head := t.head
	if logs {
		head = t.logHead
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	out := make([]byte, 0, len(head)+len(args)+1)
	out = append(out, head...)
	out = append(out, args...)
	return append(out, '}')
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
func (s *Server) send(ctx context.Context, t *remoteTool, args json.RawMessage) (json.RawMessage, mcpwire.Era, error) {
	for again := true; ; again = false {
		conn, err := s.shared.get(ctx, false)
		if err != nil {
			return nil, 0, err
		}
		params := t.params(args, conn.logs && tools.CallFrom(ctx) != nil)
		raw, err := conn.call(ctx, params, s.callOptions(ctx, t, params, conn.era))
		lost := mcpwire.DeliveryOf(err) == mcpwire.NotDelivered && !conn.alive()
		if !lost || !again || ctx.Err() != nil {
			return raw, conn.era, err
		}
	}
}

// callOptions connects what comes before the answer to the call on ctx.
func (s *Server) callOptions(ctx context.Context, t *remoteTool, params json.RawMessage, era mcpwire.Era) *mcpwire.CallOptions {
	opts := &mcpwire.CallOptions{Header: t.header(s, params, era)}
	call := tools.CallFrom(ctx)
	if call == nil {
		return opts
	}
	if rawjson.KindOf(call.Meta) == rawjson.KindObject {
		opts.Meta = call.Meta
	}
	opts.Progress = func(params json.RawMessage) {
		s.dropped(call.Progress(ctx, progressNote(params)))
	}
	opts.Notification = func(method string, params json.RawMessage) {
		if method == mcpwire.NotifyLog {
			s.dropped(call.Log(ctx, logNote(params)))
			return
		}
		s.notified(method, params)
	}
	return opts
}

// header returns the headers that repeat arguments, where the era has them.
func (t *remoteTool) header(s *Server, params json.RawMessage, era mcpwire.Era) http.Header {
	if t.headers == nil || era != mcpwire.EraStateless || s.cfg.TransportMode != TransportStreamableHTTP {
		return nil
	}
	return mcpwire.ParamHeaders(t.headers, params)
}

// dropped notes what the caller did not take. A call does not fail for it.
func (s *Server) dropped(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.Debug("a note of the server did not reach the caller", "error", err)
	}
}

func progressNote(params json.RawMessage) tools.ProgressNote {
	n := tools.ProgressNote{Raw: params}
	it := rawjson.Object(params)
	for it.Next() {
		switch {
		case it.KeyIs("progress"):
			n.Progress = number(it.Value())
		case it.KeyIs("total"):
			n.Total = number(it.Value())
		case it.KeyIs("message"):
			n.Message, _ = rawjson.Unquote(it.Value())
		}
	}
	return n
}

func number(raw json.RawMessage) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0
	}
	return f
}

func logNote(params json.RawMessage) tools.LogNote {
	var n tools.LogNote
	it := rawjson.Object(params)
	for it.Next() {
		switch {
		case it.KeyIs("level"):
			n.Level, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("logger"):
			n.Logger, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("data"):
			n.Data = it.Value()
		}
	}
	return n
}
