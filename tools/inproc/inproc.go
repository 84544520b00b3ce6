// Package inproc makes tools of Go functions. The schemas of arguments and
// result are derived from the function's types, so that what a schema says is
// what encoding/json does.
package inproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// Errors of registration. A tool whose types cannot be described is not
// registered.
var (
	// ErrSchemaBuild says that no schema can be derived from a type, or that a
	// struct tag is wrong.
	ErrSchemaBuild = schema.ErrBuild
	// ErrUnsupportedType says that a type has no JSON form or no definite one:
	// a channel, a function, an interface, a map of any. It is an
	// ErrSchemaBuild as well.
	ErrUnsupportedType = schema.ErrUnsupportedType
)

// Func is a tool written in Go. It must be safe to call from many goroutines
// at once and should return soon after its context ends.
type Func[Args, Result any] = func(ctx context.Context, args Args) (Result, error)

// RegisterFunc registers fn under name. Args is a struct, or a pointer to one;
// a tool without arguments takes struct{}, and accepts absent arguments, null
// and {}. An argument whose struct tag gives a default gets it when it is
// absent. The description is the name until WithDescription sets it.
//
// It returns ErrSchemaBuild or ErrUnsupportedType when a type cannot be
// described, and the errors of the catalog's Register.
func RegisterFunc[Args, Result any](cat tools.ToolCatalog, name string, fn Func[Args, Result], opts ...tools.DescriptorOption) error {
	d, err := Describe(name, fn, opts...)
	if err != nil {
		return err
	}
	return cat.Register(d)
}

// Describe returns the descriptor that RegisterFunc registers, for batches and
// for wrapping.
func Describe[Args, Result any](name string, fn Func[Args, Result], opts ...tools.DescriptorOption) (tools.ToolDescriptor, error) {
	if fn == nil {
		return tools.ToolDescriptor{}, fmt.Errorf("%w: %q: the function is nil", tools.ErrToolInvalid, name)
	}
	in, err := schema.Arguments(reflect.TypeFor[Args]())
	if err != nil {
		return tools.ToolDescriptor{}, fmt.Errorf("inproc: %q: arguments: %w", name, err)
	}
	out, err := schema.Of(reflect.TypeFor[Result](), schema.Output)
	if err != nil {
		return tools.ToolDescriptor{}, fmt.Errorf("inproc: %q: result: %w", name, err)
	}
	t := tools.Tool{Name: name, Description: name, ArgsSchema: in, OutSchema: out, Transport: tools.TransportInProcess}
	return tools.ResolveOptions(opts...).Descriptor(t, invoker(fn, schema.Defaults(in))), nil
}

// invoker decodes the arguments, calls fn and encodes its result. The encoding
// is made here because it is what the output schema is held against.
func invoker[Args, Result any](fn Func[Args, Result], defaults []schema.Default) tools.Invoker {
	decode := decoder(reflect.TypeFor[Args]())
	return func(ctx context.Context, raw json.RawMessage) (tools.ToolResult, error) {
		args, err := arguments[Args](raw, defaults, decode)
		if err != nil {
			return tools.ToolResult{}, err
		}
		value, err := fn(ctx, args)
		if err != nil {
			return tools.ToolResult{}, err
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return tools.ToolResult{}, &tools.Error{Code: tools.ErrToolInvalidOutput, Class: tools.ErrClassPermanent,
				Delivery: tools.Answered, Message: "the result cannot be encoded as JSON", Err: err}
		}
		return tools.ToolResult{Value: value, Structured: rawjson.UnescapeHTML(encoded)}, nil
	}
}

// arguments decodes what a caller sent, with the defaults of what it did not
// send. JSON Schema takes 1.0 for an integer and encoding/json does not, so a
// document that fails is tried once more with its integers written plainly.
func arguments[Args any](raw json.RawMessage, defaults []schema.Default, decode decoding) (args Args, err error) {
	if len(defaults) > 0 {
		if raw, err = schema.ApplyDefaults(raw, defaults); err != nil {
			return args, decodeError(err)
		}
	}
	if decode.quick(raw, &args) == nil {
		return args, nil
	}
	var exact Args
	if err = decode.exact(raw, &exact); err == nil {
		return exact, nil
	}
	if plain, changed := schema.PlainIntegers(raw); changed {
		var again Args
		if decode.exact(plain, &again) == nil {
			return again, nil
		}
	}
	return args, decodeError(err)
}

// decodeError says what does not fit, without the value.
func decodeError(err error) error {
	e := &tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Err: err}
	e.Message = "the arguments do not fit the tool's types"
	var std *json.UnmarshalTypeError
	var next *jsonv1.UnmarshalTypeError
	switch {
	case errors.As(err, &std):
		e.Message = fmt.Sprintf("%s: expected %v", std.Field, std.Type)
	case errors.As(err, &next):
		e.Message = fmt.Sprintf("%s: expected %v", next.Field, next.Type)
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
	if mentions(t, reflect.TypeFor[json.Number](), map[reflect.Type]bool{}) {
		return decoding{json.Unmarshal, json.Unmarshal}
	}
	onePass := jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
	return decoding{
		quick: func(b []byte, v any) error { return jsonv2.Unmarshal(b, v, onePass) },
		exact: func(b []byte, v any) error { return jsonv1.Unmarshal(b, v) },
	}
}

// mentions reports whether values of type t can hold one of type want.
func mentions(t, want reflect.Type, seen map[reflect.Type]bool) bool {
	if t == want {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return mentions(t.Elem(), want, seen)
	case reflect.Map:
		return mentions(t.Key(), want, seen) || mentions(t.Elem(), want, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if mentions(t.Field(i).Type, want, seen) {
				return true
			}
		}
	}
	return false
}
