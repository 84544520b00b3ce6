package subset

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A rewriter writes a schema for a provider that takes everything below the
// root: it brings older drafts to 2020-12, renames keys, and makes references
// plain pointers.
type rewriter struct {
	doc    *document
	p      *Profile
	keys   *keyMap
	prefix string // pointer of the original root within the result
	moved  map[string]string
	losses losses
	err    error

	renaming *renaming // nil when no key differs
}

// compileFull compiles for a Full profile.
func compileFull(d *document, p *Profile) (*Form, error) {
	if isFalse(d.root) {
		return nil, errors.New("it allows no arguments at all")
	}
	r := &rewriter{doc: d, p: p, keys: newKeyMap(p.Keys, d.keys), moved: map[string]string{}}
	if len(r.keys.toOwn) > 0 {
		r.renaming = newRenaming(d, r.keys)
	}
	root, wrapped := r.root()
	if r.err != nil {
		return nil, r.err
	}
	f := &Form{Schema: root, Losses: r.losses.list}
	var m mapping
	if r.renaming != nil {
		m = r.renaming
	}
	if wrapped {
		m = &wrapping{inner: m}
	}
	f.mapping = m
	return f, nil
}

// root returns the provider's root, and whether the original stands below it.
func (r *rewriter) root() (schema []byte, wrapped bool) {
	original := place{"", r.doc.root}
	if t, _ := member(r.doc.root, "type"); len(words(t)) > 1 && r.doc.refersToRoot() {
		return r.wrap(), true // what refers to it takes more than objects
	}
	if !r.p.PlainRoot {
		if isTrue(original.raw) || objectRoot(original.raw) {
			return r.typedRoot(original, nil), false
		}
		return r.wrap(), true
	}
	parts, ok := r.flatRoot(original, nil)
	if !ok || len(parts) > 1 && !r.doc.refersToDefs() {
		return r.wrap(), true
	}
	return r.dropUnions(r.typedRoot(original, parts)), false
}

// dropUnions takes unions away that say no more than which properties must be
// there, and says so in the description.
func (r *rewriter) dropUnions(root []byte) []byte {
	var said notes
	for _, keyword := range []string{"anyOf", "oneOf"} {
		v, ok := member(r.doc.root, keyword)
		if !ok {
			continue
		}
		var choices []string
		for branch := range children(place{"", r.doc.root}, keyword, v) {
			required, _ := member(branch.raw, "required")
			choices = append(choices, strings.Join(words(required), " and "))
		}
		said.add(choiceText(keyword, choices))
		r.losses.add("/"+keyword, keyword, r.p.Provider+" takes no union at the root; the description says which properties go together")
		root, _ = rawjson.Delete(root, keyword)
	}
	if len(said) == 0 {
		return root
	}
	description, _ := member(root, "description")
	root, _ = rawjson.Set(root, "description", rawjson.Quote(said.below(text(description))))
	return root
}

func choiceText(keyword string, choices []string) string {
	if keyword == "oneOf" {
		return "Exactly one of these must be given: " + strings.Join(choices, "; ") + "."
	}
	return "At least one of these must be given: " + strings.Join(choices, "; ") + "."
}

// wrap puts the whole schema below the one property WrapKey.
func (r *rewriter) wrap() []byte {
	r.prefix = "/properties/" + WrapKey
	inner := r.schema(nil, place{"", r.doc.root})
	out := append([]byte(`{"type":"object","properties":{"`+WrapKey+`":`), inner...)
	return append(out, `},"required":["`+WrapKey+`"],"additionalProperties":false}`...)
}

// objectRoot reports whether the root says, or may be taken to say, that it is
// an object.
func objectRoot(raw []byte) bool {
	t, ok := member(raw, "type")
	if !ok {
		for _, keyword := range []string{"anyOf", "oneOf", "allOf", "enum", "const", "$ref", "not", "if"} {
			if _, has := member(raw, keyword); has {
				return false
			}
		}
		return true
	}
	if name, ok := rawjson.Unquote(t); ok {
		return name == "object"
	}
	return slices.Contains(words(t), "object")
}

// flatRoot returns the schemas that together make up the root, after references
// and allOf are followed, when each of them is an object that can be merged with
// the others member by member.
func (r *rewriter) flatRoot(p place, parts []place) ([]place, bool) {
	for _, have := range parts {
		if have.at == p.at {
			return parts, true
		}
	}
	if isTrue(p.raw) {
		return parts, true
	}
	if rawjson.KindOf(p.raw) != rawjson.KindObject || len(parts) > 16 {
		return nil, false
	}
	if t, ok := member(p.raw, "type"); ok && !slices.Contains(append(words(t), text(t)), "object") {
		return nil, false
	}
	parts = append(parts, p)
	ok := true
	for it := rawjson.Object(p.raw); ok && it.Next(); {
		parts, ok = r.flatMember(p, it.Key(), it.Value(), parts)
	}
	return parts, ok && mergeable(parts)
}

func (r *rewriter) flatMember(p place, keyword string, v []byte, parts []place) ([]place, bool) {
	switch keyword {
	case "$ref":
		target, err := r.doc.resolve(text(v), p.at)
		if err != nil {
			return nil, false
		}
		return r.flatRoot(target, parts)
	case "allOf":
		ok := classOf(keyword, v) == classList
		for child := range children(p, keyword, v) {
			if parts, ok = r.flatRoot(child, parts); !ok {
				break
			}
		}
		return parts, ok
	case "anyOf", "oneOf":
		return parts, requiredOnly(p, keyword, v)
	case "enum", "const", "not", "$dynamicRef", "$recursiveRef":
		return nil, false
	}
	return parts, true
}

