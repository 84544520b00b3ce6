package schema

// node is one schema, compiled to rules over raw bytes.
type node struct {
	any   bool // accepts everything
	never bool // accepts nothing
	types typeSet
	enum  *valueSet
	str   *stringRules
	num   *numberRules
	arr   *arrayRules
	obj   *objectRules

	// in is the part that looks at a value more than once. The value is
	// scanned first and trusted then.
	in *inPlace
}

// inPlace are the keywords that apply other schemas to the same value, or that
// need the whole of it.
type inPlace struct {
	ref, dynamic                            *node
	allOf                                   []*node
	anyOf, oneOf                            []*node
	not                                     *node
	cond, then, orr                         *node
	dependent                               []dependentSchema
	format                                  *format
	unevaluatedItems, unevaluatedProperties *node
	composite                               bool // enum has arrays or objects
	cyclic                                  bool // the node may apply itself to the same value, by way of others
}

type dependentSchema struct {
	property string
	then     *node
}

// typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject

	typeAll = typeNull | typeBoolean | typeInteger | typeNumber | typeString | typeArray | typeObject
)

type stringRules struct {
	minLength, maxLength int // maxLength is -1 when there is none
	pattern              *pattern
}

type numberRules struct {
	minimum, maximum, above, below *bound
	multipleOf                     *divisor
}

type arrayRules struct {
	minItems, maxItems       int // maxItems is -1 when there is none
	prefix                   []*node
	items                    *node // nil: anything
	contains                 *node
	minContains, maxContains int  // maxContains is -1 when there is none
	containsEvaluates        bool // what contains matches counts as evaluated
	unique                   bool
}

type objectRules struct {
	props            propTable
	required         []int // indexes into props
	minProps         int
	maxProps         int // -1 when there is none
	patterns         []patternRule
	names            *node
	additional       *node // nil: anything
	dependentRequire []dependency
}

type patternRule struct {
	re   *pattern
	node *node
}

type dependency struct {
	property int
	needs    []int
}

var (
	anyNode   = &node{any: true, types: typeAll}
	neverNode = &node{never: true}
)
