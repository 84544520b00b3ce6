package subset

import (
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// openness says what an object takes beside the properties that it names.
type openness struct {
	closed bool
	said   bool // by additionalProperties or patternProperties
	values conj
	keys   conj
	branch []pattern // of patternProperties
}

type pattern struct {
	text  string
	place place
}

// openOf reads what the parts say of further properties.
func openOf(c conj) openness {
	var o openness
	for _, p := range c {
		patterns, some := member(p.raw, "patternProperties")
		if some = some && rawjson.Len(patterns) > 0; some {
			o.said = true
			for it := rawjson.Object(patterns); it.Next(); {
				if isSchema(it.Value()) && !isFalse(it.Value()) {
					o.branch = append(o.branch, pattern{it.Key(), place{p.child("patternProperties", it.Key()), it.Value()}})
				}
			}
		}
		for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
			v, ok := member(p.raw, keyword)
			switch {
			case !ok || !isSchema(v):
				continue
			case isFalse(v):
				o.closed = o.closed || !some
			default:
				o.said = true
				if !isTrue(v) {
					o.values = append(o.values, part{place: place{p.child(keyword), v}})
				}
			}
			break
		}
		if v, ok := member(p.raw, "propertyNames"); ok && isSchema(v) {
			o.keys = append(o.keys, part{place: place{p.child("propertyNames"), v}})
		}
	}
	return o
}

// fillObject makes the shape of an object.
func (b *builder) fillObject(s *shape, m *merged, depth int) {
	names := b.names(m)
	open := openOf(m.parts)
	if open.closed {
		open.said = false
	}
	if depth == 0 && len(names) == 0 && !open.said && !open.closed && !b.p.Maps {
		open.closed = b.noArguments(m)
	}
	switch {
	case len(names) == 0 && !open.closed && !b.p.Maps:
		b.fillMap(s, m, open, depth)
		return
	case depth >= b.depth:
		*s = *b.cut(m.parts, kindObject, "depth", b.tooDeep())
		return
	}
	s.form, s.kind = formObject, kindObject
	if !b.properties(s, m, names, depth) {
		s.form = formNever
		return
	}
	b.openObject(s, m, open, depth)
	if len(s.props) == 0 && s.extra == nil && b.p.OpenAPI {
		// The provider refuses an object without properties.
		s.form, s.literals, s.asText = formLiteral, [][]byte{[]byte(`{}`)}, true
		return
	}
	b.limits(s, m, kindObject)
}

// noArguments takes a root that names no properties and does not speak of others
// for one without arguments, which is what nearly everybody means by it.
func (b *builder) noArguments(m *merged) bool {
	for _, p := range m.parts {
		if _, ok := member(p.raw, "properties"); ok {
			return true
		}
	}
	b.losses.add(m.parts.where(), "additionalProperties", "arguments that have no name in the schema are not declared")
	return true
}

// names returns the properties that are named, in order, those that are only
// required after the others.
func (b *builder) names(m *merged) []string {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, p := range m.parts {
		properties, _ := member(p.raw, "properties")
		for it := rawjson.Object(properties); properties != nil && it.Next(); {
			if isSchema(it.Value()) {
				add(it.Key())
			}
		}
	}
	for _, name := range m.order {
		add(name)
	}
	return names
}

// properties adds the properties of an object, and reports false when one that
// is required can have no value.
func (b *builder) properties(s *shape, m *merged, names []string, depth int) bool {
	parts := b.objectParts(m.parts)
	for _, name := range names {
		schemas := b.propertySchemas(parts, name)
		v := b.build(schemas, depth+1)
		if v.form == formNever && !v.holds {
			if m.required[name] {
				return false
			}
			continue
		}
		s.props = append(s.props, property{own: name, wire: b.keys.wire(name), required: m.required[name], shape: v})
		if b.p.AllRequired && !m.required[name] {
			b.optional = append(b.optional, optional{schemas.where(), v})
		}
	}
	s.sort()
	return true
}

// An objectPart is what one part says of properties that it does not name.
type objectPart struct {
	part
	patterns   []placedPattern
	additional []place // one, or none when it says nothing
}

// A placedPattern is the schema of the properties whose keys match a pattern.
type placedPattern struct {
	keyPattern
	place place
}

func (b *builder) objectParts(c conj) []objectPart {
	out := make([]objectPart, len(c))
	for i, p := range c {
		out[i].part = p
		if patterns, ok := member(p.raw, "patternProperties"); ok {
			for child := range children(p.place, "patternProperties", patterns) {
				pattern := placedPattern{b.patterns.get(lastToken(child.at)), child}
				if pattern.re == nil {
					b.losses.add(child.at, "patternProperties", "the pattern is not one that is matched here: what it says of named properties is not declared")
					continue
				}
				out[i].patterns = append(out[i].patterns, pattern)
			}
		}
		if v, ok := member(p.raw, "additionalProperties"); ok && isSchema(v) && !isTrue(v) {
			out[i].additional = []place{{p.child("additionalProperties"), v}}
		}
	}
	return out
}

// propertySchemas returns the schemas that apply to a named property.
func (b *builder) propertySchemas(c []objectPart, name string) conj {
	var out conj
	for _, p := range c {
		known := false
		if v, ok := b.doc.property(p.place, name); ok {
			known = true
			out = append(out, part{place: v})
		}
		for j := range p.patterns {
			if b.work > maxWork {
				break // all is built as JSON text from here
			}
			b.work += 32 * p.patterns[j].cost(name)
			if p.patterns[j].matches(name) {
				known = true
				out = append(out, part{place: p.patterns[j].place})
			}
		}
		for _, child := range p.additional {
			if !known {
				out = append(out, part{place: child})
			}
		}
	}
	if len(out) == 0 {
		return conj{{place: place{c[0].at + "/properties/" + rawjson.EscapePointer(name), []byte("true")}}}
	}
	return out
}

