package subset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A builder turns a schema into shapes, within bounds.
type builder struct {
	doc    *document
	p      *Profile
	keys   *keyMap
	losses losses
	err    error

	depth    int // how deep objects and arrays may nest
	enum     int // how many values one enumeration may have
	unroll   int // how often a recursion is written out
	shapes   int // how many were made
	work     int // how many bytes of schemas were read
	compared int // how many pairs of shapes were compared
	unions   int // how many unions stand around what is being built

	optional []optional

	recursive bool // a recursion was met that cannot be said
	full      bool // the bounds were reached

	patterns keyPatterns

	open map[string][]opened // by the key of a conjunction, those that are being built
	done map[string]*shape   // those that hold themselves
}

// optional is a property that need not be there, of a provider that wants every
// property.
type optional struct {
	at    string
	shape *shape
}

// sayNulls reports the optional properties whose null has another meaning.
func (b *builder) sayNulls() {
	for _, o := range b.optional {
		if o.shape.takesNull() {
			b.losses.add(o.at, "null", b.p.Provider+" wants every property, so that null stands for one that is left out: null itself cannot be given")
		}
	}
}

// opened is a shape that is being built, and below how many objects and arrays.
type opened struct {
	shape *shape
	depth int
}

// build returns the shape of a value that all the schemas of c apply to, below
// the given number of objects and arrays.
func (b *builder) build(c conj, depth int) *shape {
	if b.shapes > maxShapes || b.work > maxWork || b.unions > maxUnions {
		b.full = true
		return b.cut(c[:1], kindAny, "size", "the schema is too large to be written out: this part is given as JSON text")
	}
	flat := b.flatten(c)
	key := flat.key()
	if s := b.done[key]; s != nil {
		return s
	}
	if open := b.open[key]; len(open) > 0 {
		last := open[len(open)-1]
		if last.depth == depth {
			return &shape{} // a union that is a branch of itself takes nothing by that
		}
		if b.p.Refs {
			last.shape.holds = true
			return last.shape
		}
		b.recursive = true
		if len(open) >= b.unroll {
			return b.cut(flat, kindAny, "recursion", fmt.Sprintf("%s takes no recursive schema: it is written out to %d levels, and what is deeper is given as JSON text", b.p.Provider, b.unroll))
		}
	}
	b.shapes++
	s := &shape{}
	b.open[key] = append(b.open[key], opened{s, depth})
	b.fill(s, b.merge(flat), depth)
	b.open[key] = b.open[key][:len(b.open[key])-1]
	if s.holds {
		b.done[key] = s
	}
	return s
}

// cut returns the shape of a JSON text in the place of what cannot be said.
func (b *builder) cut(c conj, kind kinds, feature, reason string) *shape {
	b.losses.add(c.where(), feature, reason)
	m := &merged{kinds: kind}
	for _, p := range c {
		for it := rawjson.Object(p.raw); it.Next(); {
			if it.Key() == "type" {
				m.kinds &= kindsOf(it.Value())
			} else if p.hidden == "" {
				m.annotate(it.Key(), it.Value())
			}
		}
	}
	s := &shape{form: formText, kind: m.kinds, notes: m.notes}
	s.describe(m)
	return s
}

func (s *shape) describe(m *merged) {
	s.description = m.description
	if s.description == "" {
		s.description = m.title
	}
}

// fill makes a shape of what was merged.
func (b *builder) fill(s *shape, m *merged, depth int) {
	s.describe(m)
	s.notes = m.notes
	switch {
	case m.never:
		s.form = formNever
	case len(m.groups) > 0:
		b.fillUnion(s, m, depth)
	case m.hasEnum:
		b.fillEnum(s, m)
	case m.kinds == kindAny:
		b.fillAny(s)
	default:
		b.fillKinds(s, m, depth)
	}
	for _, more := range m.more {
		b.sayLimit(s, lastToken(more.at), more)
	}
}

// fillAny makes the shape of a value that nothing is known of.
func (b *builder) fillAny(s *shape) {
	s.form, s.kind = formText, kindAny
	if b.p.AnyValue {
		s.form = formAny
	}
}

// fillKinds makes a shape of one kind, or a union of several.
func (b *builder) fillKinds(s *shape, m *merged, depth int) {
	list := m.kinds.single()
	if len(list) == 1 {
		b.fillKind(s, m, list[0], depth)
		return
	}
	s.form = formUnion
	for _, k := range list {
		branch := &shape{}
		b.fillKind(branch, m, k, depth)
		if branch.form != formNever {
			s.branches = append(s.branches, branch)
		}
	}
	s.settle()
	b.tellApart(s, m.parts.where())
}

// settle makes a union of nothing a shape that takes nothing.
func (s *shape) settle() {
	if len(s.branches) == 0 {
		s.form = formNever
	}
}

func (b *builder) fillKind(s *shape, m *merged, k kinds, depth int) {
	switch {
	case k == kindObject:
		b.fillObject(s, m, depth)
	case k == kindArray:
		b.fillArray(s, m, depth)
	default:
		s.form, s.kind = formScalar, k
		b.limits(s, m, k)
	}
}

