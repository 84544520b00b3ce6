package skill

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// PlannedStep is a step as a plan would run it.
type PlannedStep struct {
	ID   string `json:"id"`
	Tool string `json:"tool"`
	// Inputs are the arguments. What depends on a step before stands there as its
	// expression.
	Inputs json.RawMessage `json:"inputs"`
	// Needs names the steps before whose results this one reads, or that it
	// declares to need.
	Needs []string `json:"needs,omitempty"`
}

// Steps returns what the plan would do, in order, and runs nothing. Of a plan with
// inputs, the arguments that depend on those alone are filled in.
func (p *Plan) Steps(ctx context.Context) ([]PlannedStep, error) {
	copied := p.Skill()
	steps := make([]PlannedStep, len(copied.Steps))
	for i, step := range copied.Steps {
		var inputs any = step.Inputs
		if step.Inputs == nil {
			inputs = map[string]any{}
		}
		if p.bound != nil {
			inputs = p.known(ctx, inputs)
		}
		enc, err := json.Marshal(inputs)
		if err != nil {
			return nil, err
		}
		steps[i] = PlannedStep{ID: step.ID, Tool: step.ToolID, Inputs: rawjson.UnescapeHTML(enc), Needs: p.needs(i)}
	}
	return steps, nil
}

// known fills in the strings of a value that read nothing but the inputs.
func (p *Plan) known(ctx context.Context, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = p.known(ctx, v[name])
		}
	case []any:
		for i := range v {
			v[i] = p.known(ctx, v[i])
		}
	case string:
		return p.text(ctx, v)
	}
	return v
}

// text fills in one string, or leaves it as it is.
func (p *Plan) text(ctx context.Context, s string) any {
	template, err := p.inputsOnly.Template(s)
	if err != nil {
		return s
	}
	value, err := template.Fill(ctx, map[string]any{"inputs": p.bound, "steps": map[string]any{}})
	if err != nil {
		return s
	}
	return value
}

// needs names the steps that step i waits for: those that it declares, and those
// whose results it reads.
func (p *Plan) needs(i int) []string {
	step := &p.skill.Steps[i]
	var names []string
	for _, before := range p.skill.Steps[:i] {
		if slices.Contains(step.Needs, before.ID) || reads(p.steps[i], before.ID) {
			names = append(names, before.ID)
		}
	}
	return names
}

func reads(t *expr.Template, id string) bool {
	for _, path := range t.Reads() {
		if len(path) > 1 && path[0] == "steps" && path[1] == id {
			return true
		}
	}
	return false
}
