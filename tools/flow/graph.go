package flow

import (
	"fmt"
	"slices"
	"strings"
)

// graph is the shape of a definition whose IDs and edges were checked.
type graph struct {
	def   *Definition
	index map[string]int // of the nodes in def.Nodes
	order []int          // topological, of the nodes on paths from the entry
	in    [][]int        // sources of the edges into each node
	apart map[int]string // nodes off the paths: "fallback" or "undo"
	above []bits         // which nodes lead to each node
}

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bits) join(other bits) {
	for i := range b {
		b[i] |= other[i]
	}
}

// newGraph checks the IDs, the edges and the paths of a definition.
func newGraph(def *Definition) (*graph, error) {
	g := &graph{def: def, index: map[string]int{}, apart: map[int]string{}}
	for i := range def.Nodes {
		if err := g.name(i); err != nil {
			return nil, err
		}
	}
	for _, end := range []struct{ key, id string }{{"entry", def.Entry}, {"exit", def.Exit}} {
		if _, ok := g.index[end.id]; !ok {
			return nil, def.fault(end.key, "there is no node %q; expected one of %s", end.id, g.names())
		}
	}
	if err := g.connect(); err != nil {
		return nil, err
	}
	if err := g.sort(); err != nil {
		return nil, err
	}
	return g, g.reach()
}

func (g *graph) name(i int) error {
	n := &g.def.Nodes[i]
	if strings.TrimSpace(n.ID) == "" {
		return g.def.fault(nodePath(i), "the node has no id")
	}
	if first, taken := g.index[n.ID]; taken {
		return g.def.fault(nodePath(i)+".id", "%q is the id of node %d too", n.ID, first+1)
	}
	g.index[n.ID] = i
	return nil
}

func nodePath(i int) string { return fmt.Sprintf("nodes[%d]", i) }

func (g *graph) names() string {
	names := make([]string, 0, len(g.index))
	for name := range g.index {
		names = append(names, name)
	}
	slices.Sort(names)
	const most = 20
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
}

func (g *graph) connect() error {
	g.in = make([][]int, len(g.def.Nodes))
	for i := range g.def.Nodes {
		n := &g.def.Nodes[i]
		for e, edge := range n.Next {
			to, ok := g.index[edge.To]
			if !ok {
				return g.def.fault(fmt.Sprintf("%s.next[%d]", nodePath(i), e), "there is no node %q; expected one of %s", edge.To, g.names())
			}
			if slices.Contains(g.in[to], i) {
				return g.def.fault(fmt.Sprintf("%s.next[%d]", nodePath(i), e), "a second edge to %q; join their conditions", edge.To)
			}
			g.in[to] = append(g.in[to], i)
		}
		if err := g.spare(i, n.OnError.Node, "fallback", n.OnError.Do == Fallback); err != nil {
			return err
		}
		if err := g.spare(i, n.Undo, "undo", n.Undo != ""); err != nil {
			return err
		}
	}
	return g.ends()
}

// spare notes a node that runs in the place of another, or to undo it.
func (g *graph) spare(of int, id, what string, wanted bool) error {
	if !wanted {
		if id != "" {
			return g.def.fault(nodePath(of)+".on_error", "names the node %q, which only %q runs", id, Fallback)
		}
		return nil
	}
	i, ok := g.index[id]
	if !ok {
		return g.def.fault(nodePath(of)+"."+what, "there is no node %q; expected one of %s", id, g.names())
	}
	if i == of {
		return g.def.fault(nodePath(of)+"."+what, "the node cannot be its own %s", what)
	}
	g.apart[i] = what
	return nil
}

// ends demands that nothing leads into the entry or out of the exit, and that
// the nodes apart have no edges.
func (g *graph) ends() error {
	entry, exit := g.index[g.def.Entry], g.index[g.def.Exit]
	if len(g.in[entry]) > 0 {
		return g.def.fault(nodePath(g.in[entry][0])+".next", "leads back to the entry %q", g.def.Entry)
	}
	if len(g.def.Nodes[exit].Next) > 0 {
		return g.def.fault(nodePath(exit)+".next", "leads on from the exit %q", g.def.Exit)
	}
	for _, i := range sortedKeys(g.apart) {
		n := &g.def.Nodes[i]
		if len(n.Next) > 0 || len(g.in[i]) > 0 || i == entry || i == exit {
			return g.def.fault(nodePath(i), "the %s node %q cannot be on a path as well", g.apart[i], n.ID)
		}
		if n.Undo != "" || n.OnError.Do != "" && n.OnError.Do != Fail {
			return g.def.fault(nodePath(i), "the %s node %q cannot have an undo or on_error of its own", g.apart[i], n.ID)
		}
	}
	return nil
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// sort puts the nodes in topological order, those declared first before others
// that may stand at the same place.
func (g *graph) sort() error {
	left := make([]int, len(g.in))
	var ready []int
	for i := range g.in {
		if left[i] = len(g.in[i]); left[i] == 0 && g.apart[i] == "" {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		g.order = append(g.order, i)
		for _, edge := range g.def.Nodes[i].Next {
			to := g.index[edge.To]
			if left[to]--; left[to] == 0 {
				at, _ := slices.BinarySearch(ready, to)
				ready = slices.Insert(ready, at, to)
			}
		}
	}
	if len(g.order)+len(g.apart) < len(g.def.Nodes) {
		first, path := g.circle(left)
		return g.def.fault(nodePath(first)+".next", "the edges go round in a circle: %s", path)
	}
	return nil
}

// circle names one circle among the nodes that still wait for an edge.
func (g *graph) circle(left []int) (first int, path string) {
	at := slices.IndexFunc(left, func(n int) bool { return n > 0 })
	var trail []int
	for !slices.Contains(trail, at) {
		trail = append(trail, at)
		at = g.in[at][slices.IndexFunc(g.in[at], func(from int) bool { return left[from] > 0 })]
	}
	trail = append(trail[slices.Index(trail, at):], at)
	slices.Reverse(trail)
	names := make([]string, len(trail))
	for i, n := range trail {
		names[i] = g.def.Nodes[n].ID
	}
	return trail[0], strings.Join(names, " → ")
}

// reach finds which nodes lead to which, and demands that the entry leads to
// all.
func (g *graph) reach() error {
	entry := g.index[g.def.Entry]
	g.above = make([]bits, len(g.def.Nodes))
	for _, i := range g.order {
		g.above[i] = newBits(len(g.def.Nodes))
		for _, from := range g.in[i] {
			g.above[i].join(g.above[from])
			g.above[i].add(from)
		}
		if i != entry && !g.above[i].has(entry) {
			return g.def.fault(nodePath(i), "no path leads from the entry %q to %q", g.def.Entry, g.def.Nodes[i].ID)
		}
	}
	return nil
}

// visible returns which nodes a node may read: those that lead to it; for one
// that stands in for others, those that lead to each of them, and for an undo
// the node that it undoes.
func (g *graph) visible(i int) bits {
	if g.apart[i] == "" {
		return g.above[i]
	}
	seen := newBits(len(g.def.Nodes))
	first := true
	for k := range g.def.Nodes {
		n := &g.def.Nodes[k]
		if n.OnError.Node != g.def.Nodes[i].ID && n.Undo != g.def.Nodes[i].ID || g.apart[k] != "" {
			continue
		}
		own := slices.Clone(g.above[k])
		if n.Undo == g.def.Nodes[i].ID {
			own.add(k)
		}
		if first {
			seen, first = own, false
			continue
		}
		for w := range seen {
			seen[w] &= own[w]
		}
	}
	return seen
}
