package subset

import (
	"slices"
	"strconv"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// schema appends a schema of the original as draft 2020-12 with renamed keys.
func (r *rewriter) schema(dst []byte, p place) []byte {
	switch {
	case rawjson.KindOf(p.raw) != rawjson.KindBool:
	case !r.p.ArrayItems || r.closes(p.at):
		return append(dst, p.raw...)
	case isTrue(p.raw):
		return append(dst, `{}`...)
	default:
		return append(dst, `{"not":{}}`...)
	}
	dst = append(dst, '{')
	start := len(dst)
	for it := rawjson.Object(p.raw); it.Next(); {
		dst = r.member(dst, start, p, it.Key(), it.Value())
	}
	if r.p.ArrayItems && lacksItems(p.raw) {
		dst = append(appendKey(dst, start, "items"), `{}`...)
	}
	return append(dst, '}')
}

// closes reports whether a boolean at a place says if an object or a list is open.
// Elsewhere OpenAI wants a schema to be an object.
func (r *rewriter) closes(at string) bool {
	l := r.doc.places[at]
	return !l.inside && slices.Contains([]string{"additionalProperties", "unevaluatedProperties", "unevaluatedItems"}, l.keyword)
}

// lacksItems reports whether an array of a schema does not say what its items
// are.
func lacksItems(raw []byte) bool {
	t, _ := member(raw, "type")
	if text(t) != "array" && !slices.Contains(words(t), "array") {
		return false
	}
	items, ok := member(raw, "items")
	if ok && rawjson.KindOf(items) == rawjson.KindArray {
		items, ok = member(raw, "additionalItems")
	}
	return !ok || !isSchema(items)
}

// appendKey appends a key, after a comma when the object that starts at start
// has members already.
func appendKey(dst []byte, start int, key string) []byte {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	return append(rawjson.AppendQuoted(dst, key), ':')
}

// member appends what a member of a schema becomes.
func (r *rewriter) member(dst []byte, start int, p place, keyword string, v []byte) []byte {
	name := modern(p.raw, keyword)
	if implied(keyword) != 0 && rawjson.KindOf(v) == rawjson.KindNumber && !floats(v) {
		r.losses.add(p.child(keyword), keyword, "the number is none that a provider reads")
		return dst
	}
	switch keyword {
	case "$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary":
		return dst
	case "id":
		if _, isName := r.doc.bases[p.at]; isName {
			return dst
		}
	case "$ref", "$dynamicRef", "$recursiveRef":
		return r.reference(dst, start, p, keyword, text(v))
	case "required":
		return r.keyList(appendKey(dst, start, name), v)
	case "dependentRequired":
		return r.keyLists(appendKey(dst, start, name), v)
	case "dependencies":
		return r.dependencies(dst, start, p, v)
	case "exclusiveMinimum", "exclusiveMaximum", "minimum", "maximum":
		return oldLimit(dst, start, p.raw, keyword, v)
	case "items":
		if isFalse(v) && r.p.ArrayItems {
			return closedTuple(dst, start, p.raw)
		}
	}
	if r.renaming != nil {
		v = r.renamed(p, keyword, v)
	}
	switch classOf(keyword, v) {
	case classSchema:
		return r.schema(appendKey(dst, start, name), place{p.child(keyword), v})
	case classList:
		return r.list(appendKey(dst, start, name), p, keyword, v)
	case classMap:
		return r.table(appendKey(dst, start, name), p, keyword, v)
	}
	compact, _ := rawjson.Compact(v)
	return append(appendKey(dst, start, name), compact...)
}

// renamed returns the value of a keyword as it is beside keys that differ.
func (r *rewriter) renamed(p place, keyword string, v []byte) []byte {
	switch keyword {
	case "const", "default":
		return r.renaming.written(p.at, v, false)
	case "enum", "examples":
		return r.renaming.written(p.at, v, true)
	case "propertyNames", "patternProperties":
		if r.renaming.renames(p.at) {
			r.losses.add(p.child(keyword), keyword, "it speaks of the keys as the tool has them, of which "+r.p.Provider+" is shown others")
		}
	}
	return v
}

func (r *rewriter) list(dst []byte, p place, keyword string, v []byte) []byte {
	dst = append(dst, '[')
	n := 0
	for it := rawjson.Array(v); it.Next(); n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = r.orRaw(dst, place{p.child(keyword, strconv.Itoa(n)), it.Value()})
	}
	return append(dst, ']')
}

