package turn

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toolcrib/toolcrib/adapter"
)

// Answer is what follows a model's response.
type Answer struct {
	// Messages are what comes next in the conversation: the model's own message,
	// and the results of its calls.
	Messages []json.RawMessage
	// Results are those of the calls, in their order. There are none when the
	// model called no tool, and the conversation is at its end.
	Results []Result
}

// Declare writes what is declared in the turn in a provider's form.
func (t *Turn) Declare(a *adapter.Adapter) *adapter.Declarations { return a.Declare(t.Tools()) }

// Respond makes the calls in a provider's response and returns what to go on
// with. d is what Declare gave in this turn. The error is that of a response
// which cannot be read, of Execute, or of an adapter that lets no result through.
// Beside that of Execute there is an answer, and beside that of the adapter the
// results, without messages: the calls were made.
func (t *Turn) Respond(ctx context.Context, d *adapter.Declarations, response json.RawMessage) (Answer, error) {
	calls, err := d.Calls(response)
	if err != nil {
		return Answer{}, err
	}
	messages, err := d.Reply(response)
	if err != nil {
		return Answer{}, err
	}
	results, failed := t.execute(ctx, Calls(d, calls), func(canonical string) string { return wire(d, canonical) })
	answers, err := d.Results(ctx, t.answers(calls, results))
	if err != nil {
		return Answer{Results: results}, errors.Join(err, failed)
	}
	return Answer{Messages: append(messages, answers...), Results: results}, failed
}

// wire returns the name that a tool is declared by.
func wire(d *adapter.Declarations, canonical string) string {
	if decl, ok := d.Tool(canonical); ok {
		return decl.Wire
	}
	return canonical
}

// Calls returns the calls that were read of a response to what d declares, for
// Execute.
func Calls(d *adapter.Declarations, list []adapter.Call) []Call {
	out := make([]Call, len(list))
	for i, c := range list {
		out[i] = Call{ID: c.ID, Name: c.Tool, Args: c.Args, Err: c.Err}
		if c.Err != nil && !c.Cut { // what was cut is not mended
			out[i].Args = c.Sent
			out[i].Read = func(args json.RawMessage) (json.RawMessage, error) { return d.Args(c.Wire, args) }
		}
	}
	return out
}

// answers pairs calls with their results for an adapter.
func (t *Turn) answers(calls []adapter.Call, results []Result) []adapter.Answer {
	out := make([]adapter.Answer, len(calls))
	for i := range calls {
		out[i] = adapter.Answer{Call: calls[i], Result: results[i].ToolResult, Bounded: t.run.runner.opts.Bounder != nil}
	}
	return out
}
