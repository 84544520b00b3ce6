package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/internal/yamldoc"
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
	// Document is what the skill was read from, for the places in errors. It is
	// nil for a skill that was made in Go.
	Document *Document
}

// Document is a YAML text and the name of its file.
type Document = yamldoc.Doc

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

// fault states what is wrong with the value at a path of a skill, and where that
// stands. What it says is one of the sentinels.
func (s *Skill) fault(path string, sentinel error, format string, args ...any) error {
	return fmt.Errorf("%w %q: %w", sentinel, s.Name, s.Document.Fault(path, fmt.Errorf(format, args...)))
}

// invalid is fault with ErrInvalid. An error among the arguments that knows its
// place inside the value makes the path longer by that.
func (s *Skill) invalid(path, format string, args ...any) error {
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			if inner, ok := errors.AsType[*expr.Misplaced](err); ok {
				path += inner.Path()
			}
		}
	}
	return s.fault(path, ErrInvalid, format, args...)
}

func stepPath(i int) string { return fmt.Sprintf("steps[%d]", i) }

// check looks at the skill alone, without its expressions.
func (s *Skill) check() error {
	if err := tools.CheckName(s.Name); err != nil {
		return s.invalid("name", "%w", err)
	}
	switch {
	case len(s.Steps) == 0:
		return s.fault("", ErrNoSteps, "a skill without steps can be read and not run")
	case len(s.Steps) > maxSteps:
		return s.invalid("steps", "there are %d steps; at most %d are allowed", len(s.Steps), maxSteps)
	}
	seen := map[string]int{}
	for i, step := range s.Steps {
		first, taken := seen[step.ID]
		switch {
		case strings.TrimSpace(step.ID) == "":
			return s.invalid(stepPath(i), "step %d has no ID", i+1)
		case step.ToolID == "":
			return s.invalid(stepPath(i), "step %q names no tool", step.ID)
		case taken:
			return s.fault(stepPath(i)+".id", ErrDuplicateStep, "%q is the ID of step %d too", step.ID, first+1)
		}
		seen[step.ID] = i
	}
	for i, step := range s.Steps {
		for n, need := range step.Needs {
			if _, known := seen[need]; !known {
				return s.invalid(fmt.Sprintf("%s.needs[%d]", stepPath(i), n), "step %q needs %q; expected one of %s", step.ID, need, some(seen))
			}
		}
	}
	return nil
}

// maxSteps bounds the steps of one skill.
const maxSteps = 10_000

// some names the first of the steps.
func some(ids map[string]int) string {
	const most = 20
	names := slices.Sorted(maps.Keys(ids))
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return strings.Join(names, ", ")
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
		return nil, nil, s.invalid("inputs", "its inputs: %w", err)
	}
	return raw, compiled, nil
}

// clone returns a copy that shares nothing with s that can be changed.
func (s Skill) clone() (Skill, error) {
	s.Inputs, s.Tags, s.Uses = slices.Clone(s.Inputs), slices.Clone(s.Tags), slices.Clone(s.Uses)
	output, err := expr.ValueOf(s.Output)
	if err != nil {
		return s, s.invalid("output", "its output: %w", err)
	}
	s.Output = output
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		step := &s.Steps[i]
		step.Needs = slices.Clone(step.Needs)
		inputs, err := expr.ValueOf(step.Inputs)
		if err != nil {
			return s, s.invalid(stepPath(i)+".inputs", "step %q: its inputs: %w", step.ID, err)
		}
		step.Inputs, _ = inputs.(map[string]any)
	}
	return s, nil
}
