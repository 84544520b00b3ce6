package subset

import (
	"errors"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// wrapping is the mapping of a form whose original stands below WrapKey.
type wrapping struct{ inner mapping }

func (w *wrapping) back(dst, sent []byte) ([]byte, error) {
	v, ok := member(sent, WrapKey)
	if !ok {
		return dst, errors.New(`"` + WrapKey + `" is missing`)
	}
	if w.inner == nil {
		return append(dst, v...), nil
	}
	return w.inner.back(dst, v)
}

func (w *wrapping) forward(dst, value []byte) ([]byte, error) {
	dst = append(dst, `{"`+WrapKey+`":`...)
	if w.inner == nil {
		return append(append(dst, value...), '}'), nil
	}
	dst, err := w.inner.forward(dst, value)
	return append(dst, '}'), err
}

// renaming is the mapping of a form whose keys differ and which is else the
// original. It walks a value together with the schemas that apply to it.
type renaming struct {
	keys  *keyMap
	root  *node
	nodes map[string]*node // by pointer
}

func newRenaming(doc *document, keys *keyMap) *renaming {
	g := &graph{doc: doc, keys: keys, nodes: map[string]*node{}}
	r := &renaming{keys: keys, root: g.node(place{"", doc.root}), nodes: g.nodes}
	g.spread()
	return r
}

func (r *renaming) back(dst, sent []byte) ([]byte, error) { return r.walk(dst, sent, true) }

func (r *renaming) forward(dst, value []byte) ([]byte, error) { return r.walk(dst, value, false) }

func (r *renaming) walk(dst, v []byte, back bool) ([]byte, error) {
	return r.walkAt(dst, v, r.root, back)
}

func (r *renaming) walkAt(dst, v []byte, at *node, back bool) ([]byte, error) {
	w := walk{keys: r.keys, back: back, left: maxSteps}
	dst = w.value(dst, v, []*node{at})
	return dst, w.err
}

// written returns a value that stands in the schema at a pointer, or a list of
// some, in the provider's form.
func (r *renaming) written(at string, v []byte, list bool) []byte {
	n := r.nodes[at]
	if n == nil || !n.concerned {
		return v
	}
	if list {
		n = &node{concerned: true, items: []*node{n}}
	}
	out, err := r.walkAt(nil, v, n, false)
	if err != nil {
		return v
	}
	return out
}

// renames reports whether properties that the schema at a pointer names have other
// keys.
func (r *renaming) renames(at string) bool {
	n := r.nodes[at]
	if n == nil {
		return false
	}
	for key := range n.properties {
		if r.keys.wire(key) != key {
			return true
		}
	}
	return len(n.required) > 0
}

// maxSteps bounds how often a schema is looked at while one value is mapped.
const maxSteps = 4 << 20

var errTooMuch = errors.New("mapping them to the tool's own takes too long: send less")

// A walk goes through one value.
type walk struct {
	keys *keyMap
	back bool
	left int
	err  error
}

// pay takes from what is left, and reports whether there was enough.
func (w *walk) pay(steps int) bool {
	if w.left -= steps; w.left < 0 {
		w.err = errTooMuch
	}
	return w.err == nil
}

// value appends a value that the schemas of list, and what these refer to, apply
// to.
func (w *walk) value(dst, v []byte, list []*node) []byte {
	kind := rawjson.KindOf(v)
	if kind != rawjson.KindObject && kind != rawjson.KindArray {
		return append(dst, v...)
	}
	list = w.applying(list)
	if len(list) == 0 || w.err != nil {
		return append(dst, v...)
	}
	if kind == rawjson.KindArray {
		return w.elements(dst, v, list)
	}
	dst = append(dst, '{')
	start := len(dst)
	for it := rawjson.Object(v); it.Next(); {
		own, renamed := w.names(it.Key(), list)
		dst = w.value(appendKey(dst, start, renamed), it.Value(), w.below(list, own))
	}
	return append(dst, '}')
}

func (w *walk) elements(dst, v []byte, list []*node) []byte {
	dst = append(dst, '[')
	n := 0
	for it := rawjson.Array(v); it.Next(); n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = w.value(dst, it.Value(), w.items(list, n))
	}
	return append(dst, ']')
}

// applying returns the schemas of list and all that apply with them, each once,
// apart from those that have nothing to do with keys that differ.
func (w *walk) applying(list []*node) []*node {
	var all []*node
	seen := make(map[*node]bool, len(list))
	add := func(more []*node) {
		w.pay(len(more))
		for _, n := range more {
			if n.concerned && !seen[n] {
				seen[n] = true
				all = append(all, n)
			}
		}
	}
	add(list)
	for i := 0; i < len(all) && w.err == nil; i++ {
		add(all[i].applies)
	}
	return all
}

// names returns the key of the original and the one to write.
func (w *walk) names(key string, list []*node) (own, written string) {
	if w.back {
		if own := w.keys.own(key); own != key && w.declared(own, list) {
			return own, own
		}
		return key, key
	}
	if wire := w.keys.wire(key); wire != key && w.declared(key, list) {
		return key, wire
	}
	return key, key
}

// declared reports whether one of the schemas names the property.
func (w *walk) declared(key string, list []*node) bool {
	w.pay(len(list))
	for _, n := range list {
		if _, ok := n.properties[key]; ok || n.required[key] {
			return true
		}
	}
	return false
}

// below returns the schemas that apply to a property.
func (w *walk) below(list []*node, key string) []*node {
	var out []*node
	w.pay(len(list))
	for _, n := range list {
		p, known := n.properties[key]
		if known {
			out = append(out, p)
		}
		for i := range n.patterns {
			if w.pay(n.patterns[i].cost(key)) && n.patterns[i].takes(key) {
				known = true
				out = append(out, n.patterns[i].node)
			}
		}
		if !known {
			out = append(out, n.rest...)
		}
	}
	return out
}

// items returns the schemas that apply to the element at a place.
func (w *walk) items(list []*node, at int) []*node {
	var out []*node
	w.pay(len(list))
	for _, n := range list {
		out = append(out, n.every...)
		if at < len(n.prefix) {
			out = append(out, n.prefix[at])
		} else {
			out = append(out, n.items...)
		}
	}
	return out
}
