package subset

import (
	"errors"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// bounds are what one attempt to compile keeps to.
type bounds struct{ depth, enum, unroll int }

// compileSubset compiles for a profile that takes a part of JSON Schema. What
// exceeds the bounds of the profile is compiled again with less room for each
// enumeration, with less of a recursion written out, or with fewer levels.
func compileSubset(d *document, p *Profile) (*Form, error) {
	at := bounds{p.depth(), p.enum(), maxUnroll}
	for {
		f, used, err := compileWithin(d, p, at)
		if err != nil {
			return nil, err
		}
		next, ok := at.tighter(p, used, len(f.Schema))
		switch {
		case ok:
			at = next
		case used.exceeds(p, len(f.Schema)):
			return wholeText(d, p), nil
		default:
			return f, nil
		}
	}
}

// tighter returns the bounds of the next attempt, and false when there is no
// need of one or nothing is left to tighten.
func (at bounds) tighter(p *Profile, used usage, size int) (bounds, bool) {
	large := used.exceeds(p, size) || used.cut
	values := used.enum > p.enum() || used.chars > p.chars() && used.enumChars*2 > used.chars
	switch {
	case values && at.enum > 0:
		at.enum /= 2
	case !large:
		return at, false
	case used.recursive && at.unroll > 1:
		at.unroll--
	case at.depth > 1:
		at.depth = max(1, min(at.depth*2/3, used.depth-1))
	default:
		return at, false
	}
	return at, true
}

// compileWithin compiles once.
func compileWithin(d *document, p *Profile, at bounds) (*Form, usage, error) {
	b := &builder{
		doc: d, p: p, keys: newKeyMap(p.Keys, d.keys), depth: at.depth, enum: at.enum, unroll: at.unroll,
		open: map[string][]opened{}, done: map[string]*shape{},
	}
	root := b.root()
	if b.err != nil {
		return nil, usage{}, b.err
	}
	b.sayNulls()
	if root.form == formNever || !root.kinds().has(kindAny) {
		return nil, usage{}, errors.New("no arguments satisfy it")
	}
	if root.form == formLiteral && len(root.literals) == 1 && string(root.literals[0]) == "{}" {
		root.form = formObject // which the provider is not shown at all
	}
	w := &writer{p: p, names: map[*shape]string{}}
	m := &shaped{p: p, root: root, wrapped: root.form != formObject}
	f := &Form{Schema: w.root(m), Losses: b.losses.list, mapping: m}
	w.used.cut, w.used.recursive = b.full, b.recursive
	return f, w.used, nil
}

// root builds the whole schema. Arguments are an object, so that a root which
// takes other values too is narrowed.
func (b *builder) root() *shape {
	whole := just(place{"", b.doc.root})
	if t, ok := member(b.doc.root, "type"); ok && text(t) == "object" {
		return b.build(whole, 0)
	}
	narrow := append(whole, part{place: place{"/type", []byte(`{"type":"object"}`)}})
	if s := b.build(narrow, 0); s.form != formNever {
		return s
	}
	b.losses, b.optional = losses{}, nil
	return b.build(just(place{"", b.doc.root}), 0)
}

// usage is what a form takes of the bounds of a profile.
type usage struct {
	properties, enum, chars, enumChars, depth int
	cut                                       bool // the schema was not written out whole
	recursive                                 bool // a recursion was written out
}

// exceeds reports whether a form exceeds a bound that fewer levels may help
// with.
func (u usage) exceeds(p *Profile, size int) bool {
	return u.properties > p.properties() || u.chars > p.chars() || size > maxOutput
}

// wholeText returns the form of a schema that is too large in every other: all
// arguments in one JSON text.
func wholeText(d *document, p *Profile) *Form {
	b := &builder{doc: d, p: p}
	s := b.cut(just(place{"", d.root}), kindObject, "size", "the schema is too large for "+p.Provider+": the arguments are given as one JSON text")
	var names []string
	properties, _ := member(d.root, "properties")
	for it := rawjson.Object(properties); properties != nil && it.Next() && len(names) <= 20; {
		names = append(names, it.Key())
	}
	if len(names) > 0 {
		s.notes.add("Its properties: " + joined(names) + ".")
	}
	m := &shaped{p: p, root: s, wrapped: true}
	w := &writer{p: p, names: map[*shape]string{}}
	return &Form{Schema: w.root(m), Losses: b.losses.list, mapping: m}
}
