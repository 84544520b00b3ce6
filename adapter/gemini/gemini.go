// Package gemini converts between package adapter and the types of Google's Go
// SDK, google.golang.org/genai. The declarations that its functions take are
// those of adapter.Gemini.
//
// The SDK decodes the arguments of a call before they get here, so that an
// integer above 2^53 is not exact.
package gemini

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/genai"

	"github.com/toolcrib/toolcrib/adapter"
)

// want returns an error when declarations are of another API.
func want(d *adapter.Declarations) error {
	if got := d.Adapter().Provider(); got != adapter.Gemini {
		return fmt.Errorf("adapter/gemini: the declarations are for %q: expected those of %q", got, adapter.Gemini)
	}
	return nil
}

// Tools returns the declared tools, as one tool with all functions. A JSON Schema
// is sent as the adapter wrote it.
func Tools(d *adapter.Declarations) ([]*genai.Tool, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	if len(d.Tools) == 0 {
		return nil, nil
	}
	functions := make([]*genai.FunctionDeclaration, len(d.Tools))
	for i, t := range d.Tools {
		f := &genai.FunctionDeclaration{}
		if err := json.Unmarshal(t.JSON, f); err != nil {
			return nil, fmt.Errorf("adapter/gemini: %s: %w", t.Tool, err)
		}
		if f.ParametersJsonSchema != nil {
			f.ParametersJsonSchema = t.Schema
		}
		functions[i] = f
	}
	return []*genai.Tool{{FunctionDeclarations: functions}}, nil
}

// Calls returns the function calls of a response.
func Calls(d *adapter.Declarations, r *genai.GenerateContentResponse) ([]adapter.Call, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return d.Calls(raw)
}

// Contents returns what follows a response in the conversation: its content, and
// the one that answers its calls.
func Contents(ctx context.Context, d *adapter.Declarations, r *genai.GenerateContentResponse, answers []adapter.Answer) ([]*genai.Content, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	if len(r.Candidates) == 0 || r.Candidates[0].Content == nil {
		return nil, fmt.Errorf("adapter/gemini: the response has no content")
	}
	results, err := d.Results(ctx, answers)
	if err != nil {
		return nil, err
	}
	list := []*genai.Content{r.Candidates[0].Content}
	for _, raw := range results {
		c := &genai.Content{}
		if err := json.Unmarshal(raw, c); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// AddResponse adds a chunk of a streamed response and returns the calls that are
// whole with it.
func AddResponse(s *adapter.Stream, r *genai.GenerateContentResponse) ([]adapter.Call, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return s.Add(raw)
}
