package subset

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A writer writes shapes in a provider's dialect.
type writer struct {
	p     *Profile
	names map[*shape]string // of the shapes that hold themselves
	queue []*shape          // those whose definition is still to be written
	root_ *shape
	used  usage
	level int
}

// root writes a whole schema.
func (w *writer) root(m *shaped) []byte {
	var out []byte
	if m.wrapped {
		w.property(len(WrapKey))
		w.level = 1
		out = append(out, `{"type":`...)
		out = rawjson.AppendQuoted(out, w.typeName("object"))
		out = append(append(out, `,"properties":{"`+WrapKey+`":`...), w.shape(m.root, false)...)
		out = append(out, `},"required":["`+WrapKey+`"]`...)
		if w.p.AllRequired || w.p.Maps {
			out = append(out, `,"additionalProperties":false`...)
		}
	} else {
		w.root_ = m.root
		body := w.body(m.root, false)
		out = body[:len(body)-1]
	}
	return append(w.definitions(out), '}')
}

// definitions appends the shapes that hold themselves. Writing one may find
// more.
func (w *writer) definitions(out []byte) []byte {
	start := len(out)
	for i := 0; i < len(w.queue); i++ {
		if i == 0 {
			out = append(out, `,"$defs":{`...)
			start = len(out)
		}
		name := w.names[w.queue[i]]
		w.used.chars += len(name)
		w.level = 0
		out = append(appendKey(out, start, name), w.body(w.queue[i], false)...)
	}
	if len(w.queue) > 0 {
		out = append(out, '}')
	}
	return out
}

func (w *writer) property(chars int) {
	w.used.properties++
	w.used.chars += chars
}

func (w *writer) typeName(name string) string {
	if w.p.OpenAPI {
		return strings.ToUpper(name)
	}
	return name
}

// shape writes a shape, as a reference when it holds itself. null says that null
// is taken too.
func (w *writer) shape(s *shape, null bool) []byte {
	if !s.holds {
		return w.body(s, null)
	}
	ref := `{"$ref":"#"}`
	if s != w.root_ {
		if w.names[s] == "" {
			w.names[s] = "part_" + strconv.Itoa(len(w.names)+1)
			w.queue = append(w.queue, s)
		}
		ref = `{"$ref":"#/$defs/` + w.names[s] + `"}`
	}
	if null {
		return []byte(`{"anyOf":[` + ref + `,{"type":"null"}]}`)
	}
	return []byte(ref)
}

// object is an object that is being written.
type object struct{ out []byte }

func (o *object) add(key string, value []byte) {
	if len(o.out) == 0 {
		o.out = append(o.out, '{')
	}
	o.out = append(appendKey(o.out, 1, key), value...)
}

func (o *object) end() []byte {
	if len(o.out) == 0 {
		return []byte(`{}`)
	}
	return append(o.out, '}')
}

// body writes a shape out.
func (w *writer) body(s *shape, null bool) []byte {
	o := &object{}
	switch s.form {
	case formUnion:
		return w.union(s, null)
	case formAny:
		w.describe(o, s)
		return o.end()
	case formScalar:
		w.typed(o, s, s.kind.name(), null)
		w.limits(o, s)
	case formLiteral:
		w.literal(o, s, null)
	case formText:
		s = textual(s)
		w.typed(o, s, "string", null)
	case formArray:
		w.typed(o, s, "array", null)
		w.nest(func() { o.add("items", w.shape(s.item, false)) })
		w.limits(o, s)
	case formTuple:
		w.tuple(o, s, null)
	case formSlots:
		w.slots(o, s, null)
	case formPairs:
		w.pairs(o, s, null)
	case formObject:
		w.typed(o, s, "object", null)
		w.members(o, s)
		w.limits(o, s)
	default:
		w.typed(o, s, "string", null)
	}
	return o.end()
}

// nest writes what stands one level deeper.
func (w *writer) nest(write func()) {
	w.level++
	w.used.depth = max(w.used.depth, w.level)
	write()
	w.level--
}

// textual returns the shape of a JSON text with its explanation.
func textual(s *shape) *shape {
	c := *s
	what := "any JSON value; a plain text is written with its quotes"
	switch words := kindWords(s.kind); {
	case s.kind == kindObject:
		what = "an object"
	case s.kind == kindArray:
		what = "an array"
	case s.kind != kindAny && s.kind.has(kindString):
		what = "of the type " + words + "; a plain text is written with its quotes"
	case s.kind != kindAny:
		what = "of the type " + words
	}
	c.notes = append(append(notes{}, s.notes...), "Given as JSON text: "+what+".")
	return &c
}

func (w *writer) describe(o *object, s *shape) {
	if said := s.notes.below(s.description); said != "" {
		o.add("description", rawjson.Quote(said))
	}
}

// typed writes the type and the description.
func (w *writer) typed(o *object, s *shape, name string, null bool) {
	quoted := rawjson.Quote(w.typeName(name))
	switch {
	case !null || name == "null":
		o.add("type", quoted)
	case w.p.OpenAPI:
		o.add("type", quoted)
		o.add("nullable", []byte("true"))
	default:
		o.add("type", fmt.Appendf(nil, `[%s,"null"]`, quoted))
	}
	w.describe(o, s)
}

func (w *writer) limits(o *object, s *shape) {
	for _, l := range s.limits {
		o.add(l.keyword, l.raw)
	}
}

