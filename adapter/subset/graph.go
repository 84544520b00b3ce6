package subset

import (
	"strconv"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A node is a schema, as far as it says to what other schemas apply.
type node struct {
	// concerned says that a key which differs can be met from here.
	concerned bool
	from      []*node // those that lead here

	applies    []*node // to the same value
	properties map[string]*node
	required   map[string]bool // of the keys that differ
	patterns   []patternNode
	rest       []*node // to properties that are not named
	prefix     []*node // to the first elements
	items      []*node // to those that follow
	every      []*node // to each element
}

// patternNode is a schema of the properties whose keys match a pattern.
type patternNode struct {
	keyPattern
	node *node
}

// takes reports whether a key matches. What cannot be matched is taken to.
func (p *patternNode) takes(key string) bool { return p.re == nil || p.matches(key) }

// A graph makes nodes of the schemas of a document.
type graph struct {
	doc   *document
	keys  *keyMap
	nodes map[string]*node // by pointer

	patterns keyPatterns
}

// node returns the node of the schema at p.
func (g *graph) node(p place) *node {
	if n := g.nodes[p.at]; n != nil {
		return n
	}
	n := &node{}
	g.nodes[p.at] = n
	for it := rawjson.Object(p.raw); it.Next(); {
		g.member(n, p, it.Key(), it.Value())
	}
	return n
}

// link returns the nodes of the schemas under a keyword, to which n leads.
func (g *graph) link(n *node, p place, keyword string, v []byte) []*node {
	var list []*node
	for child := range children(p, keyword, v) {
		to := g.node(child)
		to.from = append(to.from, n)
		list = append(list, to)
	}
	return list
}

func (g *graph) member(n *node, p place, keyword string, v []byte) {
	switch keyword {
	case "$ref", "$dynamicRef", "$recursiveRef":
		if target, err := g.doc.resolve(text(v), p.at); err == nil {
			to := g.node(target)
			to.from = append(to.from, n)
			n.applies = append(n.applies, to)
		}
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies":
		n.applies = append(n.applies, g.link(n, p, keyword, v)...)
	case "properties":
		n.properties = map[string]*node{}
		for child := range children(p, keyword, v) {
			name := lastToken(child.at)
			to := g.node(child)
			to.from = append(to.from, n)
			n.properties[name] = to
			n.concerned = n.concerned || g.keys.wire(name) != name
		}
	case "required":
		g.require(n, words(v))
	case "patternProperties":
		for child := range children(p, keyword, v) {
			to := g.node(child)
			to.from = append(to.from, n)
			n.patterns = append(n.patterns, patternNode{g.patterns.get(lastToken(child.at)), to})
		}
	case "additionalProperties", "unevaluatedProperties":
		n.rest = append(n.rest, g.link(n, p, keyword, v)...)
	case "prefixItems":
		n.prefix = g.elements(n, p, keyword, v)
	case "items":
		if rawjson.KindOf(v) == rawjson.KindArray {
			n.prefix = g.elements(n, p, keyword, v)
			return
		}
		n.items = append(n.items, g.link(n, p, keyword, v)...)
	case "additionalItems":
		n.items = append(n.items, g.link(n, p, keyword, v)...)
	case "unevaluatedItems", "contains":
		n.every = append(n.every, g.link(n, p, keyword, v)...)
	}
}

// elements returns a node for each element of a list of schemas.
func (g *graph) elements(n *node, p place, keyword string, v []byte) []*node {
	var list []*node
	i := 0
	for it := rawjson.Array(v); it.Next(); i++ {
		to := &node{}
		if isSchema(it.Value()) {
			to = g.node(place{p.child(keyword, strconv.Itoa(i)), it.Value()})
		}
		to.from = append(to.from, n)
		list = append(list, to)
	}
	return list
}

func (g *graph) require(n *node, names []string) {
	for _, name := range names {
		if g.keys.wire(name) == name {
			continue
		}
		if n.required == nil {
			n.required = map[string]bool{}
		}
		n.required[name], n.concerned = true, true
	}
}

// spread marks what leads to the nodes that are concerned.
func (g *graph) spread() {
	var open []*node
	for _, n := range g.nodes {
		if n.concerned {
			open = append(open, n)
		}
	}
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		for _, from := range n.from {
			if !from.concerned {
				from.concerned = true
				open = append(open, from)
			}
		}
	}
}
