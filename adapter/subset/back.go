package subset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// shaped is the mapping of a form that was made of shapes.
type shaped struct {
	p       *Profile
	root    *shape
	wrapped bool
	exact   bool // an object fits only where all its keys are known, and null only where it is taken
}

func (m *shaped) back(dst, sent []byte) ([]byte, error) {
	if !m.wrapped {
		return m.value(dst, m.root, sent)
	}
	v, ok := member(sent, WrapKey)
	if !ok {
		return dst, errors.New(`"` + WrapKey + `" is missing`)
	}
	return m.value(dst, m.root, v)
}

// value appends the value that a model meant. What does not have the declared
// form is passed on as it is where that is possible, for the door to judge.
func (m *shaped) value(dst []byte, s *shape, v []byte) ([]byte, error) {
	switch s.form {
	case formLiteral:
		return s.literalBack(dst, v), nil
	case formText:
		return s.textBack(dst, v)
	case formArray, formTuple:
		return m.list(dst, s, v)
	case formSlots:
		return m.slotsBack(dst, s, v)
	case formPairs:
		return m.pairsBack(dst, s, v)
	case formObject:
		return m.object(dst, s, v)
	case formUnion:
		if b := m.branchFor(s, v); b != nil {
			return m.value(dst, b, v)
		}
	}
	return append(dst, v...), nil
}

func (s *shape) literalBack(dst, v []byte) []byte {
	if sent, ok := rawjson.Unquote(v); ok && s.asText {
		for _, own := range s.literals {
			if string(own) == sent {
				return append(dst, own...)
			}
		}
	}
	return append(dst, v...)
}

// textBack appends the JSON that a text holds. A text that holds none is itself
// the value where the original takes texts.
func (s *shape) textBack(dst, v []byte) ([]byte, error) {
	sent, ok := rawjson.Unquote(v)
	if !ok {
		return append(dst, v...), nil // given as it is
	}
	err := rawjson.Check([]byte(sent), rawjson.Options{})
	if err == nil && s.kind.has(kindOf(rawjson.Trim([]byte(sent)))) {
		return append(dst, rawjson.Trim([]byte(sent))...), nil
	}
	if s.kind.has(kindString) {
		return append(dst, v...), nil
	}
	if err == nil {
		return dst, fmt.Errorf("a JSON text holds a value of another kind than %s", kindWords(s.kind))
	}
	return dst, fmt.Errorf("a JSON text for %s is %w", kindWords(s.kind), err)
}

func kindWords(k kinds) string {
	words := ""
	for _, one := range k.single() {
		if words != "" {
			words += " or "
		}
		words += one.name()
	}
	return words
}

func (m *shaped) list(dst []byte, s *shape, v []byte) ([]byte, error) {
	if rawjson.KindOf(v) != rawjson.KindArray {
		return append(dst, v...), nil
	}
	dst = append(dst, '[')
	var err error
	n := 0
	for it := rawjson.Array(v); it.Next(); n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		e := s.item
		if n < len(s.branches) {
			e = s.branches[n]
		}
		if e == nil {
			dst = append(dst, it.Value()...)
		} else if dst, err = m.value(dst, e, it.Value()); err != nil {
			return dst, within(strconv.Itoa(n), err)
		}
	}
	return append(dst, ']'), nil
}

// within says where an error happened.
func within(key string, err error) error { return fmt.Errorf("in %q: %w", clip(key), err) }

