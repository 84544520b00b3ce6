package subset

import (
	"errors"
	"fmt"
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
		if !ok {
			return f, used.excess(p, len(f.Schema))
		}
		at = next
	}
}

// tighter returns the bounds of the next attempt, and false when there is no
// need of one or nothing is left to tighten.
func (at bounds) tighter(p *Profile, used usage, size int) (bounds, bool) {
	large := used.properties > p.properties() || used.chars > p.chars() || used.cut || size > maxOutput
	values := used.enum > p.enum() || used.chars > p.chars() && used.enumChars*2 > used.chars
	switch {
	case values && at.enum > 0:
		at.enum /= 2
	case !large:
		return at, false
	case used.recursive && at.unroll > 1:
		at.unroll--
	case at.depth > 1:
		at.depth = max(1, min(at.depth*3/4, used.depth-1))
	default:
		return at, false
	}
	return at, true
}

// compileWithin compiles once.
func compileWithin(d *document, p *Profile, at bounds) (*Form, usage, error) {
	b := &builder{
		doc: d, p: p, keys: newKeyMap(p.Keys, d.keys), depth: at.depth, enum: at.enum, unroll: at.unroll,
		open: map[string][]*shape{}, done: map[string]*shape{},
	}
	root := b.root()
	if b.err != nil {
		return nil, usage{}, b.err
	}
	if root.form == formNever || !root.kinds().has(kindAny) {
		return nil, usage{}, errors.New("no arguments satisfy it")
	}
	if root.form == formLiteral && len(root.literals) == 1 && string(root.literals[0]) == "{}" {
		root.form = formObject // which the provider is not shown at all
	}
	w := &writer{p: p, names: map[*shape]string{}}
	m := &shaped{p: p, root: root, wrapped: root.form != formObject}
	f := &Form{Schema: w.root(m), Losses: b.losses.list, mapping: m}
	w.used.cut, w.used.recursive = b.shapes > maxShapes, b.recursive
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
	b.losses = losses{}
	return b.build(just(place{"", b.doc.root}), 0)
}

// usage is what a form takes of the bounds of a profile.
type usage struct {
	properties, enum, chars, enumChars, depth int
	cut                                       bool // the schema was not written out whole
	recursive                                 bool // a recursion was written out
}

// excess returns which bound a form exceeds that cannot be made smaller.
func (u usage) excess(p *Profile, size int) error {
	switch {
	case u.properties > p.properties():
		return fmt.Errorf("it needs %d properties, and %s takes %d", u.properties, p.Provider, p.properties())
	case u.chars > p.chars():
		return fmt.Errorf("its keys and values have %d characters, and %s takes %d", u.chars, p.Provider, p.chars())
	case size > maxOutput:
		return fmt.Errorf("its form has %d bytes, and at most %d are declared", size, maxOutput)
	}
	return nil
}
