package schema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

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
	ref             *node
	allOf           []*node
	anyOf, oneOf    []*node
	not             *node
	cond, then, orr *node
	dependent       []dependentSchema
	format          *jsonschema.Format
	full            *jsonschema.Schema // the full validator, instead of all else
	composite       bool               // enum has arrays or objects
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
	minContains, maxContains int // maxContains is -1 when there is none
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

// builder translates the graph of the full validator.
type builder struct {
	nodes map[*jsonschema.Schema]*node
}

// needsWhole reports whether the full validator has to check documents itself,
// and not only one part of them. all are the schemas of a graph that it made.
func needsWhole(all []*jsonschema.Schema, opts *Options) bool {
	whole := hasInPlaceCycle(all)
	for _, s := range all {
		if s.DraftVersion < 2019 && !opts.AssertFormat {
			s.Format = nil
		}
		whole = whole || s.DynamicRef != nil || s.RecursiveRef != nil
	}
	return whole
}

// translate compiles a graph of schemas, in which every reference is resolved,
// into nodes. all are its schemas; whole leaves documents to the full validator.
func translate(root *jsonschema.Schema, all []*jsonschema.Schema, whole bool) *node {
	if whole {
		return &node{types: typeAll, in: &inPlace{full: root}}
	}
	b := &builder{nodes: make(map[*jsonschema.Schema]*node, len(all))}
	return b.node(root)
}

// node translates one schema. A schema that only refers is its target.
func (b *builder) node(s *jsonschema.Schema) *node {
	for s != nil && onlyRef(s) {
		s = s.Ref
	}
	if s == nil {
		return nil
	}
	if n := b.nodes[s]; n != nil {
		return n
	}
	if s.Bool != nil {
		if *s.Bool {
			return anyNode
		}
		return neverNode
	}
	n := &node{types: typeAll}
	b.nodes[s] = n
	b.fill(n, s)
	return n
}

func onlyRef(s *jsonschema.Schema) bool {
	if s.Ref == nil || s.Bool != nil || s.Types != nil || s.Enum != nil || s.Const != nil || s.Format != nil {
		return false
	}
	return s.DraftVersion < 2019 || !hasScalarRules(s) && !hasArrayRules(s) && !hasObjectRules(s) &&
		!hasBranches(s) && !needsFull(s)
}

func needsFull(s *jsonschema.Schema) bool {
	return s.UnevaluatedItems != nil || s.UnevaluatedProperties != nil || s.ContentEncoding != nil ||
		s.ContentMediaType != nil || s.ContentSchema != nil || len(s.Extensions) > 0
}

func hasBranches(s *jsonschema.Schema) bool {
	return len(s.AllOf) > 0 || len(s.AnyOf) > 0 || len(s.OneOf) > 0 || s.Not != nil || s.If != nil
}

func hasScalarRules(s *jsonschema.Schema) bool { return hasStringRules(s) || hasNumberRules(s) }

func hasStringRules(s *jsonschema.Schema) bool {
	return s.MinLength != nil || s.MaxLength != nil || s.Pattern != nil
}

func hasNumberRules(s *jsonschema.Schema) bool {
	return s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil ||
		s.MultipleOf != nil
}

func hasArrayRules(s *jsonschema.Schema) bool {
	return s.MinItems != nil || s.MaxItems != nil || s.UniqueItems || s.Contains != nil || s.Items != nil ||
		s.AdditionalItems != nil || len(s.PrefixItems) > 0 || s.Items2020 != nil
}

func hasObjectRules(s *jsonschema.Schema) bool {
	return s.MinProperties != nil || s.MaxProperties != nil || len(s.Required) > 0 || s.PropertyNames != nil ||
		len(s.Properties) > 0 || len(s.PatternProperties) > 0 || s.AdditionalProperties != nil ||
		len(s.Dependencies) > 0 || len(s.DependentRequired) > 0 || len(s.DependentSchemas) > 0
}

func (b *builder) fill(n *node, s *jsonschema.Schema) {
	if needsFull(s) {
		n.in = &inPlace{full: s}
		return
	}
	if s.Types != nil && !s.Types.IsEmpty() {
		n.types = typesOf(s.Types.ToStrings())
	}
	n.enum = enumOf(s)
	in := inPlace{format: s.Format, ref: b.node(s.Ref), composite: n.enum != nil && n.enum.composite}
	if s.DraftVersion >= 2019 || s.Ref == nil {
		b.fillRules(n, s)
		b.fillBranches(&in, s)
	}
	if in.ref != nil || in.format != nil || in.composite || hasBranches(s) || len(in.dependent) > 0 {
		n.in = &in
	}
	n.any = n.types == typeAll && n.enum == nil && n.str == nil && n.num == nil && n.arr == nil && n.obj == nil && n.in == nil
}

