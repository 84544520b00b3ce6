package subset

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

var errNoPlace = errors.New("the form has no place for the value")

func (m *shaped) forward(dst, value []byte) ([]byte, error) {
	if !m.wrapped {
		return m.wire(dst, m.root, value)
	}
	dst, err := m.wire(append(dst, `{"`+WrapKey+`":`...), m.root, value)
	return append(dst, '}'), err
}

// wire appends the provider's form of a value.
func (m *shaped) wire(dst []byte, s *shape, v []byte) ([]byte, error) {
	if s.form != formUnion && !s.ownKind(v) {
		return dst, errNoPlace
	}
	switch s.form {
	case formLiteral:
		return s.literalWire(dst, v)
	case formText:
		compact, err := rawjson.Compact(v)
		return rawjson.AppendQuoted(dst, string(compact)), err
	case formArray, formTuple:
		return m.listWire(dst, s, v)
	case formSlots:
		return m.slotsWire(dst, s, v)
	case formPairs:
		return m.pairsWire(dst, s, v)
	case formObject:
		return m.objectWire(dst, s, v)
	case formUnion:
		for _, b := range s.leaves(nil, map[*shape]bool{}) {
			if out, err := m.wire(nil, b, v); err == nil && m.fits(b, out, 0) {
				return append(dst, out...), nil
			}
		}
		return dst, errNoPlace
	}
	return append(dst, v...), nil
}

func (s *shape) literalWire(dst, v []byte) ([]byte, error) {
	id := identity(v)
	for _, own := range s.literals {
		if identity(own) == id {
			return append(dst, s.wireLiteral(own)...), nil
		}
	}
	return dst, errNoPlace
}

func (m *shaped) listWire(dst []byte, s *shape, v []byte) ([]byte, error) {
	dst = append(dst, '[')
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
			continue
		}
		var err error
		if dst, err = m.wire(dst, e, it.Value()); err != nil {
			return dst, within(strconv.Itoa(n), err)
		}
	}
	return append(dst, ']'), nil
}

func (m *shaped) slotsWire(dst []byte, s *shape, v []byte) ([]byte, error) {
	o := &object{}
	var more []byte
	n := 0
	for it := rawjson.Array(v); it.Next(); n++ {
		if n < len(s.branches) {
			slot, err := m.wire(nil, s.branches[n], it.Value())
			if err != nil {
				return dst, within(strconv.Itoa(n), err)
			}
			if n >= s.min && m.p.AllRequired && rawjson.KindOf(slot) == rawjson.KindNull {
				return dst, errNoPlace // it would stand for an element that is left out
			}
			o.add(slotKey(n), slot)
			continue
		}
		if s.item == nil {
			return dst, errNoPlace
		}
		out, err := m.wire(nil, s.item, it.Value())
		if err != nil {
			return dst, within(strconv.Itoa(n), err)
		}
		if len(more) > 0 {
			more = append(more, ',')
		}
		more = append(more, out...)
	}
	if n < s.min {
		return dst, errNoPlace
	}
	for i := n; i < len(s.branches) && m.p.AllRequired; i++ {
		o.add(slotKey(i), []byte("null"))
	}
	switch {
	case more != nil:
		o.add(restKey, append(append([]byte{'['}, more...), ']'))
	case s.item != nil && m.p.AllRequired:
		o.add(restKey, []byte("null"))
	}
	return append(dst, o.end()...), nil
}

func (m *shaped) pairsWire(dst []byte, s *shape, v []byte) ([]byte, error) {
	dst = append(dst, '[')
	start := len(dst)
	for it := rawjson.Object(v); it.Next(); {
		var err error
		if dst, err = m.pairWire(dst, start, s, it.Key(), it.Value()); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func (m *shaped) pairWire(dst []byte, start int, s *shape, key string, v []byte) ([]byte, error) {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	dst = rawjson.AppendQuoted(append(dst, `{"key":`...), key)
	dst, err := m.wire(append(dst, `,"value":`...), s.item, v)
	if err != nil {
		return dst, within(key, err)
	}
	return append(dst, '}'), nil
}

func (m *shaped) objectWire(dst []byte, s *shape, v []byte) ([]byte, error) {
	o := &object{}
	for i := range s.props {
		p := &s.props[i]
		given, ok := member(v, p.own)
		switch {
		case ok:
			out, err := m.wire(nil, p.shape, given)
			if err != nil {
				return dst, within(p.own, err)
			}
			if m.p.AllRequired && !p.required && rawjson.KindOf(out) == rawjson.KindNull {
				return dst, errNoPlace // it would stand for a property that is left out
			}
			o.add(p.wire, out)
		case p.required:
			return dst, fmt.Errorf("%q is missing", clip(p.own))
		case m.p.AllRequired:
			o.add(p.wire, []byte("null"))
		}
	}
	if err := m.furtherWire(o, s, v); err != nil {
		return dst, err
	}
	return append(dst, o.end()...), nil
}

// furtherWire adds the members that the object does not name.
func (m *shaped) furtherWire(o *object, s *shape, v []byte) error {
	pairs := []byte{'['}
	for it := rawjson.Object(v); it.Next(); {
		key := it.Key()
		if s.property(key) != nil {
			continue
		}
		var err error
		switch {
		case s.extra != nil:
			pairs, err = m.pairWire(pairs, 1, s.extra, key, it.Value())
		case m.p.Maps && !s.closed && s.item != nil:
			var out []byte
			out, err = m.wire(nil, s.item, it.Value())
			o.add(key, out)
		case m.p.Maps && !s.closed:
			o.add(key, it.Value())
		default:
			err = errNoPlace
		}
		if err != nil {
			return within(key, err)
		}
	}
	switch {
	case len(pairs) > 1:
		o.add(s.extraKey, append(pairs, ']'))
	case s.extra != nil && m.p.AllRequired:
		o.add(s.extraKey, []byte("null"))
	}
	return nil
}
