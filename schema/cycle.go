package schema

// markCycles marks nodes so that every way on which a node applies itself to the
// same value, directly or by way of others, leads through a marked one.
func markCycles(root *node) {
	m := cycles{onTheWay: map[*node]bool{}}
	seen := map[*node]bool{root: true}
	queue := []*node{root}
	for i := 0; i < len(queue); i++ {
		m.visit(queue[i])
		for _, next := range append(queue[i].sameValue(), queue[i].parts()...) {
			if next != nil && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
}

// cycles says of every node that was visited whether the visit is under way.
type cycles struct{ onTheWay map[*node]bool }

func (m cycles) visit(n *node) {
	if n == nil || n.in == nil {
		return
	}
	if underWay, visited := m.onTheWay[n]; visited {
		n.in.cyclic = n.in.cyclic || underWay
		return
	}
	m.onTheWay[n] = true
	for _, next := range n.sameValue() {
		m.visit(next)
	}
	m.onTheWay[n] = false
}

// sameValue returns the nodes that n applies to the value it is applied to; some
// are nil.
func (n *node) sameValue() []*node {
	if n.in == nil {
		return nil
	}
	out := []*node{n.in.ref, n.in.dynamic, n.in.not, n.in.cond, n.in.then, n.in.orr}
	out = append(out, n.in.allOf...)
	out = append(out, n.in.anyOf...)
	out = append(out, n.in.oneOf...)
	for _, d := range n.in.dependent {
		out = append(out, d.then)
	}
	return out
}

// parts returns the nodes that n applies to parts of its value; some are nil.
func (n *node) parts() []*node {
	var out []*node
	if n.in != nil {
		out = append(out, n.in.unevaluatedItems, n.in.unevaluatedProperties)
	}
	if n.arr != nil {
		out = append(append(out, n.arr.items, n.arr.contains), n.arr.prefix...)
	}
	if n.obj == nil {
		return out
	}
	out = append(out, n.obj.names, n.obj.additional)
	for _, p := range n.obj.props.list {
		out = append(out, p.node)
	}
	for _, p := range n.obj.patterns {
		out = append(out, p.node)
	}
	return out
}

// enterCycle notes that a marked node looks at the value at i, and reports false
// when it does so already.
func (c *checker) enterCycle(n *node, i int) bool {
	k := len(c.visits) - 1
	for k >= 0 && c.visits[k].at == i && c.visits[k].node != n {
		k--
	}
	c.budget -= (len(c.visits) - k) / 16
	if k >= 0 && c.visits[k].at == i {
		return false
	}
	c.visits = append(c.visits, visit{n, i})
	return true
}

func (c *checker) leaveCycle() { c.visits = c.visits[:len(c.visits)-1] }

// visit is a node that looks at a value.
type visit struct {
	node *node
	at   int
}
