package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// A remoteTool is what a call needs to know of something that a server offers.
type remoteTool struct {
	// name is the canonical one, for errors.
	name string
	kind tools.Kind
	// method is that of a call.
	method string
	// head is the beginning of the params of a call, up to where the arguments
	// follow: {"name":"…","arguments":
	head []byte
	// logHead is the same with a _meta that asks for log messages of the level
	// that is configured; nil for what is called more rarely than a tool.
	logHead []byte
	// headers is the input schema of a tool some of whose arguments are
	// repeated in HTTP headers, else nil.
	headers json.RawMessage
	// listed is what the server lists, for the tool of a template.
	listed *shelf
}

// A definition is an object as a server listed it, and what of it is used.
type definition struct {
	raw                json.RawMessage
	kind               tools.Kind
	name               string
	uri                string // or the template of one
	named              bool
	arguments          json.RawMessage // of a prompt
	title, description string
	input, output      json.RawMessage
	annotations        json.RawMessage
}

// readDefinition finds the members of a listed object. What it does not know
// stays in raw; of a member that stands twice the last counts.
func readDefinition(kind tools.Kind, raw json.RawMessage) (definition, error) {
	d := definition{raw: raw, kind: kind}
	if rawjson.KindOf(raw) != rawjson.KindObject {
		return d, fmt.Errorf("the entry is a JSON %s, and not an object", rawjson.KindOf(raw))
	}
	it := rawjson.Object(raw)
	for it.Next() {
		d.member(&it)
	}
	switch {
	case it.Err() != nil:
		return d, it.Err()
	case d.isResource() && d.uri == "":
		return d, errors.New("the entry has no URI")
	case d.isResource() && d.name == "":
		d.name = d.uri
	case !d.named:
		return d, errors.New(`the entry has no "name"`)
	case d.name == "":
		return d, errors.New("its name is empty")
	}
	return d, nil
}

func (d *definition) isResource() bool {
	return d.kind == tools.KindResource || d.kind == tools.KindResourceTemplate
}

// source is what the server knows it by.
func (d *definition) source() string {
	if d.isResource() {
		return d.uri
	}
	return d.name
}

func (d *definition) member(it *rawjson.Iter) {
	switch {
	case it.KeyIs("name"):
		d.name, d.named = rawjson.Unquote(it.Value())
	case d.kind == tools.KindResource && it.KeyIs("uri"),
		d.kind == tools.KindResourceTemplate && it.KeyIs("uriTemplate"):
		d.uri, _ = rawjson.Unquote(it.Value())
	case d.kind == tools.KindPrompt && it.KeyIs("arguments"):
		d.arguments = it.Value()
	case it.KeyIs("title"):
		d.title, _ = rawjson.Unquote(it.Value())
	case it.KeyIs("description"):
		d.description, _ = rawjson.Unquote(it.Value())
	case it.KeyIs("inputSchema"):
		d.input = notNull(it.Value())
	case it.KeyIs("outputSchema"):
		d.output = notNull(it.Value())
	case it.KeyIs("annotations"):
		d.annotations = it.Value()
	}
}

func notNull(v json.RawMessage) json.RawMessage {
	if rawjson.KindOf(v) == rawjson.KindNull {
		return nil
	}
	return v
}

// describe returns the descriptor of a listed tool.
func (s *Server) describe(d definition) tools.ToolDescriptor {
	t := tools.Tool{
		Name:        tools.CanonicalName(s.cfg.prefix(), d.name),
		Title:       d.title,
		Description: d.description,
		ArgsSchema:  d.input,
		OutSchema:   d.output,
		Loading:     s.cfg.Loading,
		Source:      s.SourceID(),
		Transport:   tools.TransportMCP,
		Policy:      s.policy(d.name),
		Namespace:   s.cfg.Name,
		SourceName:  d.name,
		Safety:      safetyOf(d.annotations),
		Definition:  d.raw,
	}
	if t.Title == "" {
		title, _ := rawjson.Get(d.annotations, "title")
		t.Title, _ = rawjson.Unquote(title)
	}
	remote := newRemoteTool(t, s.cfg.LogLevel)
	desc := s.options.Descriptor(t, remote.invoker(s))
	desc.Companion = s
	return desc
}

func (s *Server) policy(sourceName string) tools.ToolPolicy {
	if p, ok := s.cfg.ToolPolicies[sourceName]; ok {
		return p
	}
	return s.cfg.Policy
}

func newRemoteTool(t tools.Tool, logLevel string) *remoteTool {
	r := &remoteTool{name: t.Name, method: methodCall}
	head := append(make([]byte, 0, len(t.SourceName)+32), `{"name":`...)
	r.head = append(rawjson.AppendQuoted(head, t.SourceName), `,"arguments":`...)
	r.logHead = r.headWithLogs(logLevel)
	if bindsHeaders(t.ArgsSchema) {
		r.headers = t.ArgsSchema
	}
	return r
}

// bindsHeaders reports whether arguments are repeated in HTTP headers.
func bindsHeaders(schema json.RawMessage) bool {
	return bytes.Contains(schema, []byte(`"x-mcp-header"`))
}

// headWithLogs is the head with a _meta that asks for log messages.
func (t *remoteTool) headWithLogs(level string) []byte {
	const rest = 32 // what stands between the parts
	out := append(make([]byte, 0, len(t.head)+len(mcpwire.MetaLogLevel)+len(level)+rest), `{"_meta":{`...)
	out = append(rawjson.AppendQuoted(out, mcpwire.MetaLogLevel), ':')
	out = append(rawjson.AppendQuoted(out, level), `},`...)
	return append(out, t.head[1:]...)
}

// safetyOf reads a server's hints about its tool. A hint that is absent, or
// that is no boolean, leaves its flag unset, and so does a tool that claims to
// be read-only and destructive at once.
func safetyOf(annotations json.RawMessage) tools.Safety {
	s := tools.Safety{
		ReadOnly:    hint(annotations, "readOnlyHint"),
		Destructive: hint(annotations, "destructiveHint"),
		Idempotent:  hint(annotations, "idempotentHint"),
		OpenWorld:   hint(annotations, "openWorldHint"),
	}
	if s.ReadOnly == tools.Yes && s.Destructive == tools.Yes {
		s.ReadOnly = tools.Unset
	}
	return s
}

func hint(annotations json.RawMessage, name string) tools.Flag {
	v, _ := rawjson.Get(annotations, name)
	switch string(v) {
	case "true":
		return tools.Yes
	case "false":
		return tools.No
	}
	return tools.Unset
}
