package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Direction says which way values of a type go, since encoding/json does not
// read quite what it writes.
type Direction int

const (
	// Input is for documents that are decoded into the type.
	Input Direction = iota
	// Output is for documents that values of the type are encoded to.
	Output
)

// Sentinels of derivation. An error of [For] and [Of] names the field and
// matches ErrBuild.
var (
	// ErrBuild is matched by every error of a derivation: a type or a struct
	// tag that no schema can be built from.
	ErrBuild = errors.New("cannot derive a schema")
	// ErrUnsupportedType is matched when JSON Schema cannot say what a type
	// holds. It matches ErrBuild too.
	ErrUnsupportedType = fmt.Errorf("%w: unsupported type", ErrBuild)
)

// A Describer is a type that knows its own schema. It is asked before anything
// else, on the zero value, and is the way for a type with its own MarshalJSON or
// UnmarshalJSON to say what those write and read; without it such a type stands
// for any JSON. The schema must be one that [Compile] accepts and must not hold
// local references ("#…"), for it becomes part of another.
type Describer interface {
	JSONSchema() json.RawMessage
}

// For derives the schema of T; see [Of].
func For[T any](dir Direction) (json.RawMessage, error) {
	return Of(reflect.TypeFor[T](), dir)
}

// Of derives a JSON Schema, draft 2020-12, that agrees with what encoding/json
// does with values of the type.
//
// A struct is a closed object, its fields those of encoding/json: embedded
// structs are flattened, "-" is left out, conflicts drop out. A field is required
// in Output unless it has omitempty or omitzero or comes from an embedded
// pointer. A field is required in Input unless it has omitempty or omitzero, is a
// pointer or comes from an embedded one, or has a default; the tags "required"
// and "optional" override that. A key must match exactly in Input, although
// encoding/json is content with another case.
//
// Pointers, slices and maps allow null. A []byte is a base64 string, a
// time.Time a date-time, a time.Duration an integer of nanoseconds. An array has
// exactly its length, also in Input, where encoding/json would pad or cut.
// Integers have the range of their type; in Output those of 64 bits have no more
// than the minimum of unsigned ones. A json.RawMessage is any JSON. A type with
// its own JSON methods is any JSON unless it is a [Describer]; one with text
// methods is a string. A type that refers to itself goes to $defs.
//
// Interfaces, channels, functions, complex numbers and uintptr are
// [ErrUnsupportedType], and so are "any" and what contains it.
//
// The struct tag "jsonschema" adds to a field, as a list of items separated by
// commas, where "\\," is a comma inside an item:
//
//	title=… description=… format=… pattern=… contentMediaType=…
//	enum=a,enum=b  example=…  default=…  const=…
//	minimum=… maximum=… exclusiveMinimum=… exclusiveMaximum=… multipleOf=…
//	minLength=… maxLength=… minItems=… maxItems=… minProperties=… maxProperties=…
//	uniqueItems required optional nullable readOnly writeOnly deprecated
//
// On an array, items that concern single values apply to its elements. A tag
// that starts with none of these is wholly a description, and the tag
// "jsonschema_description" always is. A tag that is wrong is an error that
// matches [ErrBuild].
func Of(t reflect.Type, dir Direction) (json.RawMessage, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: no type", ErrBuild)
	}
	d := &deriver{dir: dir, root: t}
	raw, err := d.run()
	if errors.Is(err, errTooLarge) {
		d = &deriver{dir: dir, root: t, share: true}
		raw, err = d.run()
	}
	return raw, err
}

// Arguments derives the Input schema for the arguments of a tool, which are
// always an object: t is a struct, a pointer to one, a map with string keys, or
// json.RawMessage for any object.
func Arguments(t reflect.Type) (json.RawMessage, error) {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawMessageType {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	if t == nil || t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil, fmt.Errorf("%w: %v: arguments are a struct, a map or json.RawMessage", ErrUnsupportedType, t)
	}
	raw, err := Of(t, Input)
	if err != nil {
		return nil, err
	}
	switch kind, _ := rawjson.Get(raw, "type"); string(kind) {
	case `"object"`:
		return raw, nil
	case `["object","null"]`:
		return rawjson.Set(raw, "type", []byte(`"object"`))
	}
	return nil, fmt.Errorf("%w: %v: arguments are an object, and this type is none in JSON", ErrUnsupportedType, t)
}

