package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// keyword is a keyword that a value can fail.
type keyword uint8

const (
	kwType keyword = iota
	kwEnum
	kwConst
	kwFalse
	kwMinLength
	kwMaxLength
	kwPattern
	kwFormat
	kwMinimum
	kwMaximum
	kwExclusiveMinimum
	kwExclusiveMaximum
	kwMultipleOf
	kwMinItems
	kwMaxItems
	kwUniqueItems
	kwContains
	kwMaxContains
	kwRequired
	kwMinProperties
	kwMaxProperties
	kwPropertyNames
	kwAdditional
	kwDependentRequired
	kwAnyOf
	kwOneOf
	kwOneOfMany
	kwNot
	kwCycle
	kwUnevaluatedItems
	kwUnevaluatedProperties
)

func (k keyword) String() string {
	return [...]string{
		"type", "enum", "const", "false", "minLength", "maxLength", "pattern", "format", "minimum", "maximum",
		"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "contains",
		"maxContains", "required", "minProperties", "maxProperties", "propertyNames", "additionalProperties",
		"dependentRequired", "anyOf", "oneOf", "oneOf", "not",
		"$ref", "unevaluatedItems", "unevaluatedProperties",
	}[k]
}

// maxName bounds each name and value that a message shows.
const maxName = 64

// report collects violations.
type report struct {
	list []Violation
	// tries counts what was found, with repetitions, since finding a path takes
	// time in the size of the document.
	tries int
}

// maxTries is how many repetitions are looked at.
const maxTries = 50

// add records a violation of the value, or for a property of the key, at i, and
// reports whether there is room for more.
func (r *report) add(c *checker, n *node, i int, kw keyword, arg int) bool {
	if r.tries++; r.tries > maxTries {
		return false
	}
	path := rawjson.PointerTo(c.doc, i)
	if kw == kwAdditional || kw == kwPropertyNames {
		path = rawjson.PointerAt(c.doc, i)
	}
	return r.append(Violation{Path: path, Keyword: kw.String(), Expected: c.expected(n, i, kw, arg)})
}

func (r *report) append(v Violation) bool {
	for _, old := range r.list {
		if old == v {
			return true
		}
	}
	r.list = append(r.list, v)
	return len(r.list) < MaxViolations
}

func (c *checker) expected(n *node, i int, kw keyword, arg int) string {
	switch kw {
	case kwType:
		return fmt.Sprintf("expected %s, got %s", n.types, rawjson.KindOf(c.doc[i:]))
	case kwEnum:
		if n.enum.text == "" {
			return "no value is allowed here"
		}
		return "expected one of " + n.enum.text
	case kwConst:
		return "expected the constant " + n.enum.text
	case kwFalse, kwUnevaluatedItems, kwUnevaluatedProperties:
		return "no value is allowed here"
	case kwFormat:
		return "expected the format " + quoteName(n.in.format.name)
	case kwRequired, kwDependentRequired:
		return "missing required property " + quoteName(n.obj.props.list[arg].name)
	case kwAdditional:
		return "unexpected property " + c.keyName(arg)
	case kwPropertyNames:
		return "property name not allowed: " + c.keyName(arg)
	case kwAnyOf, kwOneOf:
		return fmt.Sprintf("expected a match for %s of %d alternatives, got none", oneOrMore(kw), len(n.branches(kw)))
	case kwOneOfMany:
		return "expected a match for exactly one alternative, got more than one"
	case kwCycle:
		return "the schema refers to itself without end"
	case kwNot:
		return "expected a value that the schema under \"not\" does not accept"
	}
	return c.expectedSize(n, kw)
}

func oneOrMore(kw keyword) string {
	if kw == kwOneOf {
		return "exactly one"
	}
	return "at least one"
}

