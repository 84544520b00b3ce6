package schema

import "github.com/toolcrib/toolcrib/internal/rawjson"

// array checks the array whose bracket is at i; depth counts it.
func (c *checker) array(n *node, i, depth int) int {
	if depth > MaxDepth {
		return -1
	}
	r, start := n.arr, i
	i, done, fault := rawjson.FirstElement(c.doc, i, ']')
	count, matched := 0, 0
	for !done && fault == rawjson.FaultNone {
		end := c.element(r, i, depth, count)
		if end < 0 {
			return -1
		}
		if r.contains != nil && c.containsMatch(r, i, depth) {
			matched++
		}
		count++
		i, done, fault = rawjson.NextElement(c.doc, end, ']')
	}
	if fault != rawjson.FaultNone || !c.arraySize(n, start, count, matched) {
		return -1
	}
	if r.unique && count > 1 && !c.unique(start, depth) && !c.fail(n, start, kwUniqueItems, 0) {
		return -1
	}
	return i
}

func (c *checker) element(r *arrayRules, i, depth, index int) int {
	if index < len(r.prefix) {
		return c.value(r.prefix[index], i, depth)
	}
	return c.value(r.items, i, depth)
}

// containsMatch reports whether the element at i, which has been scanned,
// satisfies "contains".
func (c *checker) containsMatch(r *arrayRules, i, depth int) bool {
	trusted := c.w.Trusted
	c.w.Trusted = true
	ok := c.matches(r.contains, i, depth)
	c.w.Trusted = trusted
	return ok
}

func (c *checker) arraySize(n *node, start, count, matched int) bool {
	r := n.arr
	if count < r.minItems && !c.fail(n, start, kwMinItems, 0) {
		return false
	}
	if r.maxItems >= 0 && count > r.maxItems && !c.fail(n, start, kwMaxItems, 0) {
		return false
	}
	if r.contains == nil {
		return true
	}
	if c.exhausted || matched < r.minContains && !c.fail(n, start, kwContains, 0) {
		return false
	}
	return r.maxContains < 0 || matched <= r.maxContains || c.fail(n, start, kwMaxContains, 0)
}

// unique reports whether the elements of the scanned array at start all differ.
// Strings are compared without allocation.
func (c *checker) unique(start, depth int) bool {
	mark := c.w.Keys.Open()
	defer c.w.Keys.Close(mark)
	trusted := c.w.Trusted
	c.w.Trusted = true
	defer func() { c.w.Trusted = trusted }()
	var others map[string]struct{}
	i, done, _ := rawjson.FirstElement(c.doc, start, ']')
	for !done {
		end := c.skip(i, depth)
		if end < 0 {
			return false
		}
		if c.doc[i] == '"' {
			if _, plain, _ := rawjson.ScanString(c.doc, i); !c.w.Keys.Add(mark, i, end, plain) {
				return false
			}
		} else {
			if others == nil {
				others = map[string]struct{}{}
			}
			key := string(appendCanonical(nil, c.doc[i:end]))
			if _, dup := others[key]; dup {
				return false
			}
			others[key] = struct{}{}
		}
		i, done, _ = rawjson.NextElement(c.doc, end, ']')
	}
	return true
}