// limits adds the limits that concern values of a kind, as keywords where the
// provider takes them, else in words.
func (b *builder) limits(s *shape, m *merged, k kinds) {
	for _, keyword := range []string{"format", "pattern", "minLength", "maxLength", "minimum", "exclusiveMinimum", "maximum",
		"exclusiveMaximum", "multipleOf", "minItems", "maxItems", "minProperties", "maxProperties"} {
		said, ok := m.limits[keyword]
		if !ok || !implied(keyword).has(k) && !(keyword == "format" && k.has(kindNumber)) {
			continue
		}
		if b.takesLimit(keyword, said.raw, k) {
			s.limits = append(s.limits, limit{keyword, said.raw})
		} else {
			b.sayLimit(s, keyword, said)
		}
	}
}

func (b *builder) takesLimit(keyword string, v []byte, k kinds) bool {
	if keyword == "format" {
		return k == kindString && slices.Contains(b.p.Formats, text(v))
	}
	if keyword == "pattern" {
		return b.takesPattern(text(v)) && rawjson.KindOf(v) == rawjson.KindString
	}
	return b.p.takes(keyword) && rawjson.KindOf(v) == rawjson.KindNumber && floats(v)
}

// takesPattern reports whether the provider takes a pattern. One that package
// regexp does not know, as it looks around or back, is refused together with the
// whole request.
func (b *builder) takesPattern(pattern string) bool {
	return b.p.takes("pattern") && b.patterns.get(pattern).re != nil
}

func (b *builder) sayLimit(s *shape, keyword string, said saying) {
	if keyword == "minProperties" && numeric(said.raw) <= 0 || keyword == "minItems" && numeric(said.raw) <= 0 {
		return
	}
	s.notes.add(limitText(keyword, said.raw))
	b.losses.add(said.at, keyword, b.p.Provider+" does not enforce it; the description says it")
}

// fillEnum makes the shape of an enumeration.
func (b *builder) fillEnum(s *shape, m *merged) {
	byKind := map[kinds][][]byte{}
	var order []kinds
	for _, v := range m.enum {
		k := kindOf(v)
		if !m.kinds.has(k) {
			continue
		}
		if k.has(kindNumber) {
			k = kindNumber
		}
		if byKind[k] == nil {
			order = append(order, k)
		}
		byKind[k] = append(byKind[k], v)
	}
	if len(order) == 1 {
		b.fillLiterals(s, m, order[0], byKind[order[0]])
		return
	}
	s.form = formUnion
	for _, k := range order {
		branch := &shape{}
		b.fillLiterals(branch, m, k, byKind[k])
		s.branches = append(s.branches, branch)
	}
	s.settle()
	b.tellApart(s, m.parts.where())
}

// fillLiterals makes the shape of values of one kind.
func (b *builder) fillLiterals(s *shape, m *merged, k kinds, values [][]byte) {
	if k == kindNull {
		s.form, s.kind = formScalar, kindNull
		return
	}
	s.form, s.kind, s.literals = formLiteral, k, values
	if k == kindNumber && !slices.ContainsFunc(values, func(v []byte) bool { return kindOf(v) == kindFraction }) {
		s.kind = kindInteger
	}
	s.asText = k == kindObject || k == kindArray || k != kindString && b.p.OpenAPI || k == kindBool && !b.p.AllRequired
	if k == kindBool && len(values) == 2 {
		*s = shape{form: formScalar, kind: kindBool, description: s.description, notes: s.notes}
		return
	}
	if len(values) <= b.enum && (len(values) <= 250 || characters(values) <= 15_000) {
		return
	}
	s.notes.add(fmt.Sprintf("One of %d values: %s.", len(values), shortList(values, 30)))
	b.losses.add(m.parts.where(), "enum", fmt.Sprintf("%d values are too many for %s; the description says some", len(values), b.p.Provider))
	s.literals = nil
	if s.form = formScalar; s.asText {
		s.form = formText
	}
}

func characters(values [][]byte) int {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	return n
}

// fillArray makes the shape of an array.
func (b *builder) fillArray(s *shape, m *merged, depth int) {
	if depth >= b.depth {
		*s = *b.cut(m.parts, kindArray, "depth", b.tooDeep())
		return
	}
	if n := prefixLength(m.parts); n > 0 {
		b.fillTuple(s, m, n, depth)
		return
	}
	rest, _ := b.rest(m.parts, 0)
	b.fillList(s, m, b.build(rest, depth+1))
}

// fillList makes the shape of an array whose items are all alike.
func (b *builder) fillList(s *shape, m *merged, item *shape) {
	s.form, s.kind, s.item = formArray, kindArray, item
	if item == nil || item.form == formNever {
		s.notes.add("Always empty.")
		b.losses.add(m.parts.where(), "items", "an array without items is declared as one of texts; the description says that it is empty")
		s.item = &shape{form: formScalar, kind: kindString}
	}
	b.limits(s, m, kindArray)
}

