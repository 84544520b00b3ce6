package adapter

import (
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// geminiAssembler puts the chunks of streamGenerateContent together. Vertex AI
// can stream the arguments of a call in parts, each with a path.
type geminiAssembler struct {
	parts  []json.RawMessage
	open   *geminiCall
	finish string
	last   []byte
}

// geminiCall is a call whose arguments are streamed.
type geminiCall struct {
	raw   []byte // the part that began the call
	args  *partialValue
	index int  // among parts
	torn  bool // some part of the arguments has no place among the others
}

func (a *geminiAssembler) add(event []byte) ([]rawCall, error) {
	if err := failure(event); err != nil {
		return nil, err
	}
	a.last = event
	var whole []rawCall
	for _, candidate := range elements(get(event, "candidates")) {
		if n, ok := number(candidate, "index"); ok && n != 0 {
			continue
		}
		for _, p := range elements(get(candidate, "content", "parts")) {
			whole = append(whole, a.part(p)...)
		}
		if reason := text(candidate, "finishReason"); reason != "" {
			a.finish = reason
		}
	}
	return whole, nil
}

// part takes one part and returns the call that is whole with it.
func (a *geminiAssembler) part(p []byte) []rawCall {
	call := get(p, "functionCall")
	if call == nil {
		a.addText(p)
		return nil
	}
	goesOn := isTrue(get(call, "willContinue"))
	partial := get(call, "partialArgs") != nil
	switch {
	case a.open == nil && (goesOn || partial):
		a.open = &geminiCall{raw: p, args: &partialValue{}, index: len(a.parts)}
		a.parts = append(a.parts, p)
	case a.open == nil:
		a.parts = append(a.parts, p)
		calls, _ := (&gemini{}).calls(encode(map[string]any{"parts": []json.RawMessage{p}}))
		return calls
	}
	for _, arg := range elements(get(call, "partialArgs")) {
		if !a.open.args.put(text(arg, "jsonPath"), arg) {
			a.open.torn = true
		}
	}
	if goesOn {
		return nil
	}
	return a.closeCall()
}

// closeCall ends the open call.
func (a *geminiAssembler) closeCall() []rawCall {
	c := a.open
	a.open = nil
	args := c.args.json()
	call := get(c.raw, "functionCall")
	raw := rawCall{id: text(call, "id"), name: text(call, "name"), args: args, cut: c.torn}
	for _, member := range []string{"partialArgs", "willContinue"} {
		call, _ = rawjson.Delete(call, member)
	}
	call, _ = rawjson.Set(call, "args", args)
	a.parts[c.index], _ = rawjson.Set(c.raw, "functionCall", call)
	return []rawCall{raw}
}

// addText appends a part, joined with the one before when both are plain text of
// the same kind.
func (a *geminiAssembler) addText(p []byte) {
	n := len(a.parts)
	if n == 0 || !plainText(p) || !plainText(a.parts[n-1]) || isTrue(get(p, "thought")) != isTrue(get(a.parts[n-1], "thought")) {
		a.parts = append(a.parts, p)
		return
	}
	a.parts[n-1], _ = rawjson.Set(a.parts[n-1], "text", rawjson.Quote(text(a.parts[n-1], "text")+text(p, "text")))
}

// plainText reports whether a part is text and carries no signature.
func plainText(p []byte) bool {
	return rawjson.KindOf(get(p, "text")) == rawjson.KindString && get(p, "thoughtSignature") == nil
}

func isTrue(v []byte) bool { return string(v) == "true" }

func (a *geminiAssembler) rest() []rawCall {
	if a.open == nil {
		return nil
	}
	call := get(a.open.raw, "functionCall")
	args := a.open.args.json()
	a.open = nil
	return []rawCall{{id: text(call, "id"), name: text(call, "name"), args: args}}
}

func (a *geminiAssembler) response() json.RawMessage {
	parts := a.parts
	if parts == nil {
		parts = []json.RawMessage{}
	}
	candidate := map[string]any{"content": map[string]any{"role": "model", "parts": parts}}
	if a.finish != "" {
		candidate["finishReason"] = a.finish
	}
	body := map[string]any{"candidates": []any{candidate}}
	if usage := get(a.last, "usageMetadata"); usage != nil {
		body["usageMetadata"] = json.RawMessage(usage)
	}
	return encode(body)
}

// partialValue is a value that is built from parts, each at a path.
type partialValue struct {
	members  map[string]*partialValue
	order    []string
	elements []*partialValue
	leaf     []byte
	growing  bool
}

// maxGap bounds how many elements of a list may be missing before the next.
const maxGap = 64

// put sets the value of a partial argument at its path, and reports whether it has
// a place there. A text that goes on is continued by the next for the same path.
func (v *partialValue) put(path string, arg []byte) bool {
	steps, ok := parsePath(path)
	for i := 0; ok && i < len(steps); i++ {
		v, ok = v.step(steps[i])
	}
	if !ok || v.elements != nil || v.members != nil || v.leaf != nil && !v.growing {
		return false
	}
	switch {
	case get(arg, "stringValue") != nil:
		said := text(arg, "stringValue")
		if v.growing {
			said = text(v.leaf) + said
		}
		v.leaf = rawjson.Quote(said)
	case get(arg, "numberValue") != nil:
		v.leaf = get(arg, "numberValue")
	case get(arg, "boolValue") != nil:
		v.leaf = get(arg, "boolValue")
	case get(arg, "nullValue") != nil:
		v.leaf = []byte("null")
	}
	v.growing = isTrue(get(arg, "willContinue"))
	return true
}

// step returns the value that a step of a path leads to, which is made when it is
// new, and whether there can be one.
func (v *partialValue) step(s pathStep) (*partialValue, bool) {
	if v.leaf != nil || s.isIndex && v.members != nil || !s.isIndex && v.elements != nil {
		return v, false
	}
	if s.isIndex {
		if s.index > len(v.elements)+maxGap {
			return v, false
		}
		for len(v.elements) <= s.index {
			v.elements = append(v.elements, &partialValue{})
		}
		return v.elements[s.index], true
	}
	if v.members == nil {
		v.members = map[string]*partialValue{}
	}
	if v.members[s.key] == nil {
		v.members[s.key] = &partialValue{}
		v.order = append(v.order, s.key)
	}
	return v.members[s.key], true
}

func (v *partialValue) json() []byte {
	switch {
	case v.elements != nil:
		out := []byte{'['}
		for i, e := range v.elements {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, e.json()...)
		}
		return append(out, ']')
	case v.leaf != nil:
		return v.leaf
	}
	out := []byte{'{'}
	for i, key := range v.order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendQuoted(out, key), ':'), v.members[key].json()...)
	}
	return append(out, '}')
}
