package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// Tool returns the plan as a tool: its arguments are the skill's inputs, and its
// result is what the skill gives. It inherits the strongest side effect of the
// tools that it calls and the scopes of them all, so that whoever may not call
// one of them does not see it. It is tried once and without a time limit of its
// own, as each step has the policy of its tool. Options may say more.
//
// The planner's runner must be a Describer.
func (p *Plan) Tool(ctx context.Context, opts ...tools.DescriptorOption) (tools.ToolDescriptor, error) {
	parts, err := p.parts(ctx)
	if err != nil {
		return tools.ToolDescriptor{}, err
	}
	tool, err := exec.Whole(parts)
	if err != nil {
		return tools.ToolDescriptor{}, p.skill.invalid("", "%w", err)
	}
	tool.Name, tool.Description = p.skill.Name, p.skill.Description
	tool.Category = "skill"
	tool.Tags = slices.Clone(p.skill.Tags)
	tool.ArgsSchema = p.InputsSchema()
	tool.Policy = tools.ToolPolicy{MaxRetries: -1, TimeoutMS: -1}
	return tools.ResolveOptions(opts...).Descriptor(tool, p.invoke), nil
}

func (p *Plan) parts(ctx context.Context) ([]tools.Tool, error) {
	d, ok := p.runner.(Describer)
	if !ok {
		return nil, p.skill.invalid("", "its runner cannot describe tools, so that it cannot be one")
	}
	var parts []tools.Tool
	for _, name := range p.skill.Tools() {
		part, ok := d.Describe(ctx, name)
		if !ok {
			return nil, p.skill.invalid("", "it uses %q: %w", name, tools.ErrToolNotFound)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// invoke runs the skill as the innermost step of a call.
func (p *Plan) invoke(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	with, err := p.With(args)
	if err != nil {
		return tools.ToolResult{}, err
	}
	value, _, err := Run(ctx, with, nil)
	if err != nil {
		return tools.ToolResult{}, exec.Failure(err)
	}
	enc, err := json.Marshal(value)
	if err != nil {
		return tools.ToolResult{}, fmt.Errorf("skill: the output of %q: %w", p.skill.Name, err)
	}
	return tools.ToolResult{Value: json.RawMessage(rawjson.UnescapeHTML(enc))}, nil
}
