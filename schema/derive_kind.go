package schema

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// kind returns the schema of a type that encoding/json treats by its kind.
func (d *deriver) kind(t reflect.Type, path string) (*object, error) {
	switch t.Kind() {
	case reflect.Bool:
		return newObject("type", quoted("boolean")), nil
	case reflect.String:
		return newObject("type", quoted("string")), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return d.signed(t), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return d.unsigned(t), nil
	case reflect.Float64:
		return newObject("type", quoted("number")), nil
	case reflect.Float32:
		return d.float32(), nil
	case reflect.Pointer:
		return d.pointer(t, path)
	case reflect.Slice:
		return d.slice(t, path)
	case reflect.Array:
		return d.array(t, path)
	case reflect.Map:
		return d.mapType(t, path)
	case reflect.Struct:
		return d.structType(t, path)
	case reflect.Interface:
		return nil, unsupported(t, path, "use json.RawMessage for any JSON")
	}
	return nil, unsupported(t, path, "encoding/json has no form for it that a schema can describe")
}

func unsupported(t reflect.Type, path, why string) error {
	return fmt.Errorf("%w: %s: %v: %s", ErrUnsupportedType, path, t, why)
}

func (d *deriver) signed(t reflect.Type) *object {
	o := newObject("type", quoted("integer"))
	if t == durationType {
		o.set("description", quoted("nanoseconds"))
	}
	bits := t.Bits()
	if bits == 64 && d.dir == Output {
		return o
	}
	o.set("minimum", strconv.AppendInt(nil, math.MinInt64>>(64-bits), 10))
	o.set("maximum", strconv.AppendInt(nil, math.MaxInt64>>(64-bits), 10))
	return o
}

func (d *deriver) unsigned(t reflect.Type) *object {
	o := newObject("type", quoted("integer"), "minimum", []byte("0"))
	if bits := t.Bits(); bits < 64 || d.dir == Input {
		o.set("maximum", strconv.AppendUint(nil, math.MaxUint64>>(64-bits), 10))
	}
	return o
}

func (d *deriver) float32() *object {
	o := newObject("type", quoted("number"))
	if d.dir == Input {
		o.set("minimum", []byte("-3.4028234663852886e+38"))
		o.set("maximum", []byte("3.4028234663852886e+38"))
	}
	return o
}

func (d *deriver) pointer(t reflect.Type, path string) (*object, error) {
	if d.recursive[t] && t.Name() != "" {
		return nil, unsupported(t, path, "a pointer type that points to itself")
	}
	elem, err := d.typ(t.Elem(), path)
	if err != nil {
		return nil, err
	}
	if d.dir == Output && pointerText(t) {
		elem = newObject("type", quoted("string"))
	}
	if t == d.root && d.dir == Input {
		return elem, nil
	}
	return elem.nullable(), nil
}

// pointerText reports whether a pointer is written as text by a method that
// only the pointer has.
func pointerText(t reflect.Type) bool {
	elem := t.Elem()
	return t.Implements(textMarshalerType) && !t.Implements(marshalerType) && !elem.Implements(textMarshalerType) &&
		!t.Implements(describerType)
}

func (d *deriver) slice(t reflect.Type, path string) (*object, error) {
	if d.isBytes(t) {
		return newObject("type", quoted("string"), "contentEncoding", quoted("base64")).nullable(), nil
	}
	elem, err := d.typ(t.Elem(), path+"[]")
	if err != nil {
		return nil, err
	}
	return newObject("type", quoted("array"), "items", elem.json()).nullable(), nil
}

// isBytes reports whether encoding/json takes a slice for bytes in base64.
func (d *deriver) isBytes(t reflect.Type) bool {
	if t.Elem().Kind() != reflect.Uint8 {
		return false
	}
	p := reflect.PointerTo(t.Elem())
	return !p.Implements(marshalerType) && !p.Implements(textMarshalerType)
}

func (d *deriver) array(t reflect.Type, path string) (*object, error) {
	elem, err := d.typ(t.Elem(), path+"[]")
	if err != nil {
		return nil, err
	}
	size := strconv.AppendInt(nil, int64(t.Len()), 10)
	return newObject("type", quoted("array"), "items", elem.json(), "minItems", size, "maxItems", size), nil
}