var (
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	describerType       = reflect.TypeFor[Describer]()
	timeType            = reflect.TypeFor[time.Time]()
	durationType        = reflect.TypeFor[time.Duration]()
	numberType          = reflect.TypeFor[json.Number]()
	rawMessageType      = reflect.TypeFor[json.RawMessage]()
)

// errTooLarge says that writing each type out where it is used takes too much.
var errTooLarge = errors.New("schema too large")

// maxInline is how many structs are written out before they are shared.
const maxInline = 500

// deriver builds one schema.
type deriver struct {
	dir   Direction
	root  reflect.Type
	share bool // put every named struct into $defs

	recursive map[reflect.Type]bool
	names     map[reflect.Type]string
	taken     map[string]bool
	defs      []def
	structs   int
}

type def struct {
	name string
	body *object
}

func (d *deriver) run() (json.RawMessage, error) {
	d.recursive = map[reflect.Type]bool{}
	d.names, d.taken = map[reflect.Type]string{}, map[string]bool{}
	d.findRecursive(d.root, nil, map[reflect.Type]bool{})
	path := d.root.String()
	var root *object
	var err error
	if d.root.Kind() == reflect.Struct && d.isPlainStruct(d.root) {
		d.names[d.root] = "#"
		root, err = d.structType(d.root, path)
	} else {
		root, err = d.typ(d.root, path)
	}
	if err != nil {
		return nil, err
	}
	if len(d.defs) > 0 {
		all := &object{}
		for _, def := range d.defs {
			all.set(def.name, def.body.json())
		}
		root.set("$defs", all.json())
	}
	return root.json(), nil
}

// findRecursive marks, for each way in which a type contains itself, one named
// type on it. open are the types around t.
func (d *deriver) findRecursive(t reflect.Type, open []reflect.Type, done map[reflect.Type]bool) {
	if i := slices.Index(open, t); i >= 0 {
		named := slices.IndexFunc(open[i:], func(o reflect.Type) bool { return o.Name() != "" })
		d.recursive[open[i+max(named, 0)]] = true
		return
	}
	if done[t] || d.custom(t) != nil {
		return
	}
	open = append(open, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		d.findRecursive(t.Elem(), open, done)
	case reflect.Struct:
		for _, f := range structFields(t) {
			d.findRecursive(f.typ, open, done)
		}
	}
	done[t] = true
}

// isPlainStruct reports whether t is a struct that encoding/json treats by its
// fields.
func (d *deriver) isPlainStruct(t reflect.Type) bool { return d.custom(t) == nil }

// typ returns the schema of a type.
func (d *deriver) typ(t reflect.Type, path string) (*object, error) {
	if build := d.custom(t); build != nil {
		return build(path)
	}
	if name, ok := d.names[t]; ok {
		return refTo(name), nil
	}
	shared := d.recursive[t] || d.share && t.Kind() == reflect.Struct && t.Name() != ""
	if !shared || t.Name() == "" {
		return d.kind(t, path)
	}
	name := d.defName(t)
	d.names[t] = name
	body, err := d.kind(t, path)
	if err != nil {
		return nil, err
	}
	d.defs = append(d.defs, def{name, body})
	return refTo(name), nil
}

func refTo(name string) *object {
	ref := "#"
	if name != "#" {
		ref = "#/$defs/" + name
	}
	return newObject("$ref", rawjson.Quote(ref))
}

// defName returns a name for $defs made of letters, digits, '_', '.' and '-'.
func (d *deriver) defName(t reflect.Type) string {
	clean := []byte(t.Name())
	for i, c := range clean {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-') {
			clean[i] = '_'
		}
	}
	base := string(bytes.Trim(clean, "_"))
	name := base
	for i := 2; d.taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	d.taken[name] = true
	return name
}

type buildFunc func(path string) (*object, error)

