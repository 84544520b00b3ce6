package schema

import (
	"math/big"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// limit reads a keyword whose value is a number.
func (r *reader) limit(s *jsonschema.Schema, key, v []byte) (known, ok bool) {
	switch string(key) {
	case "minimum":
		ok = r.number(&s.Minimum, v)
	case "maximum":
		ok = r.number(&s.Maximum, v)
	case "exclusiveMinimum":
		ok = r.number(&s.ExclusiveMinimum, v)
	case "exclusiveMaximum":
		ok = r.number(&s.ExclusiveMaximum, v)
	case "multipleOf":
		ok = readNumber(&s.MultipleOf, v) && s.MultipleOf.Sign() > 0
	case "minLength":
		ok = readCount(&s.MinLength, v)
	case "maxLength":
		ok = readCount(&s.MaxLength, v)
	case "minItems":
		ok = readCount(&s.MinItems, v)
	case "maxItems":
		ok = readCount(&s.MaxItems, v)
	case "minProperties":
		ok = readCount(&s.MinProperties, v)
	case "maxProperties":
		ok = readCount(&s.MaxProperties, v)
	default:
		return false, false
	}
	return true, ok
}

// number reads a number of any size and sign.
func (r *reader) number(out **big.Rat, v []byte) bool {
	if r.dry {
		return rawjson.KindOf(v) == rawjson.KindNumber
	}
	return readNumber(out, v)
}

func readNumber(out **big.Rat, v []byte) bool {
	if rawjson.KindOf(v) != rawjson.KindNumber {
		return false
	}
	n, ok := new(big.Rat).SetString(string(rawjson.Trim(v)))
	*out = n
	return ok
}

// readCount reads a number without a sign, fraction or exponent, which most
// are.
func readCount(out **int, v []byte) bool {
	n, err := strconv.ParseUint(string(rawjson.Trim(v)), 10, 31)
	count := int(n)
	*out = &count
	return err == nil
}

// types reads one name of a type or several.
func (r *reader) types(s *jsonschema.Schema, v []byte) bool {
	var types jsonschema.Types
	if rawjson.KindOf(v) == rawjson.KindString {
		if !addType(&types, v) {
			return false
		}
	} else if !r.distinctStrings(nil, v) {
		return false
	}
	for it := rawjson.Array(v); it.Next(); {
		if !addType(&types, it.Value()) {
			return false
		}
	}
	if types.IsEmpty() {
		return false
	}
	if !r.dry {
		s.Types = &types
	}
	return true
}

func addType(types *jsonschema.Types, v []byte) bool {
	name := plainType(v)
	types.Add(name)
	return name != ""
}

// plainType returns the name of a type that is written without escapes, or "".
func plainType(v []byte) string {
	switch string(v) {
	case `"string"`:
		return "string"
	case `"object"`:
		return "object"
	case `"integer"`:
		return "integer"
	case `"number"`:
		return "number"
	case `"boolean"`:
		return "boolean"
	case `"array"`:
		return "array"
	case `"null"`:
		return "null"
	}
	return ""
}

func (r *reader) pattern(s *jsonschema.Schema, v []byte) bool {
	source, ok := rawjson.Unquote(v)
	if r.early = true; r.dry || !ok {
		return ok
	}
	re, err := compilePattern(source)
	s.Pattern = re
	return err == nil
}

func (r *reader) constant(s *jsonschema.Schema, v []byte) bool {
	if r.dry {
		return true
	}
	value, err := decode(v)
	s.Const = &value
	return err == nil
}

// enum reads a list of values. Draft 7 wants some, and no two alike; where they
// are no strings, the full validator compares them.
func (r *reader) enum(s *jsonschema.Schema, v []byte) bool {
	if rawjson.KindOf(v) != rawjson.KindArray {
		return false
	}
	if r.draft < int(Draft2019) && (!r.distinctStrings(nil, v) || rawjson.Len(v) == 0) {
		return false
	}
	if r.dry {
		return true
	}
	value, err := decode(v)
	values, ok := value.([]any)
	s.Enum = &jsonschema.Enum{Values: values}
	return err == nil && ok
}

// distinctStrings reads an array of strings of which no two are alike. out may
// be nil.
func (r *reader) distinctStrings(out *[]string, v []byte) bool {
	if rawjson.KindOf(v) != rawjson.KindArray {
		return false
	}
	var list []string
	for it := rawjson.Array(v); it.Next(); {
		text, ok := rawjson.Unquote(it.Value())
		if !ok {
			return false
		}
		list = append(list, text)
	}
	if out != nil {
		*out = list
	}
	return distinct(list)
}

// distinct reports whether no two texts are alike.
func distinct(list []string) bool {
	const few = 16
	if len(list) > few {
		seen := make(map[string]bool, len(list))
		for _, text := range list {
			seen[text] = true
		}
		return len(seen) == len(list)
	}
	for i, text := range list {
		if slices.Contains(list[:i], text) {
			return false
		}
	}
	return true
}
