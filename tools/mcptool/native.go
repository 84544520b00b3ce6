package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	methodRead   = "resources/read"
	methodPrompt = "prompts/get"
	// readResource is the name of the tool that reads resources which the
	// server lists nowhere, behind the server's name.
	readResource = "read_resource"
)

// localName is what a listed thing is called behind the server's prefix. Of
// resources that share a name, each gets a mark of its URI.
func localName(d *definition, shared bool) string {
	name := d.name
	if shared {
		sum := sha256.Sum256([]byte(d.uri))
		name += "_" + hex.EncodeToString(sum[:4])
	}
	switch d.kind {
	case tools.KindResource:
		return "resource_" + name
	case tools.KindResourceTemplate:
		return "resource_template_" + name
	case tools.KindPrompt:
		return "prompt_" + name
	}
	return name
}

// describeNative returns the descriptor of a resource, a resource template or
// a prompt.
func (s *Server) describeNative(d definition, local string, listed *shelf) tools.ToolDescriptor {
	t := s.nativeTool(d.kind, tools.CanonicalName(s.cfg.prefix(), local), d.source())
	t.Title, t.Description, t.Definition = d.title, d.description, d.raw
	r := &remoteTool{name: t.Name, kind: d.kind, method: methodRead}
	var validate func(json.RawMessage) error
	switch d.kind {
	case tools.KindResource:
		t.ArgsSchema = schemaNothing
		t.Description = orText(t.Description, "Reads the resource "+d.uri)
		r.head = rawjson.AppendQuoted([]byte(`{"uri":`), d.uri)
	case tools.KindResourceTemplate:
		t.ArgsSchema = uriSchema("A URI of the form " + d.uri)
		t.Description = orText(t.Description, "Reads a resource whose URI has the form "+d.uri)
		r.head = []byte(`{"uri":`)
		r.listed, validate = listed, listed.accepts(d.uri)
	case tools.KindPrompt:
		r.method = methodPrompt
		t.ArgsSchema = promptSchema(d.arguments)
		t.Description = orText(t.Description, "Gives the prompt "+d.name)
		r.head = append(rawjson.AppendQuoted([]byte(`{"name":`), d.name), `,"arguments":`...)
	}
	return s.native(t, r, validate)
}

// describeReader returns the tool that reads what the server lists nowhere: a
// resource that another result points to, for instance. What is listed has a
// tool of its own, whose scopes this one must not go round.
func (s *Server) describeReader(listed *shelf) tools.ToolDescriptor {
	t := s.nativeTool(tools.KindResourceTemplate, tools.CanonicalName(s.cfg.Name+"_", readResource), "{+uri}")
	t.Description = fmt.Sprintf("Reads a resource of the server %s by a URI that it does not list", s.cfg.Name)
	t.ArgsSchema = uriSchema("The URI of the resource")
	r := &remoteTool{name: t.Name, kind: t.Kind, method: methodRead, head: []byte(`{"uri":`)}
	return s.native(t, r, listed.refuses)
}

func (s *Server) nativeTool(kind tools.Kind, name, source string) tools.Tool {
	return tools.Tool{
		Name: name, Kind: kind, SourceName: source, Namespace: s.cfg.Name,
		Source: s.SourceID(), Transport: tools.TransportMCP, Policy: s.cfg.Policy,
		Loading: tools.LoadingDeferred, SideEffects: tools.SideEffectRead,
	}
}