func (c *checker) expectedSize(n *node, kw keyword) string {
	switch kw {
	case kwMinLength:
		return "expected at least " + count(n.str.minLength, "character")
	case kwMaxLength:
		return "expected at most " + count(n.str.maxLength, "character")
	case kwPattern:
		return "expected a match for the pattern " + quoteName(n.str.pattern.source)
	case kwMinimum:
		return "expected a number >= " + clip(n.num.minimum.text, maxName)
	case kwMaximum:
		return "expected a number <= " + clip(n.num.maximum.text, maxName)
	case kwExclusiveMinimum:
		return "expected a number > " + clip(n.num.above.text, maxName)
	case kwExclusiveMaximum:
		return "expected a number < " + clip(n.num.below.text, maxName)
	case kwMultipleOf:
		return "expected a multiple of " + clip(n.num.multipleOf.text, maxName)
	case kwMinItems:
		return "expected at least " + count(n.arr.minItems, "item")
	case kwMaxItems:
		return "expected at most " + count(n.arr.maxItems, "item")
	case kwUniqueItems:
		return "expected items that all differ"
	case kwContains:
		return fmt.Sprintf("expected at least %d matching the schema under \"contains\"", n.arr.minContains)
	case kwMaxContains:
		return fmt.Sprintf("expected at most %d matching the schema under \"contains\"", n.arr.maxContains)
	case kwMinProperties:
		return fmt.Sprintf("expected %d or more properties", n.obj.minProps)
	case kwMaxProperties:
		return fmt.Sprintf("expected %d or fewer properties", n.obj.maxProps)
	}
	return "expected something else"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// keyName renders the key at i, bounded and escaped.
func (c *checker) keyName(i int) string {
	end, _, _ := rawjson.ScanString(c.doc, i)
	raw := c.doc[i:min(end, i+8*maxName)]
	text := string(rawjson.AppendUnquoted(nil, append(raw[:len(raw)-1:len(raw)-1], '"')))
	return quoteName(text)
}

func quoteName(s string) string { return fmt.Sprintf("%q", clip(s, maxName)) }

// clip cuts s to about n bytes at a rune boundary and marks the cut.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// String names the types, such as "string or null".
func (t typeSet) String() string {
	var names []string
	for _, e := range []struct {
		t    typeSet
		name string
	}{
		{typeString, "string"}, {typeInteger, "integer"}, {typeNumber, "number"}, {typeBoolean, "boolean"},
		{typeArray, "array"}, {typeObject, "object"}, {typeNull, "null"},
	} {
		if t&e.t != 0 && !(e.t == typeInteger && t&typeNumber != 0) {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, " or ")
}

func (n *node) branches(kw keyword) []*node {
	if kw == kwOneOf {
		return n.in.oneOf
	}
	return n.in.anyOf
}

// failBranches records that no branch matched. When the type of the value rules
// out all branches, or all but one, it says so in terms of those.
func (c *checker) failBranches(n *node, branches []*node, i, depth int, kw keyword) bool {
	if c.report == nil || c.exhausted {
		return false
	}
	var fitting *node
	var types typeSet
	fits := 0
	for _, b := range branches {
		t := b.admitted()
		types |= t
		if t.admits(c.doc, i) {
			fits++
			fitting = b
		}
	}
	switch {
	case fits == 0 && types != 0:
		return c.fail(&node{types: types}, i, kwType, 0)
	case fits == 1:
		before := len(c.report.list)
		if c.value(fitting, i, depth) < 0 {
			return false
		}
		if len(c.report.list) > before {
			return true
		}
	}
	return c.fail(n, i, kw, 0)
}

// admitted returns the types that a value must have to satisfy n, as far as its
// own "type" and values and those of a schema it refers to say.
func (n *node) admitted() typeSet {
	if n.never {
		return 0
	}
	t := n.types
	if n.enum != nil {
		t &= n.enum.types()
	}
	if n.in != nil && n.in.ref != nil && !n.in.cyclic {
		t &= n.in.ref.admitted()
	}
	return t
}