func (d *deriver) mapType(t reflect.Type, path string) (*object, error) {
	o := newObject("type", quoted("object"))
	names, ok := d.keyPattern(t.Key())
	if !ok {
		return nil, unsupported(t, path, "encoding/json has no form for its keys")
	}
	if names != "" {
		o.set("propertyNames", newObject("pattern", quoted(names)).json())
	}
	elem, err := d.typ(t.Elem(), path+"[]")
	if err != nil {
		return nil, err
	}
	o.set("additionalProperties", elem.json())
	return o.nullable(), nil
}

// keyPattern returns the pattern of the keys that a map has in JSON, "" for any
// text, and whether encoding/json can use the type as a key at all.
func (d *deriver) keyPattern(t reflect.Type) (string, bool) {
	if d.dir == Input && reflect.PointerTo(t).Implements(textUnmarshalerType) || t.Kind() == reflect.String {
		return "", true
	}
	if d.dir == Output && t.Implements(textMarshalerType) {
		return "", true
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return `^(0|-?[1-9][0-9]*)$`, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return `^(0|[1-9][0-9]*)$`, true
	}
	return "", false
}

// structType returns the schema of a struct by its fields.
func (d *deriver) structType(t reflect.Type, path string) (*object, error) {
	if d.structs++; d.structs > maxInline && !d.share {
		return nil, errTooLarge
	}
	props := &object{}
	var required [][]byte
	for _, f := range structFields(t) {
		at := path + "." + f.goName
		prop, isRequired, err := d.field(f, at)
		if err != nil {
			return nil, err
		}
		props.set(f.name, prop.json())
		if isRequired {
			required = append(required, quoted(f.name))
		}
	}
	o := newObject("type", quoted("object"))
	if len(props.members) > 0 {
		o.set("properties", props.json())
	}
	if len(required) > 0 {
		o.set("required", jsonArray(required))
	}
	o.set("additionalProperties", []byte("false"))
	return o, nil
}

// field returns the schema of a field and whether an object must have it.
func (d *deriver) field(f structField, path string) (*object, bool, error) {
	if f.throughHidden && d.dir == Input {
		return nil, false, unsupported(f.typ, path, "encoding/json cannot set an embedded pointer to an unexported struct")
	}
	o, err := d.fieldType(f, path)
	if err != nil {
		return nil, false, err
	}
	tag, err := parseTag(f.tag)
	if err == nil {
		o, err = tag.apply(o)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %s: %w", ErrBuild, path, err)
	}
	omitted := f.omitEmpty || f.omitZero || f.throughPointer
	if d.dir == Output {
		return o, !omitted, nil
	}
	isRequired := !omitted && f.typ.Kind() != reflect.Pointer && o.get("default") == nil
	return o, (isRequired || tag.flags["required"]) && !tag.flags["optional"], nil
}

func (d *deriver) fieldType(f structField, path string) (*object, error) {
	if f.quoted && !d.hasMethods(f.typ) {
		return d.quotedType(f.typ), nil
	}
	t := f.typ
	if d.dir == Output && f.neverNull() {
		switch {
		case t.Kind() == reflect.Pointer && d.custom(t) == nil && !pointerText(t):
			return d.typ(t.Elem(), path)
		case (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) && d.custom(t) == nil && t.Name() == "":
			o, err := d.typ(t, path)
			if err == nil {
				o = o.notNull()
			}
			return o, err
		}
	}
	return d.typ(t, path)
}

// notNull takes null out of a schema that nullable made from one with a type.
func (o *object) notNull() *object {
	if t := o.get("type"); len(t) > 0 && t[0] == '[' {
		o.set("type", quoted(o.baseType()))
	}
	return o
}

func (d *deriver) hasMethods(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t != numberType && d.custom(t) != nil
}

// quotedType is the schema of a field with the option "string".
func (d *deriver) quotedType(t reflect.Type) *object {
	elem := t
	if t.Kind() == reflect.Pointer {
		elem = t.Elem()
	}
	o := newObject("type", quoted("string"))
	switch elem.Kind() {
	case reflect.Bool:
		o.set("enum", []byte(`["true","false"]`))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		o.set("pattern", quoted(`^(0|-?[1-9][0-9]*)$`))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		o.set("pattern", quoted(`^(0|[1-9][0-9]*)$`))
	case reflect.Float32, reflect.Float64:
		o.set("pattern", quoted(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`))
	default:
		o.set("contentMediaType", quoted("application/json"))
	}
	if t.Kind() == reflect.Pointer {
		return o.nullable()
	}
	return o
}
