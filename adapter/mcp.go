package adapter

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// setMCP prepares an adapter for the Model Context Protocol, whose names are the
// canonical ones.
func (a *Adapter) setMCP() {
	a.names = nameRule{marks: "_.-", max: 128}
	a.profile = &subset.Profile{Provider: "MCP", Full: true}
	a.wire = &mcp{}
}

// mcp is the Model Context Protocol.
type mcp struct{ base }

// compile keeps a schema whose root says that it is an object as it is.
func (w *mcp) compile(schema json.RawMessage, p *subset.Profile) (*subset.Form, error) {
	if text(schema, "type") != "object" || rawjson.Check(schema, rawjson.Options{}) != nil {
		return subset.Compile(schema, p)
	}
	return &subset.Form{Schema: schema}, nil
}

// describe returns the description and the safety notes; hints have members of
// their own.
func (w *mcp) describe(d *Declaration) string {
	t := d.original
	if t.SafetyNotes == "" || t.Description == "" {
		return t.Description + t.SafetyNotes
	}
	return t.Description + "\n\n" + t.SafetyNotes
}

// mcpTool is a tool object.
type mcpTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema,omitempty"`
	Annotations map[string]bool `json:"annotations,omitempty"`
	Meta        map[string]any  `json:"_meta,omitempty"`
}

// Members of a tool's _meta that say what a call costs.
const (
	metaCost    = "toolcrib/cost"
	metaLatency = "toolcrib/latency_ms"
)

func (w *mcp) declare(d *Declaration) json.RawMessage {
	t := d.original
	object := mcpTool{
		Name: d.Wire, Title: t.Title, Description: d.Description, Input: d.Schema, Output: t.OutSchema,
		Annotations: annotations(t.Safety), Meta: map[string]any{},
	}
	if len(d.examples) > 0 {
		if _, has := rawjson.Get(d.Schema, "examples"); !has {
			object.Input, _ = rawjson.Set(d.Schema, "examples", encode(d.examples))
		}
	}
	if t.CostHint != "" {
		object.Meta[metaCost] = t.CostHint
	}
	if t.LatencyHint > 0 {
		object.Meta[metaLatency] = t.LatencyHint.Milliseconds()
	}
	own := encode(object)
	// What a source publishes may speak of arguments that are hidden here.
	if published := t.Definition; t.Kind == tools.KindTool && len(t.Injected) == 0 && rawjson.KindOf(published) == rawjson.KindObject && rawjson.Check(published, rawjson.Options{}) == nil {
		return overlay(published, own)
	}
	return own
}

// overlay lays what the catalog says of a tool over the object that an MCP server
// published, whose other members stay. Of _meta and the annotations each member
// counts by itself.
func overlay(published, own []byte) json.RawMessage {
	out := published
	for it := rawjson.Object(own); it.Next(); {
		key, v := it.Key(), it.Value()
		if have := get(published, key); (key == "_meta" || key == "annotations") && rawjson.KindOf(have) == rawjson.KindObject {
			v = overlay(have, v)
		}
		out, _ = rawjson.Set(out, key, v) // both are objects that were checked
	}
	return out
}

func annotations(s tools.Safety) map[string]bool {
	m := map[string]bool{}
	for hint, flag := range map[string]tools.Flag{
		"readOnlyHint": s.ReadOnly, "destructiveHint": s.Destructive, "idempotentHint": s.Idempotent, "openWorldHint": s.OpenWorld,
	} {
		if flag != tools.Unset {
			m[hint] = flag == tools.Yes
		}
	}
	return m
}

// request returns the result of tools/list.
func (w *mcp) request(d *Declarations) json.RawMessage {
	return encode(map[string]json.RawMessage{"tools": w.list(d)})
}

// calls reads a tools/call request, or its params alone.
func (w *mcp) calls(response []byte) ([]rawCall, error) {
	params := response
	if inner := get(response, "params"); inner != nil {
		if method := text(response, "method"); method != "tools/call" {
			return nil, fmt.Errorf("the method is %q, not tools/call", clip(method))
		}
		params = inner
	}
	name := get(params, "name")
	if rawjson.KindOf(name) != rawjson.KindString {
		return nil, errors.New("it names no tool")
	}
	args := get(params, "arguments")
	if args == nil {
		args = []byte(`{}`) // the protocol makes them optional
	}
	id := get(response, "id")
	if s, ok := rawjson.Unquote(id); ok {
		id = []byte(s)
	}
	return []rawCall{{id: string(id), name: text(params, "name"), args: args}}, nil
}

func (w *mcp) reply([]byte) ([]json.RawMessage, error) { return nil, nil }

// results returns one CallToolResult for each answer. A result that came from an
// MCP server passes as it is.
func (w *mcp) results(answers []rendered) []json.RawMessage {
	list := make([]json.RawMessage, len(answers))
	for i := range answers {
		list[i] = mcpResult(&answers[i])
	}
	return list
}

func mcpResult(r *rendered) json.RawMessage {
	res := &r.answer.Result
	if r.answer.Err == nil && len(res.Wire) > 0 && res.WireKind == tools.KindTool {
		return res.Wire
	}
	body := map[string]any{"content": mcpContent(r)}
	if r.isError {
		body["isError"] = true
	}
	if r.answer.Err != nil {
		return encode(body)
	}
	if len(res.Content) == 0 && rawjson.KindOf(r.structured) == rawjson.KindObject {
		body["structuredContent"] = r.structured
	} else if rawjson.KindOf(res.Structured) == rawjson.KindObject {
		body["structuredContent"] = res.Structured
	}
	return encode(body)
}

func mcpContent(r *rendered) []json.RawMessage {
	list := []json.RawMessage{}
	if r.answer.Err == nil && len(r.answer.Result.Content) > 0 {
		for _, c := range r.answer.Result.Content {
			list = append(list, c.JSON)
		}
		return list
	}
	for _, p := range r.parts {
		list = append(list, tools.TextContent(p.text).JSON)
	}
	return list
}

func (w *mcp) assembler() assembler { return noStream{} }

// noStream is for a protocol whose calls come whole.
type noStream struct{}

func (noStream) add([]byte) ([]rawCall, error) {
	return nil, errors.New("calls of MCP are not streamed")
}
func (noStream) rest() []rawCall           { return nil }
func (noStream) response() json.RawMessage { return json.RawMessage(`{}`) }