func (m *shaped) slotsBack(dst []byte, s *shape, v []byte) ([]byte, error) {
	if rawjson.KindOf(v) != rawjson.KindObject {
		return append(dst, v...), nil
	}
	dst = append(dst, '[')
	start := len(dst)
	missing := -1
	for i, e := range s.branches {
		slot, ok := member(v, slotKey(i))
		if !ok || i >= s.min && rawjson.KindOf(slot) == rawjson.KindNull && (m.p.AllRequired || !e.takesNull()) {
			if missing < 0 {
				missing = i
			}
			continue
		}
		if missing >= 0 {
			return dst, fmt.Errorf("%s is given without %s", slotKey(i), slotKey(missing))
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = m.value(dst, e, slot); err != nil {
			return dst, within(slotKey(i), err)
		}
	}
	return m.restBack(dst, s, v, start, missing)
}

// restBack appends what follows the slots, and ends the list.
func (m *shaped) restBack(dst []byte, s *shape, v []byte, start, missing int) ([]byte, error) {
	more, ok := member(v, restKey)
	if !ok || s.item == nil || rawjson.Len(more) <= 0 {
		return append(dst, ']'), nil
	}
	if missing >= 0 {
		return dst, fmt.Errorf("%s is given without %s", restKey, slotKey(missing))
	}
	for it := rawjson.Array(more); it.Next(); {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = m.value(dst, s.item, it.Value()); err != nil {
			return dst, within(restKey, err)
		}
	}
	return append(dst, ']'), nil
}

func (m *shaped) pairsBack(dst []byte, s *shape, v []byte) ([]byte, error) {
	if rawjson.KindOf(v) != rawjson.KindArray {
		return append(dst, v...), nil
	}
	dst = append(dst, '{')
	dst, err := m.pairMembers(dst, len(dst), s, v, map[string]bool{})
	return append(dst, '}'), err
}

// pairMembers appends the members that a list of keys and values stands for.
func (m *shaped) pairMembers(dst []byte, start int, s *shape, list []byte, seen map[string]bool) ([]byte, error) {
	for it := rawjson.Array(list); it.Next(); {
		quoted, hasKey := member(it.Value(), "key")
		value, hasValue := member(it.Value(), "value")
		key, isText := rawjson.Unquote(quoted)
		if !hasKey || !hasValue || !isText {
			return dst, errors.New(`a list of keys and values holds something else than {"key", "value"}`)
		}
		if seen[key] {
			return dst, fmt.Errorf("the key %q is given twice", clip(key))
		}
		seen[key] = true
		var err error
		if dst, err = m.value(appendKey(dst, start, key), s.item, value); err != nil {
			return dst, within(key, err)
		}
	}
	return dst, nil
}

func (m *shaped) object(dst []byte, s *shape, v []byte) ([]byte, error) {
	if rawjson.KindOf(v) != rawjson.KindObject {
		return append(dst, v...), nil
	}
	dst = append(dst, '{')
	start := len(dst)
	seen := map[string]bool{}
	var err error
	for it := rawjson.Object(v); it.Next(); {
		if dst, err = m.memberBack(dst, start, s, it.Key(), it.Value(), seen); err != nil {
			return dst, within(it.Key(), err)
		}
	}
	return append(dst, '}'), nil
}

// memberBack appends what one member of an object stands for. A null in the place
// of a property that need not be there is one that is not.
func (m *shaped) memberBack(dst []byte, start int, s *shape, key string, v []byte, seen map[string]bool) ([]byte, error) {
	if s.extra != nil && key == s.extraKey {
		return m.pairMembers(dst, start, s.extra, v, seen)
	}
	p := s.byWire(key)
	if p == nil {
		if seen[key] = true; s.item != nil {
			return m.value(appendKey(dst, start, key), s.item, v)
		}
		return append(appendKey(dst, start, key), v...), nil
	}
	if rawjson.KindOf(v) == rawjson.KindNull && !p.required && (m.p.AllRequired || !p.shape.takesNull()) {
		return dst, nil
	}
	if seen[p.own] {
		return dst, fmt.Errorf("the key %q is given twice", clip(p.own))
	}
	seen[p.own] = true
	return m.value(appendKey(dst, start, p.own), p.shape, v)
}

func (s *shape) byWire(key string) *property {
	i, ok := slices.BinarySearchFunc(s.sorted, key, func(i int, key string) int { return strings.Compare(s.props[i].wire, key) })
	if !ok {
		return nil
	}
	return &s.props[s.sorted[i]]
}

// sort prepares byWire, once the properties are complete.
func (s *shape) sort() {
	s.sorted = make([]int, len(s.props))
	for i := range s.sorted {
		s.sorted[i] = i
	}
	slices.SortFunc(s.sorted, func(i, j int) int { return strings.Compare(s.props[i].wire, s.props[j].wire) })
}

// branchFor returns the branch of a union that a value in the provider's form is
// of: the first whose form it has, else the first of its kind. It is no union
// itself.
func (m *shaped) branchFor(s *shape, v []byte) *shape {
	leaves := s.leaves(nil, map[*shape]bool{})
	for _, m := range []*shaped{{p: m.p, exact: true}, {p: m.p}} {
		for _, b := range leaves {
			if m.fits(b, v, 0) {
				return b
			}
		}
	}
	for _, b := range leaves {
		if b.wireKind().has(kindOf(v)) {
			return b
		}
	}
	return nil
}

// leaves returns the branches of a union and of the unions among them.
func (s *shape) leaves(list []*shape, seen map[*shape]bool) []*shape {
	if s.form != formUnion {
		return append(list, s)
	}
	if seen[s] {
		return list
	}
	seen[s] = true
	for _, b := range s.branches {
		list = b.leaves(list, seen)
	}
	return list
}

// wireKind returns the kinds of the values in the provider's form.
func (s *shape) wireKind() kinds {
	switch s.form {
	case formAny:
		return kindAny
	case formText:
		return kindString
	case formPairs, formArray, formTuple:
		return kindArray
	case formSlots, formObject:
		return kindObject
	case formLiteral:
		if s.asText {
			return kindString
		}
	case formUnion:
		return kindAny
	}
	return s.kind
}

// fits reports whether a value has the provider's form of a shape, limits apart.
func (m *shaped) fits(s *shape, v []byte, depth int) bool {
	if s.form == formUnion {
		for _, b := range s.leaves(nil, map[*shape]bool{}) {
			if m.fits(b, v, depth) {
				return true
			}
		}
		return false
	}
	if !s.wireKind().has(kindOf(v)) || depth >= 64 {
		return false
	}
	switch s.form {
	case formText:
		_, err := s.textBack(nil, v)
		return err == nil
	case formLiteral:
		return s.hasLiteral(v)
	case formArray, formTuple:
		return m.listFits(s, v, depth)
	case formSlots:
		return m.objectFits(s.asObject(), v, depth)
	case formObject:
		return m.objectFits(s, v, depth)
	case formPairs:
		for it := rawjson.Array(v); it.Next(); {
			value, ok := member(it.Value(), "value")
			if _, hasKey := member(it.Value(), "key"); !ok || !hasKey || !m.fits(s.item, value, depth+1) {
				return false
			}
		}
	}
	return true
}

func (s *shape) hasLiteral(v []byte) bool {
	id := identity(v)
	return slices.ContainsFunc(s.literals, func(own []byte) bool { return identity(s.wireLiteral(own)) == id })
}

func (m *shaped) listFits(s *shape, v []byte, depth int) bool {
	n := 0
	for it := rawjson.Array(v); it.Next(); n++ {
		e := s.item
		if n < len(s.branches) {
			e = s.branches[n]
		}
		if e != nil && !m.fits(e, it.Value(), depth+1) || e == nil && s.closed {
			return false
		}
	}
	return n >= s.min
}

func (m *shaped) objectFits(s *shape, v []byte, depth int) bool {
	members := map[string][]byte{}
	for it := rawjson.Object(v); it.Next(); {
		members[it.Key()] = it.Value()
	}
	for i := range s.props {
		p := &s.props[i]
		given, ok := members[p.wire]
		switch {
		case !ok:
			if p.required || m.p.AllRequired {
				return false
			}
		case rawjson.KindOf(given) == rawjson.KindNull && !p.required && (m.p.AllRequired || !m.exact):
		case !m.fits(p.shape, given, depth+1):
			return false
		}
	}
	for key, given := range members {
		if s.byWire(key) == nil && (s.extra == nil || key != s.extraKey) && !m.furtherFits(s, given, depth) {
			return false
		}
	}
	return true
}

// furtherFits reports whether an object may have a member that it does not name.
func (m *shaped) furtherFits(s *shape, v []byte, depth int) bool {
	if s.item != nil {
		return m.fits(s.item, v, depth+1)
	}
	return !s.closed && !m.p.AllRequired && !m.exact
}
