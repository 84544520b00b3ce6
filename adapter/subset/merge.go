package subset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A part is one schema of a conjunction. Hidden names unions of it, "anyOf" or
// "oneOf", of which a branch stands beside it. Whatever it is, its annotations
// belong to the union then, as those of a part with "~" do. What a followed part
// refers to, or holds in allOf, stands beside it already.
type part struct {
	place
	hidden   string
	followed bool
}

func (p part) key() string { return p.at + "\x00" + p.hidden }

func (p part) same(other part) bool { return p.at == other.at && p.hidden == other.hidden }

func (p part) hides(keyword string) bool { return strings.Contains(p.hidden, keyword) }

// A conj is a list of schemas that all apply to one value.
type conj []part

func (c conj) key() string {
	keys := make([]string, len(c))
	for i, p := range c {
		keys[i] = p.key()
	}
	slices.Sort(keys)
	return strings.Join(keys, "\x01")
}

func (c conj) has(p part) bool {
	return slices.ContainsFunc(c, func(have part) bool { return have.same(p) })
}

// where returns the pointer of the first part.
func (c conj) where() string {
	if len(c) == 0 {
		return ""
	}
	return c[0].at
}

func just(p place) conj { return conj{{place: p}} }

// flatten follows references and allOf, so that what applies stands side by
// side.
func (b *builder) flatten(c conj) conj {
	var out conj
	for _, p := range c {
		out = b.flattenPart(out, p, 0)
	}
	return out
}

// maxParts bounds how many schemas apply to one value.
const maxParts = 64

func (b *builder) flattenPart(out conj, p part, depth int) conj {
	if out.has(p) {
		return out
	}
	if depth > maxNesting || len(out) >= maxParts {
		b.losses.add(out.where(), "allOf", fmt.Sprintf("only the first %d schemas that apply to one value are declared", len(out)))
		return out
	}
	b.work += 2 * len(p.raw) // it is read here, and when it is merged
	if p.followed {
		return append(out, p)
	}
	p.followed = true
	out = append(out, p)
	for it := rawjson.Object(p.raw); it.Next(); {
		switch keyword := it.Key(); keyword {
		case "$ref", "$dynamicRef", "$recursiveRef":
			ref := text(it.Value())
			if ref == "" {
				ref = "#"
			}
			target, err := b.doc.resolve(ref, p.at)
			if err != nil {
				b.err = err
				continue
			}
			if keyword != "$ref" {
				b.losses.add(p.child(keyword), keyword, "the dynamic reference is taken for a plain one")
			}
			out = b.flattenPart(out, part{place: target}, depth+1)
		case "allOf":
			for child := range children(p.place, keyword, it.Value()) {
				out = b.flattenPart(out, part{place: child}, depth+1)
			}
		}
	}
	return out
}

// A group is a union that applies to a value beside everything else.
type group struct {
	owner    int // of the parts
	keyword  string
	branches []place
}

// A saying is a keyword's value and where it stands.
type saying struct {
	at  string
	raw []byte
}

// merged is what a conjunction of schemas comes to.
type merged struct {
	parts       conj
	never       bool
	kinds       kinds
	description string
	title       string
	notes       notes
	enum        [][]byte
	hasEnum     bool
	limits      map[string]saying
	more        []saying // further patterns
	required    map[string]bool
	order       []string // required, in order
	groups      []group
}

// merge reads the parts of a flat conjunction.
func (b *builder) merge(c conj) *merged {
	m := &merged{parts: c, kinds: kindAny, limits: map[string]saying{}, required: map[string]bool{}}
	var typed, hinted kinds
	for i, p := range c {
		if isFalse(p.raw) {
			m.never = true
		}
		if rawjson.KindOf(p.raw) != rawjson.KindObject {
			continue
		}
		for it := rawjson.Object(p.raw); it.Next(); {
			keyword, v := it.Key(), it.Value()
			hinted |= implied(keyword)
			if keyword == "type" {
				typed = kindAny
			}
			b.keyword(m, i, keyword, v)
		}
	}
	if typed == 0 && hinted != 0 && !m.hasEnum && len(m.groups) == 0 {
		m.kinds &= hinted
	}
	if m.kinds == 0 {
		m.never = true
	}
	return m
}

