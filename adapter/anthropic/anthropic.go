// Package anthropic converts between package adapter and the types of Anthropic's
// Go SDK, github.com/anthropics/anthropic-sdk-go. The declarations that its
// functions take are those of adapter.Anthropic.
package anthropic

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/toolcrib/toolcrib/adapter"
)

// want returns an error when declarations are of another API.
func want(d *adapter.Declarations) error {
	if got := d.Adapter().Provider(); got != adapter.Anthropic {
		return fmt.Errorf("adapter/anthropic: the declarations are for %q: expected those of %q", got, adapter.Anthropic)
	}
	return nil
}

// Tools returns the declared tools, with Anthropic's search when some are
// deferred. Each is sent byte for byte as the adapter wrote it, so that the
// fields of the union are empty.
func Tools(d *adapter.Declarations) ([]anthropic.ToolUnionParam, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(d.JSON(), &raw); err != nil {
		return nil, err
	}
	list := make([]anthropic.ToolUnionParam, len(raw))
	for i := range raw {
		list[i] = param.Override[anthropic.ToolUnionParam](raw[i])
	}
	return list, nil
}

// Choice returns the tool choice that the options of the adapter ask for, and the
// zero value, which the SDK leaves out, when they ask for none.
func Choice(d *adapter.Declarations) (anthropic.ToolChoiceUnionParam, error) {
	if err := want(d); err != nil {
		return anthropic.ToolChoiceUnionParam{}, err
	}
	var request struct {
		Choice json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal(d.Request(), &request); err != nil || request.Choice == nil {
		return anthropic.ToolChoiceUnionParam{}, err
	}
	return param.Override[anthropic.ToolChoiceUnionParam](request.Choice), nil
}

// Calls returns the tool calls of a message.
func Calls(d *adapter.Declarations, m *anthropic.Message) ([]adapter.Call, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	return d.Calls(json.RawMessage(m.RawJSON()))
}

// Messages returns what follows a message in the conversation: the message
// itself, and the one that answers its calls.
func Messages(ctx context.Context, d *adapter.Declarations, m *anthropic.Message, answers []adapter.Answer) ([]anthropic.MessageParam, error) {
	if err := want(d); err != nil {
		return nil, err
	}
	reply, err := d.Reply(json.RawMessage(m.RawJSON()))
	if err != nil {
		return nil, err
	}
	results, err := d.Results(ctx, answers)
	if err != nil {
		return nil, err
	}
	var list []anthropic.MessageParam
	for _, raw := range append(reply, results...) {
		list = append(list, param.Override[anthropic.MessageParam](raw))
	}
	return list, nil
}

// AddEvent adds an event of a streamed message and returns the calls that are
// whole with it.
func AddEvent(s *adapter.Stream, event anthropic.MessageStreamEventUnion) ([]adapter.Call, error) {
	return s.Add(json.RawMessage(event.RawJSON()))
}