// mergeable reports whether nothing that one part says concerns the properties
// of another.
func mergeable(parts []place) bool {
	if len(parts) < 2 {
		return true
	}
	seen := map[string]bool{}
	for _, p := range parts {
		for it := rawjson.Object(p.raw); it.Next(); {
			keyword := it.Key()
			switch keyword {
			case "$ref", "allOf", "type", "required":
				continue
			case "properties":
				for props := rawjson.Object(it.Value()); props.Next(); {
					if seen[props.Key()] {
						return false
					}
					seen[props.Key()] = true
				}
				continue
			}
			if !isAnnotation(keyword) {
				return false
			}
		}
	}
	return true
}

// requiredOnly reports whether every branch of a union says no more than which
// properties must be there.
func requiredOnly(p place, keyword string, v []byte) bool {
	n := 0
	for branch := range children(p, keyword, v) {
		n++
		if rawjson.KindOf(branch.raw) != rawjson.KindObject {
			return false
		}
		for it := rawjson.Object(branch.raw); it.Next(); {
			if k := it.Key(); k != "required" && !(k == "type" && text(it.Value()) == "object") && !isAnnotation(k) {
				return false
			}
		}
	}
	return n > 0
}

// typedRoot writes the root as an object made of its parts.
func (r *rewriter) typedRoot(original place, parts []place) []byte {
	if isTrue(original.raw) {
		return []byte(`{"type":"object"}`)
	}
	if len(parts) < 2 {
		return r.retype(r.schema(nil, original))
	}
	merged := mergeRoot(parts)
	if defs, ok := member(original.raw, "$defs"); ok {
		merged, _ = rawjson.Set(merged, "$defs", defs)
	}
	if defs, ok := member(original.raw, "definitions"); ok {
		merged, _ = rawjson.Set(merged, "definitions", defs)
	}
	return r.retype(r.schema(nil, place{"", merged}))
}

// retype makes the root say that it is an object, and no more.
func (r *rewriter) retype(root []byte) []byte {
	for _, keyword := range []string{"$ref", "allOf"} {
		if r.p.PlainRoot {
			root, _ = rawjson.Delete(root, keyword)
		}
	}
	if _, ok := member(root, "type"); ok || rawjson.Len(root) == 0 {
		root, _ = rawjson.Set(root, "type", []byte(`"object"`))
		return root
	}
	return append([]byte(`{"type":"object",`), root[1:]...)
}

// mergeRoot joins parts whose properties differ.
func mergeRoot(parts []place) []byte {
	var properties, required [][]byte
	out := []byte(`{}`)
	for _, p := range parts {
		for it := rawjson.Object(p.raw); it.Next(); {
			switch keyword := it.Key(); keyword {
			case "properties":
				for props := rawjson.Object(it.Value()); props.Next(); {
					properties = append(properties, slices.Concat(props.RawKey(), []byte(":"), props.Value()))
				}
			case "required":
				for list := rawjson.Array(it.Value()); list.Next(); {
					required = append(required, list.Value())
				}
			case "title", "description", "default", "examples":
				if _, has := member(out, keyword); !has {
					out, _ = rawjson.Set(out, keyword, it.Value())
				}
			}
		}
	}
	out, _ = rawjson.Set(out, "properties", slices.Concat([]byte("{"), bytes.Join(properties, []byte(",")), []byte("}")))
	if len(required) > 0 {
		out, _ = rawjson.Set(out, "required", slices.Concat([]byte("["), bytes.Join(unique(required), []byte(",")), []byte("]")))
	}
	return out
}

// unique returns the values of a list, each once.
func unique(list [][]byte) [][]byte {
	var out [][]byte
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		if !seen[string(v)] {
			seen[string(v)] = true
			out = append(out, v)
		}
	}
	return out
}

func text(v []byte) string {
	s, _ := rawjson.Unquote(v)
	return s
}

// translate returns where the schema at a pointer of the original stands in the
// result.
func (r *rewriter) translate(pointer string) string {
	if pointer == "" {
		return r.prefix
	}
	if at, ok := r.moved[pointer]; ok {
		return at
	}
	l, known := r.doc.places[pointer]
	if !known {
		return r.prefix + pointer // below a keyword that is left as it is
	}
	at := place{at: r.translate(l.parent)}
	parent := r.doc.places[l.parent]
	tokens := []string{modern(parent.raw, l.keyword)}
	if l.inside {
		tokens = append(tokens, l.token)
		if l.keyword == "properties" || l.keyword == "dependentSchemas" || l.keyword == "dependencies" {
			tokens[1] = r.keys.wire(l.token)
		}
	}
	r.moved[pointer] = at.child(tokens...)
	return r.moved[pointer]
}

// modern returns the name that draft 2020-12 has for a keyword of a schema.
func modern(schema []byte, keyword string) string {
	switch keyword {
	case "definitions":
		if _, both := member(schema, "$defs"); !both {
			return "$defs"
		}
	case "items":
		if v, ok := member(schema, "items"); ok && rawjson.KindOf(v) == rawjson.KindArray {
			return "prefixItems"
		}
	case "additionalItems":
		if v, ok := member(schema, "items"); ok && rawjson.KindOf(v) == rawjson.KindArray {
			return "items"
		}
	case "dependencies":
		return "dependentSchemas"
	}
	return keyword
}

// pointerFragment returns a reference to a pointer.
func pointerFragment(pointer string) []byte {
	var b strings.Builder
	b.WriteByte('#')
	for i := range len(pointer) {
		if c := pointer[i]; c > 0x20 && c < 0x7f && !strings.ContainsRune("\"%<>\\^`{|}#", rune(c)) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(strconv.FormatInt(int64(c)+0x100, 16)[1:]))
		}
	}
	return rawjson.Quote(b.String())
}
