package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// metaIdempotencyKey is the member of a call's _meta with which a client lets
// the call be repeated: the tool sees the same key each time.
const metaIdempotencyKey = "toolcrib/idempotency_key"

// callParams are the parameters of a request that runs something.
type callParams struct {
	name      string
	arguments json.RawMessage
	meta      json.RawMessage
	key       string
	// state and responses are those of a request that is made again with what
	// was asked before.
	state     string
	responses json.RawMessage
}

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	p, err := readCall(r)
	if err != nil {
		return nil, err
	}
	if err := s.checkParamHeaders(ctx, r, p.name); err != nil {
		return nil, err
	}
	return s.converse(ctx, r, &p, func(ctx context.Context) (json.RawMessage, error) {
		res, err := tools.Invoke(ctx, s.cat, p.name, p.arguments)
		if err != nil {
			return answerFailure(ctx, p.name, err)
		}
		return encodeResult(&res, s.structuredKinds(ctx, r, p.name))
	})
}

// readCall reads the parameters of a request that has a name and arguments. A
// member that is given twice would be read differently by different peers, so
// it is refused; the door refuses the same inside of the arguments.
func readCall(r *mcpwire.Request) (callParams, error) {
	var p callParams
	named := false
	refused := func(reason string) error {
		return mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s: %s", r.Method, reason)
	}
	it := rawjson.Object(r.Params)
	for it.Next() {
		v := it.Value()
		switch {
		case it.KeyIs("name"):
			if named {
				return p, refused(`"name" is given twice`)
			}
			if p.name, named = rawjson.Unquote(v); !named {
				return p, refused(`"name" must be a string`)
			}
		case it.KeyIs("arguments"):
			if p.arguments != nil {
				return p, refused(`"arguments" is given twice`)
			}
			if k := rawjson.KindOf(v); k != rawjson.KindObject && k != rawjson.KindNull {
				return p, refused(`"arguments" must be an object`)
			}
			p.arguments = v
		case it.KeyIs("_meta"):
			p.meta = objectOrNil(v)
		case it.KeyIs("requestState"):
			p.state, _ = rawjson.Unquote(v)
		case it.KeyIs("inputResponses"):
			p.responses = objectOrNil(v)
		}
	}
	if !named {
		return p, refused(`"name" is missing`)
	}
	key, _ := rawjson.Get(p.meta, metaIdempotencyKey)
	p.key, _ = rawjson.Unquote(key)
	return p, nil
}

func objectOrNil(v json.RawMessage) json.RawMessage {
	if rawjson.KindOf(v) != rawjson.KindObject {
		return nil
	}
	return v
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
	for _, t := range v.Tools() {
		if bytes.Contains(t.ArgsSchema, []byte(`"x-mcp-header"`)) {
			bound[t.Name] = t.ArgsSchema
		}
	}
	return bound
}
