package mcpserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

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
	if len(t.Definition) > 0 && listKind(t.Kind) == tools.KindTool {
		if def, err := redefine(t); err == nil {
			return def
		}
	}
	return invent(t, out)
}

// redefine returns the tool object as its source published it, with only that
// changed which the catalog says differently.
func redefine(t tools.Tool) ([]byte, error) {
	p := readPublished(t.Definition)
	name := rawjson.Quote(t.Name)
	changes := []rawjson.Member{{Key: "name", Value: name}}
	change := func(key string, value []byte) {
		changes = append(changes, rawjson.Member{Key: key, Value: value})
	}
	if text := describe(t); !saysText(p.description, text) {
		change("description", rawjson.Quote(text))
	}
	if t.Title != "" && t.Title != plainText(p.title) && t.Title != titleIn(p.annotations) {
		change("title", rawjson.Quote(t.Title))
	}
	switch {
	case len(t.ArgsSchema) == 0 && p.input == nil:
		change("inputSchema", anyObject)
	case len(t.ArgsSchema) > 0 && !bytes.Equal(t.ArgsSchema, p.input):
		change("inputSchema", t.ArgsSchema)
	}
	if len(t.OutSchema) > 0 && !bytes.Equal(t.OutSchema, p.output) {
		change("outputSchema", t.OutSchema)
	}
	annotations, err := corrected(p.annotations, t.Safety)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(annotations, p.annotations) {
		change("annotations", annotations)
	}
	if len(changes) == 1 && p.nameEnd > 0 {
		return slices.Concat(t.Definition[:p.nameAt], name, t.Definition[p.nameEnd:]), nil
	}
	return rawjson.SetAll(t.Definition, changes...)
}

// published are members of a tool object that the catalog may say differently.
type published struct {
	title, description, input, output, annotations json.RawMessage
	// nameAt and nameEnd are where the name stands; nameEnd is 0 for an object
	// that has none or is malformed.
	nameAt, nameEnd int
}

func readPublished(definition json.RawMessage) (p published) {
	it := rawjson.Object(definition)
	for it.Next() {
		switch {
		case it.KeyIs("name"):
			p.nameAt, p.nameEnd = it.Offset(), it.Offset()+len(it.Value())
		case it.KeyIs("title"):
			p.title = it.Value()
		case it.KeyIs("description"):
			p.description = it.Value()
		case it.KeyIs("inputSchema"):
			p.input = it.Value()
		case it.KeyIs("outputSchema"):
			p.output = it.Value()
		case it.KeyIs("annotations"):
			p.annotations = it.Value()
		}
	}
	if it.Err() != nil || rawjson.SkipSpace(definition, it.End()) != len(definition) {
		p.nameEnd = 0
	}
	return p
}

// anyObject is the input schema of a tool that has none.
var anyObject = []byte(`{"type":"object"}`)

// plainText returns a string, or "" for what is none.
func plainText(v json.RawMessage) string {
	text, _ := rawjson.Unquote(v)
	return text
}

// saysText reports whether a string, or what is none, says a text. Most do
// without an escape.
func saysText(v json.RawMessage, text string) bool {
	if len(v) == len(text)+2 && v[0] == '"' && string(v[1:len(v)-1]) == text && strings.IndexByte(text, '\\') < 0 {
		return true
	}
	return plainText(v) == text
}

func titleIn(annotations json.RawMessage) string {
	title, _ := rawjson.Get(annotations, "title")
	return plainText(title)
}

// corrected returns annotations with those hints changed that contradict what
// is known of the tool, such as an operator's settings. It adds none, and a hint
// that is null says nothing.
func corrected(annotations json.RawMessage, s tools.Safety) (json.RawMessage, error) {
	for _, h := range hintsOf(s) {
		have, ok := rawjson.Get(annotations, h.name)
		if !ok || h.flag == tools.Unset || rawjson.KindOf(have) == rawjson.KindNull || string(have) == string(h.value()) {
			continue
		}
		var err error
		if annotations, err = rawjson.Set(annotations, h.name, h.value()); err != nil {
			return nil, err
		}
	}
	return annotations, nil
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