func (b *builder) tooDeep() string {
	return fmt.Sprintf("%s takes no more than %d levels: what is deeper is given as JSON text", b.p.Provider, b.depth)
}

// prefixLength returns how many elements of an array have schemas of their own.
func prefixLength(c conj) int {
	n := 0
	for _, p := range c {
		n = max(n, rawjson.Len(prefixOf(p)))
	}
	return n
}

// prefixOf returns the list of the schemas of the first elements, or nil.
func prefixOf(p part) []byte {
	for _, keyword := range []string{"prefixItems", "items"} {
		if v, ok := member(p.raw, keyword); ok && rawjson.KindOf(v) == rawjson.KindArray {
			return v
		}
	}
	return nil
}

// rest returns the schemas of the element n and those after it, when no prefix
// reaches it, and whether any schema speaks of them.
func (b *builder) rest(c conj, n int) (conj, bool) {
	var out conj
	for _, p := range c {
		keyword := "items"
		if v, ok := member(p.raw, "items"); ok && rawjson.KindOf(v) == rawjson.KindArray {
			keyword = "additionalItems"
		}
		if rawjson.Len(prefixOf(p)) > n {
			continue
		}
		for _, k := range []string{keyword, "unevaluatedItems"} {
			if v, ok := member(p.raw, k); ok && isSchema(v) {
				out = append(out, part{place: place{p.child(k), v}})
				break
			}
		}
	}
	if len(out) == 0 {
		return conj{{place: place{c.where() + "/items", []byte("true")}}}, false
	}
	return out, true
}

// element returns the schemas of the element n.
func (b *builder) element(c conj, n int) conj {
	var out conj
	for _, p := range c {
		prefix := prefixOf(p)
		keyword := "prefixItems"
		if _, ok := member(p.raw, keyword); !ok {
			keyword = "items"
		}
		if v, ok := step(prefix, strconv.Itoa(n)); prefix != nil && ok && isSchema(v) {
			out = append(out, part{place: place{p.child(keyword, strconv.Itoa(n)), v}})
		}
	}
	if rest, some := b.rest(c, n); some || len(out) == 0 {
		out = append(out, rest...)
	}
	return out
}

// fillTuple makes the shape of an array whose first n elements have schemas of
// their own.
func (b *builder) fillTuple(s *shape, m *merged, n, depth int) {
	s.form, s.kind = formTuple, kindArray
	if !b.p.Tuples {
		s.form = formSlots
	}
	if most, ok := m.count("maxItems"); ok {
		n = min(n, most)
	}
	for i := range n {
		e := b.build(b.element(m.parts, i), depth+1)
		if e.form == formNever {
			n = i
			s.closed = true
			break
		}
		s.branches = append(s.branches, e)
	}
	s.min = n
	if least, given := m.count("minItems"); given {
		s.min = min(least, n)
	}
	for i := s.min; i < n && b.p.AllRequired; i++ {
		b.optional = append(b.optional, optional{b.element(m.parts, i).where(), s.branches[i]})
	}
	rest, some := b.rest(m.parts, n)
	if some && !s.closed {
		s.item = b.build(rest, depth+1)
	}
	if s.item != nil && s.item.form == formNever {
		s.item, s.closed = nil, true
	}
	if len(s.branches) == 0 {
		b.fillList(s, m, s.item)
		return
	}
	if _, given := m.count("minItems"); !given {
		b.losses.add(m.parts.where(), "minItems", fmt.Sprintf("a list of less than its %d items is not declared", n))
	}
	b.tupleLimits(s, m, n)
}

// tupleLimits keeps the limits on the length of a tuple that its elements do not
// say by themselves.
func (b *builder) tupleLimits(s *shape, m *merged, n int) {
	if s.form == formTuple {
		b.limits(s, m, kindArray)
		if _, said := m.limits["minItems"]; !said && b.p.takes("minItems") {
			s.limits = append(s.limits, limit{"minItems", []byte(strconv.Itoa(s.min))})
		}
		if _, said := m.limits["maxItems"]; !said && s.item == nil && b.p.takes("maxItems") {
			s.limits = append(s.limits, limit{"maxItems", []byte(strconv.Itoa(n))})
		}
		return
	}
	for _, keyword := range []string{"minItems", "maxItems"} {
		if said, ok := m.limits[keyword]; ok && s.item != nil && numeric(said.raw) > float64(n) {
			b.sayLimit(s, keyword, said)
		}
	}
}

// slotKey is the key of an element of a tuple that is written as an object.
func slotKey(i int) string { return "item_" + strconv.Itoa(i+1) }

// restKey is the key of the elements that follow.
const restKey = "more_items"

// joined returns a list of keys for a sentence.
func joined(keys []string) string {
	if len(keys) > 20 {
		keys = append(slices.Clone(keys[:20]), "…")
	}
	return strings.Join(keys, ", ")
}
