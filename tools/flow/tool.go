package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools"
)

// Tool returns the flow as a tool: its arguments are the flow's inputs. It
// inherits the strongest side effect of the tools that it calls and the scopes of
// them all, so that whoever may not call one of them does not see it; what a Go
// function does is not known, unless an option says so. It is tried once and
// without a time limit of its own, as its nodes have theirs. Options may say more.
func (f *Flow) Tool(opts ...tools.DescriptorOption) (tools.ToolDescriptor, error) {
	tool, err := exec.Whole(f.allParts())
	if err != nil {
		return tools.ToolDescriptor{}, f.def.fault("nodes", "%w", err)
	}
	tool.Name, tool.Description = f.name, f.def.Description
	tool.Category, tool.Tags = "flow", slices.Clone(f.def.Tags)
	tool.ArgsSchema = f.InputsSchema()
	tool.Policy = tools.ToolPolicy{MaxRetries: -1, TimeoutMS: -1}
	return tools.ResolveOptions(opts...).Descriptor(tool, f.invoke), nil
}

// allParts are the tools that the flow calls, with something of which nothing is
// known for each node that calls what is no tool.
func (f *Flow) allParts() []tools.Tool {
	parts := slices.Clone(f.parts)
	for _, n := range f.nodes {
		if n.Func != nil || n.Tool != "" && !n.known {
			return append(parts, tools.Tool{})
		}
		if n.nested != nil {
			parts = append(parts, n.nested.allParts()...)
		}
	}
	return parts
}

// whole is exec.Whole for parts whose tenants do not matter.
func whole(parts []tools.Tool) tools.Tool {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Tenants = nil
	}
	tool, _ := exec.Whole(parts)
	return tool
}

func (f *Flow) invoke(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	run := f.Run
	if id, ok := ctx.Value(resumeKey{}).(string); ok && id != "" {
		ctx = Resuming(ctx, "") // which flows inside this one are not
		run = func(ctx context.Context, _ json.RawMessage) (any, error) { return f.Resume(ctx, id) }
	}
	value, err := run(ctx, args)
	if err != nil {
		return tools.ToolResult{}, exec.Failure(err)
	}
	enc, err := encode(value)
	if err != nil {
		return tools.ToolResult{}, fmt.Errorf("flow: the output of %q: %w", f.name, err)
	}
	return tools.ToolResult{Value: enc}, nil
}

type resumeKey struct{}

// Resuming returns a context on which the call of a flow's tool goes on with a run
// in place of beginning one. The arguments of the call must be the inputs of the
// run, so that whatever guards the tool decides about the same call again.
func Resuming(ctx context.Context, runID string) context.Context {
	return context.WithValue(ctx, resumeKey{}, runID)
}

// RegisterAsTool puts the flow into a catalog.
func RegisterAsTool(cat tools.ToolCatalog, f *Flow, opts ...tools.DescriptorOption) error {
	d, err := f.Tool(opts...)
	if err != nil {
		return err
	}
	return cat.Register(d)
}
