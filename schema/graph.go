package schema

import "math/big"

// subschema is one schema as it is written, with its references resolved: a
// node of the graph that a reader makes of a schema's text, and that a builder
// translates into rules over raw bytes.
type subschema struct {
	draft Draft
	// home is the resource that the schema belongs to, nil in a graph without
	// resources.
	home *resource

	always *bool // what a schema accepts that is true, false or empty

	// ref is the target of $ref, and dynamic what $dynamicRef or $recursiveRef
	// refers to.
	ref     *subschema
	dynamic *dynamicRef

	types     typeSet // 0: any
	enum      *[]any
	constant  *any
	format    *format
	pattern   *pattern
	minLength *int
	maxLength *int

	minimum, maximum, above, below   *big.Rat
	minimumExcluded, maximumExcluded bool // what draft 4 says of minimum and maximum
	multipleOf                       *big.Rat

	minItems, maxItems       *int
	uniqueItems              bool
	prefix                   []*subschema // prefixItems, or items as a list
	items                    *subschema   // items as one schema
	rest                     *subschema   // additionalItems, which counts beside a list only
	listed                   bool         // items is a list
	contains                 *subschema
	minContains, maxContains *int

	minProperties, maxProperties *int
	required                     []string
	properties                   []namedSchema
	patterns                     []patternMember
	additional                   *subschema
	names                        *subschema
	dependentRequired            []dependentNames
	dependentSchemas             []namedSchema

	allOf, anyOf, oneOf []*subschema
	not                 *subschema
	cond, then, orElse  *subschema

	unevaluatedItems, unevaluatedProperties *subschema
}

// namedSchema is a schema and the name that it stands under.
type namedSchema struct {
	name   string
	schema *subschema
}

type patternMember struct {
	re     *pattern
	schema *subschema
}

type dependentNames struct {
	name  string
	needs []string
}

// dynamicRef is a reference whose target may depend on how it was reached: when
// it floats, the outermost resource on the way that has the anchor says which.
type dynamicRef struct {
	initial *subschema
	anchor  string
	floats  bool
}

// recursiveAnchor is what $recursiveAnchor counts as a dynamic anchor of.
const recursiveAnchor = ""

// next returns the schemas that s leads to; some are nil.
func (s *subschema) next() []*subschema {
	out := []*subschema{
		s.ref, s.not, s.cond, s.then, s.orElse, s.items, s.rest, s.contains, s.additional, s.names,
		s.unevaluatedItems, s.unevaluatedProperties,
	}
	if s.dynamic != nil {
		out = append(out, s.dynamic.initial)
	}
	for _, list := range [][]*subschema{s.prefix, s.allOf, s.anyOf, s.oneOf} {
		out = append(out, list...)
	}
	for _, list := range [][]namedSchema{s.properties, s.dependentSchemas} {
		for _, m := range list {
			out = append(out, m.schema)
		}
	}
	for _, p := range s.patterns {
		out = append(out, p.schema)
	}
	return out
}
