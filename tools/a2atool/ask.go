package a2atool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const methodElicit = "elicitation/create"

// errDeclined says that the caller did not want to answer the agent.
var errDeclined = errors.New("the caller did not answer the agent's question")

// ask puts the agent's question to the caller and returns the contents of the
// answer.
func (x *exchange) ask(ctx context.Context) ([]*a2a.Part, error) {
	params := elicitation(x.peer.agentName(), x.asked())
	answer, err := x.call.Ask(ctx, tools.Question{Method: methodElicit, Params: params})
	if err != nil {
		return nil, err
	}
	parts, err := answerParts(answer.Result)
	if err != nil && !errors.Is(err, errDeclined) {
		return nil, &tools.Error{Tool: x.skill.name, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
			Message: x.peer.message("the answer to its question cannot be used: " + err.Error())}
	}
	return parts, err
}

// asked is the agent's question in words.
func (x *exchange) asked() string {
	if text := textOf(x.task.Status.Message); text != "" {
		return text
	}
	return "The agent needs more input to go on."
}

// elicitation is a form with one field.
func elicitation(agent, question string) json.RawMessage {
	out := rawjson.AppendQuoted([]byte(`{"mode":"form","message":`), agent+" asks: "+bound(question, 16<<10))
	return append(out, `,"requestedSchema":{"type":"object","properties":{"answer":{"type":"string","title":"Answer","description":"What the agent is told."}},"required":["answer"]}}`...)
}

// answerParts reads the result of a form. Fields beside the answer are sent as
// data.
func answerParts(result json.RawMessage) ([]*a2a.Part, error) {
	var form struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	d := json.NewDecoder(bytes.NewReader(result))
	d.UseNumber()
	if err := d.Decode(&form); err != nil {
		return nil, errors.New("it is no elicitation result")
	}
	switch form.Action {
	case "accept":
	case "decline", "cancel":
		return nil, errDeclined
	default:
		return nil, fmt.Errorf("the action %q is unknown: expected accept, decline or cancel", bound(form.Action, 40))
	}
	var parts []*a2a.Part
	if text, ok := form.Content["answer"].(string); ok && text != "" {
		parts = append(parts, a2a.NewTextPart(text))
		delete(form.Content, "answer")
	}
	if len(form.Content) > 0 {
		parts = append(parts, a2a.NewDataPart(form.Content))
	}
	if len(parts) == 0 {
		return nil, errors.New("it is empty")
	}
	return parts, nil
}

// unasked is the result of a call whose agent needs input from a caller that
// cannot be asked: the task waits for the session's next call. Without a session
// there is none, so the task is given up.
func (x *exchange) unasked(ctx context.Context) tools.ToolResult {
	r := x.collect(x.task.Artifacts, x.task.Status.Message)
	text := "The agent waits for this input. Call the tool again with the answer as message, and the same task goes on."
	if _, ok := keyOf(ctx); !ok {
		text = "The agent asked for this input. The caller cannot be asked and has no session in which to answer, so the task was cancelled."
		r.IsError = true
		x.cancel(ctx)
	}
	r.Content = append(r.Content, tools.TextContent(text))
	return x.finished(r)
}

// declined is the result of a call whose caller did not answer.
func (x *exchange) declined() tools.ToolResult {
	r := tools.ToolResult{IsError: true, Content: []tools.Content{
		tools.TextContent("The agent asked for input (" + bound(x.asked(), 1<<10) + "), and the caller did not give it. The task was cancelled."),
	}}
	return x.finished(r)
}
