package mcpserver

import (
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// defineStateless encodes a tool object for revisions that allow a structured
// result of any JSON type.
func defineStateless(t tools.Tool) []byte { return define(t, t.OutSchema) }

// defineStateful encodes a tool object for revisions whose structured results
// are objects: for a tool of ours that gives something else, no output schema
// is declared, and its result is text.
func defineStateful(t tools.Tool) []byte {
	out := t.OutSchema
	if len(t.Definition) == 0 && !describesObject(out) {
		out = nil
	}
	return define(t, out)
}

func define(t tools.Tool, out json.RawMessage) []byte {
	if len(t.Definition) > 0 {
		if def, err := redefine(t); err == nil {
			return def
		}
	}
	return invent(t, out)
}

// redefine returns the tool object as its source published it, with only that
// changed which the catalog says differently.
func redefine(t tools.Tool) ([]byte, error) {
	e := editor{obj: t.Definition}
	e.set("name", rawjson.Quote(t.Name))
	if text := describe(t); text != e.text("description") {
		e.set("description", rawjson.Quote(text))
	}
	if t.Title != "" && t.Title != e.text("title") && t.Title != e.text("annotations", "title") {
		e.set("title", rawjson.Quote(t.Title))
	}
	switch {
	case len(t.ArgsSchema) > 0:
		e.replace("inputSchema", t.ArgsSchema)
	case !e.has("inputSchema"):
		e.set("inputSchema", anyObject)
	}
	if len(t.OutSchema) > 0 {
		e.replace("outputSchema", t.OutSchema)
	}
	e.correct(t.Safety)
	return e.obj, e.err
}

// anyObject is the input schema of a tool that has none.
var anyObject = []byte(`{"type":"object"}`)

// An editor changes members of an object and leaves every other byte.
type editor struct {
	obj []byte
	err error
}

func (e *editor) set(key string, value []byte) {
	if e.err == nil {
		e.obj, e.err = rawjson.Set(e.obj, key, value)
	}
}

// replace sets a member unless it has that value already.
func (e *editor) replace(key string, value []byte) {
	if have, ok := rawjson.Get(e.obj, key); !ok || string(have) != string(value) {
		e.set(key, value)
	}
}

func (e *editor) has(path ...string) bool {
	_, ok := rawjson.Get(e.obj, path...)
	return ok
}

func (e *editor) text(path ...string) string {
	v, _ := rawjson.Get(e.obj, path...)
	text, _ := rawjson.Unquote(v)
	return text
}

// correct changes hints that contradict what is known of the tool, such as an
// operator's settings. It adds none, and a hint that is null says nothing.
func (e *editor) correct(s tools.Safety) {
	annotations, ok := rawjson.Get(e.obj, "annotations")
	if !ok {
		return
	}
	inner := editor{obj: annotations}
	for _, h := range hintsOf(s) {
		if have, ok := rawjson.Get(annotations, h.name); ok && h.flag != tools.Unset && rawjson.KindOf(have) != rawjson.KindNull {
			inner.replace(h.name, h.value())
		}
	}
	if inner.err == nil {
		e.replace("annotations", inner.obj)
	}
}

// A hint is an MCP annotation about the effects of a tool.
type hint struct {
	name string
	flag tools.Flag
}

func (h hint) value() []byte {
	if h.flag == tools.Yes {
		return []byte("true")
	}
	return []byte("false")
}

func hintsOf(s tools.Safety) [4]hint {
	return [4]hint{
		{"readOnlyHint", s.ReadOnly},
		{"destructiveHint", s.Destructive},
		{"idempotentHint", s.Idempotent},
		{"openWorldHint", s.OpenWorld},
	}
}

// invent makes a tool object for a tool whose source publishes none.
func invent(t tools.Tool, outSchema json.RawMessage) []byte {
	out := rawjson.AppendQuoted([]byte(`{"name":`), t.Name)
	if t.Title != "" {
		out = rawjson.AppendQuoted(append(out, `,"title":`...), t.Title)
	}
	if text := describe(t); text != "" {
		out = rawjson.AppendQuoted(append(out, `,"description":`...), text)
	}
	out = append(append(out, `,"inputSchema":`...), inputSchema(t.ArgsSchema)...)
	if len(outSchema) > 0 {
		out = append(append(out, `,"outputSchema":`...), outSchema...)
	}
	return append(appendAnnotations(out, t.Safety), '}')
}

// inputSchema returns a schema whose root says that arguments are an object, as
// the protocol demands.
func inputSchema(schema json.RawMessage) []byte {
	if len(schema) == 0 || rawjson.KindOf(schema) != rawjson.KindObject {
		return anyObject
	}
	if describesObject(schema) {
		return schema
	}
	typed, err := rawjson.Set(schema, "type", []byte(`"object"`))
	if err != nil {
		return anyObject
	}
	return typed
}

// describesObject reports whether the root of a schema says "type": "object".
func describesObject(schema json.RawMessage) bool {
	v, _ := rawjson.Get(schema, "type")
	kind, _ := rawjson.Unquote(v)
	return kind == "object"
}

func appendAnnotations(out []byte, s tools.Safety) []byte {
	some := false
	for _, h := range hintsOf(s) {
		if h.flag == tools.Unset {
			continue
		}
		if !some {
			out = append(out, `,"annotations":{`...)
		} else {
			out = append(out, ',')
		}
		some = true
		out = append(rawjson.AppendQuoted(out, h.name), ':')
		out = append(out, h.value()...)
	}
	if some {
		out = append(out, '}')
	}
	return out
}

// describe returns the description and, below it, the safety notes.
func describe(t tools.Tool) string {
	if t.SafetyNotes == "" || t.Description == "" {
		return t.Description + t.SafetyNotes
	}
	return t.Description + "\n\n" + t.SafetyNotes
}
