package schema

import (
	"math/big"
	"slices"
	"strings"
)

// builder translates a graph of schemas into nodes. A schema becomes one node
// for each meaning that the dynamic references below it can have.
type builder struct {
	nodes map[placement]*node
	scopes
	// refers says that some schema refers to another, without which there are
	// no cycles.
	refers bool
	copies int // of schemas, for scopes other than the empty one
}

// placement is a schema and the scope that it is reached in.
type placement struct {
	schema *subschema
	scope  *scope
}

// What dynamic references may make of a schema: so many nodes, in scopes with so
// many meanings altogether.
const (
	maxCopies   = 2 * MaxSchemaObjects
	maxMeanings = 1 << 18
)

// translate compiles a graph of schemas, in which every reference is resolved,
// into nodes.
func translate(g *linkedGraph) (*node, error) {
	b := &builder{nodes: map[placement]*node{}, scopes: scopes{wanted: g.wanted}}
	root := b.node(g.root, nil)
	if b.tooMany() {
		return nil, &CompileError{Reason: "dynamic references that make too many schemas of one"}
	}
	if b.refers {
		markCycles(root)
	}
	return root, nil
}

func (b *builder) tooMany() bool { return b.copies > maxCopies || b.meanings > maxMeanings }

// maxHops is how many references are followed at once. It ends loops of them.
const maxHops = 32

// node translates one schema. A schema that only refers is its target.
func (b *builder) node(s *subschema, from *scope) *node {
	if s == nil {
		return nil
	}
	in := b.enter(from, s.home)
	for hops := 0; hops < maxHops && s.onlyRefers(); hops++ {
		s, b.refers = s.ref, true
		in = b.enter(in, s.home)
	}
	if s.always != nil {
		if *s.always {
			return anyNode
		}
		return neverNode
	}
	at := placement{s, in}
	if n := b.nodes[at]; n != nil {
		return n
	}
	if in != nil {
		if b.copies++; b.tooMany() {
			return neverNode
		}
	}
	n := &node{types: typeAll}
	b.nodes[at] = n
	b.fill(n, s, in)
	return n
}

// onlyRefers reports whether a schema says nothing but what $ref does.
func (s *subschema) onlyRefers() bool {
	if s.ref == nil || s.always != nil || s.dynamic != nil || s.types != 0 || s.enum != nil || s.constant != nil || s.format != nil {
		return false
	}
	return s.draft < Draft2019 || !s.hasStringRules() && !s.hasNumberRules() && !s.hasArrayRules() && !s.hasObjectRules() &&
		!s.hasBranches() && !s.leavesRest()
}

func (s *subschema) leavesRest() bool {
	return s.unevaluatedItems != nil || s.unevaluatedProperties != nil
}

func (s *subschema) hasBranches() bool {
	return len(s.allOf) > 0 || len(s.anyOf) > 0 || len(s.oneOf) > 0 || s.not != nil || s.cond != nil || len(s.dependentSchemas) > 0
}

func (s *subschema) hasStringRules() bool {
	return s.minLength != nil || s.maxLength != nil || s.pattern != nil
}

func (s *subschema) hasNumberRules() bool {
	return s.minimum != nil || s.maximum != nil || s.above != nil || s.below != nil || s.multipleOf != nil
}

func (s *subschema) hasArrayRules() bool {
	return s.minItems != nil || s.maxItems != nil || s.uniqueItems || s.contains != nil || s.items != nil ||
		s.listed || len(s.prefix) > 0
}

func (s *subschema) hasObjectRules() bool {
	return s.minProperties != nil || s.maxProperties != nil || len(s.required) > 0 || s.names != nil ||
		len(s.properties) > 0 || len(s.patterns) > 0 || s.additional != nil || len(s.dependentRequired) > 0
}

