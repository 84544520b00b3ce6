// Package openai converts between package adapter and the types of OpenAI's Go
// SDK, github.com/openai/openai-go/v3.
//
// Functions whose names begin with Chat are for Chat Completions and want
// declarations of adapter.OpenAI; those with Response are for the Responses API
// and want declarations of adapter.OpenAIResponses.
package openai

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolcrib/toolcrib/adapter"
)

// want returns an error when declarations are of another API.
func want(d *adapter.Declarations, p adapter.Provider) error {
	if got := d.Adapter().Provider(); got != p {
		return fmt.Errorf("adapter/openai: the declarations are for %q: expected those of %q", got, p)
	}
	return nil
}

// ChatTools returns the declared tools. Each is sent byte for byte as the adapter
// wrote it, so that the fields of the union are empty.
func ChatTools(d *adapter.Declarations) ([]openai.ChatCompletionToolUnionParam, error) {
	if err := want(d, adapter.OpenAI); err != nil {
		return nil, err
	}
	list := make([]openai.ChatCompletionToolUnionParam, len(d.Tools))
	for i, t := range d.Tools {
		list[i] = param.Override[openai.ChatCompletionToolUnionParam](t.JSON)
	}
	return list, nil
}

// ChatCalls returns the tool calls of a completion.
func ChatCalls(d *adapter.Declarations, c *openai.ChatCompletion) ([]adapter.Call, error) {
	if err := want(d, adapter.OpenAI); err != nil {
		return nil, err
	}
	return d.Calls(json.RawMessage(c.RawJSON()))
}

// ChatMessages returns what follows a completion in the conversation: the
// assistant's message, and the messages that answer its calls.
func ChatMessages(ctx context.Context, d *adapter.Declarations, c *openai.ChatCompletion, answers []adapter.Answer) ([]openai.ChatCompletionMessageParamUnion, error) {
	if err := want(d, adapter.OpenAI); err != nil {
		return nil, err
	}
	return decodeTurn[openai.ChatCompletionMessageParamUnion](ctx, d, json.RawMessage(c.RawJSON()), answers)
}

// AddChunk adds a chunk of a streamed completion and returns the calls that are
// whole with it.
func AddChunk(s *adapter.Stream, chunk openai.ChatCompletionChunk) ([]adapter.Call, error) {
	return s.Add(json.RawMessage(chunk.RawJSON()))
}

// ResponseTools returns the declared tools, with OpenAI's search and its
// namespaces when some are deferred. Each is sent byte for byte as the adapter
// wrote it, so that the fields of the union are empty.
func ResponseTools(d *adapter.Declarations) ([]responses.ToolUnionParam, error) {
	if err := want(d, adapter.OpenAIResponses); err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(d.JSON(), &raw); err != nil {
		return nil, err
	}
	list := make([]responses.ToolUnionParam, len(raw))
	for i := range raw {
		list[i] = param.Override[responses.ToolUnionParam](raw[i])
	}
	return list, nil
}

// ResponseCalls returns the tool calls of a response.
func ResponseCalls(d *adapter.Declarations, r *responses.Response) ([]adapter.Call, error) {
	if err := want(d, adapter.OpenAIResponses); err != nil {
		return nil, err
	}
	return d.Calls(json.RawMessage(r.RawJSON()))
}

// ResponseItems returns what follows a response in the input: its output items,
// and the items that answer its calls.
func ResponseItems(ctx context.Context, d *adapter.Declarations, r *responses.Response, answers []adapter.Answer) ([]responses.ResponseInputItemUnionParam, error) {
	if err := want(d, adapter.OpenAIResponses); err != nil {
		return nil, err
	}
	return decodeTurn[responses.ResponseInputItemUnionParam](ctx, d, json.RawMessage(r.RawJSON()), answers)
}

// AddEvent adds an event of a streamed response and returns the calls that are
// whole with it.
func AddEvent(s *adapter.Stream, event responses.ResponseStreamEventUnion) ([]adapter.Call, error) {
	return s.Add(json.RawMessage(event.RawJSON()))
}

// decodeTurn returns the reply and the results of a turn, each sent as it is
// written.
func decodeTurn[T param.ParamStruct, P param.InferPtr[T]](ctx context.Context, d *adapter.Declarations, response json.RawMessage, answers []adapter.Answer) ([]T, error) {
	reply, err := d.Reply(response)
	if err != nil {
		return nil, err
	}
	results, err := d.Results(ctx, answers)
	if err != nil {
		return nil, err
	}
	list := make([]T, 0, len(reply)+len(results))
	for _, raw := range append(reply, results...) {
		list = append(list, param.Override[T, P](raw))
	}
	return list, nil
}
