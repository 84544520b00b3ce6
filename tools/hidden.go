package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// hideInjected removes hidden arguments from the schema that callers see. A
// schema that speaks of one where it cannot be removed without changing what the
// rest means is refused.
func hideInjected(t *Tool) error {
	for _, inj := range t.Injected {
		if len(t.ArgsSchema) == 0 {
			return nil
		}
		next, err := withoutArgument(t.ArgsSchema, inj.Arg)
		if err == nil && speaksOf(next, next, inj.Arg, maxInPlace) {
			err = errors.New("it speaks of the argument elsewhere than in properties, required and allOf")
		}
		if err != nil {
			return fmt.Errorf("arguments schema: the argument %q cannot be hidden: %w", inj.Arg, err)
		}
		t.ArgsSchema = next
	}
	return nil
}

// withoutArgument returns a schema of arguments without one of them.
func withoutArgument(raw json.RawMessage, name string) (json.RawMessage, error) {
	raw, err := withoutProperty(raw, name)
	if err != nil {
		return nil, err
	}
	if raw, err = withoutDefinition(raw, name); err != nil {
		return nil, err
	}
	for _, member := range []string{"examples", "default"} {
		if shown, ok := rawjson.Get(raw, member); ok && hasKey(shown, name) {
			if raw, err = rawjson.Delete(raw, member); err != nil {
				return nil, err
			}
		}
	}
	return raw, nil
}

