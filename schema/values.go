package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// valueSet is the values of enum or const.
type valueSet struct {
	keyword   keyword
	strings   map[string]struct{}
	numbers   map[string]struct{} // canonical
	complex   map[string]struct{} // arrays and objects, canonical
	yes, no   bool
	null      bool
	composite bool
	smalls    map[int64]struct{}
	text      string // the values for a reader, bounded
}

// enumOf returns the values that both enum and const allow, nil without either.
func enumOf(s *subschema) *valueSet {
	switch {
	case s.constant != nil && s.enum != nil:
		allowed := newValueSet(kwEnum, *s.enum)
		only := newValueSet(kwConst, []any{*s.constant})
		if !allowed.has(encode(*s.constant)) {
			return newValueSet(kwEnum, nil)
		}
		return only
	case s.constant != nil:
		return newValueSet(kwConst, []any{*s.constant})
	case s.enum != nil:
		return newValueSet(kwEnum, *s.enum)
	}
	return nil
}

func newValueSet(kw keyword, values []any) *valueSet {
	s := &valueSet{
		keyword: kw, strings: map[string]struct{}{}, numbers: map[string]struct{}{},
		complex: map[string]struct{}{}, smalls: map[int64]struct{}{},
	}
	var texts []string
	for _, v := range values {
		raw := encode(v)
		s.put(v, raw)
		texts = append(texts, string(raw))
	}
	s.text = listText(texts)
	return s
}

func (s *valueSet) put(v any, raw []byte) {
	switch v := v.(type) {
	case nil:
		s.null = true
	case bool:
		s.yes, s.no = s.yes || v, s.no || !v
	case string:
		s.strings[v] = struct{}{}
	case json.Number:
		d := parseDecimal(raw)
		s.numbers[string(d.appendCanonical(nil))] = struct{}{}
		if d.isInt() && d.exp <= 18 {
			s.smalls[d.int64()] = struct{}{}
		}
	default:
		s.composite = true
		s.complex[string(appendCanonical(nil, raw))] = struct{}{}
	}
}

// int64 returns the value of an integer of at most 18 digits.
func (d decimal) int64() int64 {
	var v int64
	digits := int64(0)
	for _, c := range d.digits {
		if c != '.' {
			v = v*10 + int64(c-'0')
			digits++
		}
	}
	for ; digits < d.exp; digits++ {
		v *= 10
	}
	if d.neg {
		return -v
	}
	return v
}

func (s *valueSet) has(raw []byte) bool {
	switch rawjson.KindOf(raw) {
	case rawjson.KindString:
		text, _ := rawjson.Unquote(raw)
		return s.hasString([]byte(text))
	case rawjson.KindNumber:
		n := newNumber(raw, false)
		return s.hasNumber(&n)
	case rawjson.KindBool, rawjson.KindNull:
		return s.hasLiteral(raw[0])
	}
	return s.hasComposite(raw)
}

func (s *valueSet) hasString(text []byte) bool {
	_, ok := s.strings[string(text)]
	return ok
}

func (s *valueSet) hasLiteral(first byte) bool {
	return first == 't' && s.yes || first == 'f' && s.no || first == 'n' && s.null
}

func (s *valueSet) hasNumber(n *number) bool {
	if n.isSmall {
		_, ok := s.smalls[n.small]
		return ok
	}
	_, ok := s.numbers[string(n.decimal().appendCanonical(nil))]
	return ok
}

func (s *valueSet) hasComposite(raw []byte) bool {
	if len(raw) == 0 {
		return false
	}
	_, ok := s.complex[string(appendCanonical(nil, raw))]
	return ok
}

// types returns the types of the values.
func (s *valueSet) types() typeSet {
	var t typeSet
	for _, has := range []struct {
		some bool
		t    typeSet
	}{
		{len(s.strings) > 0, typeString}, {len(s.numbers) > 0, typeNumber | typeInteger},
		{s.yes || s.no, typeBoolean}, {s.null, typeNull}, {s.composite, typeArray | typeObject},
	} {
		if has.some {
			t |= has.t
		}
	}
	return t
}

// encode writes a decoded value back, its numbers as they were.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return nil
	}
	return bytes.TrimRight(buf.Bytes(), "\n")
}

// listText joins values for a reader and leaves out what goes beyond a bound.
func listText(texts []string) string {
	const maxText, maxValues = 200, 12
	var sb strings.Builder
	for i, t := range texts {
		if i == maxValues || i > 0 && sb.Len()+len(t) > maxText {
			sb.WriteString(", …")
			break
		}
		if i > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString(clip(t, maxName))
	}
	return sb.String()
}

// appendCanonical appends a text of a well-formed value that is the same for
// values which are equal by JSON Schema: numbers by value, objects whatever the
// order of their members.
func appendCanonical(dst, raw []byte) []byte {
	switch rawjson.KindOf(raw) {
	case rawjson.KindNumber:
		return parseDecimal(rawjson.Trim(raw)).appendCanonical(dst)
	case rawjson.KindString:
		text, _ := rawjson.Unquote(raw)
		return rawjson.AppendQuoted(dst, text)
	case rawjson.KindArray:
		dst = append(dst, '[')
		it := rawjson.Array(raw)
		for it.Next() {
			dst = append(appendCanonical(dst, it.Value()), ',')
		}
		return append(dst, ']')
	case rawjson.KindObject:
		return appendCanonicalObject(dst, raw)
	}
	return append(dst, rawjson.Trim(raw)...)
}

func appendCanonicalObject(dst, raw []byte) []byte {
	type member struct {
		key   string
		value []byte
	}
	var members []member
	it := rawjson.Object(raw)
	for it.Next() {
		members = append(members, member{it.Key(), it.Value()})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	dst = append(dst, '{')
	for _, m := range members {
		dst = append(rawjson.AppendQuoted(dst, m.key), ':')
		dst = append(appendCanonical(dst, m.value), ',')
	}
	return append(dst, '}')
}
