package schema

import "github.com/toolcrib/toolcrib/internal/rawjson"

// evaluated is the members of an object or the items of an array, by where they
// stand in it, that some schema has looked at.
type evaluated struct {
	set  propSet
	size int
	all  bool
}

func (e *evaluated) has(k int) bool { return e.all || e.set.has(k) }

func (e *evaluated) add(k int) {
	if k < e.size {
		e.set.add(k, e.size)
	}
}

// unevaluated checks the parts of the trusted value at i that no other keyword
// of n has looked at.
func (c *checker) unevaluated(n *node, i, depth int) bool {
	rest, kw := n.in.rest(c.doc[i])
	if rest == nil || rest.any {
		return true
	}
	e := evaluated{size: max(rawjson.Len(c.doc[i:]), 0)}
	c.markRules(n, i, depth, &e)
	c.markApplied(n, i, depth, &e)
	for k, at := range c.places(i) {
		switch {
		case c.exhausted:
			return false
		case e.has(k):
		case rest.never:
			if !c.fail(n, at, kw, 0) {
				return false
			}
		case c.value(rest, at, depth+1) < 0:
			return false
		}
	}
	return !c.exhausted
}

// rest returns the node for what is left of a value that begins with a
// character, if there is one.
func (in *inPlace) rest(first byte) (*node, keyword) {
	switch first {
	case '{':
		return in.unevaluatedProperties, kwUnevaluatedProperties
	case '[':
		return in.unevaluatedItems, kwUnevaluatedItems
	}
	return nil, 0
}

// places yields where the values of the trusted object or array at i stand.
func (c *checker) places(i int) func(yield func(k, at int) bool) {
	return func(yield func(k, at int) bool) {
		it := rawjson.Array(c.doc[i:])
		if c.doc[i] == '{' {
			it = rawjson.Object(c.doc[i:])
		}
		for k := 0; it.Next() && yield(k, i+it.Offset()); k++ {
		}
		c.budget -= (it.End() - i) / 16
	}
}

// mark adds what n evaluates of the trusted value at i, which satisfies n. When
// it does not, since violations are being collected, too much may be added.
func (c *checker) mark(n *node, i, depth int, e *evaluated) {
	if n == nil || n.any || n.never || e.all {
		return
	}
	if c.budget--; c.budget < 0 {
		c.exhausted = true
		return
	}
	if n.in == nil {
		c.markRules(n, i, depth, e)
		return
	}
	if rest, _ := n.in.rest(c.doc[i]); rest != nil {
		e.all = true
		return
	}
	if n.in.cyclic && !c.enterCycle(n, i) {
		return
	}
	c.markRules(n, i, depth, e)
	c.markApplied(n, i, depth, e)
	if n.in.cyclic {
		c.leaveCycle()
	}
}

// markApplied adds what the schemas evaluate that n applies to the same value.
func (c *checker) markApplied(n *node, i, depth int, e *evaluated) {
	in := n.in
	c.mark(in.ref, i, depth, e)
	c.mark(in.dynamic, i, depth, e)
	for _, sub := range in.allOf {
		c.mark(sub, i, depth, e)
	}
	c.markMatching(in.anyOf, i, depth, e)
	c.markMatching(in.oneOf, i, depth, e)
	if in.cond != nil {
		if c.matches(in.cond, i, depth) {
			c.mark(in.cond, i, depth, e)
			c.mark(in.then, i, depth, e)
		} else {
			c.mark(in.orr, i, depth, e)
		}
	}
	for _, dep := range in.dependent {
		if c.hasMember(i, dep.property) {
			c.mark(dep.then, i, depth, e)
		}
	}
}

// markMatching adds what those alternatives evaluate that the value satisfies.
// Without any there is a violation already, which says enough.
func (c *checker) markMatching(branches []*node, i, depth int, e *evaluated) {
	matched := 0
	for _, sub := range branches {
		if !e.all && c.matches(sub, i, depth) {
			matched++
			c.mark(sub, i, depth, e)
		}
	}
	e.all = e.all || matched == 0 && len(branches) > 0
}

// markRules adds what the keywords of n for arrays or objects evaluate.
func (c *checker) markRules(n *node, i, depth int, e *evaluated) {
	switch {
	case c.doc[i] == '[' && n.arr != nil:
		c.markItems(n.arr, i, depth, e)
	case c.doc[i] == '{' && n.obj != nil:
		c.markMembers(n.obj, i, e)
	}
}

func (c *checker) markItems(r *arrayRules, i, depth int, e *evaluated) {
	if r.items != nil {
		e.all = true
		return
	}
	for k := range r.prefix {
		e.add(k)
	}
	if r.contains == nil || !r.containsEvaluates {
		return
	}
	for k, at := range c.places(i) {
		if !e.has(k) && c.matches(r.contains, at, depth+1) {
			e.add(k)
		}
	}
}

func (c *checker) markMembers(r *objectRules, i int, e *evaluated) {
	if r.additional != nil {
		e.all = true
		return
	}
	it := rawjson.Object(c.doc[i:])
	for k := 0; it.Next(); k++ {
		if !e.has(k) && c.names(r, []byte(it.Key())) {
			e.add(k)
		}
	}
	c.budget -= it.End() / 16
}

// names reports whether the properties or the patterns of r have a key.
func (c *checker) names(r *objectRules, key []byte) bool {
	if p := r.props.find(key); p >= 0 && r.props.list[p].declared {
		return true
	}
	for _, rule := range r.patterns {
		if c.match(rule.re, key) {
			return true
		}
	}
	return false
}
