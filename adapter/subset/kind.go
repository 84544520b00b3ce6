package subset

import "github.com/toolcrib/toolcrib/internal/rawjson"

// kinds is a set of kinds of JSON values, with integers apart from other
// numbers.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBool
	kindInteger
	kindFraction
	kindString
	kindArray
	kindObject

	kindNumber = kindInteger | kindFraction
	kindAny    = kindNull | kindBool | kindNumber | kindString | kindArray | kindObject
)

// has reports whether the sets overlap.
func (k kinds) has(other kinds) bool { return k&other != 0 }

// kindNamed returns what a type of JSON Schema allows.
func kindNamed(name string) kinds {
	switch name {
	case "null":
		return kindNull
	case "boolean":
		return kindBool
	case "integer":
		return kindInteger
	case "number":
		return kindNumber
	case "string":
		return kindString
	case "array":
		return kindArray
	case "object":
		return kindObject
	}
	return 0
}

// single lists the kinds of a set that are types of their own; all numbers are
// one when both kinds of them are in the set.
func (k kinds) single() []kinds {
	var list []kinds
	for _, one := range []kinds{kindString, kindNumber, kindBool, kindObject, kindArray, kindNull} {
		if k.has(one) {
			list = append(list, k&one)
		}
	}
	return list
}

// name returns the type of JSON Schema for one of the kinds of single.
func (k kinds) name() string {
	switch k {
	case kindNull:
		return "null"
	case kindBool:
		return "boolean"
	case kindInteger:
		return "integer"
	case kindString:
		return "string"
	case kindArray:
		return "array"
	case kindObject:
		return "object"
	}
	return "number"
}

// kindOf returns the kind of a value. A number is an integer when its value is
// one, whatever its spelling.
func kindOf(v []byte) kinds {
	switch rawjson.KindOf(v) {
	case rawjson.KindNull:
		return kindNull
	case rawjson.KindBool:
		return kindBool
	case rawjson.KindString:
		return kindString
	case rawjson.KindArray:
		return kindArray
	case rawjson.KindObject:
		return kindObject
	case rawjson.KindNumber:
		if parseDecimal(rawjson.Trim(v)).integral() {
			return kindInteger
		}
		return kindFraction
	}
	return 0
}

// implied returns the kinds that a keyword speaks of.
func implied(keyword string) kinds {
	switch keyword {
	case "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
		"maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties":
		return kindObject
	case "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains",
		"maxContains", "unevaluatedItems":
		return kindArray
	case "pattern", "minLength", "maxLength", "format", "contentEncoding", "contentMediaType", "contentSchema":
		return kindString
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return kindNumber
	}
	return 0
}
