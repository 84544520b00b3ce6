// Package exec runs named tools for whoever composes them: skills and flows say
// what to call and with which values, and a [Runner] turns that into calls of an
// [Executor], a catalog first.
package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// ErrNilExecutor: a Runner without an executor was asked to run a tool.
var ErrNilExecutor = errors.New("exec: the executor is nil")

// Executor is anything that runs a named tool. A catalog is one: its Call takes
// the whole road of a call.
type Executor interface {
	Call(ctx context.Context, name string, args json.RawMessage) (tools.ToolResult, error)
}

// Runner runs tools with Go values and gives back Go values. It is safe for
// concurrent use if its executor is.
type Runner struct{ executor Executor }

// NewRunner returns a runner over an executor.
func NewRunner(executor Executor) *Runner { return &Runner{executor} }

// Run calls the tool with inputs as its arguments and returns what it gave as
// decoded JSON, whose numbers are json.Number: the structured result if there is
// one, else the text, else the list of content blocks. A tool that answers that
// it failed is an error of class permanent that wraps nothing.
func (r *Runner) Run(ctx context.Context, toolID string, inputs map[string]any) (any, error) {
	if r == nil || r.executor == nil {
		return nil, ErrNilExecutor
	}
	args := []byte("{}")
	if len(inputs) > 0 {
		enc, err := json.Marshal(inputs)
		if err != nil {
			return nil, fmt.Errorf("exec: %s: the inputs are not JSON: %w", toolID, err)
		}
		args = rawjson.UnescapeHTML(enc)
	}
	result, err := r.executor.Call(ctx, toolID, args)
	if err != nil {
		return nil, err
	}
	if result.IsError {
		return nil, answered(toolID, result)
	}
	return Value(result)
}

// Describe returns what the context's caller may know of a tool. It is false
// when the executor has no such tool for that caller, or cannot describe tools.
func (r *Runner) Describe(ctx context.Context, toolID string) (tools.Tool, bool) {
	if r == nil {
		return tools.Tool{}, false
	}
	switch e := r.executor.(type) {
	case tools.Snapshotter:
		return e.Snapshot().Visible(tools.FilterFrom(ctx)).Get(toolID)
	case tools.ToolCatalog:
		return tools.NewPlannerView(e, tools.FilterFrom(ctx)).Resolve(toolID)
	}
	return tools.Tool{}, false
}

// Describes reports whether the executor can describe tools at all.
func (r *Runner) Describes() bool {
	if r == nil {
		return false
	}
	_, ok := r.executor.(tools.ToolCatalog)
	return ok
}

// Fresh reports that what Run gives is decoded JSON which nobody else holds, so that
// it need not be copied.
func (r *Runner) Fresh() bool { return true }

// Own returns what a runner gave as decoded JSON of one's own. A runner that says
// it is Fresh gave that already.
func Own(runner, value any) (any, error) {
	if f, ok := runner.(interface{ Fresh() bool }); ok && f.Fresh() {
		return value, nil
	}
	return expr.ValueOf(value)
}

// answered is the failure that a tool's own answer states.
func answered(toolID string, result tools.ToolResult) error {
	message := result.Text()
	if message == "" {
		if raw, err := result.JSON(); err == nil {
			message = string(raw)
		}
	}
	const most = 2000
	if len(message) > most {
		message = strings.ToValidUTF8(message[:most], "") + "…"
	}
	return &tools.Error{Tool: toolID, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: "the tool failed: " + message}
}

// Value returns a result as decoded JSON.
func Value(result tools.ToolResult) (any, error) {
	raw, err := result.JSON()
	if err != nil {
		return nil, fmt.Errorf("exec: the result is not JSON: %w", err)
	}
	if raw != nil {
		return expr.Decode(raw)
	}
	texts := 0
	for _, c := range result.Content {
		if c.Type == "text" {
			texts++
		}
	}
	if texts == len(result.Content) {
		return result.Text(), nil
	}
	enc, err := json.Marshal(result.Content)
	if err != nil {
		return nil, fmt.Errorf("exec: the content is not JSON: %w", err)
	}
	return expr.Decode(enc)
}
