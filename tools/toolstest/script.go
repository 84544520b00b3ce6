package toolstest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// A Step is what one call of a scripted tool does.
type Step func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error)

// Answer is a Step that gives a value.
func Answer(value any) Step {
	return func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: value}, nil
	}
}

// Fail is a Step that fails.
func Fail(err error) Step {
	return func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, err }
}

// Echo is a Step that gives its arguments back.
func Echo() Step {
	return func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: slices.Clone(args)}, nil
	}
}

// Park is a Step that ends with its context, and with the error of that.
func Park() Step {
	return func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		<-ctx.Done()
		return tools.ToolResult{}, ctx.Err()
	}
}

// A Script is a tool that does something else on each attempt, and keeps the
// arguments of all. It is safe for concurrent use.
type Script struct {
	steps []Step

	mu       sync.Mutex
	attempts []json.RawMessage
}

// NewScript returns a script whose attempts take the steps in order, and the
// last one again when there are no more. Without steps it gives its arguments
// back.
func NewScript(steps ...Step) *Script {
	if len(steps) == 0 {
		steps = []Step{Echo()}
	}
	return &Script{steps: steps}
}

// Invoke is the next attempt. It is the tool's driver.
func (s *Script) Invoke(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	s.mu.Lock()
	step := s.steps[min(len(s.attempts), len(s.steps)-1)]
	s.attempts = append(s.attempts, slices.Clone(args))
	s.mu.Unlock()
	return step(ctx, args)
}

// Descriptor returns the script as a tool that takes any arguments.
func (s *Script) Descriptor(name string, opts ...tools.DescriptorOption) tools.ToolDescriptor {
	t := tools.Tool{Name: name, Description: "Follows a script.", ArgsSchema: json.RawMessage(`{"type":"object"}`)}
	return tools.ResolveOptions(opts...).Descriptor(t, s.Invoke)
}

// Attempts returns the arguments of every attempt so far, in their order.
func (s *Script) Attempts() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts)
}
