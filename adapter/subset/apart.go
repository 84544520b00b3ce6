package subset

import (
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// tellApart changes the branches of a union whose forms could be taken for one
// another, though they mean different values: a list of keys and values beside a
// list, a tuple beside an object, and texts beside JSON texts.
func (b *builder) tellApart(s *shape, at string) {
	if s.form != formUnion {
		return
	}
	list := s.leaves(nil, map[*shape]bool{})
	if slices.ContainsFunc(list, func(v *shape) bool { return v.form == formAny }) {
		s.dropMapped()
		return
	}
	changed := b.asJSONText(list, at, formPairs, formArray, formTuple)
	changed = b.asJSONText(list, at, formSlots, formObject) || changed
	changed = b.asScalars(list, at) || changed
	changed = b.alikeAsJSONText(list, at) || changed
	if textsConflict(list) {
		list, changed = b.joinTexts(list, at), true
	}
	switch {
	case !changed:
	case len(list) == 1:
		only := list[0].under(s)
		only.holds = s.holds
		*s = *only
	default:
		s.branches = list
	}
}

// dropMapped takes out of a union with a branch for any value those branches whose
// values are not given as they are.
func (s *shape) dropMapped() {
	s.branches = slices.DeleteFunc(s.branches, func(v *shape) bool { return !v.verbatim(0) })
}

// verbatim reports whether values of the shape are given to the provider as they
// are.
func (s *shape) verbatim(depth int) bool {
	if depth > 16 || s.holds || s.extra != nil || s.item != nil && !s.item.verbatim(depth+1) {
		return false
	}
	mapped := func(v *shape) bool { return !v.verbatim(depth + 1) }
	switch s.form {
	case formAny, formScalar:
		return true
	case formLiteral:
		return !s.asText
	case formArray, formTuple, formUnion:
		return !slices.ContainsFunc(s.branches, mapped)
	case formObject:
		return !slices.ContainsFunc(s.props, func(p property) bool { return p.own != p.wire || mapped(p.shape) })
	}
	return false
}

// asJSONText makes JSON texts of the branches of one form when another branch has
// one of the others, which a provider writes alike.
func (b *builder) asJSONText(list []*shape, at string, form form, others ...form) bool {
	if !slices.ContainsFunc(list, func(v *shape) bool { return slices.Contains(others, v.form) }) {
		return false
	}
	changed := false
	for i, v := range list {
		if v.form == form && !v.holds {
			list[i], changed = b.branchAsJSONText(v, at), true
		}
	}
	return changed
}

func (b *builder) branchAsJSONText(v *shape, at string) *shape {
	b.losses.add(at, "anyOf", "a branch is given as JSON text, as its form for "+b.p.Provider+" is also that of another")
	return &shape{form: formText, kind: v.kinds(), description: v.description}
}

// alikeAsJSONText makes JSON texts of the lists and objects for which another
// branch has the same form, and reads what is in it in another way.
func (b *builder) alikeAsJSONText(list []*shape, at string) bool {
	changed := false
	for i, v := range list {
		if v.holds || v.wireKind() == kindString || b.compared > maxCompared {
			continue
		}
		if slices.ContainsFunc(list[:i], func(w *shape) bool { return b.confusable(w, v, 0) }) {
			list[i], changed = b.branchAsJSONText(v, at), true
		}
	}
	return changed
}

// maxCompared bounds how many pairs of shapes one attempt to compile compares: the
// work grows with the product of what is compared.
const maxCompared = 20_000

// confusable reports whether what a provider sends may be of both shapes and mean
// different values, as far as their structure tells.
func (b *builder) confusable(v, w *shape, depth int) bool {
	if b.compared++; b.compared > maxCompared {
		return false
	}
	switch {
	case v == nil || w == nil || v.holds || w.holds || depth > 8 || !v.wireKind().has(w.wireKind()):
		return false
	case v.form == formUnion || w.form == formUnion:
		others := w.leaves(nil, map[*shape]bool{})
		return slices.ContainsFunc(v.leaves(nil, map[*shape]bool{}), func(v *shape) bool {
			return slices.ContainsFunc(others, func(w *shape) bool { return b.confusable(v, w, depth+1) })
		})
	case v.form == formObject && w.form == formObject:
		return b.objectsConfusable(v, w, depth)
	case v.listed() && w.listed():
		for i := range max(len(v.branches), len(w.branches)) + 1 {
			if b.confusable(v.at(i), w.at(i), depth+1) {
				return true
			}
		}
		return false
	case v.form == formPairs && w.form == formPairs:
		return b.confusable(v.item, w.item, depth+1)
	}
	return v.form != w.form && (v.form == formPairs || w.form == formPairs || v.form == formSlots || w.form == formSlots) ||
		textsConflict([]*shape{v, w})
}

// listed reports whether a shape is a list whose elements stand at their places.
func (s *shape) listed() bool {
	return s.form == formArray || s.form == formTuple || s.form == formSlots
}

// at returns the shape of the element at a place of a list.
func (s *shape) at(i int) *shape {
	if i < len(s.branches) {
		return s.branches[i]
	}
	return s.item
}

func (b *builder) objectsConfusable(v, w *shape, depth int) bool {
	if b.p.AllRequired && !sameKeys(v, w) || slices.ContainsFunc(v.props, func(p property) bool {
		other := w.property(p.own)
		return other != nil && p.required && other.required && writtenApart(p.shape, other.shape)
	}) {
		return false
	}
	return slices.ContainsFunc(v.props, func(p property) bool {
		other := w.property(p.own)
		return other != nil && b.confusable(p.shape, other.shape, depth+1)
	})
}

// writtenApart reports whether nothing that a provider sends can be of both shapes.
func writtenApart(v, w *shape) bool {
	if v.form != formLiteral || w.form != formLiteral {
		return !v.wireKind().has(w.wireKind())
	}
	var all [][]byte
	for _, s := range []*shape{v, w} {
		for _, own := range s.literals {
			all = append(all, s.wireLiteral(own))
		}
	}
	return len(distinctValues(all)) == len(all)
}

func sameKeys(v, w *shape) bool {
	return len(v.props) == len(w.props) && (v.extra == nil) == (w.extra == nil) &&
		!slices.ContainsFunc(v.props, func(p property) bool { return w.property(p.own) == nil })
}

// asScalars makes plain numbers and booleans of those that are written as text
// beside a text.
func (b *builder) asScalars(list []*shape, at string) bool {
	if !slices.ContainsFunc(list, func(v *shape) bool { return v.wireKind() == kindString && v.kinds().has(kindString) }) {
		return false
	}
	changed := false
	for i, v := range list {
		if v.form != formLiteral || !v.asText || !v.kind.has(kindNumber|kindBool) || v.holds {
			continue
		}
		scalar := &shape{form: formScalar, kind: v.kind, description: v.description, notes: slices.Clone(v.notes)}
		scalar.notes.add("One of: " + shortList(v.literals, 30) + ".")
		b.losses.add(at, "enum", b.p.Provider+" enumerates these as texts, which could not be told from others; the description says them")
		list[i], changed = scalar, true
	}
	return changed
}

// plainText reports whether texts are given as they are.
func (s *shape) plainText() bool { return s.form == formScalar && s.kind == kindString }

// jsonText reports whether other values than texts are given as their JSON.
func (s *shape) jsonText() bool {
	return s.form == formText || s.form == formLiteral && s.asText
}

// textsConflict reports whether a text may be itself by one branch, and JSON by
// another.
func textsConflict(list []*shape) bool {
	var all, read, least kinds = 0, 0, kindAny // of JSON texts; of those that are not enumerated; of the least that takes plain texts
	plain := slices.ContainsFunc(list, (*shape).plainText)
	for _, v := range list {
		if !v.jsonText() {
			continue
		}
		if all |= v.kinds(); plain {
			return true
		}
		if v.form == formText {
			read |= v.kind
			if v.kind.has(kindString) {
				least &= v.kind
			}
		}
	}
	return all&^least != 0 || all != 0 && literalsConflict(list, read)
}

// literalsConflict reports whether an enumerated text is also the JSON of a value
// of the kinds that are read, or of an enumerated one.
func literalsConflict(list []*shape, read kinds) bool {
	asText := map[string]bool{}
	for _, v := range list {
		for _, own := range v.literals {
			if v.asText {
				asText[string(own)] = true
			}
		}
	}
	for _, v := range list {
		if v.form == formLiteral && !v.asText && slices.ContainsFunc(v.literals, func(own []byte) bool {
			said := text(own)
			return asText[said] || read.has(kindOf(rawjson.Trim([]byte(said)))) && rawjson.Check([]byte(said), rawjson.Options{}) == nil
		}) {
			return true
		}
	}
	return false
}

// joinTexts makes one JSON text of all branches that are texts for the provider.
func (b *builder) joinTexts(list []*shape, at string) []*shape {
	joined := &shape{form: formText}
	out := []*shape{joined}
	for _, v := range list {
		if v.holds || v.wireKind() != kindString {
			out = append(out, v)
			continue
		}
		joined.kind |= v.kinds()
		if said := v.notes.below(v.description); said != "" {
			joined.notes.add(said)
		}
		if v.form == formLiteral {
			joined.notes.add("One of: " + shortList(v.literals, 30) + ".")
		}
	}
	b.losses.add(at, "anyOf", "texts and values as JSON text cannot be told apart: all of them are given as JSON text")
	return out
}
