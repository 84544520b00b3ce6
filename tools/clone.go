package tools

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"unsafe"
)

// cloneTool returns a copy that shares no memory which can be changed.
func cloneTool(t *Tool) (out Tool) {
	bytes, strs := footprint(t)
	var c copier
	c.reserve(bytes, strs)
	c.tool(&out, t)
	return out
}

// keptTool is cloneTool for a copy that stays with the catalog: a schema that is
// a part of the definition stays one.
func keptTool(t *Tool) Tool {
	rest := *t
	args, argsInside := offsetIn(t.Definition, t.ArgsSchema)
	if argsInside {
		rest.ArgsSchema = nil
	}
	result, resultInside := offsetIn(t.Definition, t.OutSchema)
	if resultInside {
		rest.OutSchema = nil
	}
	out := cloneTool(&rest)
	if argsInside {
		out.ArgsSchema = part(out.Definition, args, len(t.ArgsSchema))
	}
	if resultInside {
		out.OutSchema = part(out.Definition, result, len(t.OutSchema))
	}
	return out
}

// part is a part of a text, without room behind its end.
func part(text json.RawMessage, at, size int) json.RawMessage { return text[at : at+size : at+size] }

// offsetIn reports where part lies in the memory of whole, if it does.
func offsetIn(whole, part json.RawMessage) (at int, inside bool) {
	if len(part) == 0 || len(part) > len(whole) {
		return 0, false
	}
	from, to := uintptr(unsafe.Pointer(&whole[0])), uintptr(unsafe.Pointer(&part[0]))
	if to < from || to-from > uintptr(len(whole)-len(part)) {
		return 0, false
	}
	return int(to - from), true
}

// cloneExcept is cloneTool, save that the texts which t shares with own stay
// shared.
func cloneExcept(t, own *Tool) Tool {
	rest := *t
	shared := [...]struct{ text, own *json.RawMessage }{
		{&rest.ArgsSchema, &own.ArgsSchema}, {&rest.OutSchema, &own.OutSchema}, {&rest.Definition, &own.Definition},
	}
	var kept [len(shared)]bool
	for i, s := range shared {
		if kept[i] = sameMemory(*s.text, *s.own); kept[i] {
			*s.text = nil
		}
	}
	out := cloneTool(&rest)
	for i, text := range []*json.RawMessage{&out.ArgsSchema, &out.OutSchema, &out.Definition} {
		if kept[i] {
			*text = *shared[i].own
		}
	}
	return out
}

func sameMemory(a, b json.RawMessage) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

// shareText lets text be the same memory as own if it says the same.
func shareText(text *json.RawMessage, own json.RawMessage) {
	if len(*text) == len(own) && bytes.Equal(*text, own) && own != nil {
		*text = own
	}
}

// footprint returns how many bytes and strings the slices of a tool hold.
func footprint(t *Tool) (bytes, strs int) {
	return len(t.ArgsSchema) + len(t.OutSchema) + len(t.Definition),
		len(t.Tags) + len(t.AuthScopes) + len(t.HandlesMIME) + len(t.Tenants)
}

// copyTools copies the tools of many bindings into shared blocks of memory, so
// that a page costs a few allocations and not a few for each tool.
func copyTools(list []*binding) []Tool {
	if len(list) == 0 {
		return []Tool{}
	}
	var bytes, strs int
	for _, b := range list {
		bytes += b.bytes
		strs += b.strs
	}
	var c copier
	c.reserve(bytes, strs)
	out := make([]Tool, len(list))
	for i, b := range list {
		c.tool(&out[i], &b.tool)
	}
	return out
}

// copier hands out copies from blocks that are large enough for all of them.
// No copy has room behind its end, so that appending to it never reaches
// another.
type copier struct {
	bytes []byte
	strs  []string
}

func (c *copier) reserve(bytes, strs int) {
	if bytes > 0 {
		c.bytes = make([]byte, 0, bytes)
	}
	if strs > 0 {
		c.strs = make([]string, 0, strs)
	}
}

func (c *copier) tool(out, t *Tool) {
	*out = *t
	out.ArgsSchema = c.raw(t.ArgsSchema)
	out.OutSchema = c.raw(t.OutSchema)
	out.Definition = c.raw(t.Definition)
	out.Tags = c.list(t.Tags)
	out.AuthScopes = c.list(t.AuthScopes)
	out.HandlesMIME = c.list(t.HandlesMIME)
	out.Tenants = c.list(t.Tenants)
	copyRest(out, t)
}

// copyRest copies what few tools have.
func copyRest(out, t *Tool) {
	if t.Policy.RetryOn != nil {
		out.Policy.RetryOn = append(make([]ErrorClass, 0, len(t.Policy.RetryOn)), t.Policy.RetryOn...)
	}
	out.Injected = slices.Clone(t.Injected)
	if t.Examples != nil {
		out.Examples = cloneExamples(t.Examples)
	}
}

func (c *copier) raw(b json.RawMessage) json.RawMessage {
	if b == nil {
		return nil
	}
	start := len(c.bytes)
	c.bytes = append(c.bytes, b...)
	return c.bytes[start:len(c.bytes):len(c.bytes)]
}

func (c *copier) list(s []string) []string {
	if s == nil {
		return nil
	}
	start := len(c.strs)
	c.strs = append(c.strs, s...)
	return c.strs[start:len(c.strs):len(c.strs)]
}

func cloneExamples(list []ToolExample) []ToolExample {
	out := make([]ToolExample, len(list))
	for i, ex := range list {
		out[i] = ToolExample{Description: ex.Description, Tags: slices.Clone(ex.Tags)}
		if ex.Args != nil {
			out[i].Args = cloneValue(ex.Args).(map[string]any)
		}
	}
	return out
}

// cloneValue copies the containers that JSON values are made of.
func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for k, e := range out {
			out[k] = cloneValue(e)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i, e := range out {
			out[i] = cloneValue(e)
		}
		return out
	case []string:
		return slices.Clone(v)
	case json.RawMessage:
		return slices.Clone(v)
	}
	return v
}
