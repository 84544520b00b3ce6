package schema

import (
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Check reports whether doc is one well-formed JSON value, without duplicate
// keys at any depth, that satisfies the schema. It reads the bytes once, and
// allocates nothing when the document passes and the schema needs no more than
// the common keywords. The error is a [*DocumentError] or an [*Error].
func (s *Schema) Check(doc []byte) error {
	c := s.pool.Get().(*checker)
	root := s.nodes()
	if c.pass(root, doc) {
		s.release(c)
		return nil
	}
	err := c.failure(root, doc)
	s.release(c)
	return err
}

func (s *Schema) release(c *checker) {
	c.w.Reset(nil, 0)
	c.doc, c.report, c.spans = nil, nil, nil
	if cap(c.scratch) > keptScratch {
		c.scratch = nil
	}
	s.pool.Put(c)
}

const keptScratch = 64 << 10

// A checker is the state of one Check.
type checker struct {
	w   rawjson.Walker
	doc []byte
	// scratch holds the text of one string with escapes.
	scratch []byte
	// budget bounds the work, since alternatives multiply with nesting.
	budget int
	// report collects violations; nil stops at the first.
	report    *report
	exhausted bool
	// visits are the nodes of cycles that are looking at a value, innermost last.
	visits []visit
	// spans tells about the text when that is a schema.
	spans *spans
}

// The work of a check, in visits of a schema, is bounded by a constant and a
// factor of the size of the document.
const (
	budgetBase    = 1 << 20
	budgetPerByte = 32
)

func (c *checker) begin(doc []byte) bool {
	c.doc, c.report, c.exhausted = doc, nil, false
	c.visits = c.visits[:0]
	c.budget = budgetBase + budgetPerByte*len(doc)
	return c.w.Reset(doc, MaxDepth)
}

// pass reports whether the document is well-formed and satisfies root.
func (c *checker) pass(root *node, doc []byte) bool {
	if !c.begin(doc) {
		return false
	}
	end := c.value(root, rawjson.SkipSpace(doc, 0), 0)
	return end >= 0 && !c.exhausted && rawjson.SkipSpace(doc, end) == len(doc) && utf8.Valid(doc)
}

// failure finds out why a document did not pass. What is wrong with the
// document itself comes before what the schema says.
func (c *checker) failure(root *node, doc []byte) error {
	if err := rawjson.Check(doc, rawjson.Options{MaxDepth: MaxDepth}); err != nil {
		return documentError(err)
	}
	return c.violations(root, doc)
}

// violations collects what the schema says against a well-formed document.
func (c *checker) violations(root *node, doc []byte) error {
	c.begin(doc)
	c.w.Trusted = true
	r := &report{}
	c.report = r
	c.value(root, rawjson.SkipSpace(doc, 0), 0)
	if len(r.list) == 0 {
		text := "a document that can be checked against this schema with bounded effort"
		r.list = []Violation{{Keyword: "schema", Expected: "expected " + text}}
	}
	return &Error{Violations: r.list}
}

// skip scans the value at i without asking anything of it.
func (c *checker) skip(i, depth int) int {
	if c.spans != nil {
		if end := c.spans.end(i); end > 0 {
			return end
		}
	}
	end, fault := c.w.Value(i, depth)
	if fault != rawjson.FaultNone {
		return -1
	}
	if c.w.Trusted {
		c.budget -= (end - i) / 16
	}
	return end
}

// value checks the value at i, which starts after white space, against n and
// returns the offset after it, or -1 to stop: because the document is not
// well-formed, or because it fails and the failures are not being collected.
func (c *checker) value(n *node, i, depth int) int {
	if n == nil || n.any || c.spans != nil && c.spans.foreign(i) {
		return c.skip(i, depth)
	}
	if c.budget--; c.budget < 0 {
		c.exhausted = true
		return -1
	}
	if n.in != nil {
		return c.inPlace(n, i, depth)
	}
	return c.plain(n, i, depth)
}

// plain checks all but the keywords that need the value more than once.
func (c *checker) plain(n *node, i, depth int) int {
	if i >= len(c.doc) {
		return -1
	}
	if n.never {
		return c.reject(n, i, depth, kwFalse)
	}
	switch c.doc[i] {
	case '"':
		return c.str(n, i)
	case '{':
		return c.composite(n, i, depth, typeObject)
	case '[':
		return c.composite(n, i, depth, typeArray)
	case 't', 'f':
		return c.literal(n, i, typeBoolean)
	case 'n':
		return c.literal(n, i, typeNull)
	}
	return c.number(n, i)
}

// reject fails the value at i and, when failures are collected, steps over it.
func (c *checker) reject(n *node, i, depth int, kw keyword) int {
	if !c.fail(n, i, kw, 0) {
		return -1
	}
	return c.skip(i, depth)
}

// fail records a failure of the value at i. It reports whether to go on.
func (c *checker) fail(n *node, i int, kw keyword, arg int) bool {
	return c.report != nil && c.report.add(c, n, i, kw, arg)
}

func (c *checker) composite(n *node, i, depth int, t typeSet) int {
	switch {
	case n.types&t == 0:
		return c.reject(n, i, depth, kwType)
	case n.enum != nil && !n.enum.composite:
		return c.reject(n, i, depth, n.enum.keyword)
	case n.enum != nil && !n.enum.hasComposite(c.span(i, depth)):
		return c.reject(n, i, depth, n.enum.keyword)
	case t == typeObject && n.obj != nil:
		return c.object(n, i, depth+1)
	case t == typeArray && n.arr != nil:
		return c.array(n, i, depth+1)
	}
	return c.skip(i, depth)
}

// span returns the bytes of the value at i, which is trusted.
func (c *checker) span(i, depth int) []byte {
	end := c.skip(i, depth)
	if end < 0 {
		return nil
	}
	return c.doc[i:end]
}

// inPlace checks the keywords that look at a value more than once: the value is
// scanned first, and its bytes trusted from then on.
func (c *checker) inPlace(n *node, i, depth int) int {
	if i >= len(c.doc) {
		return -1
	}
	if n.in.cyclic {
		return c.inCycle(n, i, depth)
	}
	return c.scanFirst(n, i, depth)
}

// inCycle does what inPlace does for a node that must not come back to itself.
func (c *checker) inCycle(n *node, i, depth int) int {
	if !c.enterCycle(n, i) {
		return c.reject(n, i, depth, kwCycle)
	}
	end := c.scanFirst(n, i, depth)
	c.leaveCycle()
	return end
}

func (c *checker) scanFirst(n *node, i, depth int) int {
	trusted := c.w.Trusted
	end := -1
	if !trusted {
		if end = c.skip(i, depth); end < 0 {
			return -1
		}
		c.w.Trusted = true
	}
	ok := c.every(n, i, &end, depth)
	c.w.Trusted = trusted
	if !ok {
		return -1
	}
	return end
}

// every checks all keywords of n against the trusted value at i and sets *end.
func (c *checker) every(n *node, i int, end *int, depth int) bool {
	in := n.in
	before := c.reported()
	if *end = c.plain(n, i, depth); *end < 0 {
		return false
	}
	if c.reported() > before && n.types != typeAll && !n.types.admits(c.doc, i) {
		return true // the wrong type says it all
	}
	if in.format != nil && !c.format(n, i) {
		return false
	}
	if in.ref != nil && c.value(in.ref, i, depth) < 0 || in.dynamic != nil && c.value(in.dynamic, i, depth) < 0 {
		return false
	}
	for _, sub := range in.allOf {
		if c.value(sub, i, depth) < 0 {
			return false
		}
	}
	return c.alternatives(n, i, depth) && c.conditions(n, i, depth) && c.unevaluated(n, i, depth)
}

func (c *checker) reported() int {
	if c.report == nil {
		return 0
	}
	return len(c.report.list)
}

// matches reports whether the trusted value at i satisfies n, and records
// nothing.
func (c *checker) matches(n *node, i, depth int) bool {
	r := c.report
	c.report = nil
	end := c.value(n, i, depth)
	c.report = r
	return end >= 0
}

func (c *checker) alternatives(n *node, i, depth int) bool {
	in := n.in
	if len(in.anyOf) > 0 && c.count(in.anyOf, i, depth, 1) == 0 && !c.failBranches(n, in.anyOf, i, depth, kwAnyOf) {
		return false
	}
	if len(in.oneOf) == 0 || c.exhausted {
		return !c.exhausted
	}
	switch c.count(in.oneOf, i, depth, 2) {
	case 0:
		return c.failBranches(n, in.oneOf, i, depth, kwOneOf)
	case 1:
		return !c.exhausted
	}
	return c.fail(n, i, kwOneOfMany, 0)
}

// count returns how many of the branches the value satisfies, at most limit.
func (c *checker) count(branches []*node, i, depth, limit int) int {
	matched := 0
	for _, sub := range branches {
		if c.matches(sub, i, depth) {
			if matched++; matched == limit {
				break
			}
		}
	}
	return matched
}

func (c *checker) conditions(n *node, i, depth int) bool {
	in := n.in
	if in.not != nil {
		matched := c.matches(in.not, i, depth)
		if c.exhausted || matched && !c.fail(n, i, kwNot, 0) {
			return false
		}
	}
	if in.cond != nil {
		branch := in.orr
		if c.matches(in.cond, i, depth) {
			branch = in.then
		}
		if c.exhausted || branch != nil && c.value(branch, i, depth) < 0 {
			return false
		}
	}
	for _, dep := range in.dependent {
		if c.hasMember(i, dep.property) && c.value(dep.then, i, depth) < 0 {
			return false
		}
	}
	return true
}

// hasMember reports whether the trusted value at i is an object with the given
// member.
func (c *checker) hasMember(i int, name string) bool {
	if c.doc[i] != '{' {
		return false
	}
	_, ok := rawjson.Get(c.doc[i:], name)
	return ok
}
