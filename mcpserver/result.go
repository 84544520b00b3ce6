package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// metaArtifacts is the member of a result's _meta that names the artifacts of
// the result.
const metaArtifacts = "toolcrib/artifacts"

// structuredKinds says which kinds of values the structuredContent of one call
// can have.
type structuredKinds func(rawjson.Kind) bool

// structuredKinds: an object always; in the stateless era any value, but text
// only for a tool that declares what it gives, since every result of another
// would stand in the answer twice.
func (s *Server) structuredKinds(ctx context.Context, r *mcpwire.Request, name string) structuredKinds {
	return func(kind rawjson.Kind) bool {
		switch {
		case kind == rawjson.KindObject:
			return true
		case r.Session.Era() == mcpwire.EraStateful:
			return false
		case kind != rawjson.KindString:
			return true
		}
		t, ok := view.From(ctx, s.cat).Tool(name)
		return ok && len(t.OutSchema) > 0
	}
}

// encodeResult returns the CallToolResult for a tool's result: the very bytes
// that an MCP server sent, or one made of the result's parts.
func encodeResult(res *tools.ToolResult, allowed structuredKinds) (json.RawMessage, error) {
	if res.Wire != nil && res.WireKind == tools.KindTool {
		return res.Wire, nil
	}
	structured, err := structuredOf(res)
	if err != nil {
		return nil, fmt.Errorf("the result of the tool cannot be encoded: %w", err)
	}
	meta, err := metaOf(res)
	if err != nil {
		return nil, fmt.Errorf("the _meta of the result cannot be encoded: %w", err)
	}
	out := make([]byte, 0, 2*len(structured)+len(meta)+64)
	out = append(appendContent(append(out, `{"content":[`...), res, structured), ']')
	if structured != nil && allowed(rawjson.KindOf(structured)) {
		out = append(append(out, `,"structuredContent":`...), structured...)
	}
	if res.IsError {
		out = append(out, `,"isError":true`...)
	}
	if meta != nil {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}'), nil
}

// appendContent appends the blocks. A result without any is shown as a block of
// text: a string as it is, everything else as JSON.
func appendContent(out []byte, res *tools.ToolResult, structured json.RawMessage) []byte {
	if len(res.Content) == 0 && structured != nil {
		out = append(out, `{"type":"text","text":`...)
		if rawjson.KindOf(structured) == rawjson.KindString {
			out = append(out, rawjson.Trim(structured)...)
		} else {
			out = rawjson.AppendQuoted(out, string(structured))
		}
		return append(out, '}')
	}
	for i, c := range res.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, c.JSON...)
	}
	return out
}

// structuredOf returns the structured result, or nil. The Value of a result that
// has Content is a view of that, for Go callers.
func structuredOf(res *tools.ToolResult) (json.RawMessage, error) {
	if len(res.Content) > 0 {
		return res.Structured, nil
	}
	return res.JSON()
}

func metaOf(res *tools.ToolResult) (json.RawMessage, error) {
	if len(res.Meta) == 0 && len(res.Artifacts) == 0 {
		return nil, nil
	}
	meta := json.RawMessage("{}")
	if len(res.Meta) > 0 {
		var err error
		if meta, err = json.Marshal(res.Meta); err != nil {
			return nil, err
		}
	}
	if len(res.Artifacts) == 0 {
		return meta, nil
	}
	artifacts, err := json.Marshal(res.Artifacts)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(meta, metaArtifacts, artifacts)
}