// withoutDefinition returns a schema without a definition of that name which
// nothing refers to any more.
func withoutDefinition(raw json.RawMessage, name string) (json.RawMessage, error) {
	for _, member := range []string{"$defs", "definitions"} {
		defs, ok := rawjson.Get(raw, member)
		if !ok || !hasKey(defs, name) || bytes.Contains(raw, []byte("#/"+member+"/"+name)) {
			continue
		}
		rest, err := rawjson.Delete(defs, name)
		if err == nil {
			raw, err = rawjson.Set(raw, member, rest)
		}
		if err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// hasKey reports whether an object, or an object in an array, has a key.
func hasKey(v []byte, key string) bool {
	if rawjson.KindOf(v) == rawjson.KindObject {
		_, ok := rawjson.Get(v, key)
		return ok
	}
	for it := rawjson.Array(v); it.Next(); {
		if _, ok := rawjson.Get(it.Value(), key); ok {
			return true
		}
	}
	return false
}

// withoutProperty returns an object schema without one property, also in the
// schemas that it is composed of with allOf.
func withoutProperty(raw json.RawMessage, name string) (json.RawMessage, error) {
	var err error
	if props, ok := rawjson.Get(raw, "properties"); ok {
		if props, err = rawjson.Delete(props, name); err != nil {
			return nil, err
		}
		if raw, err = rawjson.Set(raw, "properties", props); err != nil {
			return nil, err
		}
	}
	if req, ok := rawjson.Get(raw, "required"); ok {
		if req, err = withoutName(req, name); err != nil {
			return nil, fmt.Errorf("required: %w", err)
		}
		if raw, err = rawjson.Set(raw, "required", req); err != nil {
			return nil, err
		}
	}
	all, ok := rawjson.Get(raw, "allOf")
	if !ok || !speaksOf(raw, raw, name, maxInPlace) {
		return raw, nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(all, &parts); err != nil {
		return nil, fmt.Errorf("allOf: %w", err)
	}
	for i, part := range parts {
		if rawjson.KindOf(part) != rawjson.KindObject {
			continue
		}
		if parts[i], err = withoutProperty(part, name); err != nil {
			return nil, err
		}
	}
	if all, err = json.Marshal(parts); err != nil {
		return nil, err
	}
	return rawjson.Set(raw, "allOf", rawjson.UnescapeHTML(all))
}

func withoutName(list json.RawMessage, name string) (json.RawMessage, error) {
	var names []string
	if err := json.Unmarshal(list, &names); err != nil {
		return nil, err
	}
	return json.Marshal(slices.DeleteFunc(names, func(n string) bool { return n == name }))
}

// maxInPlace bounds how deep schemas that apply to the arguments themselves are
// followed, and ends circles of references.
const maxInPlace = 16

// speaksOf reports whether a schema names a property of the value that it is
// applied to. root is the document that references point into. One that is nested
// too deep, or refers to what cannot be followed, is taken to do so.
func speaksOf(v, root []byte, name string, depth int) bool {
	if depth == 0 {
		return true
	}
	for it := rawjson.Object(v); it.Next(); {
		if names(it.Key(), it.Value(), root, name, depth) {
			return true
		}
	}
	return false
}

// names is speaksOf for one keyword.
func names(keyword string, v, root []byte, name string, depth int) bool {
	switch keyword {
	case "properties", "dependentRequired", "dependentSchemas", "dependencies":
		return hasKey(v, name) || keyword != "properties" && namedBelow(v, root, name, depth)
	case "required":
		return lists(v, name)
	case "allOf", "anyOf", "oneOf":
		for it := rawjson.Array(v); it.Next(); {
			if speaksOf(it.Value(), root, name, depth-1) {
				return true
			}
		}
	case "if", "then", "else", "not":
		return speaksOf(v, root, name, depth-1)
	case "enum", "const":
		return hasKey(v, name)
	case "patternProperties":
		for it := rawjson.Object(v); it.Next(); {
			if hasWord(it.Key(), name) {
				return true
			}
		}
	case "propertyNames":
		return mentions(v, name)
	case "$ref", "$dynamicRef", "$recursiveRef":
		target, ok := follow(v, root)
		return !ok || speaksOf(target, root, name, depth-1)
	}
	return false
}

// hasWord reports whether a name stands in a text, and not as a part of another.
func hasWord(text, name string) bool {
	for at := 0; name != ""; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(name)
		if (start == 0 || !wordByte(text[start-1])) && (end == len(text) || !wordByte(text[end])) {
			return true
		}
		at = start + 1
	}
	return false
}

func wordByte(c byte) bool { return nameByte(c) && c != '.' }

// mentions reports whether a text of a schema has a name in it.
func mentions(v []byte, name string) bool {
	switch rawjson.KindOf(v) {
	case rawjson.KindString:
		s, _ := rawjson.Unquote(v)
		return hasWord(s, name)
	case rawjson.KindObject:
		for it := rawjson.Object(v); it.Next(); {
			if mentions(it.Value(), name) {
				return true
			}
		}
	case rawjson.KindArray:
		for it := rawjson.Array(v); it.Next(); {
			if mentions(it.Value(), name) {
				return true
			}
		}
	}
	return false
}

// namedBelow looks into what a keyword demands once a property is there.
func namedBelow(v, root []byte, name string, depth int) bool {
	for it := rawjson.Object(v); it.Next(); {
		if lists(it.Value(), name) || speaksOf(it.Value(), root, name, depth-1) {
			return true
		}
	}
	return false
}

func lists(v []byte, name string) bool {
	for it := rawjson.Array(v); it.Next(); {
		if s, ok := rawjson.Unquote(it.Value()); ok && s == name {
			return true
		}
	}
	return false
}

// follow returns what a reference into the same document points at.
func follow(ref, root []byte) ([]byte, bool) {
	s, _ := rawjson.Unquote(ref)
	pointer, ok := strings.CutPrefix(s, "#")
	if !ok {
		return nil, false
	}
	if pointer == "" {
		return root, true
	}
	var path []string
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		path = append(path, strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~"))
	}
	return rawjson.Get(root, path...)
}

// strip removes arguments that the caller must not send, or refuses the call
// for them.
func (p *passage) strip(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	args = orEmptyObject(args)
	var forged []string
	for _, inj := range p.b.tool.Injected {
		rest, err := rawjson.Delete(args, inj.Arg)
		if err != nil {
			return args, nil // malformed: validation says how
		}
		if len(rest) != len(args) {
			forged = append(forged, inj.Arg)
			args = rest
		}
	}
	if len(forged) > 0 && !p.em.silent() {
		p.em.emit(ctx, EventTypeToolForgedArgs, ToolForgedArgsPayload{Identity: p.em.who, ToolName: p.b.tool.Name,
			Transport: p.b.tool.Transport, Args: forged}, time.Now())
	}
	if len(forged) > 0 && p.call.strict {
		return nil, &Error{Code: ErrToolInvalidArgs, Class: ErrClassPermanent, Delivery: NotDelivered,
			Err: fmt.Errorf("unexpected property %q", forged[0])}
	}
	return args, nil
}

// inject fills in the hidden arguments for one attempt.
func (p *passage) inject(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	for _, inj := range p.b.tool.Injected {
		v, err := p.hiddenValue(ctx, inj)
		if err == nil {
			var enc []byte
			if enc, err = json.Marshal(v); err == nil {
				args, err = rawjson.Set(args, inj.Arg, enc)
			}
		}
		if err != nil {
			return ToolResult{}, &Error{Class: ErrClassPermanent, Delivery: NotDelivered,
				Message: fmt.Sprintf("the hidden argument %q could not be filled in", inj.Arg), Err: err}
		}
	}
	return p.b.driver(ctx, args)
}

func (p *passage) hiddenValue(ctx context.Context, inj Injected) (any, error) {
	if inj.Value != nil {
		return inj.Value(ctx)
	}
	who, _ := identity.QuadrupleFrom(ctx)
	switch inj.From {
	case InjectTenant:
		return who.TenantID, nil
	case InjectUser:
		return who.UserID, nil
	case InjectSession:
		return who.SessionID, nil
	case InjectRun:
		return who.RunID, nil
	case InjectCall:
		return p.call.ID, nil
	case InjectIdempotencyKey:
		return p.call.IdempotencyKey, nil
	}
	if p.stages.Secrets == nil {
		return nil, errors.New("no source of secrets is configured")
	}
	return p.stages.Secrets.Secret(ctx, inj.From[len(injectSecretPrefix):])
}
