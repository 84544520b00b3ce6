package httptool

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
)

// special translates the keywords whose meaning differs between the dialects,
// or that real documents get wrong.
func (w *schemaWriter) special(parent node, key string, n node) error {
	kind := n.kind()
	switch key {
	case "items":
		return w.items(n)
	case "type":
		w.types(parent, n)
	case "enum":
		w.enum(parent, n)
	case "required":
		w.required(parent, n)
	case "exclusiveMaximum", "exclusiveMinimum":
		w.exclusive(parent, key, n)
	case "pattern":
		if text, ok := rawjson.Unquote(n.raw); ok && compiles(text) {
			w.raw(key, n.raw)
		}
	case "multipleOf":
		if f, err := strconv.ParseFloat(string(n.raw), 64); err == nil && f > 0 {
			w.raw(key, n.raw)
		}
	case "example":
		if !parent.child("examples").ok() {
			w.raw("examples", slices.Concat([]byte{'['}, n.raw, []byte{']'}))
		}
	case "discriminator":
		w.discriminator(parent, n)
	case "dependentRequired":
		if kind == rawjson.KindObject {
			w.raw(key, n.raw)
		}
	}
	return nil
}

// maxSubtypes bounds how many subtypes the mapping of a discriminator may bring
// along with a schema that does not list them as alternatives. A base type of
// thousands would fill the schema of every operation.
const maxSubtypes = 32

// discriminator keeps the name of the property that tells alternatives apart,
// and which value stands for which definition, where that is known. In Swagger
// 2.0 it is the name alone.
func (w *schemaWriter) discriminator(parent, n node) {
	name := n
	if n.kind() == rawjson.KindObject {
		name = n.child("propertyName")
	}
	if name.kind() != rawjson.KindString {
		return
	}
	w.raw("discriminator", slices.Concat([]byte(`{"propertyName":`), name.raw))
	start := len(w.out)
	mapping := n.child("mapping")
	listed := parent.child("oneOf").ok() || parent.child("anyOf").ok()
	if !listed && rawjson.Len(mapping.raw) > maxSubtypes {
		mapping = node{}
	}
	for value, target := range mapping.members {
		text, ok := rawjson.Unquote(target.raw)
		if def := w.mapped(target, text); ok && def != "" {
			w.out = append(appendKey(w.out, value), rawjson.Quote("#/$defs/"+def)...)
		}
	}
	if len(w.out) > start {
		w.out = slices.Insert(w.out, start+1, []byte(`"mapping":{`)...)
		w.out = append(w.out, '}')
	}
	w.out = append(w.out, '}')
}

// mapped returns the definition that an entry of a discriminator's mapping, a
// reference or the name of a schema, leads to, or "".
func (w *schemaWriter) mapped(n node, target string) string {
	if !strings.ContainsAny(target, "#/") {
		target = "#/components/schemas/" + rawjson.EscapePointer(target)
	}
	name, err := w.reference(n, target, w.level)
	if err != nil {
		return ""
	}
	w.refs = append(w.refs, name)
	return strings.ReplaceAll(name, "%", "%25")
}

// compiles reports whether a regular expression can be used.
func compiles(pattern string) bool {
	_, err := schema.Compile(slices.Concat([]byte(`{"pattern":`), rawjson.Quote(pattern), []byte{'}'}), nil)
	return err == nil
}

func (w *schemaWriter) items(n node) error {
	if n.kind() == rawjson.KindArray && rawjson.Len(n.raw) > 0 {
		return w.list("prefixItems", n)
	}
	if n.kind() != rawjson.KindObject && n.kind() != rawjson.KindBool {
		return nil
	}
	w.key("items")
	return w.schema(n)
}

var typeNames = []string{"null", "boolean", "object", "array", "number", "integer", "string"}

// types writes the known types, and null for a nullable schema.
func (w *schemaWriter) types(parent, n node) {
	var names []string
	add := func(raw json.RawMessage) {
		if s, ok := rawjson.Unquote(raw); ok && slices.Contains(typeNames, s) && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	if n.kind() == rawjson.KindArray {
		for _, v := range n.elements {
			add(v.raw)
		}
	} else {
		add(n.raw)
	}
	if len(names) == 0 {
		return
	}
	if parent.nullable() && !slices.Contains(names, "null") {
		names = append(names, "null")
	}
	if len(names) == 1 {
		w.raw("type", rawjson.Quote(names[0]))
		return
	}
	w.strings("type", names)
}

func (w *schemaWriter) strings(key string, list []string) {
	w.key(key)
	w.out = append(w.out, '[')
	for i, s := range list {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = rawjson.AppendQuoted(w.out, s)
	}
	w.out = append(w.out, ']')
}

func (w *schemaWriter) enum(parent, n node) {
	if n.kind() != rawjson.KindArray || rawjson.Len(n.raw) == 0 {
		return
	}
	null := !parent.nullable()
	for _, v := range n.elements {
		null = null || v.kind() == rawjson.KindNull
	}
	if null {
		w.raw("enum", n.raw)
		return
	}
	end := strings.LastIndexByte(string(n.raw), ']')
	w.raw("enum", slices.Concat(n.raw[:end], []byte(",null]")))
}

// required leaves out what the other side fills in.
func (w *schemaWriter) required(parent, n node) {
	var names []string
	for _, v := range n.elements {
		s, ok := rawjson.Unquote(v.raw)
		if ok && !slices.Contains(names, s) && !w.foreign(parent.child("properties").child(s)) {
			names = append(names, s)
		}
	}
	if len(names) > 0 {
		w.strings("required", names)
	}
}

// foreign reports whether a property is never sent in this direction.
func (w *schemaWriter) foreign(property node) bool {
	key := "readOnly"
	if w.response {
		key = "writeOnly"
	}
	if property.flag(key, false) {
		return true
	}
	target, err := w.lib.deref(property)
	return err == nil && target.flag(key, false)
}

// exclusive turns the boolean of OpenAPI 3.0 into the number of JSON Schema.
// The plain bound stays: it allows one value more and forbids nothing else.
func (w *schemaWriter) exclusive(parent node, key string, n node) {
	bound := "minimum"
	if key == "exclusiveMaximum" {
		bound = "maximum"
	}
	if n.kind() == rawjson.KindNumber {
		w.raw(key, n.raw)
		return
	}
	if limit := parent.child(bound); n.kind() == rawjson.KindBool && n.raw[0] == 't' && limit.kind() == rawjson.KindNumber {
		w.raw(key, limit.raw)
	}
}
