package schema

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// keyword reads a keyword that holds no schemas.
func (r *reader) keyword(s *subschema, key, v []byte, isRoot bool) bool {
	if known, ok := r.limit(s, key, v); known {
		return ok
	}
	switch string(key) {
	case "type":
		return r.types(s, v)
	case "enum":
		return r.enum(s, v)
	case "const":
		return r.constant(s, v)
	case "required":
		return r.distinctStrings(&s.required, v)
	case "pattern":
		return r.pattern(s, v)
	case "uniqueItems":
		s.uniqueItems = v[0] == 't'
		return rawjson.KindOf(v) == rawjson.KindBool
	}
	if r.link != nil {
		return r.rareKeyword(s, key, v)
	}
	switch string(key) {
	case "$ref":
		r.early = true
		target, ok := rawjson.Unquote(v)
		r.refs = append(r.refs, reference{s, target})
		return ok
	case "$schema":
		return isRoot && r.dated
	}
	return isAnnotation(key, v)
}

// rareKeyword reads the keywords without schemas that take a linker.
func (r *reader) rareKeyword(s *subschema, key, v []byte) (ok bool) {
	switch string(key) {
	case "$ref", "$dynamicRef", "$recursiveRef":
		return r.link.refer(s, string(key), v)
	case "format":
		name, ok := rawjson.Unquote(v)
		if ok && (r.link.opts.AssertFormat || r.home.dialect.assertsFormat) {
			s.format = formatNamed(name)
		}
		return ok
	case "minContains":
		return r.count(&s.minContains, v)
	case "maxContains":
		return r.count(&s.maxContains, v)
	case "dependentRequired":
		return r.dependentRequired(s, v)
	}
	return true
}

func (r *reader) dependentRequired(s *subschema, v []byte) bool {
	if rawjson.KindOf(v) != rawjson.KindObject {
		return false
	}
	for it := rawjson.Object(v); it.Next(); {
		d := dependentNames{name: it.Key()}
		if !r.distinctStrings(&d.needs, it.Value()) {
			return false
		}
		s.dependentRequired = append(s.dependentRequired, d)
	}
	return true
}

// isAnnotation reports whether a keyword has no effect on what is valid.
func isAnnotation(key, v []byte) bool {
	switch string(key) {
	case "title", "description", "$comment", "format", "contentEncoding", "contentMediaType":
		return rawjson.KindOf(v) == rawjson.KindString
	case "deprecated", "readOnly", "writeOnly":
		return rawjson.KindOf(v) == rawjson.KindBool
	case "examples":
		return rawjson.KindOf(v) == rawjson.KindArray
	case "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "dependencies", "dependentRequired",
		"dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "contentSchema":
		return false
	}
	return len(key) == 0 || key[0] != '$'
}

// limit reads a keyword whose value is a number.
func (r *reader) limit(s *subschema, key, v []byte) (known, ok bool) {
	switch string(key) {
	case "minimum":
		ok = r.number(&s.minimum, v)
	case "maximum":
		ok = r.number(&s.maximum, v)
	case "exclusiveMinimum":
		ok = r.exclusive(&s.above, &s.minimumExcluded, v)
	case "exclusiveMaximum":
		ok = r.exclusive(&s.below, &s.maximumExcluded, v)
	case "multipleOf":
		ok = readNumber(&s.multipleOf, v) && s.multipleOf.Sign() > 0
	case "minLength":
		ok = r.count(&s.minLength, v)
	case "maxLength":
		ok = r.count(&s.maxLength, v)
	case "minItems":
		ok = r.count(&s.minItems, v)
	case "maxItems":
		ok = r.count(&s.maxItems, v)
	case "minProperties":
		ok = r.count(&s.minProperties, v)
	case "maxProperties":
		ok = r.count(&s.maxProperties, v)
	default:
		return false, false
	}
	return true, ok
}

// exclusive reads a bound that is a number, or in draft 4 says of the bound
// beside it whether that is excluded.
func (r *reader) exclusive(out **big.Rat, excluded *bool, v []byte) bool {
	if r.draft == Draft4 {
		*excluded = v[0] == 't'
		return rawjson.KindOf(v) == rawjson.KindBool
	}
	return r.number(out, v)
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

// count reads a number of things.
func (r *reader) count(out **int, v []byte) bool {
	if readCount(out, v) {
		return true
	}
	return r.link != nil && readOddCount(out, v)
}

// readCount reads a number without a sign, fraction or exponent, which most
// are.
func readCount(out **int, v []byte) bool {
	n, err := strconv.ParseUint(string(rawjson.Trim(v)), 10, 31)
	count := int(n)
	*out = &count
	return err == nil
}

// readOddCount reads an integer however it is written. One that is larger than
// anything to be counted is as good as the largest of those.
func readOddCount(out **int, v []byte) bool {
	if rawjson.KindOf(v) != rawjson.KindNumber {
		return false
	}
	d := parseDecimal(rawjson.Trim(v))
	if d.neg || !d.isInt() {
		return false
	}
	count := math.MaxInt
	if d.exp <= 18 {
		count = int(d.int64())
	}
	*out = &count
	return true
}

// types reads one name of a type or several.
func (r *reader) types(s *subschema, v []byte) bool {
	var types typeSet
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
	s.types = types
	return types != 0
}

func addType(types *typeSet, v []byte) bool {
	t := typeNamed(v)
	if text, ok := rawjson.Unquote(v); ok && t == 0 {
		t = typeNamed(rawjson.Quote(text))
	}
	*types |= t
	return t != 0
}

// typeNamed returns the type with the given name, as it is written without
// escapes, or 0.
func typeNamed(v []byte) typeSet {
	switch string(v) {
	case `"string"`:
		return typeString
	case `"object"`:
		return typeObject
	case `"integer"`:
		return typeInteger
	case `"number"`:
		return typeNumber | typeInteger
	case `"boolean"`:
		return typeBoolean
	case `"array"`:
		return typeArray
	case `"null"`:
		return typeNull
	}
	return 0
}

func (r *reader) pattern(s *subschema, v []byte) bool {
	source, ok := rawjson.Unquote(v)
	if r.early = true; r.dry || !ok {
		return ok
	}
	re, err := compilePattern(source)
	s.pattern = re
	return err == nil
}

func (r *reader) constant(s *subschema, v []byte) bool {
	if r.dry {
		return true
	}
	value, err := decode(v)
	s.constant = &value
	return err == nil
}

// enum reads a list of values. Draft 7 wants some, and no two alike; where they
// are no strings, its meta-schema has to compare them.
func (r *reader) enum(s *subschema, v []byte) bool {
	if rawjson.KindOf(v) != rawjson.KindArray {
		return false
	}
	if r.link == nil && r.draft < Draft2019 && (!r.distinctStrings(nil, v) || rawjson.Len(v) == 0) {
		return false
	}
	if r.dry {
		return true
	}
	value, err := decode(v)
	values, ok := value.([]any)
	s.enum = &values
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