// wireLiteral returns how a value of an enumeration is written.
func (s *shape) wireLiteral(v []byte) []byte {
	if s.asText {
		return rawjson.Quote(string(v))
	}
	return v
}

func (w *writer) literal(o *object, s *shape, null bool) {
	name := s.kind.name()
	if s.asText {
		name = "string"
	}
	w.typed(o, s, name, null)
	if w.p.OpenAPI {
		o.add("format", []byte(`"enum"`))
	}
	list := []byte{'['}
	for i, v := range s.literals {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, s.wireLiteral(v)...)
		w.used.enum++
		w.used.chars += len(v)
		w.used.enumChars += len(v)
	}
	if null && !w.p.OpenAPI {
		list = append(list, ",null"...)
		w.used.enum++
	}
	o.add("enum", append(list, ']'))
}

// union writes a union. Null beside one other shape is a property of that.
func (w *writer) union(s *shape, null bool) []byte {
	var rest []*shape
	for _, b := range s.branches {
		if b.form == formScalar && b.kind == kindNull && !b.holds {
			null = true
		} else {
			rest = append(rest, b)
		}
	}
	if len(rest) == 0 {
		return w.body(&shape{form: formScalar, kind: kindNull, description: s.description, notes: s.notes}, false)
	}
	if len(rest) == 1 && !rest[0].holds && rest[0].form != formUnion && rest[0].form != formAny {
		return w.body(rest[0].under(s), null)
	}
	o := &object{}
	if w.p.OpenAPI {
		// Nothing may stand beside anyOf, so that the first branch says it.
		if !rest[0].holds {
			rest[0] = rest[0].under(s)
		}
	} else {
		w.describe(o, s)
	}
	o.add("anyOf", w.branches(rest, null))
	return o.end()
}

func (w *writer) branches(list []*shape, null bool) []byte {
	out := []byte{'['}
	for i, b := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, w.shape(b, null && w.p.OpenAPI && i == 0)...)
	}
	if null && !w.p.OpenAPI {
		out = append(out, `,{"type":"null"}`...)
	}
	return append(out, ']')
}

// under returns the shape with what a union around it says.
func (s *shape) under(u *shape) *shape {
	c := *s
	c.notes = append(append(notes{}, u.notes...), s.notes...)
	switch {
	case s.description == "":
		c.description = u.description
	case u.description != "":
		c.description = u.description + "\n" + s.description
	}
	return &c
}

func (w *writer) tuple(o *object, s *shape, null bool) {
	w.typed(o, s, "array", null)
	w.nest(func() {
		list := []byte{'['}
		for i, e := range s.branches {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, w.shape(e, false)...)
		}
		o.add("prefixItems", append(list, ']'))
		if s.item != nil {
			o.add("items", w.shape(s.item, false))
		}
	})
	w.limits(o, s)
}

// slots writes a tuple as an object.
func (w *writer) slots(o *object, s *shape, null bool) {
	c := *s
	c.notes = append(append(notes{}, s.notes...), "A list, each item under its place.")
	w.typed(o, &c, "object", null)
	w.members(o, s.asObject())
}

// asObject returns the object that a tuple of slots is written as.
func (s *shape) asObject() *shape {
	out := &shape{form: formObject, closed: true}
	for i, e := range s.branches {
		out.props = append(out.props, property{own: slotKey(i), wire: slotKey(i), required: i < s.min, shape: e})
	}
	if s.item != nil {
		more := &shape{form: formArray, kind: kindArray, item: s.item}
		out.props = append(out.props, property{own: restKey, wire: restKey, shape: more})
	}
	out.sort()
	return out
}

// pairs writes a map as a list of keys and values.
func (w *writer) pairs(o *object, s *shape, null bool) {
	w.typed(o, s, "array", null)
	pair := &shape{form: formObject, kind: kindObject, closed: true, props: []property{
		{own: "key", wire: "key", required: true, shape: s.key}, {own: "value", wire: "value", required: true, shape: s.item},
	}}
	w.nest(func() { o.add("items", w.body(pair, false)) })
	w.limits(o, s)
}

// members writes the properties of an object.
func (w *writer) members(o *object, s *shape) {
	properties, required := &object{}, []byte{'['}
	demand := func(key string) {
		if len(required) > 1 {
			required = append(required, ',')
		}
		required = rawjson.AppendQuoted(required, key)
	}
	w.nest(func() {
		for i := range s.props {
			p := &s.props[i]
			w.property(len(p.wire))
			properties.add(p.wire, w.shape(p.shape, p.nullable(w.p)))
			if p.required || w.p.AllRequired {
				demand(p.wire)
			}
		}
		if s.extra != nil {
			w.property(len(s.extraKey))
			properties.add(s.extraKey, w.shape(s.extra, w.p.AllRequired))
			if w.p.AllRequired {
				demand(s.extraKey)
			}
		}
	})
	if len(properties.out) > 0 || w.p.AllRequired {
		o.add("properties", properties.end())
	}
	if len(required) > 1 || w.p.AllRequired {
		o.add("required", append(required, ']'))
	}
	w.openness(o, s)
}

func (w *writer) openness(o *object, s *shape) {
	switch {
	case w.p.AllRequired || w.p.Maps && s.closed:
		o.add("additionalProperties", []byte("false"))
	case w.p.Maps && s.item != nil:
		w.nest(func() { o.add("additionalProperties", w.shape(s.item, false)) })
	}
}