func (r *rewriter) table(dst []byte, p place, keyword string, v []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for it := rawjson.Object(v); it.Next(); {
		key := it.Key()
		if keyword == "properties" || keyword == "dependentSchemas" {
			key = r.keys.wire(key)
		}
		dst = r.orRaw(appendKey(dst, start, key), place{p.child(keyword, it.Key()), it.Value()})
	}
	return append(dst, '}')
}

// orRaw appends a schema, or an odd value as it is.
func (r *rewriter) orRaw(dst []byte, p place) []byte {
	if isSchema(p.raw) {
		return r.schema(dst, p)
	}
	return append(dst, p.raw...)
}

func (r *rewriter) reference(dst []byte, start int, p place, keyword, ref string) []byte {
	if keyword == "$recursiveRef" && ref == "" {
		ref = "#"
	}
	target, err := r.doc.resolve(ref, p.at)
	if err != nil {
		r.err = err
		return dst
	}
	if keyword != "$ref" {
		r.losses.add(p.child(keyword), keyword, "the dynamic reference is taken for a plain one")
		if _, both := member(p.raw, "$ref"); both {
			return dst
		}
	}
	return append(appendKey(dst, start, "$ref"), pointerFragment(r.translate(target.at))...)
}

func (r *rewriter) keyList(dst, v []byte) []byte {
	dst = append(dst, '[')
	for i, key := range words(v) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendQuoted(dst, r.keys.wire(key))
	}
	return append(dst, ']')
}

func (r *rewriter) keyLists(dst, v []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for it := rawjson.Object(v); it.Next(); {
		dst = r.keyList(appendKey(dst, start, r.keys.wire(it.Key())), it.Value())
	}
	return append(dst, '}')
}

// dependencies appends the two keywords that "dependencies" became.
func (r *rewriter) dependencies(dst []byte, start int, p place, v []byte) []byte {
	var lists, schemas []byte
	for it := rawjson.Object(v); it.Next(); {
		key := r.keys.wire(it.Key())
		if rawjson.KindOf(it.Value()) == rawjson.KindArray {
			lists = r.keyList(appendKey(lists, 0, key), it.Value())
		} else if isSchema(it.Value()) {
			schemas = r.schema(appendKey(schemas, 0, key), place{p.child("dependencies", it.Key()), it.Value()})
		}
	}
	for _, part := range []struct {
		keyword string
		members []byte
	}{{"dependentRequired", lists}, {"dependentSchemas", schemas}} {
		if _, both := member(p.raw, part.keyword); part.members != nil && !both {
			dst = append(appendKey(dst, start, part.keyword), '{')
			dst = append(append(dst, part.members...), '}')
		}
	}
	return dst
}

// oldLimit appends a limit of numbers. In draft 4 an exclusive limit is a
// boolean beside the limit.
func oldLimit(dst []byte, start int, schema []byte, keyword string, v []byte) []byte {
	if rawjson.KindOf(v) == rawjson.KindBool {
		return dst
	}
	name := keyword
	if keyword == "minimum" || keyword == "maximum" {
		exclusive := map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[keyword]
		if flag, ok := member(schema, exclusive); ok && isTrue(flag) {
			name = exclusive
		}
	}
	return append(appendKey(dst, start, name), v...)
}

// closedTuple writes "items": false of a provider that wants a schema there as
// a limit on the length.
func closedTuple(dst []byte, start int, schema []byte) []byte {
	dst = append(appendKey(dst, start, "items"), `{}`...)
	prefix, _ := member(schema, "prefixItems")
	if _, has := member(schema, "maxItems"); has {
		return dst
	}
	return append(appendKey(dst, start, "maxItems"), strconv.Itoa(max(rawjson.Len(prefix), 0))...)
}
