package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// metaIdempotencyKey is the member of a call's _meta with which a client lets
// the call be repeated: the tool sees the same key each time.
const metaIdempotencyKey = "toolcrib/idempotency_key"

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	p, err := readCall(r)
	if err != nil {
		return nil, err
	}
	if err := s.checkParamHeaders(ctx, r, p.name); err != nil {
		return nil, err
	}
	if p.state != "" && !view.From(ctx, s.cat).Has(p.name) {
		s.parked.dismiss(ctx, r, &p)
		return nil, unknownTool(p.name)
	}
	return s.converse(ctx, r, &p, func(ctx context.Context) (json.RawMessage, error) {
		res, err := tools.Invoke(ctx, s.cat, p.name, p.arguments)
		if err != nil {
			return answerFailure(ctx, p.name, err)
		}
		ran := cmp.Or(res.Tool, p.name)
		if res.TaskID != "" {
			return s.beginTask(ctx, r, ran, &res)
		}
		if err := s.bound(ctx, ran, &res); err != nil {
			return answerFailure(ctx, ran, err)
		}
		return encodeResult(&res, s.structuredKinds(ctx, r, ran))
	})
}

// checkParamHeaders compares the headers that repeat arguments of a call, in
// the one revision and on the one transport that has them.
func (s *Server) checkParamHeaders(ctx context.Context, r *mcpwire.Request, name string) error {
	if r.HTTP == nil || r.Session.Era() != mcpwire.EraStateless {
		return nil
	}
	bound := view.Memo(view.From(ctx, s.cat), headerSchemasKey{}, headerSchemas)
	if schema, ok := bound[name]; ok {
		return mcpwire.CheckParamHeaders(r.HTTP.Header, schema, r.Params)
	}
	return nil
}

type headerSchemasKey struct{}

// headerSchemas returns the input schemas that bind arguments to headers, by
// the tool's name.
func headerSchemas(v view.View) map[string]json.RawMessage {
	bound := map[string]json.RawMessage{}
	for t := range v.All() {
		if bytes.Contains(t.ArgsSchema, []byte(`"x-mcp-header"`)) {
			bound[t.Name] = t.ArgsSchema
		}
	}
	return bound
}