// keyword adds what one keyword of the part i says.
func (b *builder) keyword(m *merged, i int, keyword string, v []byte) {
	p := m.parts[i]
	at := p.child(keyword)
	switch keyword {
	case "type":
		m.kinds &= kindsOf(v)
	case "enum":
		if rawjson.KindOf(v) == rawjson.KindArray {
			m.choose(elements(v))
		}
	case "const":
		m.choose([][]byte{v})
	case "required":
		for _, name := range words(v) {
			if !m.required[name] {
				m.required[name] = true
				m.order = append(m.order, name)
			}
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
		"minItems", "maxItems", "minProperties", "maxProperties", "pattern", "format":
		m.limit(p, keyword, saying{at, v})
	case "anyOf", "oneOf":
		if p.hides(keyword) || classOf(keyword, v) != classList {
			return
		}
		g := group{owner: i, keyword: keyword}
		for child := range children(p.place, keyword, v) {
			g.branches = append(g.branches, child)
		}
		if len(g.branches) > 0 {
			m.groups = append(m.groups, g)
		}
	case "not", "if", "dependentRequired", "dependentSchemas", "dependencies", "contains", "uniqueItems":
		if p.hidden == "" {
			b.unenforced(m, at, keyword, v, p)
		}
	default:
		if p.hidden == "" {
			m.annotate(keyword, v)
		}
	}
}

func kindsOf(v []byte) kinds {
	if name, ok := rawjson.Unquote(v); ok {
		return kindNamed(name)
	}
	var k kinds
	for _, name := range words(v) {
		k |= kindNamed(name)
	}
	return k
}

func elements(v []byte) [][]byte {
	var list [][]byte
	for it := rawjson.Array(v); it.Next(); {
		list = append(list, it.Value())
	}
	return list
}

// choose narrows the enumeration to values that are equal to one of the list.
func (m *merged) choose(values [][]byte) {
	values = canonicalValues(values)
	if !m.hasEnum {
		m.enum, m.hasEnum = values, true
		return
	}
	among := make(map[string]bool, len(values))
	for _, v := range values {
		among[identity(v)] = true
	}
	m.enum = slices.DeleteFunc(slices.Clone(m.enum), func(have []byte) bool { return !among[identity(have)] })
}

// canonicalValues returns the values without white space, each once.
func canonicalValues(values [][]byte) [][]byte {
	var out [][]byte
	for _, v := range values {
		if compact, err := rawjson.Compact(v); err == nil {
			if s, ok := rawjson.Unquote(compact); ok {
				compact = rawjson.Quote(s)
			}
			out = append(out, compact)
		}
	}
	return distinctValues(out)
}

// distinctValues returns the values of a list of which none is equal to one before
// it.
func distinctValues(list [][]byte) [][]byte {
	var out [][]byte
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		if id := identity(v); !seen[id] {
			seen[id] = true
			out = append(out, v)
		}
	}
	return out
}

func (m *merged) annotate(keyword string, v []byte) {
	switch keyword {
	case "description":
		if m.description == "" {
			m.description = text(v)
		}
	case "title":
		if m.title == "" {
			m.title = text(v)
		}
	case "default":
		m.notes.add("Default: " + short(v) + ".")
	case "examples":
		if list := elements(v); rawjson.KindOf(v) == rawjson.KindArray && len(list) > 0 {
			m.notes.add("For example: " + shortList(list, 3) + ".")
		}
	case "deprecated":
		if isTrue(v) {
			m.notes.add("Deprecated.")
		}
	case "contentEncoding", "contentMediaType":
		if s := text(v); s != "" {
			m.notes.add("The text is " + s + ".")
		}
	}
}

// limit keeps the stronger of two limits.
func (m *merged) limit(p part, keyword string, s saying) {
	if exclusive := rawjson.KindOf(s.raw) == rawjson.KindBool; exclusive {
		return
	}
	if keyword == "minimum" || keyword == "maximum" {
		keyword = modernLimit(p.raw, keyword)
	}
	have, twice := m.limits[keyword]
	if !twice {
		m.limits[keyword] = s
		return
	}
	if string(have.raw) == string(s.raw) {
		return
	}
	switch keyword {
	case "pattern", "format", "multipleOf":
		m.more = append(m.more, s)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties":
		if numeric(s.raw) > numeric(have.raw) {
			m.limits[keyword] = s
		}
	default:
		if numeric(s.raw) < numeric(have.raw) {
			m.limits[keyword] = s
		}
	}
}

// modernLimit returns the keyword for a limit that draft 4 makes exclusive by a
// boolean beside it.
func modernLimit(schema []byte, keyword string) string {
	exclusive := map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[keyword]
	if flag, ok := member(schema, exclusive); ok && isTrue(flag) {
		return exclusive
	}
	return keyword
}

func numeric(v []byte) float64 {
	f, _ := strconv.ParseFloat(string(v), 64)
	return f
}

// count returns a limit that counts something, and whether there is one.
func (m *merged) count(keyword string) (int, bool) {
	s, ok := m.limits[keyword]
	if !ok || rawjson.KindOf(s.raw) != rawjson.KindNumber {
		return 0, false
	}
	f := numeric(s.raw)
	if f < 0 || f > 1<<31 {
		return 0, f < 0
	}
	return int(f), true
}
