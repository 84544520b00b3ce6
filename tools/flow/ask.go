package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// ErrDeclined: the caller did not agree to what a node asked.
var ErrDeclined = errors.New("flow: the caller declined")

// approval is the schema of the answer to a question without one.
const approval = `{"type":"object","properties":{"approved":{"type":"boolean","title":"Approve"}},"required":["approved"]}`

// ask puts a question to whoever waits for the flow and returns the content of
// the answer. Meanwhile the time limits of the flow's call stand still; those of
// the flow do not.
func ask(ctx context.Context, message string, wanted json.RawMessage) (any, error) {
	yesOrNo := len(wanted) == 0
	if yesOrNo {
		wanted = json.RawMessage(approval)
	}
	params := rawjson.AppendQuoted([]byte(`{"mode":"form","message":`), message)
	params = append(append(params, `,"requestedSchema":`...), wanted...)
	answer, err := tools.CallFrom(ctx).Ask(ctx, tools.Question{Method: "elicitation/create", Params: append(params, '}')})
	if err != nil {
		return nil, err
	}
	var said struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(answer.Result, &said); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if said.Action != "accept" {
		return nil, ErrDeclined
	}
	return checked(said.Content, wanted, yesOrNo)
}

func checked(content, wanted json.RawMessage, yesOrNo bool) (any, error) {
	s, err := schema.Compile(wanted, nil)
	if err != nil {
		return nil, err
	}
	if err := s.Check(content); err != nil {
		return nil, fmt.Errorf("the answer is not what was asked for: %w", err)
	}
	value, err := expr.Decode(content)
	if err != nil {
		return nil, err
	}
	if given, ok := value.(map[string]any); yesOrNo && (!ok || given["approved"] != true) {
		return nil, ErrDeclined
	}
	return value, nil
}
