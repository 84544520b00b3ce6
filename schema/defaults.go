package schema

import (
	"encoding/json"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Defaults fills in what a document leaves out, as the "default" of each
// property says, at every level that the document has. A default is an
// annotation to a checker, so that only who asks for it applies it. It is
// immutable and safe for concurrent use.
type Defaults struct{ root *defaultNode }

// defaultNode is a schema as far as defaults go.
type defaultNode struct {
	props  []defaultProperty
	items  *defaultNode // of every element
	others *defaultNode // of properties that are not named
	// branches are alternatives to null, whose defaults count as well.
	branches []*defaultNode
}

type defaultProperty struct {
	name  string
	value json.RawMessage // nil when there is no default
	node  *defaultNode    // nil when there are none further down
}

// NewDefaults reads the defaults of a schema that [Of] or [Arguments] derived.
// It returns nil when there are none; a nil *Defaults changes nothing.
func NewDefaults(raw json.RawMessage) *Defaults {
	r := defaultReader{root: raw, known: map[string]*defaultNode{}}
	node := r.read(raw)
	if !node.useful(map[*defaultNode]bool{}) {
		return nil
	}
	return &Defaults{root: node}
}

// Apply returns doc with its defaults filled in. What doc has stays as it is,
// null included. A document that lacks none is returned itself. doc must be
// well-formed.
func (d *Defaults) Apply(doc []byte) []byte {
	if d == nil {
		return doc
	}
	return d.root.apply(doc)
}

// defaultReader turns schemas into nodes; a schema that refers to itself
// becomes a node that does.
type defaultReader struct {
	root  json.RawMessage
	known map[string]*defaultNode // by reference
}

func (r *defaultReader) read(raw json.RawMessage) *defaultNode {
	if ref, ok := rawjson.Get(raw, "$ref"); ok {
		return r.follow(ref)
	}
	node := &defaultNode{}
	r.fill(node, raw)
	return node
}

func (r *defaultReader) follow(ref []byte) *defaultNode {
	name, _ := rawjson.Unquote(ref)
	if node, ok := r.known[name]; ok {
		return node
	}
	node := &defaultNode{}
	r.known[name] = node
	at := r.root
	for token := range strings.SplitSeq(strings.TrimPrefix(name, "#"), "/") {
		if token == "" {
			continue
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		at, _ = rawjson.Get(at, token)
	}
	r.fill(node, at)
	return node
}

func (r *defaultReader) fill(node *defaultNode, raw json.RawMessage) {
	if rawjson.KindOf(raw) != rawjson.KindObject {
		return
	}
	props, _ := rawjson.Get(raw, "properties")
	for it := rawjson.Object(props); it.Next(); {
		value, _ := rawjson.Get(it.Value(), "default")
		node.props = append(node.props, defaultProperty{name: it.Key(), value: value, node: r.read(it.Value())})
	}
	if items, ok := rawjson.Get(raw, "items"); ok {
		node.items = r.read(items)
	}
	if others, ok := rawjson.Get(raw, "additionalProperties"); ok {
		node.others = r.read(others)
	}
	// A pointer is "anyOf" its target and null.
	branches, _ := rawjson.Get(raw, "anyOf")
	for it := rawjson.Array(branches); it.Next(); {
		node.branches = append(node.branches, r.read(it.Value()))
	}
}

// useful reports whether there is a default in n or below it.
func (n *defaultNode) useful(seen map[*defaultNode]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	for _, p := range n.props {
		if p.value != nil || p.node.useful(seen) {
			return true
		}
	}
	for _, b := range n.branches {
		if b.useful(seen) {
			return true
		}
	}
	return n.items.useful(seen) || n.others.useful(seen)
}

func (n *defaultNode) apply(doc []byte) []byte {
	if n == nil {
		return doc
	}
	switch rawjson.KindOf(doc) {
	case rawjson.KindObject:
		doc = n.object(doc)
	case rawjson.KindArray:
		doc = n.array(doc)
	}
	for _, b := range n.branches {
		doc = b.apply(doc)
	}
	return doc
}

func (n *defaultNode) object(doc []byte) []byte {
	out := doc
	for it := rawjson.Object(doc); it.Next(); {
		below := n.property(it)
		if next := below.apply(it.Value()); len(next) != len(it.Value()) {
			out = set(out, it.Key(), next)
		}
	}
	for _, p := range n.props {
		if _, ok := rawjson.Get(doc, p.name); !ok && p.value != nil {
			out = set(out, p.name, p.value)
		}
	}
	return out
}

// property returns the node of the member that it stands at.
func (n *defaultNode) property(it rawjson.Iter) *defaultNode {
	for _, p := range n.props {
		if it.KeyIs(p.name) {
			return p.node
		}
	}
	return n.others
}

// set is rawjson.Set for documents and values that are well-formed.
func set(doc []byte, key string, value []byte) []byte {
	out, err := rawjson.Set(doc, key, value)
	if err != nil {
		return doc
	}
	return out
}

func (n *defaultNode) array(doc []byte) []byte {
	if n.items == nil {
		return doc
	}
	out, copied := []byte(nil), 0
	for it := rawjson.Array(doc); it.Next(); {
		v := it.Value()
		next := n.items.apply(v)
		if len(next) == len(v) {
			continue
		}
		out = append(out, doc[copied:it.Offset()]...)
		out = append(out, next...)
		copied = it.Offset() + len(v)
	}
	if out == nil {
		return doc
	}
	return append(out, doc[copied:]...)
}