func (b *builder) fill(n *node, s *subschema, in *scope) {
	if s.types != 0 {
		n.types = s.types
	}
	n.enum = enumOf(s)
	b.fillRules(n, s, in)
	rules := inPlace{format: s.format, composite: n.enum != nil && n.enum.composite}
	b.fillReferences(&rules, s, in)
	b.fillBranches(&rules, s, in)
	rules.unevaluatedItems, rules.unevaluatedProperties = b.node(s.unevaluatedItems, in), b.node(s.unevaluatedProperties, in)
	if rules.ref != nil || rules.dynamic != nil || rules.format != nil || rules.composite || s.hasBranches() || s.leavesRest() {
		n.in = &rules
	}
	n.any = n.types == typeAll && n.enum == nil && n.str == nil && n.num == nil && n.arr == nil && n.obj == nil && n.in == nil
}

func (b *builder) fillReferences(rules *inPlace, s *subschema, in *scope) {
	rules.ref = b.node(s.ref, in)
	if s.dynamic != nil {
		rules.dynamic = b.node(in.target(s.dynamic), in)
	}
	b.refers = b.refers || s.ref != nil || s.dynamic != nil
}

func (b *builder) fillRules(n *node, s *subschema, in *scope) {
	if s.hasStringRules() {
		n.str = &stringRules{minLength: orElse(s.minLength, 0), maxLength: orElse(s.maxLength, -1), pattern: s.pattern}
	}
	if s.hasNumberRules() {
		n.num = numbers(s)
	}
	if s.hasArrayRules() {
		n.arr = b.array(s, in)
	}
	if s.hasObjectRules() {
		n.obj = b.object(s, in)
	}
}

func numbers(s *subschema) *numberRules {
	minimum, above := excludeIf(s.minimumExcluded, s.minimum, s.above)
	maximum, below := excludeIf(s.maximumExcluded, s.maximum, s.below)
	return &numberRules{
		minimum: newBound(minimum), maximum: newBound(maximum),
		above: newBound(above), below: newBound(below),
		multipleOf: newDivisor(s.multipleOf),
	}
}

// excludeIf makes an inclusive bound an exclusive one.
func excludeIf(excluded bool, inclusive, exclusive *big.Rat) (*big.Rat, *big.Rat) {
	if excluded {
		return nil, inclusive
	}
	return inclusive, exclusive
}

func (b *builder) fillBranches(rules *inPlace, s *subschema, in *scope) {
	rules.allOf, rules.anyOf, rules.oneOf = b.list(s.allOf, in), b.list(s.anyOf, in), b.list(s.oneOf, in)
	rules.not = b.node(s.not, in)
	rules.cond, rules.then, rules.orr = b.node(s.cond, in), b.node(s.then, in), b.node(s.orElse, in)
	for _, m := range s.dependentSchemas {
		rules.dependent = append(rules.dependent, dependentSchema{m.name, b.node(m.schema, in)})
	}
}

func (b *builder) list(schemas []*subschema, in *scope) []*node {
	var nodes []*node
	for _, s := range schemas {
		nodes = append(nodes, b.node(s, in))
	}
	return nodes
}

func (b *builder) array(s *subschema, in *scope) *arrayRules {
	a := &arrayRules{
		minItems: orElse(s.minItems, 0), maxItems: orElse(s.maxItems, -1), unique: s.uniqueItems,
		prefix: b.list(s.prefix, in), items: b.node(s.items, in),
		contains: b.node(s.contains, in), minContains: orElse(s.minContains, 1), maxContains: orElse(s.maxContains, -1),
		containsEvaluates: s.draft >= Draft2020,
	}
	if s.listed {
		a.items = b.node(s.rest, in)
	}
	return a
}

func (b *builder) object(s *subschema, in *scope) *objectRules {
	o := &objectRules{
		minProps: orElse(s.minProperties, 0), maxProps: orElse(s.maxProperties, -1),
		names: b.node(s.names, in), additional: b.node(s.additional, in),
	}
	for _, m := range s.properties {
		o.props.declare(m.name, b.node(m.schema, in))
	}
	for _, name := range s.required {
		o.required = append(o.required, o.props.mention(name))
	}
	for _, p := range s.patterns {
		o.patterns = append(o.patterns, patternRule{p.re, b.node(p.schema, in)})
	}
	slices.SortFunc(o.patterns, func(a, b patternRule) int { return strings.Compare(a.re.source, b.re.source) })
	for _, d := range s.dependentRequired {
		o.depend(d.name, d.needs)
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