func (s *Server) native(t tools.Tool, r *remoteTool, validate func(json.RawMessage) error) tools.ToolDescriptor {
	d := s.options.Descriptor(t, r.invoker(s))
	d.Validate, d.Companion = validate, s
	return d
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func uriSchema(description string) json.RawMessage {
	out := rawjson.AppendQuoted([]byte(`{"type":"object","properties":{"uri":{"type":"string","description":`), description)
	return append(out, `}},"required":["uri"]}`...)
}

// promptSchema is the schema of a prompt's arguments, which are texts.
func promptSchema(arguments json.RawMessage) json.RawMessage {
	properties, required := []byte("{"), []byte("[")
	for it := rawjson.Array(arguments); it.Next(); {
		raw, _ := rawjson.Get(it.Value(), "name")
		name, ok := rawjson.Unquote(raw)
		if !ok {
			continue
		}
		properties = append(rawjson.AppendQuoted(comma(properties), name), `:{"type":"string"`...)
		for _, key := range []string{"title", "description"} {
			if v, ok := rawjson.Get(it.Value(), key); ok && rawjson.KindOf(v) == rawjson.KindString {
				properties = append(append(rawjson.AppendQuoted(append(properties, ','), key), ':'), v...)
			}
		}
		properties = append(properties, '}')
		if must, _ := rawjson.Get(it.Value(), "required"); string(must) == "true" {
			required = rawjson.AppendQuoted(comma(required), name)
		}
	}
	out := append(append([]byte(`{"type":"object","properties":`), properties...), `},"required":`...)
	return append(append(out, required...), "]}"...)
}

// comma appends one unless the list has just been opened.
func comma(list []byte) []byte {
	if len(list) == 1 {
		return list
	}
	return append(list, ',')
}

// resultOfRead returns the views of a resources/read result: each content is an
// embedded resource.
func resultOfRead(raw json.RawMessage) (tools.ToolResult, error) {
	return nativeResult(raw, tools.KindResource, func(r *tools.ToolResult, it *rawjson.Iter) {
		if !it.KeyIs("contents") {
			return
		}
		for each := rawjson.Array(it.Value()); each.Next(); {
			block := append(append([]byte(`{"type":"resource","resource":`), each.Value()...), '}')
			r.Content = append(r.Content, tools.Content{Type: "resource", JSON: block})
		}
		if len(r.Content) == 1 {
			raw, _ := rawjson.Get(r.Content[0].JSON, "resource", "text")
			if text, ok := rawjson.Unquote(raw); ok {
				r.Value = text
			}
		}
	})
}

// The members of ToolResult.Provider that keep what the blocks of a prompt
// cannot say.
const (
	providerRoles       = "prompt_roles"
	providerDescription = "prompt_description"
)

// resultOfPrompt returns the views of a prompts/get result: the content of each
// message is a block.
func resultOfPrompt(raw json.RawMessage) (tools.ToolResult, error) {
	return nativeResult(raw, tools.KindPrompt, func(r *tools.ToolResult, it *rawjson.Iter) {
		if it.KeyIs("description") {
			r.Provider[providerDescription], _ = rawjson.Unquote(it.Value())
			return
		}
		if !it.KeyIs("messages") {
			return
		}
		var roles []string
		for each := rawjson.Array(it.Value()); each.Next(); {
			raw, _ := rawjson.Get(each.Value(), "role")
			role, _ := rawjson.Unquote(raw)
			content, _ := rawjson.Get(each.Value(), "content")
			roles = append(roles, role)
			r.Content = append(r.Content, tools.Content{Type: blockType(content), JSON: content})
		}
		r.Provider[providerRoles] = roles
		r.Value = valueOf(r)
	})
}

// nativeResult reads the members that all results have, and gives each to
// member.
func nativeResult(raw json.RawMessage, kind tools.Kind, member func(*tools.ToolResult, *rawjson.Iter)) (tools.ToolResult, error) {
	r := tools.ToolResult{Wire: raw, WireKind: kind, Provider: map[string]any{}}
	if rawjson.KindOf(raw) != rawjson.KindObject {
		return r, errNoResult
	}
	it := rawjson.Object(raw)
	for it.Next() {
		switch {
		case it.KeyIs("_meta"):
			r.Meta = metaOf(it.Value())
		case it.KeyIs("resultType") && isInputRequired(it.Value()):
			return r, errInputRequired
		default:
			member(&r, &it)
		}
	}
	if it.Err() != nil {
		return r, errNoResult
	}
	return r, nil
}

func isInputRequired(raw json.RawMessage) bool {
	kind, _ := rawjson.Unquote(raw)
	return kind == "input_required"
}
