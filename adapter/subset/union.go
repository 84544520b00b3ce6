package subset

import (
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// fillUnion spreads the first union over everything else that applies.
func (b *builder) fillUnion(s *shape, m *merged, depth int) {
	m.groups = b.affordable(s, m)
	g := m.groups[0]
	var others conj
	for i, p := range m.parts {
		switch {
		case i == g.owner:
			p.hidden += g.keyword
		case p.hidden == "":
			p.hidden = "~"
		}
		others = append(others, p)
	}
	s.form = formUnion
	b.unions++
	for _, branch := range g.branches {
		c := append(slices.Clone(others), part{place: branch})
		v := b.build(c, depth)
		if v.form == formNever && !v.holds {
			continue
		}
		s.branches = append(s.branches, v)
	}
	b.unions--
	s.settle()
	if g.keyword == "oneOf" && !distinct(s.branches) {
		b.losses.add(m.parts[g.owner].child("oneOf"), "oneOf", b.p.Provider+" cannot demand that only one branch matches: it is taken for anyOf")
	}
	s.splice()
	s.joinLiterals()
	b.tellApart(s, m.parts[g.owner].child(g.keyword))
}

// affordable returns the unions that can be spread. What would make too many
// branches is said in words.
func (b *builder) affordable(s *shape, m *merged) []group {
	total := 1
	var kept []group
	for i, g := range m.groups {
		if i > 0 && total*len(g.branches) > maxBranches {
			b.drop(s, m, g)
			continue
		}
		total *= max(len(g.branches), 1)
		kept = append(kept, g)
	}
	if g := &kept[0]; len(g.branches) > 4*maxBranches {
		b.losses.add(m.parts[g.owner].child(g.keyword), g.keyword, "only the first branches of so many are declared")
		g.branches = g.branches[:4*maxBranches]
	}
	return kept
}

// drop says in words that a union applies, and hides it.
func (b *builder) drop(s *shape, m *merged, g group) {
	owner := &m.parts[g.owner]
	v, _ := member(owner.raw, g.keyword)
	s.notes.add("It must also match " + g.keyword + " of " + short(v) + ".")
	b.losses.add(owner.child(g.keyword), g.keyword, "several unions apply to one value, and spreading all of them would take too much room")
	owner.hidden += g.keyword
}

// splice takes branches that are plain unions apart.
func (s *shape) splice() {
	var flat []*shape
	for _, v := range s.branches {
		if v.form == formUnion && !v.holds && v.description == "" && len(v.notes) == 0 {
			flat = append(flat, v.branches...)
		} else {
			flat = append(flat, v)
		}
	}
	s.branches = flat
}

// joinLiterals makes one enumeration of branches that each are values of one
// kind.
func (s *shape) joinLiterals() {
	if len(s.branches) < 2 {
		return
	}
	first := s.branches[0]
	for _, v := range s.branches {
		if v.form != formLiteral || v.kind != first.kind || v.asText != first.asText || v.holds {
			return
		}
	}
	joined := &shape{form: formLiteral, kind: first.kind, asText: first.asText, description: s.description, notes: s.notes}
	for _, v := range s.branches {
		joined.literals = append(joined.literals, v.literals...)
		if said := v.notes.below(v.description); said != "" && len(v.literals) == 1 {
			joined.notes = append(joined.notes, short(v.literals[0])+": "+said)
		}
	}
	joined.literals = distinctValues(joined.literals)
	s.form, s.kind, s.asText, s.literals, s.notes, s.branches = joined.form, joined.kind, joined.asText, joined.literals, joined.notes, nil
}

// distinct reports whether no value can be of two of the shapes, as far as that
// is easily seen.
func distinct(shapes []*shape) bool {
	for i, a := range shapes {
		for _, c := range shapes[i+1:] {
			if !apart(a, c, 0) {
				return false
			}
		}
	}
	return true
}

func apart(a, c *shape, depth int) bool {
	if !a.kinds().has(c.kinds()) {
		return true
	}
	switch {
	case depth > 4:
		return false
	case a.form == formLiteral && c.form == formLiteral:
		return len(distinctValues(slices.Concat(a.literals, c.literals))) == len(a.literals)+len(c.literals)
	case a.form == formObject && c.form == formObject:
		return lacks(a, c) || lacks(c, a) || differs(a, c, depth)
	}
	return false
}

// lacks reports whether a demands a property that c does not take.
func lacks(a, c *shape) bool {
	if !c.closed {
		return false
	}
	return slices.ContainsFunc(a.props, func(p property) bool { return p.required && c.property(p.own) == nil })
}

// differs reports whether both demand a property whose values are apart.
func differs(a, c *shape, depth int) bool {
	return slices.ContainsFunc(a.props, func(p property) bool {
		other := c.property(p.own)
		return p.required && other != nil && other.required && apart(p.shape, other.shape, depth+1)
	})
}

func (s *shape) property(own string) *property {
	for i := range s.props {
		if s.props[i].own == own {
			return &s.props[i]
		}
	}
	return nil
}

// kinds returns the kinds of the values of the original that a shape stands for.
func (s *shape) kinds() kinds {
	switch s.form {
	case formNever:
		return 0
	case formPairs:
		return kindObject
	case formUnion:
		var k kinds
		for _, v := range s.leaves(nil, map[*shape]bool{}) {
			k |= v.kinds()
		}
		return k
	case formAny:
		return kindAny
	}
	return s.kind
}

// ownKind reports whether a value of the original can be one of the shape, by
// its kind.
func (s *shape) ownKind(v []byte) bool {
	return rawjson.KindOf(v) != rawjson.KindInvalid && s.kinds().has(kindOf(v))
}
