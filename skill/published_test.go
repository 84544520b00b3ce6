package skill_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/skill"
)

// The code of the published notes, completed with what surrounds it.
func TestPublishedExecution(t *testing.T) {
	ctx, executor, mySkill := t.Context(), catalog(t, nil), steps("2", "1")
	runner := exec.NewRunner(executor)
	planner := skill.NewPlanner(skill.PlannerOptions{Runner: runner})
	plan, err := planner.Plan(mySkill)
	if err != nil {
		t.Fatal(err)
	}
	results, err := skill.Execute(ctx, plan, runner)
	if err != nil || len(results) != 2 || results[0].StepID != "1" || results[1].StepID != "2" {
		t.Errorf("got %+v, %v", results, err)
	}
}

func TestPublishedErrors(t *testing.T) {
	for want, planner := range map[error]*skill.Planner{
		skill.ErrNoSteps:          skill.NewPlanner(skill.PlannerOptions{}),
		skill.ErrMaxStepsExceeded: skill.NewPlanner(skill.PlannerOptions{Guards: []skill.Guard{skill.MaxStepsGuard(1)}}),
		skill.ErrToolNotAllowed:   skill.NewPlanner(skill.PlannerOptions{Guards: []skill.Guard{skill.AllowedToolIDsGuard("other")}}),
	} {
		mySkill := steps("a", "b")
		if want == skill.ErrNoSteps {
			mySkill.Steps = nil
		}
		if plan, err := planner.Plan(mySkill); plan != nil || !errors.Is(err, want) {
			t.Errorf("got %v, %v, want %v", plan, err, want)
		}
	}
}

// countingGuard counts how often it is asked; it is safe for concurrent use, as a guard of a shared planner must be.
type countingGuard struct {
	mu    sync.Mutex
	asked map[string]int
}

func (g *countingGuard) Check(s skill.Skill) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked[s.Name]++
	return nil
}

// Thread safety: a planner plans, and a plan runs, for many at once; guards are shared and asked about copies.
func TestPlannersPlansAndGuardsAreShared(t *testing.T) {
	guard := &countingGuard{asked: map[string]int{}}
	planner := skill.NewPlanner(skill.PlannerOptions{Runner: exec.NewRunner(catalog(t, nil)), Guards: []skill.Guard{guard}})
	shared, err := planner.Plan(steps("1", "2"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			own := steps("b", "a")
			own.Name = fmt.Sprint("own", i)
			plan, err := planner.Plan(own)
			if err != nil {
				t.Error(err)
				return
			}
			for _, p := range []*skill.Plan{plan, shared} {
				if results, err := skill.Execute(t.Context(), p, nil); err != nil || len(results) != 2 {
					t.Errorf("got %+v, %v", results, err)
				}
			}
			own.Steps[0].ToolID = "changed" // which is not the plan's
			if got := plan.Skill().Steps[1].ToolID; got != "tracker.search" {
				t.Errorf("got %s", got)
			}
		})
	}
	wg.Wait()
	for i := range 32 {
		if n := guard.asked[fmt.Sprint("own", i)]; n != 2 {
			t.Errorf("the guard was asked %d times about a skill, want once for Plan and once for Execute", n)
		}
	}
	if n := guard.asked["s"]; n != 33 {
		t.Errorf("the guard was asked %d times about the shared plan", n)
	}
}

// No implicit parallelism: a step begins when the one before is over, also where nothing connects them.
func TestStepsRunOneAfterTheOther(t *testing.T) {
	running := 0
	plan, err := skill.NewPlanner(skill.PlannerOptions{}).Plan(steps("1", "2", "3", "4"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = skill.Execute(t.Context(), plan, runFunc(func() (any, error) {
		if running++; running != 1 {
			t.Error("two steps run at once")
		}
		running--
		return nil, nil
	}))
	if err != nil {
		t.Error(err)
	}
}

// Explicit runner adapter: whatever runs a named tool is a runner, and no catalog is needed.
func TestAnyRunnerWillDo(t *testing.T) {
	plan, err := skill.NewPlanner(skill.PlannerOptions{}).Plan(steps("1"))
	if err != nil {
		t.Fatal(err)
	}
	results, err := skill.Execute(t.Context(), plan, echoing{})
	if err != nil || fmt.Sprint(results[0].Value) != "map[inputs:map[q:1] tool:tracker.search]" {
		t.Errorf("got %+v, %v", results, err)
	}
}

// echoing is a runner that gives back what it was asked to run.
type echoing struct{}

func (echoing) Run(_ context.Context, toolID string, inputs map[string]any) (any, error) {
	return map[string]any{"tool": toolID, "inputs": inputs}, nil
}

// Binary policy: what a guard says is yes or no, and the first no counts.
func TestTheFirstGuardThatRefusesCounts(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	refuse := func(err error) skill.Guard { return skill.GuardFunc(func(skill.Skill) error { return err }) }
	_, err := skill.NewPlanner(skill.PlannerOptions{Guards: []skill.Guard{refuse(nil), refuse(first), refuse(second)}}).Plan(steps("a"))
	if !errors.Is(err, first) || errors.Is(err, second) {
		t.Errorf("got %v", err)
	}
}

// Deterministic ordering: whatever the order in which steps are declared, they run in the same.
func TestDeclaredOrderDoesNotMatter(t *testing.T) {
	for _, declared := range [][]string{{"1", "2", "10"}, {"10", "2", "1"}, {"2", "10", "1"}} {
		plan, err := skill.NewPlanner(skill.PlannerOptions{Runner: exec.NewRunner(catalog(t, nil))}).Plan(steps(declared...))
		if err != nil {
			t.Fatal(err)
		}
		results, err := skill.Execute(t.Context(), plan, nil)
		var ran []string
		for _, r := range results {
			ran = append(ran, r.StepID)
		}
		if err != nil || !slices.Equal(ran, []string{"1", "2", "10"}) {
			t.Errorf("%v ran as %v, %v", declared, ran, err)
		}
	}
}
