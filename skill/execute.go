package skill

import (
	"context"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/exec"
)

// StepResult is what became of one step.
type StepResult struct {
	StepID string `json:"step_id"`
	ToolID string `json:"tool_id"`
	// Value is what the tool gave, as decoded JSON; nil for a step that failed.
	Value any `json:"value,omitempty"`
	// Err says why the step failed.
	Err error `json:"-"`
}

// StepError is the failure that ended an execution.
type StepError struct {
	Skill, StepID, ToolID string
	Err                   error
}

// Error names the step and its tool.
func (e *StepError) Error() string {
	return fmt.Sprintf("skill: step %q of %q (%s): %v", e.StepID, e.Skill, e.ToolID, e.Err)
}

// Unwrap returns what the step failed with.
func (e *StepError) Unwrap() error { return e.Err }

// Execute runs the steps of a plan one after the other. A nil runner stands for
// the planner's. It stops at the first step that fails and then returns the
// results up to it, the failed one last, with a *StepError. The context is
// looked at between steps; guards are asked again before the first.
func Execute(ctx context.Context, plan *Plan, runner Runner) ([]StepResult, error) {
	results, _, err := execute(ctx, plan, runner)
	return results, err
}

// Run is Execute that returns what the skill gives: its output, or the result of
// the last step.
func Run(ctx context.Context, plan *Plan, runner Runner) (any, []StepResult, error) {
	results, values, err := execute(ctx, plan, runner)
	if err != nil {
		return nil, results, err
	}
	if plan.output == nil {
		return results[len(results)-1].Value, results, nil
	}
	output, err := plan.output.Fill(ctx, values)
	if err != nil {
		return nil, results, fmt.Errorf("skill: the output of %q: %w", plan.skill.Name, err)
	}
	return output, results, nil
}

func execute(ctx context.Context, plan *Plan, runner Runner) ([]StepResult, map[string]any, error) {
	if plan == nil {
		return nil, nil, ErrNilPlan
	}
	if runner == nil {
		runner = plan.runner
	}
	if runner == nil {
		return nil, nil, ErrNilRunner
	}
	if err := plan.guard(); err != nil {
		return nil, nil, err
	}
	if plan.bound == nil {
		with, err := plan.With(nil)
		if err != nil {
			return nil, nil, err
		}
		plan = with
	}
	return plan.run(ctx, runner)
}

func (p *Plan) run(ctx context.Context, runner Runner) ([]StepResult, map[string]any, error) {
	inner, err := exec.Nested(ctx)
	if err != nil {
		return nil, nil, err
	}
	t := newTeller(ctx, p.skill.Name)
	t.started(ctx, len(p.steps))
	results, values, err := p.all(ctx, inner, runner, t)
	t.end(ctx, err)
	return results, values, err
}

// all runs the steps on inner, and tells of them on ctx.
func (p *Plan) all(ctx, inner context.Context, runner Runner, t *teller) ([]StepResult, map[string]any, error) {
	done := map[string]any{}
	values := map[string]any{"inputs": p.bound, "steps": done}
	results := make([]StepResult, 0, len(p.steps))
	told := exec.NewProgress(ctx, len(p.steps))
	for i, step := range p.skill.Steps {
		began := time.Now()
		result := StepResult{StepID: step.ID, ToolID: step.ToolID}
		result.Value, result.Err = p.step(told.Within(inner, i, step.ID), runner, i, values)
		results = append(results, result)
		t.step(ctx, &result, began)
		if result.Err != nil {
			return results, values, &StepError{Skill: p.skill.Name, StepID: step.ID, ToolID: step.ToolID, Err: result.Err}
		}
		told.Settle(i, step.ID)
		done[step.ID] = result.Value
	}
	return results, values, nil
}

func (p *Plan) step(ctx context.Context, runner Runner, i int, values map[string]any) (any, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	filled, err := p.steps[i].Fill(ctx, values)
	if err != nil {
		return nil, err
	}
	inputs, _ := filled.(map[string]any)
	value, err := runner.Run(ctx, p.skill.Steps[i].ToolID, inputs)
	if err != nil {
		return nil, err
	}
	return exec.Own(runner, value)
}
