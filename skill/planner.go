package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// Runner runs one tool. Results are JSON values; whether a runner is safe for
// concurrent use is its own affair. Package exec has one over a catalog.
type Runner interface {
	Run(ctx context.Context, toolID string, inputs map[string]any) (any, error)
}

// Describer is a Runner that knows the tools which it runs. A planner with such
// a runner checks the inputs of each step against the tool's schema as far as
// both are known.
type Describer interface {
	Describe(ctx context.Context, toolID string) (tools.Tool, bool)
}

// PlannerOptions tune a planner.
type PlannerOptions struct {
	// Runner runs the plans that Execute is given no runner for.
	Runner Runner
	// Guards are asked in Plan, in order, and again in Execute.
	Guards []Guard
}

// Planner turns skills into plans. It is safe for concurrent use.
type Planner struct {
	runner Runner
	guards []Guard
}

// NewPlanner returns a planner.
func NewPlanner(opts PlannerOptions) *Planner {
	return &Planner{runner: opts.Runner, guards: slices.Clone(opts.Guards)}
}

// Plan checks a skill and puts its steps in order. The plan does not change with
// s. Errors wrap ErrNoSteps, ErrInvalid, ErrDuplicateStep, or what a guard gave.
func (p *Planner) Plan(s Skill) (*Plan, error) { return p.PlanFor(context.Background(), s) }

// PlanFor is Plan for the caller on ctx: the tools that a Describer knows are
// those that the caller sees.
func (p *Planner) PlanFor(ctx context.Context, s Skill) (*Plan, error) {
	s, err := s.clone()
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	plan := &Plan{guards: p.guards, runner: p.runner, places: map[string]int{}}
	for i, step := range s.Steps {
		plan.places[step.ID] = i
	}
	if err := s.order(); err != nil {
		return nil, err
	}
	plan.skill = s
	if err := plan.guard(); err != nil {
		return nil, err
	}
	if err := plan.compile(ctx); err != nil {
		return nil, err
	}
	return plan, nil
}

// Plan is a skill that can be executed. It never changes and is safe for
// concurrent use.
type Plan struct {
	skill  Skill
	guards []Guard
	runner Runner
	places map[string]int // of the steps, as they were declared

	inputsSchema json.RawMessage
	inputs       *schema.Schema
	steps        []*expr.Template
	output       *expr.Template
	inputsOnly   *expr.Env // knows the inputs, and no step
	bound        any       // the inputs of a run
}

// guard asks the guards, each about a copy of its own.
func (p *Plan) guard() error {
	for _, g := range p.guards {
		if g == nil {
			return p.skill.invalid("", "a guard is nil")
		}
		copied, err := p.skill.clone()
		if err != nil {
			return err
		}
		if err := g.Check(copied); err != nil {
			return err
		}
	}
	return nil
}

// compile reads the expressions of the skill. A step sees the results of the
// steps before it.
func (p *Plan) compile(ctx context.Context) (err error) {
	if p.inputsSchema, p.inputs, err = p.skill.inputs(); err != nil {
		return err
	}
	inputs, err := expr.NewShape(p.inputsSchema)
	if err == nil {
		err = inputs.CanBeObject()
	}
	if err != nil {
		return p.skill.invalid("inputs", "its inputs: %w", err)
	}
	language, err := expr.NewEnv(map[string]expr.Shape{"inputs": {}, "steps": {}})
	if err != nil {
		return err
	}
	before := map[string]expr.Shape{}
	p.inputsOnly = environment(language, inputs, nil)
	for i := range p.skill.Steps {
		step := &p.skill.Steps[i]
		tool, known, err := p.describe(ctx, step)
		if err != nil {
			return err
		}
		env := p.inputsOnly
		if expr.Expressive(step.Inputs) {
			env = environment(language, inputs, before)
		}
		template, err := given(step, env)
		if err != nil {
			return p.skill.invalid(p.at(step, "inputs"), "step %q: %w", step.ID, err)
		}
		if known {
			if err := fit(template, tool); err != nil {
				return p.skill.invalid(p.at(step, "inputs"), "step %q: the inputs of %q: %w", step.ID, step.ToolID, err)
			}
		}
		p.steps = append(p.steps, template)
		before[step.ID], _ = expr.NewShape(tool.OutSchema)
	}
	return p.compileOutput(environment(language, inputs, before))
}

// at is the path of a part of a step in the skill as it was declared.
func (p *Plan) at(step *Step, part string) string { return stepPath(p.places[step.ID]) + "." + part }

func (p *Plan) compileOutput(env *expr.Env) (err error) {
	if p.skill.Output == nil {
		return nil
	}
	if p.output, err = env.Template(p.skill.Output); err != nil {
		return p.skill.invalid("output", "its output: %w", err)
	}
	return nil
}

// environment is what a step may read: the inputs, and the steps before it.
func environment(language *expr.Env, inputs expr.Shape, steps map[string]expr.Shape) *expr.Env {
	return language.Knowing(map[string]expr.Shape{"inputs": inputs, "steps": expr.ObjectOf(steps)})
}

// given compiles the inputs of a step.
func given(step *Step, env *expr.Env) (*expr.Template, error) {
	if step.Inputs == nil {
		return env.Template(map[string]any{})
	}
	return env.Template(step.Inputs)
}

// describe finds the step's tool, if the runner knows tools.
func (p *Plan) describe(ctx context.Context, step *Step) (tool tools.Tool, known bool, err error) {
	d, ok := p.runner.(Describer)
	if !ok {
		return tool, false, nil
	}
	if able, ok := p.runner.(interface{ Describes() bool }); ok && !able.Describes() {
		return tool, false, nil
	}
	if tool, known = d.Describe(ctx, step.ToolID); !known {
		return tool, false, p.skill.invalid(p.at(step, "tool"), "step %q uses %q: %w", step.ID, step.ToolID, tools.ErrToolNotFound)
	}
	return tool, true, nil
}

// fit compares what a step gives with what its tool takes.
func fit(template *expr.Template, tool tools.Tool) error {
	want, err := expr.NewShape(tool.ArgsSchema)
	if err != nil {
		return err
	}
	return template.Shape().Fits(want)
}

// Skill returns a copy of the skill, its steps in the order of execution.
func (p *Plan) Skill() Skill {
	copied, _ := p.skill.clone() // the plan holds a clone, which always clones
	return copied
}

// InputsSchema returns the JSON Schema of what a run is given.
func (p *Plan) InputsSchema() json.RawMessage { return slices.Clone(p.inputsSchema) }

// With returns the plan with the inputs of one run, a JSON object. The error is
// ErrInvalidInputs with the place and what was expected there.
func (p *Plan) With(inputs json.RawMessage) (*Plan, error) {
	if len(inputs) == 0 {
		inputs = json.RawMessage("{}")
	}
	if err := p.inputs.Check(inputs); err != nil {
		return nil, fmt.Errorf("%w of %q: %w", ErrInvalidInputs, p.skill.Name, err)
	}
	bound, err := expr.Decode(inputs)
	if err != nil {
		return nil, fmt.Errorf("%w of %q: %w", ErrInvalidInputs, p.skill.Name, err)
	}
	with := *p
	with.bound = bound
	return &with, nil
}
