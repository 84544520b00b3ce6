// Package inproc makes tools of Go functions. The schemas of arguments and
// result are derived from the function's types, so that what a schema says is
// what encoding/json does.
package inproc

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

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
// absent. A Result that is a tools.ToolResult is passed on as it is, for content
// that is not structured; the tool then has no output schema. The description is the name until WithDescription sets it.
//
// It returns ErrSchemaBuild or ErrUnsupportedType when a type cannot be
// described, and the errors of the catalog's Register.
func RegisterFunc[Args, Result any](cat tools.ToolCatalog, name string, fn Func[Args, Result], opts ...tools.DescriptorOption) error {
	if cat == nil {
		return fmt.Errorf("%w: %q: there is no catalog", tools.ErrToolInvalid, name)
	}
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
	out, err := resultSchema(reflect.TypeFor[Result]())
	if err != nil {
		return tools.ToolDescriptor{}, fmt.Errorf("inproc: %q: result: %w", name, err)
	}
	args := newArguments[Args](in)
	t := tools.Tool{Name: name, Description: name, ArgsSchema: in, OutSchema: out, Transport: tools.TransportInProcess}
	d := tools.ResolveOptions(opts...).Descriptor(t, invoker(fn, args))
	d.Validate = args.validator()
	return d, nil
}

// resultSchema derives the schema of a result. A tools.ToolResult says itself
// what it holds.
func resultSchema(t reflect.Type) (json.RawMessage, error) {
	if t == reflect.TypeFor[tools.ToolResult]() {
		return nil, nil
	}
	return schema.Of(t, schema.Output)
}

// invoker decodes the arguments, calls fn and encodes its result. The encoding
// is made here because it is what the output schema is held against.
func invoker[Args, Result any](fn Func[Args, Result], in *arguments[Args]) tools.Invoker {
	return func(ctx context.Context, raw json.RawMessage) (tools.ToolResult, error) {
		args, err := in.read(raw)
		if err != nil {
			return tools.ToolResult{}, in.fault(raw, err)
		}
		result, err := fn(ctx, args)
		if err != nil {
			return tools.ToolResult{}, err
		}
		if res, ok := any(result).(tools.ToolResult); ok {
			return res, nil
		}
		value := any(result) // once, as each time is an allocation
		encoded, err := json.Marshal(value)
		if err != nil {
			return tools.ToolResult{}, &tools.Error{Code: tools.ErrToolInvalidOutput, Class: tools.ErrClassPermanent,
				Delivery: tools.Answered, Message: "the result cannot be encoded as JSON", Err: err}
		}
		return tools.ToolResult{Value: value, Structured: rawjson.UnescapeHTML(encoded)}, nil
	}
}
