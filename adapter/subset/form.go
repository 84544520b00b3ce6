package subset

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Errors of compiling and of the way back. They are matched with errors.Is.
var (
	// ErrNoForm is matched when no form of the provider can say what the schema
	// says.
	ErrNoForm = errors.New("the provider has no form for the schema")
	// ErrArguments is matched when arguments are not in the provider's form.
	ErrArguments = errors.New("the arguments are not in the declared form")
)

// Form is a schema in a provider's form. It is immutable and safe for concurrent
// use.
type Form struct {
	// Schema is the provider's schema, whose root is an object.
	Schema json.RawMessage
	// Losses is what Schema does not enforce.
	Losses []Loss

	mapping mapping
}

// A mapping goes between the provider's form of a value and the value.
type mapping interface {
	// back appends the value for what a model sent.
	back(dst, sent []byte) ([]byte, error)
	// forward appends the provider's form of a value.
	forward(dst, value []byte) ([]byte, error)
}

// WrapKey is the only property of a form whose original has a root that the
// provider does not take.
const WrapKey = "value"

// Compile returns the form of a schema for a provider. An empty schema allows
// any object. The error matches ErrNoForm and says why.
func Compile(raw json.RawMessage, p *Profile) (*Form, error) {
	if len(rawjson.Trim(raw)) == 0 {
		raw = json.RawMessage(`{"type":"object"}`)
	}
	if len(raw) > maxSource {
		return nil, fmt.Errorf("%w: it has %d bytes, and at most %d are compiled", ErrNoForm, len(raw), maxSource)
	}
	if err := rawjson.Check(raw, rawjson.Options{MaxDepth: maxNesting}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoForm, err)
	}
	if !isSchema(raw) {
		return nil, fmt.Errorf("%w: it is neither an object nor a boolean", ErrNoForm)
	}
	doc := newDocument(rawjson.Trim(raw))
	if doc.oversize() {
		return nil, fmt.Errorf("%w: its keys are too long for so many schemas below them", ErrNoForm)
	}
	form, err := compile(doc, p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoForm, err)
	}
	return form, nil
}

func compile(d *document, p *Profile) (*Form, error) {
	if p.Full {
		return compileFull(d, p)
	}
	return compileSubset(d, p)
}

// Back returns the arguments for the original schema that a model meant with
// what it sent. Nothing is checked beyond what is needed to map them. The error
// matches ErrArguments and holds no value.
func (f *Form) Back(sent json.RawMessage) (json.RawMessage, error) {
	if err := rawjson.Check(sent, rawjson.Options{}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArguments, err)
	}
	if f.mapping == nil {
		return sent, nil
	}
	out, err := f.mapping.back(nil, rawjson.Trim(sent))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArguments, err)
	}
	return out, nil
}

// Forward returns arguments for the original schema in the provider's form. It
// is for examples: arguments that the schema does not allow may have no form.
func (f *Form) Forward(args json.RawMessage) (json.RawMessage, error) {
	if err := rawjson.Check(args, rawjson.Options{}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArguments, err)
	}
	if f.mapping == nil {
		return args, nil
	}
	out, err := f.mapping.forward(nil, rawjson.Trim(args))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArguments, err)
	}
	return out, nil
}