func (b *builder) fillRules(n *node, s *jsonschema.Schema) {
	if hasStringRules(s) {
		n.str = &stringRules{minLength: orElse(s.MinLength, 0), maxLength: orElse(s.MaxLength, -1)}
		n.str.pattern, _ = s.Pattern.(*pattern)
	}
	if hasNumberRules(s) {
		n.num = &numberRules{
			minimum: newBound(s.Minimum), maximum: newBound(s.Maximum),
			above: newBound(s.ExclusiveMinimum), below: newBound(s.ExclusiveMaximum),
			multipleOf: newDivisor(s.MultipleOf),
		}
	}
	if hasArrayRules(s) {
		n.arr = b.array(s)
	}
	if hasObjectRules(s) {
		n.obj = b.object(s)
	}
}

func (b *builder) fillBranches(in *inPlace, s *jsonschema.Schema) {
	in.allOf, in.anyOf, in.oneOf = b.list(s.AllOf), b.list(s.AnyOf), b.list(s.OneOf)
	in.not = b.node(s.Not)
	in.cond, in.then, in.orr = b.node(s.If), b.node(s.Then), b.node(s.Else)
	for name, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok {
			in.dependent = append(in.dependent, dependentSchema{name, b.node(sub)})
		}
	}
	for name, sub := range s.DependentSchemas {
		in.dependent = append(in.dependent, dependentSchema{name, b.node(sub)})
	}
}

func (b *builder) list(schemas []*jsonschema.Schema) []*node {
	var nodes []*node
	for _, s := range schemas {
		nodes = append(nodes, b.node(s))
	}
	return nodes
}

func (b *builder) array(s *jsonschema.Schema) *arrayRules {
	a := &arrayRules{
		minItems: orElse(s.MinItems, 0), maxItems: orElse(s.MaxItems, -1), unique: s.UniqueItems,
		contains: b.node(s.Contains), minContains: orElse(s.MinContains, 1), maxContains: orElse(s.MaxContains, -1),
	}
	if s.DraftVersion >= 2020 {
		a.prefix, a.items = b.list(s.PrefixItems), b.node(s.Items2020)
		return a
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		a.items = b.node(items)
	case []*jsonschema.Schema:
		a.prefix, a.items = b.list(items), b.additional(s.AdditionalItems)
	default:
		a.items = b.additional(s.AdditionalItems)
	}
	return a
}

func (b *builder) additional(v any) *node {
	switch v := v.(type) {
	case bool:
		if !v {
			return neverNode
		}
	case *jsonschema.Schema:
		return b.node(v)
	}
	return nil
}

func (b *builder) object(s *jsonschema.Schema) *objectRules {
	o := &objectRules{
		minProps: orElse(s.MinProperties, 0), maxProps: orElse(s.MaxProperties, -1),
		names: b.node(s.PropertyNames), additional: b.additional(s.AdditionalProperties),
	}
	for name, sub := range s.Properties {
		o.props.declare(name, b.node(sub))
	}
	for _, name := range s.Required {
		o.required = append(o.required, o.props.mention(name))
	}
	for re, sub := range s.PatternProperties {
		if p, ok := re.(*pattern); ok {
			o.patterns = append(o.patterns, patternRule{p, b.node(sub)})
		}
	}
	slices.SortFunc(o.patterns, func(a, b patternRule) int { return compareStrings(a.re.source, b.re.source) })
	for name, needs := range s.DependentRequired {
		o.depend(name, needs)
	}
	for name, dep := range s.Dependencies {
		if needs, ok := dep.([]string); ok {
			o.depend(name, needs)
		}
	}
	o.props.index()
	return o
}

func (o *objectRules) depend(name string, needs []string) {
	d := dependency{property: o.props.mention(name)}
	for _, need := range needs {
		d.needs = append(d.needs, o.props.mention(need))
	}
	o.dependentRequire = append(o.dependentRequire, d)
}

func orElse(v *int, otherwise int) int {
	if v == nil {
		return otherwise
	}
	return *v
}

func typesOf(names []string) typeSet {
	var t typeSet
	for _, name := range names {
		t |= typeNamed(name)
	}
	return t
}

func typeNamed(name string) typeSet {
	switch name {
	case "null":
		return typeNull
	case "boolean":
		return typeBoolean
	case "integer":
		return typeInteger
	case "number":
		return typeNumber | typeInteger
	case "string":
		return typeString
	case "array":
		return typeArray
	case "object":
		return typeObject
	}
	return 0
}
