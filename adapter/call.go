package adapter

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// Call is one tool call of a model.
type Call struct {
	// ID is the provider's id of the call, as it was sent: it may be empty, as
	// with Gemini, or be that of another call too.
	ID string
	// Index is the place among the calls of the answer, from 0.
	Index int
	// Tool is the canonical name, or the name as sent when none of the declared
	// tools has it.
	Tool string
	// Wire is the name as sent.
	Wire string
	// Args are the arguments for the tool's own schema. They are nil when Err is
	// not.
	Args json.RawMessage
	// Sent is what the model sent for arguments, malformed or not.
	Sent json.RawMessage
	// Cut says that the model was stopped while it wrote the call, or may have
	// been: what was sent need not be what it meant, even if it is whole.
	Cut bool
	// Err is a *tools.Error when the call cannot be run: ErrToolNotFound for a
	// tool that was not declared, ErrToolInvalidArgs for arguments that are not
	// in the declared form. Its message is for the model.
	Err error
}

// rawCall is a call before its name and arguments are mapped. One that is cut is
// the last that a model wrote before it was stopped: its arguments need not be
// what it meant, even if they are JSON.
type rawCall struct {
	id, name string
	args     []byte
	cut      bool
}

// cutLast marks the last call of a list.
func cutLast(calls []rawCall) []rawCall {
	if n := len(calls); n > 0 {
		calls[n-1].cut = true
	}
	return calls
}

// Calls returns the tool calls of a provider's response, in order. It takes the
// body of a response, or the message in it. Calls that cannot be run are among
// them, with their Err. The error is about a body that is no response.
func (d *Declarations) Calls(response json.RawMessage) ([]Call, error) {
	if err := rawjson.Check(response, rawjson.Options{AllowDuplicates: true}); err != nil {
		return nil, fmt.Errorf("adapter: the response of %s is %w", d.adapter.provider, err)
	}
	raw, err := d.adapter.wire.calls(response)
	if err != nil {
		return nil, fmt.Errorf("adapter: the response of %s: %w", d.adapter.provider, err)
	}
	calls := make([]Call, len(raw))
	for i, c := range raw {
		calls[i] = d.call(i, c)
	}
	return calls, nil
}

// call maps a call back.
func (d *Declarations) call(index int, raw rawCall) Call {
	c := Call{ID: raw.id, Index: index, Tool: raw.name, Wire: raw.name, Sent: raw.args, Cut: raw.cut}
	at, known := d.byWire[raw.name]
	if !known {
		_, c.Err = d.Args(raw.name, raw.args)
		return c
	}
	c.Tool = d.Tools[at].Tool
	if raw.cut {
		c.Err = &tools.Error{
			Code: tools.ErrToolInvalidArgs, Tool: c.Tool, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
			Message: "the call was cut off before its arguments were complete",
		}
		return c
	}
	c.Args, c.Err = d.Args(raw.name, raw.args)
	return c
}

// Args maps arguments that were sent for the tool of a wire name back to those of
// its own schema. Calls does so by itself; it is for whoever mends what was sent.
// The error is a *tools.Error.
func (d *Declarations) Args(wire string, sent json.RawMessage) (json.RawMessage, error) {
	at, known := d.byWire[wire]
	if !known {
		return nil, &tools.Error{Code: tools.ErrToolNotFound, Tool: clip(wire), Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
			Message: "no tool of this name was declared"}
	}
	decl := &d.Tools[at]
	args, err := decl.form.Back(sent)
	if err == nil && rawjson.KindOf(sent) != rawjson.KindObject {
		err = fmt.Errorf("the arguments must be a JSON object, not %s", rawjson.KindOf(sent))
	}
	if err != nil {
		return nil, &tools.Error{
			Code: tools.ErrToolInvalidArgs, Tool: decl.Tool, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
			Message: err.Error(), Err: err,
		}
	}
	return args, nil
}

// Reply returns the messages of a response that belong into the history of the
// conversation, before the results: the assistant's message, or the output items
// of OpenAI's Responses. They are what the provider sent, byte for byte, because
// some of it is signed. MCP has none.
func (d *Declarations) Reply(response json.RawMessage) ([]json.RawMessage, error) {
	if err := rawjson.Check(response, rawjson.Options{AllowDuplicates: true}); err != nil {
		return nil, fmt.Errorf("adapter: the response of %s is %w", d.adapter.provider, err)
	}
	list, err := d.adapter.wire.reply(response)
	if err != nil {
		return nil, fmt.Errorf("adapter: the response of %s: %w", d.adapter.provider, err)
	}
	return list, nil
}

// clip bounds a name that a model made up.
func clip(s string) string {
	if len(s) > 128 {
		return strings.ToValidUTF8(s[:128], "") + "…"
	}
	return s
}
