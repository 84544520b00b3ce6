package inproc

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// arguments reads what a caller sent into a tool's argument type.
type arguments[Args any] struct {
	schema   json.RawMessage
	defaults *schema.Defaults
	decode   decoding
	// formats checks what the schema only annotates, to find the place of what
	// could not be decoded.
	formats func() *schema.Schema
}

func newArguments[Args any](raw json.RawMessage) *arguments[Args] {
	return &arguments[Args]{schema: raw, defaults: schema.NewDefaults(raw), decode: decoder(reflect.TypeFor[Args]()),
		formats: sync.OnceValue(func() *schema.Schema {
			s, err := schema.Compile(raw, &schema.Options{AssertFormat: true})
			if err != nil {
				return nil
			}
			return s
		})}
}

// read decodes arguments, with the defaults of what is absent. JSON Schema
// takes 1.0 for an integer and encoding/json does not, so a document that fails
// is tried once more with its integers written plainly.
func (a *arguments[Args]) read(raw json.RawMessage) (args Args, err error) {
	raw = a.defaults.Apply(raw)
	if a.decode.quick(raw, &args) == nil {
		return args, nil
	}
	var exact Args
	if err = a.decode.exact(raw, &exact); err == nil {
		return exact, nil
	}
	if plain, changed := schema.PlainIntegers(raw); changed {
		var again Args
		if a.decode.exact(plain, &again) == nil {
			return again, nil
		}
	}
	return args, err
}

// validator returns the check of arguments that a schema cannot make: whether
// types that decode themselves, such as time.Time, accept what was sent. It is
// nil when there are none.
func (a *arguments[Args]) validator() func(json.RawMessage) error {
	if !finds(reflect.TypeFor[Args](), decodesItself, map[reflect.Type]bool{}) {
		return nil
	}
	return func(raw json.RawMessage) error {
		if _, err := a.read(raw); err != nil {
			return errors.New(a.fault(raw, err).Message)
		}
		return nil
	}
}

// fault says what does not fit and where, without the value.
func (a *arguments[Args]) fault(raw json.RawMessage, err error) *tools.Error {
	e := &tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Err: err}
	e.Message = "the arguments do not fit the tool's types"
	var std *json.UnmarshalTypeError
	var next *jsonv1.UnmarshalTypeError
	switch {
	case errors.As(err, &std) && std.Field != "":
		e.Message = fmt.Sprintf("%s: expected %v", std.Field, std.Type)
	case errors.As(err, &next) && next.Field != "":
		e.Message = fmt.Sprintf("%s: expected %v", next.Field, next.Type)
	case bytes.Contains(a.schema, []byte(`"format"`)):
		if s := a.formats(); s != nil {
			if found := s.Check(raw); found != nil {
				e.Message = found.Error()
			}
		}
	}
	return e
}

// decoding decodes arguments as encoding/json does. What quick refuses is given
// to exact, which has the last word and the errors of encoding/json.
type decoding struct{ quick, exact func([]byte, any) error }

// decoder returns how arguments of type t are decoded. The successor of
// encoding/json does so in half the time, but takes json.Number for a string.
// Told not to report errors as encoding/json does, it also spares itself a
// first pass over the document, which the door has checked.
func decoder(t reflect.Type) decoding {
	number := func(t reflect.Type) bool { return t == reflect.TypeFor[json.Number]() }
	if finds(t, number, map[reflect.Type]bool{}) {
		return decoding{json.Unmarshal, json.Unmarshal}
	}
	onePass := jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
	return decoding{
		quick: func(b []byte, v any) error { return jsonv2.Unmarshal(b, v, onePass) },
		exact: func(b []byte, v any) error { return jsonv1.Unmarshal(b, v) },
	}
}

// decodesItself reports whether values of t decode themselves and may refuse.
func decodesItself(t reflect.Type) bool {
	if t == reflect.TypeFor[json.RawMessage]() {
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// finds reports whether is holds of t or of a type that values of t hold.
func finds(t reflect.Type, is func(reflect.Type) bool, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	if is(t) {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return finds(t.Elem(), is, seen)
	case reflect.Map:
		return finds(t.Key(), is, seen) || finds(t.Elem(), is, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if finds(t.Field(i).Type, is, seen) {
				return true
			}
		}
	}
	return false
}
