package mcpserver

import (
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// defineResource encodes a resource as its source published it, or makes one
// of a tool of ours that is a resource.
func defineResource(t tools.Tool) []byte {
	if len(t.Definition) > 0 {
		return redefineNative(t, nil)
	}
	return describeNative(t, append(rawjson.AppendQuoted([]byte(`{"uri":`), t.SourceName), `,"name":`...), t.Name)
}

// defineTemplate encodes a resource template. One without a definition is no
// entry of the list: it reads what is listed nowhere.
func defineTemplate(t tools.Tool) []byte {
	if len(t.Definition) == 0 {
		return nil
	}
	return redefineNative(t, nil)
}

// definePrompt encodes a prompt under the name that it is shown by.
func definePrompt(t tools.Tool) []byte {
	name := promptName(&t)
	if len(t.Definition) > 0 {
		return redefineNative(t, rawjson.Quote(name))
	}
	out := describeNative(t, []byte(`{"name":`), name)
	return append(append(append(out[:len(out)-1], `,"arguments":`...), argumentsOf(t.ArgsSchema)...), '}')
}

// redefineNative changes what the operator says differently, and the name. The
// tool of something that has no description is given one, which is not the
// source's word.
func redefineNative(t tools.Tool, name []byte) []byte {
	p := readPublished(t.Definition)
	var changes []rawjson.Member
	if name != nil {
		changes = append(changes, rawjson.Member{Key: "name", Value: name})
	}
	if have := plainText(p.description); have != "" && t.Description != have {
		changes = append(changes, rawjson.Member{Key: "description", Value: rawjson.Quote(t.Description)})
	}
	if p.title != nil && t.Title != plainText(p.title) {
		changes = append(changes, rawjson.Member{Key: "title", Value: rawjson.Quote(t.Title)})
	}
	out, err := rawjson.SetAll(t.Definition, changes...)
	if err != nil {
		return nil
	}
	return out
}

// describeNative completes an object whose head ends where its name stands.
func describeNative(t tools.Tool, head []byte, name string) []byte {
	out := rawjson.AppendQuoted(head, name)
	if t.Title != "" {
		out = rawjson.AppendQuoted(append(out, `,"title":`...), t.Title)
	}
	if text := describe(t); text != "" {
		out = rawjson.AppendQuoted(append(out, `,"description":`...), text)
	}
	return append(out, '}')
}

// argumentsOf are the arguments of a prompt whose tool has a schema.
func argumentsOf(schema []byte) []byte {
	required := map[string]bool{}
	if list, ok := rawjson.Get(schema, "required"); ok {
		for it := rawjson.Array(list); it.Next(); {
			name, _ := rawjson.Unquote(it.Value())
			required[name] = true
		}
	}
	out := []byte("[")
	properties, _ := rawjson.Get(schema, "properties")
	it := rawjson.Object(properties)
	for properties != nil && it.Next() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuoted(append(out, `{"name":`...), it.Key())
		if text, ok := rawjson.Get(it.Value(), "description"); ok && rawjson.KindOf(text) == rawjson.KindString {
			out = append(append(out, `,"description":`...), text...)
		}
		if required[it.Key()] {
			out = append(out, `,"required":true`...)
		}
		out = append(out, '}')
	}
	return append(out, ']')
}
