package skill

import (
	"fmt"
	"slices"
)

// Guard refuses skills. Check has no effects, gives the same answer for the same
// skill, and is safe for concurrent use if the planner is shared. It must not
// change the skill.
type Guard interface {
	Check(s Skill) error
}

// GuardFunc is a function as a Guard. A nil one refuses every skill.
type GuardFunc func(s Skill) error

// Check implements Guard.
func (f GuardFunc) Check(s Skill) error {
	if f == nil {
		return s.invalid("", "a guard is nil")
	}
	return f(s)
}

// MaxStepsGuard refuses skills of more than n steps with ErrMaxStepsExceeded.
func MaxStepsGuard(n int) Guard {
	return GuardFunc(func(s Skill) error {
		if len(s.Steps) > n {
			return fmt.Errorf("%w: %q has %d steps and at most %d are allowed", ErrMaxStepsExceeded, s.Name, len(s.Steps), n)
		}
		return nil
	})
}

// AllowedToolIDsGuard refuses skills that use a tool which is not named, with
// ErrToolNotAllowed. With no names it refuses them all.
func AllowedToolIDsGuard(ids ...string) Guard {
	ids = slices.Clone(ids)
	return GuardFunc(func(s Skill) error {
		for _, step := range s.Steps {
			if !slices.Contains(ids, step.ToolID) {
				return fmt.Errorf("%w: step %q of %q uses %q", ErrToolNotAllowed, step.ID, s.Name, step.ToolID)
			}
		}
		return nil
	})
}
