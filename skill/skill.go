package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// Sentinels, for callers that branch. Compare with errors.Is.
var (
	// ErrNoSteps: the skill has no steps.
	ErrNoSteps = errors.New("skill: no steps")
	// ErrMaxStepsExceeded: MaxStepsGuard refused the skill.
	ErrMaxStepsExceeded = errors.New("skill: too many steps")
	// ErrToolNotAllowed: AllowedToolIDsGuard refused a tool.
	ErrToolNotAllowed = errors.New("skill: tool not allowed")
	// ErrInvalid: the skill cannot be planned as it is declared.
	ErrInvalid = errors.New("skill: invalid skill")
	// ErrDuplicateStep: two steps have the same ID.
	ErrDuplicateStep = errors.New("skill: duplicate step")
	// ErrNilRunner: neither Execute nor the planner was given a runner.
	ErrNilRunner = errors.New("skill: the runner is nil")
	// ErrNilPlan: Execute was given no plan.
	ErrNilPlan = errors.New("skill: the plan is nil")
	// ErrInvalidInputs: the inputs of a run do not satisfy the skill's schema.
	ErrInvalidInputs = errors.New("skill: invalid inputs")
)

// Skill is a workflow: what it is for, what it takes, and its steps.
type Skill struct {
	// Name names the skill, in the form of a tool's name.
	Name string
	// Description says what the skill does, for whoever chooses among skills.
	Description string
	// Instructions is a text for a model that carries the work out itself, as
	// the body of a SKILL.md. It may be empty.
	Instructions string
	// Inputs is the JSON Schema of the object that a run is given. Empty means
	// that a run takes nothing.
	Inputs json.RawMessage
	// Output is what a run gives: a JSON value with expressions in its strings.
	// Nil means the result of the last step.
	Output any
	// Tags are free labels.
	Tags []string
	// Uses names tools that the instructions speak of beside those of the
	// steps.
	Uses []string
	// Steps is what a run does. Their order here does not matter.
	Steps []Step
}

// Step is one call of a tool.
type Step struct {
	// ID names the step within the skill, and its result in expressions.
	ID string
	// ToolID is the name of the tool.
	ToolID string
	// Inputs are the tool's arguments: JSON values with expressions in their
	// strings.
	Inputs map[string]any
	// Needs names the steps that must run before this one.
	Needs []string
}

// Tools returns the names of all tools that the skill needs, sorted.
func (s Skill) Tools() []string {
	names := slices.Clone(s.Uses)
	for _, step := range s.Steps {
		names = append(names, step.ToolID)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// invalid states a fault of a skill.
func invalid(s *Skill, format string, args ...any) error {
	return fmt.Errorf("%w %q: %s", ErrInvalid, s.Name, fmt.Sprintf(format, args...))
}

// check looks at the skill alone, without its expressions.
func (s *Skill) check() error {
	if err := tools.CheckName(s.Name); err != nil {
		return invalid(s, "%v", err)
	}
	if len(s.Steps) == 0 {
		return fmt.Errorf("%w: %q", ErrNoSteps, s.Name)
	}
	seen := map[string]bool{}
	for i, step := range s.Steps {
		switch {
		case strings.TrimSpace(step.ID) == "":
			return invalid(s, "step %d has no ID", i+1)
		case step.ToolID == "":
			return invalid(s, "step %q names no tool", step.ID)
		case seen[step.ID]:
			return fmt.Errorf("%w %q of %q", ErrDuplicateStep, step.ID, s.Name)
		}
		seen[step.ID] = true
	}
	for _, step := range s.Steps {
		for _, need := range step.Needs {
			if !seen[need] {
				return invalid(s, "step %q needs %q; expected one of %s", step.ID, need, strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
			}
		}
	}
	return nil
}

// emptyInputs is the schema of a skill that takes nothing.
const emptyInputs = `{"type":"object","properties":{},"additionalProperties":false}`

// inputs compiles the schema of the skill's inputs.
func (s *Skill) inputs() (json.RawMessage, *schema.Schema, error) {
	raw := s.Inputs
	if len(raw) == 0 {
		raw = json.RawMessage(emptyInputs)
	}
	compiled, err := schema.Compile(raw, nil)
	if err != nil {
		return nil, nil, invalid(s, "its inputs: %v", err)
	}
	return raw, compiled, nil
}

// clone returns a copy that shares nothing with s that can be changed.
func (s Skill) clone() (Skill, error) {
	s.Inputs, s.Tags, s.Uses = slices.Clone(s.Inputs), slices.Clone(s.Tags), slices.Clone(s.Uses)
	output, err := expr.ValueOf(s.Output)
	if err != nil {
		return s, invalid(&s, "its output: %v", err)
	}
	s.Output = output
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		step := &s.Steps[i]
		step.Needs = slices.Clone(step.Needs)
		inputs, err := expr.ValueOf(step.Inputs)
		if err != nil {
			return s, invalid(&s, "step %q: its inputs: %v", step.ID, err)
		}
		step.Inputs, _ = inputs.(map[string]any)
	}
	return s, nil
}
