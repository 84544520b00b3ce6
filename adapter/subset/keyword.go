package subset

import "github.com/toolcrib/toolcrib/internal/rawjson"

// A class says what stands under a keyword of JSON Schema.
type class int

const (
	classOther class = iota
	classSchema
	classList
	classMap
)

// classOf returns what stands under a keyword whose value is v.
func classOf(keyword string, v []byte) class {
	kind := rawjson.KindOf(v)
	switch keyword {
	case "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "additionalItems",
		"unevaluatedProperties", "unevaluatedItems", "contentSchema":
		if isSchema(v) {
			return classSchema
		}
	case "items":
		if kind == rawjson.KindArray {
			return classList
		}
		if isSchema(v) {
			return classSchema
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		if kind == rawjson.KindArray {
			return classList
		}
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		if kind == rawjson.KindObject {
			return classMap
		}
	}
	return classOther
}

// isSchema reports whether v can be a schema: an object, true or false.
func isSchema(v []byte) bool {
	kind := rawjson.KindOf(v)
	return kind == rawjson.KindObject || kind == rawjson.KindBool
}

// annotations say nothing about what is valid.
func isAnnotation(keyword string) bool {
	switch keyword {
	case "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment",
		"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions", "$vocabulary":
		return true
	}
	return len(keyword) > 2 && keyword[0] == 'x' && keyword[1] == '-'
}

func isTrue(v []byte) bool  { return string(rawjson.Trim(v)) == "true" }
func isFalse(v []byte) bool { return string(rawjson.Trim(v)) == "false" }

// member returns the value of a member of an object.
func member(obj []byte, key string) ([]byte, bool) { return rawjson.Get(obj, key) }

// words returns the strings of an array of strings; other elements are passed
// over.
func words(v []byte) []string {
	if rawjson.KindOf(v) != rawjson.KindArray {
		return nil
	}
	var out []string
	for it := rawjson.Array(v); it.Next(); {
		if s, ok := rawjson.Unquote(it.Value()); ok {
			out = append(out, s)
		}
	}
	return out
}
