package schema

import "github.com/toolcrib/toolcrib/internal/rawjson"

// object checks the object whose bracket is at i; depth counts it.
func (c *checker) object(n *node, i, depth int) int {
	if depth > MaxDepth {
		return -1
	}
	r, start := n.obj, i
	var seen propSet
	mark := c.w.Keys.Open()
	i, done, fault := rawjson.FirstElement(c.doc, i, '}')
	count := 0
	for !done && fault == rawjson.FaultNone {
		end := c.member(n, &seen, i, depth, mark)
		if end < 0 {
			return -1
		}
		count++
		i, done, fault = rawjson.NextElement(c.doc, end, '}')
	}
	c.w.Keys.Close(mark)
	if fault != rawjson.FaultNone {
		return -1
	}
	for _, p := range r.required {
		if !seen.has(p) && !c.fail(n, start, kwRequired, p) {
			return -1
		}
	}
	if !c.objectSize(n, start, count) || !c.dependencies(n, &seen, start) {
		return -1
	}
	return i
}

func (c *checker) objectSize(n *node, start, count int) bool {
	r := n.obj
	if count < r.minProps && !c.fail(n, start, kwMinProperties, 0) {
		return false
	}
	return r.maxProps < 0 || count <= r.maxProps || c.fail(n, start, kwMaxProperties, 0)
}

func (c *checker) dependencies(n *node, seen *propSet, start int) bool {
	for _, d := range n.obj.dependentRequire {
		if !seen.has(d.property) {
			continue
		}
		for _, need := range d.needs {
			if !seen.has(need) && !c.fail(n, start, kwDependentRequired, need) {
				return false
			}
		}
	}
	return true
}

// member checks the member whose key starts at i and returns the offset after
// its value.
func (c *checker) member(n *node, seen *propSet, i, depth, mark int) int {
	r := n.obj
	if p := seen.next; r.props.isAt(p, c.doc, i) && r.names == nil && len(r.patterns) == 0 {
		return c.nextMember(n, seen, i, depth)
	}
	keyEnd, value, plain, fault := rawjson.ScanKey(c.doc, i)
	if fault != rawjson.FaultNone {
		return -1
	}
	key := c.doc[i+1 : keyEnd-1]
	if !plain {
		c.scratch = rawjson.AppendUnquoted(c.scratch[:0], c.doc[i:keyEnd])
		key = c.scratch
	}
	p := r.props.find(key)
	if !c.firstTime(r, seen, p, mark, i, keyEnd, plain) {
		return -1
	}
	if r.names != nil || len(r.patterns) > 0 {
		return c.patternMember(n, p, key, i, value, depth)
	}
	if p >= 0 && r.props.list[p].declared {
		return c.value(r.props.list[p].node, value, depth)
	}
	return c.extra(n, i, value, depth)
}

// nextMember checks the member at i, whose key is the property that comes next in
// the schema. Most objects have their members in that order, so that their keys
// need not be scanned and looked up.
func (c *checker) nextMember(n *node, seen *propSet, i, depth int) int {
	p := &n.obj.props.list[seen.next]
	value, fault := rawjson.ScanColon(c.doc, i+len(p.key))
	if fault != rawjson.FaultNone || !seen.add(seen.next, len(n.obj.props.list)) {
		return -1
	}
	if p.declared {
		return c.value(p.node, value, depth)
	}
	return c.extra(n, i, value, depth)
}

// firstTime records a key and reports whether the object did not have it yet.
func (c *checker) firstTime(r *objectRules, seen *propSet, p, mark, i, keyEnd int, plain bool) bool {
	if p >= 0 {
		return seen.add(p, len(r.props.list))
	}
	return c.w.Trusted || c.w.Keys.Add(mark, i, keyEnd, plain)
}

// extra checks the value of a member that the schema does not name.
func (c *checker) extra(n *node, key, value, depth int) int {
	additional := n.obj.additional
	if additional != nil && additional.never {
		if !c.fail(n, key, kwAdditional, key) {
			return -1
		}
		return c.skip(value, depth)
	}
	return c.value(additional, value, depth)
}

// patternMember checks a member of an object with rules on names.
func (c *checker) patternMember(n *node, p int, key []byte, i, value, depth int) int {
	r := n.obj
	end := c.skip(value, depth)
	if end < 0 {
		return -1
	}
	trusted := c.w.Trusted
	c.w.Trusted = true
	defer func() { c.w.Trusted = trusted }()
	named := p >= 0 && r.props.list[p].declared
	matched := named
	for _, rule := range r.patterns {
		if !c.match(rule.re, key) {
			continue
		}
		matched = true
		if c.value(rule.node, value, depth) < 0 {
			return -1
		}
		key = c.keyText(i, key)
	}
	if r.names != nil && !c.matches(r.names, i, depth) && !c.fail(n, i, kwPropertyNames, i) {
		return -1
	}
	switch {
	case named && c.value(r.props.list[p].node, value, depth) < 0,
		!matched && c.extra(n, i, value, depth) < 0:
		return -1
	}
	return end
}

// keyText returns the text of the key at i again, whose copy in the scratch
// space may have been overwritten since.
func (c *checker) keyText(i int, key []byte) []byte {
	end, plain, _ := rawjson.ScanString(c.doc, i)
	if plain {
		return key
	}
	c.scratch = rawjson.AppendUnquoted(c.scratch[:0], c.doc[i:end])
	return c.scratch
}
