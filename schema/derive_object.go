package schema

import (
	"bytes"
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// object is a schema under construction: an object whose members keep their
// order.
type object struct{ members []member }

type member struct {
	key   string
	value []byte
}

func quoted(s string) []byte { return rawjson.Quote(s) }

func newObject(key string, value []byte, more ...any) *object {
	o := &object{}
	o.set(key, value)
	for i := 0; i+1 < len(more); i += 2 {
		o.set(more[i].(string), more[i+1].([]byte))
	}
	return o
}

func (o *object) set(key string, value []byte) {
	for i := range o.members {
		if o.members[i].key == key {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{key, value})
}

func (o *object) get(key string) []byte {
	for _, m := range o.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func (o *object) clone() *object { return &object{slices.Clone(o.members)} }

func (o *object) json() []byte {
	out := []byte{'{'}
	for i, m := range o.members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rawjson.AppendQuoted(out, m.key), ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}

// jsonArray joins values.
func jsonArray(values [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']')
}

// nullable returns the schema that accepts null too.
func (o *object) nullable() *object {
	t := o.get("type")
	switch {
	case len(o.members) == 0 || bytes.Contains(t, []byte(`"null"`)):
		return o
	case t == nil || o.get("const") != nil:
		return newObject("anyOf", jsonArray([][]byte{o.json(), []byte(`{"type":"null"}`)}))
	}
	out := o.clone()
	if t[0] == '[' {
		out.set("type", append(t[:len(t)-1:len(t)-1], `,"null"]`...))
	} else {
		out.set("type", jsonArray([][]byte{t, quoted("null")}))
	}
	if enum := o.get("enum"); enum != nil {
		out.set("enum", append(enum[:len(enum)-1:len(enum)-1], `,null]`...))
	}
	return out
}

// baseType returns the name of the one type besides null that the schema has.
func (o *object) baseType() string {
	t := o.get("type")
	if len(t) == 0 {
		return ""
	}
	if t[0] == '[' {
		it := rawjson.Array(t)
		it.Next()
		t = it.Value()
	}
	name, _ := rawjson.Unquote(t)
	return name
}