// custom returns how to build the schema of a type that encoding/json, or this
// package, does not treat by its kind; nil for the others.
func (d *deriver) custom(t reflect.Type) buildFunc {
	switch {
	case t.Kind() == reflect.Interface:
		return nil
	case t == timeType:
		return always(newObject("type", quoted("string"), "format", quoted("date-time")))
	case t == numberType:
		return always(newObject("type", quoted("number")))
	case t == rawMessageType:
		return always(&object{})
	case t == durationType:
		return nil
	case t.Kind() != reflect.Pointer && (t.Implements(describerType) || reflect.PointerTo(t).Implements(describerType)):
		return func(path string) (*object, error) { return d.described(t, path) }
	case t.Kind() == reflect.Pointer:
		return nil // it is what it points to, or null
	}
	if d.dir == Input {
		switch p := reflect.PointerTo(t); {
		case p.Implements(unmarshalerType):
			return always(&object{})
		case p.Implements(textUnmarshalerType):
			return always(newObject("type", quoted("string")))
		}
		return nil
	}
	return customOutput(t)
}

// customOutput is custom for Output. Methods with a pointer receiver are called
// only where the value can be addressed, so they may write one form or another.
func customOutput(t reflect.Type) buildFunc {
	p := reflect.PointerTo(t)
	switch {
	case t.Implements(marshalerType):
		return always(&object{})
	case p.Implements(marshalerType):
		return always(&object{})
	case t.Implements(textMarshalerType):
		return always(newObject("type", quoted("string")))
	case p.Implements(textMarshalerType):
		return always(&object{})
	}
	return nil
}

func always(o *object) buildFunc {
	return func(string) (*object, error) { return o.clone(), nil }
}

// described asks a type for its schema.
func (d *deriver) described(t reflect.Type, path string) (o *object, err error) {
	if e := d.embeddedDescriber(t); e != nil {
		return nil, fmt.Errorf("%w: %s: JSONSchema of %v may be that of the embedded %v, which encoding/json flattens; "+
			"make it a named field or give %v its own JSON methods", ErrBuild, path, t, e, t)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %s: JSONSchema of %v panicked: %v", ErrBuild, path, t, r)
		}
	}()
	raw := reflect.New(t).Interface().(Describer).JSONSchema()
	if _, err := Compile(raw, nil); err != nil {
		return nil, fmt.Errorf("%w: %s: JSONSchema of %v: %w", ErrBuild, path, t, err)
	}
	if hasLocalRef(raw) {
		return nil, fmt.Errorf("%w: %s: JSONSchema of %v has a local reference", ErrBuild, path, t)
	}
	o = &object{}
	it := rawjson.Object(raw)
	for it.Next() {
		o.set(it.Key(), it.Value())
	}
	if rawjson.KindOf(raw) == rawjson.KindBool && raw[0] == 'f' {
		o.set("not", []byte("{}"))
	}
	return o, nil
}

// embeddedDescriber returns an embedded type from which t may have its
// JSONSchema method, although encoding/json treats t by its fields.
func (d *deriver) embeddedDescriber(t reflect.Type) reflect.Type {
	p, methods := reflect.PointerTo(t), []reflect.Type{marshalerType, textMarshalerType}
	if d.dir == Input {
		methods = []reflect.Type{unmarshalerType, textUnmarshalerType}
	}
	if t.Kind() != reflect.Struct || p.Implements(methods[0]) || p.Implements(methods[1]) {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type.Implements(describerType) || reflect.PointerTo(f.Type).Implements(describerType)) {
			return f.Type
		}
	}
	return nil
}

func hasLocalRef(raw []byte) bool {
	it := rawjson.Object(raw)
	if rawjson.KindOf(raw) == rawjson.KindArray {
		it = rawjson.Array(raw)
	}
	for it.Next() {
		v := it.Value()
		if rawjson.KindOf(raw) == rawjson.KindObject && it.KeyIs("$ref") && bytes.HasPrefix(v, []byte(`"#`)) || hasLocalRef(v) {
			return true
		}
	}
	return false
}