// openObject says what further properties an object with named ones takes.
func (b *builder) openObject(s *shape, m *merged, open openness, depth int) {
	s.closed = open.closed
	if !open.said {
		return
	}
	if b.p.Maps {
		s.item = b.mapValue(open, depth+1)
		if len(open.branch) > 0 || len(open.keys) > 0 {
			b.sayKeys(s, m, open)
		}
		return
	}
	if depth+3 > b.depth {
		b.losses.add(m.parts.where(), "additionalProperties", b.tooDeep()+"; further properties are left out")
		return
	}
	s.extra = &shape{notes: notes{"Further properties, each with its key."}}
	b.fillPairs(s.extra, m, open, depth+1)
	s.extraKey = "additional_properties"
	for slices.ContainsFunc(s.props, func(p property) bool { return p.wire == s.extraKey || p.own == s.extraKey }) {
		s.extraKey += "_"
	}
}

// sayKeys says in words which keys a map takes.
func (b *builder) sayKeys(s *shape, m *merged, open openness) {
	for _, p := range open.branch {
		s.notes.add("Keys match the pattern " + p.text + ".")
		b.losses.add(p.place.at, "patternProperties", b.p.Provider+" does not enforce patterns of keys; the description says them")
	}
	for _, k := range open.keys {
		s.notes.add("Keys match the JSON Schema " + short(k.raw) + ".")
		b.losses.add(k.at, "propertyNames", b.p.Provider+" does not enforce it; the description says it")
	}
}

// mapValue returns the shape of the values of a map, nil when they can be
// anything.
func (b *builder) mapValue(open openness, depth int) *shape {
	switch {
	case len(open.branch) == 0 && len(open.values) == 0:
		return nil
	case len(open.branch) == 0:
		return b.build(open.values, depth)
	case len(open.branch) == 1 && len(open.values) == 0:
		return b.build(just(open.branch[0].place), depth)
	}
	union := &shape{form: formUnion}
	for _, p := range open.branch {
		union.branches = append(union.branches, b.build(just(p.place), depth))
	}
	if len(open.values) > 0 {
		union.branches = append(union.branches, b.build(open.values, depth))
	}
	union.branches = slices.DeleteFunc(union.branches, func(s *shape) bool { return s.form == formNever })
	union.settle()
	return union
}

// fillMap makes the shape of an object that names no properties: a list of keys
// and values, or a JSON text when nothing is known of the values.
func (b *builder) fillMap(s *shape, m *merged, open openness, depth int) {
	if len(open.values) == 0 && len(open.branch) == 0 {
		s.form, s.kind = formText, kindObject
		b.limitsInWords(s, m)
		b.sayKeys(s, m, openness{keys: open.keys})
		return
	}
	if depth+2 > b.depth {
		*s = *b.cut(m.parts, kindObject, "depth", b.tooDeep())
		return
	}
	b.fillPairs(s, m, open, depth)
	for _, counted := range []struct{ keyword, listed string }{{"minProperties", "minItems"}, {"maxProperties", "maxItems"}} {
		said, ok := m.limits[counted.keyword]
		if ok && b.p.takes(counted.listed) && rawjson.KindOf(said.raw) == rawjson.KindNumber {
			s.limits = append(s.limits, limit{counted.listed, said.raw})
		} else if ok {
			b.sayLimit(s, counted.keyword, said)
		}
	}
}

func (b *builder) limitsInWords(s *shape, m *merged) {
	for _, keyword := range []string{"minProperties", "maxProperties"} {
		if said, ok := m.limits[keyword]; ok {
			b.sayLimit(s, keyword, said)
		}
	}
}

// fillPairs makes a list of keys and values.
func (b *builder) fillPairs(s *shape, m *merged, open openness, depth int) {
	s.form, s.kind = formPairs, kindArray
	s.notes.add("A list of keys and values; no key comes twice.")
	s.key = &shape{form: formScalar, kind: kindString}
	switch {
	case len(open.branch) == 1 && len(open.values) == 0 && len(open.keys) == 0 && b.takesPattern(open.branch[0].text):
		s.key.limits = []limit{{"pattern", rawjson.Quote(open.branch[0].text)}}
	case len(open.keys) > 0 && len(open.branch) == 0:
		b.keyShape(s, open)
	default:
		b.sayKeys(s, m, open)
	}
	s.item = b.mapValue(open, depth+2)
	if s.item == nil {
		s.item = &shape{}
		b.fillAny(s.item)
	}
	if s.item.form == formNever {
		s.item = &shape{form: formScalar, kind: kindString}
		s.notes.add("Always empty.")
		b.losses.add(m.parts.where(), "additionalProperties", "a map that takes no values is declared as one of texts; the description says that it is empty")
	}
}

// keyShape makes the shape of the keys out of propertyNames.
func (b *builder) keyShape(s *shape, open openness) {
	text := part{place: place{open.keys.where() + "/type", []byte(`{"type":"string"}`)}}
	key := b.build(append(slices.Clone(open.keys), text), b.depth)
	switch key.form {
	case formScalar, formLiteral:
		s.key = key
	default:
		b.sayKeys(s, nil, openness{keys: open.keys})
	}
}
