package subset

import (
	"errors"
	"strconv"

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
	doc  *document
	keys *keyMap
}

func (r *renaming) back(dst, sent []byte) ([]byte, error) {
	return r.walk(dst, sent, r.applying(nil, place{"", r.doc.root}), true), nil
}

func (r *renaming) forward(dst, value []byte) ([]byte, error) {
	return r.walk(dst, value, r.applying(nil, place{"", r.doc.root}), false), nil
}

// applying adds to a list the schema at p and all that apply to the same value.
func (r *renaming) applying(list []place, p place) []place {
	for _, have := range list {
		if have.at == p.at {
			return list
		}
	}
	if rawjson.KindOf(p.raw) != rawjson.KindObject {
		return list
	}
	list = append(list, p)
	for it := rawjson.Object(p.raw); it.Next(); {
		switch keyword := it.Key(); keyword {
		case "$ref", "$dynamicRef", "$recursiveRef":
			if target, err := r.doc.resolve(text(it.Value()), p.at); err == nil {
				list = r.applying(list, target)
			}
		case "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies":
			for child := range children(p, keyword, it.Value()) {
				list = r.applying(list, child)
			}
		}
	}
	return list
}

func (r *renaming) walk(dst, v []byte, schemas []place, back bool) []byte {
	if len(schemas) == 0 {
		return append(dst, v...)
	}
	switch rawjson.KindOf(v) {
	case rawjson.KindObject:
		dst = append(dst, '{')
		start := len(dst)
		for it := rawjson.Object(v); it.Next(); {
			own, renamed := it.Key(), it.Key()
			if back {
				own = r.own(own, schemas)
				renamed = own
			} else if r.declared(own, schemas) {
				renamed = r.keys.wire(own)
			}
			dst = r.walk(appendKey(dst, start, renamed), it.Value(), r.below(schemas, own), back)
		}
		return append(dst, '}')
	case rawjson.KindArray:
		dst = append(dst, '[')
		n := 0
		for it := rawjson.Array(v); it.Next(); n++ {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = r.walk(dst, it.Value(), r.items(schemas, n), back)
		}
		return append(dst, ']')
	}
	return append(dst, v...)
}

// own returns the key that a wire key stands for among the schemas.
func (r *renaming) own(key string, schemas []place) string {
	if own := r.keys.own(key); own != key && r.declared(own, schemas) {
		return own
	}
	return key
}

// declared reports whether one of the schemas names the property.
func (r *renaming) declared(key string, schemas []place) bool {
	for _, s := range schemas {
		if _, ok := r.doc.property(s, key); ok {
			return true
		}
		required, _ := member(s.raw, "required")
		for _, name := range words(required) {
			if name == key {
				return true
			}
		}
	}
	return false
}

// below returns the schemas that apply to a property.
func (r *renaming) below(schemas []place, key string) []place {
	var list []place
	for _, s := range schemas {
		if v, ok := r.doc.property(s, key); ok {
			list = r.applying(list, v)
			continue
		}
		for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
			if v, ok := member(s.raw, keyword); ok && isSchema(v) {
				list = r.applying(list, place{s.child(keyword), v})
			}
		}
		if patterns, ok := member(s.raw, "patternProperties"); ok {
			for child := range children(s, "patternProperties", patterns) {
				list = r.applying(list, child)
			}
		}
	}
	return list
}

// items returns the schemas that apply to the element n.
func (r *renaming) items(schemas []place, n int) []place {
	var list []place
	for _, s := range schemas {
		for _, keyword := range []string{"prefixItems", "items", "additionalItems", "unevaluatedItems", "contains"} {
			v, _ := member(s.raw, keyword)
			switch classOf(keyword, v) {
			case classSchema:
				list = r.applying(list, place{s.child(keyword), v})
			case classList:
				if element, ok := step(v, strconv.Itoa(n)); ok && isSchema(element) {
					list = r.applying(list, place{s.child(keyword, strconv.Itoa(n)), element})
				}
			}
		}
	}
	return list
}
