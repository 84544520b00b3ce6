package skill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

type searchArgs struct {
	Q string `json:"q"`
}

type item struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type searchResult struct {
	Items []item `json:"items"`
}

type createArgs struct {
	Title string `json:"title"`
	Like  int64  `json:"like,omitempty"`
}

type createResult struct {
	Number int64  `json:"number"`
	Title  string `json:"title"`
}

var errNoLuck = errors.New("no luck")

// catalog has the tools that the tests compose. calls gets the names of those
// that ran.
func catalog(t testing.TB, calls *[]string) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	var mu sync.Mutex
	note := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if calls != nil {
			*calls = append(*calls, name)
		}
	}
	for _, err := range []error{
		inproc.RegisterFunc(cat, "tracker.search", func(_ context.Context, in searchArgs) (searchResult, error) {
			note("tracker.search")
			return searchResult{[]item{{9007199254740993, in.Q + " & more"}}}, nil
		}, tools.WithSideEffect(tools.SideEffectRead)),
		inproc.RegisterFunc(cat, "tracker.create", func(_ context.Context, in createArgs) (createResult, error) {
			note("tracker.create")
			return createResult{in.Like, in.Title}, nil
		}, tools.WithSideEffect(tools.SideEffectWrite), tools.WithAuthScopes("tracker:write")),
		inproc.RegisterFunc(cat, "tracker.fail", func(context.Context, struct{}) (createResult, error) {
			note("tracker.fail")
			return createResult{}, fmt.Errorf("failing: %w", errNoLuck)
		}, tools.WithPolicy(tools.ToolPolicy{MaxRetries: -1})),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return cat
}

func allowed(ctx context.Context) context.Context {
	return identity.With(ctx, identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"}, "tracker:write")
}

const triage = `
name: triage
description: File a report where similar ones are.
inputs: {type: object, properties: {title: {type: string}}, required: [title], additionalProperties: false}
steps:
  - {id: open, tool: tracker.create, needs: [find], inputs: {title: "${{ inputs.title }}", like: "${{ steps.find.items[0].id }}"}}
  - {id: find, tool: tracker.search, inputs: {q: "${{ inputs.title }}"}}
output: {number: "${{ steps.open.number }}", found: "${{ steps.find.items[0].name }}"}
`

func parse(t testing.TB, doc string) skill.Skill {
	t.Helper()
	s, err := skill.ParseYAML("s.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStepsReadInputsAndEarlierResults(t *testing.T) {
	ctx := allowed(t.Context())
	runner := exec.NewRunner(catalog(t, nil))
	plan, err := skill.NewPlanner(skill.PlannerOptions{Runner: runner}).PlanFor(ctx, parse(t, triage))
	if err != nil {
		t.Fatal(err)
	}
	plan, err = plan.With(json.RawMessage(`{"title":"Broken <b>"}`))
	if err != nil {
		t.Fatal(err)
	}
	out, results, err := skill.Run(ctx, plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"number": json.Number("9007199254740993"), "found": "Broken <b> & more"}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	if len(results) != 2 || results[0].StepID != "find" || results[1].StepID != "open" {
		t.Errorf("got %+v", results)
	}
}

func TestSkillIsATool(t *testing.T) {
	ctx := allowed(t.Context())
	cat := catalog(t, nil)
	plan, err := skill.NewPlanner(skill.PlannerOptions{Runner: exec.NewRunner(cat)}).PlanFor(ctx, parse(t, triage))
	if err != nil {
		t.Fatal(err)
	}
	d, err := plan.Tool(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Register(d); err != nil {
		t.Fatal(err)
	}
	result, err := tools.Invoke(ctx, cat, "triage", json.RawMessage(`{"title":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := result.JSON(); string(raw) != `{"found":"x & more","number":9007199254740993}` {
		t.Errorf("got %s", raw)
	}
	tool, _ := tools.NewPlannerView(cat, tools.FilterFrom(ctx)).Resolve("triage")
	if tool.SideEffects != tools.SideEffectWrite || !slices.Equal(tool.AuthScopes, []string{"tracker:write"}) {
		t.Errorf("got %v, %v", tool.SideEffects, tool.AuthScopes)
	}
	if _, err := tools.Invoke(ctx, cat, "triage", json.RawMessage(`{"titel":"x"}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("got %v", err)
	}
	if _, err := tools.Invoke(t.Context(), cat, "triage", json.RawMessage(`{"title":"x"}`)); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("a caller without the scope of one step: got %v", err)
	}
}

func steps(ids ...string) skill.Skill {
	s := skill.Skill{Name: "s"}
	for _, id := range ids {
		s.Steps = append(s.Steps, skill.Step{ID: id, ToolID: "tracker.search", Inputs: map[string]any{"q": id}})
	}
	return s
}

func TestOrderIsNatural(t *testing.T) {
	plan, err := skill.NewPlanner(skill.PlannerOptions{}).Plan(steps("step10", "2", "step2", "b", "01", "1", "10"))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, step := range plan.Skill().Steps {
		ids = append(ids, step.ID)
	}
	if want := []string{"01", "1", "2", "10", "b", "step2", "step10"}; !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
}

func TestPlanRefuses(t *testing.T) {
	none := skill.PlannerOptions{}
	needs := func(s skill.Skill, needs ...string) skill.Skill { s.Steps[0].Needs = needs; return s }
	for name, tc := range map[string]struct {
		opts skill.PlannerOptions
		s    skill.Skill
		is   error
		text string
	}{
		"no steps":       {none, skill.Skill{Name: "s"}, skill.ErrNoSteps, ``},
		"no name":        {none, skill.Skill{Steps: steps("a").Steps}, skill.ErrInvalid, ``},
		"no tool":        {none, skill.Skill{Name: "s", Steps: []skill.Step{{ID: "a"}}}, skill.ErrInvalid, `step "a" names no tool`},
		"no id":          {none, steps(" "), skill.ErrInvalid, `step 1 has no ID`},
		"two of one id":  {none, steps("a", "a"), skill.ErrDuplicateStep, `"s": steps[1].id: "a" is the ID of step 1 too`},
		"unknown need":   {none, needs(steps("a", "b"), "c"), skill.ErrInvalid, `step "a" needs "c"; expected one of a, b`},
		"circle":         {none, needs(steps("a", "b"), "a"), skill.ErrInvalid, `a → a`},
		"too many":       {skill.PlannerOptions{Guards: []skill.Guard{skill.MaxStepsGuard(1)}}, steps("a", "b"), skill.ErrMaxStepsExceeded, `has 2 steps and at most 1`},
		"not allowed":    {skill.PlannerOptions{Guards: []skill.Guard{skill.AllowedToolIDsGuard("other")}}, steps("a"), skill.ErrToolNotAllowed, `uses "tracker.search"`},
		"none allowed":   {skill.PlannerOptions{Guards: []skill.Guard{skill.AllowedToolIDsGuard()}}, steps("a"), skill.ErrToolNotAllowed, ``},
		"nil guard":      {skill.PlannerOptions{Guards: []skill.Guard{nil}}, steps("a"), skill.ErrInvalid, `a guard is nil`},
		"nil guard func": {skill.PlannerOptions{Guards: []skill.Guard{skill.GuardFunc(nil)}}, steps("a"), skill.ErrInvalid, `a guard is nil`},
		"later result": {none, parse(t, "name: s\nsteps:\n  - {id: a, tool: x, inputs: {v: '${{ steps.b }}'}}\n  - {id: b, tool: x}"), skill.ErrInvalid,
			`s.yaml:3:34: steps[0].inputs.v: step "a": expr: /v: 1:6: steps.b cannot be read`},
		"unknown input": {none, parse(t, "name: s\nsteps:\n  - {id: a, tool: x, inputs: {v: '${{ inputs.b }}'}}"), skill.ErrInvalid, `there is no "b"`},
		"unknown tool":  {skill.PlannerOptions{Runner: exec.NewRunner(catalog(t, nil))}, skill.Skill{Name: "s", Steps: []skill.Step{{ID: "a", ToolID: "nosuch"}}}, tools.ErrToolNotFound, `"s": steps[0].tool: step "a" uses "nosuch"`},
		"wrong type": {skill.PlannerOptions{Runner: exec.NewRunner(catalog(t, nil))}, skill.Skill{Name: "s", Steps: []skill.Step{{ID: "a", ToolID: "tracker.search", Inputs: map[string]any{"q": 1}}}},
			skill.ErrInvalid, `step "a": the inputs of "tracker.search": /q: expected string, got number`},
		"bad inputs schema": {none, skill.Skill{Name: "s", Inputs: json.RawMessage(`{"type":1}`), Steps: steps("a").Steps}, skill.ErrInvalid, `its inputs`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := skill.NewPlanner(tc.opts).Plan(tc.s)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v, want %v with %q", err, tc.is, tc.text)
			}
		})
	}
}

func TestExecuteStopsAtTheFirstFailure(t *testing.T) {
	var calls []string
	runner := exec.NewRunner(catalog(t, &calls))
	s := steps("1", "2", "3")
	s.Steps[1].ToolID, s.Steps[1].Inputs = "tracker.fail", nil
	plan, err := skill.NewPlanner(skill.PlannerOptions{Runner: runner}).Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	results, err := skill.Execute(t.Context(), plan, nil)
	var failed *skill.StepError
	if !errors.As(err, &failed) || failed.StepID != "2" || failed.ToolID != "tracker.fail" || !errors.Is(err, errNoLuck) {
		t.Errorf("got %v", err)
	}
	if len(results) != 2 || results[0].Err != nil || results[1].Err == nil || results[1].StepID != "2" {
		t.Errorf("got %+v", results)
	}
	if !slices.Equal(calls, []string{"tracker.search", "tracker.fail"}) {
		t.Errorf("got %v", calls)
	}
}

func TestExecuteLooksAtTheContextBetweenSteps(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	plan, err := skill.NewPlanner(skill.PlannerOptions{}).Plan(steps("1", "2"))
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	results, err := skill.Execute(ctx, plan, runFunc(func() (any, error) { runs++; cancel(why); return 1, nil }))
	if !errors.Is(err, why) || runs != 1 || len(results) != 2 {
		t.Errorf("got %v after %d runs, %+v", err, runs, results)
	}
}

type runFunc func() (any, error)

func (f runFunc) Run(context.Context, string, map[string]any) (any, error) { return f() }

func TestExecuteAsksGuardsAgain(t *testing.T) {
	ask, no := 0, errors.New("not any more")
	guard := skill.GuardFunc(func(s skill.Skill) error {
		s.Steps[0].ToolID = "changed" // a guard's copy is its own
		if ask++; ask > 1 {
			return no
		}
		return nil
	})
	plan, err := skill.NewPlanner(skill.PlannerOptions{Guards: []skill.Guard{guard}}).Plan(steps("a"))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Skill().Steps[0].ToolID != "tracker.search" {
		t.Error("the guard changed the plan")
	}
	if _, err := skill.Execute(t.Context(), plan, runFunc(nil)); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
}

func TestExecuteRefuses(t *testing.T) {
	if _, err := skill.Execute(t.Context(), nil, nil); !errors.Is(err, skill.ErrNilPlan) {
		t.Errorf("got %v", err)
	}
	plan, err := skill.NewPlanner(skill.PlannerOptions{}).Plan(steps("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := skill.Execute(t.Context(), plan, nil); !errors.Is(err, skill.ErrNilRunner) {
		t.Errorf("got %v", err)
	}
	plan, err = skill.NewPlanner(skill.PlannerOptions{Runner: runFunc(nil)}).Plan(parse(t, triage))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := skill.Execute(t.Context(), plan, nil); !errors.Is(err, skill.ErrInvalidInputs) {
		t.Errorf("got %v", err)
	}
	if _, err := plan.With(json.RawMessage(`{"title":7}`)); !errors.Is(err, skill.ErrInvalidInputs) || !strings.Contains(err.Error(), "/title") {
		t.Errorf("got %v", err)
	}
}

func TestPlanDoesNotChangeWithTheSkill(t *testing.T) {
	s := steps("a")
	plan, err := skill.NewPlanner(skill.PlannerOptions{}).Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	s.Steps[0].Inputs["q"] = "changed"
	plan.Skill().Steps[0].Inputs["q"] = "changed"
	if got := plan.Skill().Steps[0].Inputs["q"]; got != "a" {
		t.Errorf("got %v", got)
	}
}

// A plan is the same whatever order the steps were declared in, and is run by
// many at once without mixing.
func TestPlansAreDeterministicAndShared(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c0-9]{1,4}`), 1, 12, rapid.ID[string]).Draw(rt, "ids")
		again := rapid.Permutation(ids).Draw(rt, "again")
		planner := skill.NewPlanner(skill.PlannerOptions{})
		one, err := planner.Plan(steps(ids...))
		if err != nil {
			rt.Fatal(err)
		}
		two, err := planner.Plan(steps(again...))
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(one.Skill(), two.Skill()); diff != "" {
			rt.Fatal(diff)
		}
	})
	ctx := allowed(t.Context())
	plan, err := skill.NewPlanner(skill.PlannerOptions{Runner: exec.NewRunner(catalog(t, nil))}).PlanFor(ctx, parse(t, triage))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			title := fmt.Sprint("report ", i)
			with, err := plan.With(json.RawMessage(`{"title":"` + title + `"}`))
			if err != nil {
				t.Error(err)
				return
			}
			out, _, err := skill.Run(ctx, with, nil)
			if err != nil || out.(map[string]any)["found"] != title+" & more" {
				t.Errorf("got %v, %v", out, err)
			}
		})
	}
	wg.Wait()
}

func TestLoad(t *testing.T) {
	folder := fstest.MapFS{
		"triage.yaml":     {Data: []byte(triage)},
		"notes.txt":       {Data: []byte("not a skill")},
		"review/SKILL.md": {Data: []byte("---\r\nname: review\r\ndescription: Review a change.\r\nlicense: MIT\r\nallowed-tools: tracker.search, tracker.create\r\n---\r\n# Review\r\n\r\nRead it twice.\r\n")},
	}
	got, err := skill.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Name != "review" || got[1].Name != "triage" {
		t.Fatalf("got %+v", got)
	}
	if got[0].Instructions != "# Review\n\nRead it twice." || !slices.Equal(got[0].Tools(), []string{"tracker.create", "tracker.search"}) {
		t.Errorf("got %+v", got[0])
	}
	folder["again.yml"] = &fstest.MapFile{Data: []byte("name: review\nsteps: [{id: a, tool: b}]")}
	if _, err := skill.Load(folder); !errors.Is(err, skill.ErrInvalid) || !strings.Contains(err.Error(), "review/SKILL.md:2:7: name: the name \"review\" is that of again.yml too") {
		t.Errorf("got %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"name: s\nstep: []":             `s.yaml:2:1: unknown field "step"`,
		"name: [s]":                     `s.yaml:1:`,
		"steps: []":                     `s.yaml:1:1: it has no name`,
		"name: s\nsteps:\n  - {tol: x}": `s.yaml:3:6: unknown field "tol"`,
	} {
		if _, err := skill.ParseYAML("s.yaml", []byte(doc)); !errors.Is(err, skill.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", doc, err, want)
		}
	}
	for doc, want := range map[string]string{
		"name: s":                                  `SKILL.md:1:1: expected a line of "---"`,
		"---\nname: s\n":                           `no line of "---" that closes it`,
		"---\nname: [\n---\nx":                     `SKILL.md:`,
		"---\ndescription: d\n---":                 `it has no name`,
		"---\nname: s\nallowed-tools: {a: b}\n---": `allowed-tools: expected a list of names`,
	} {
		if _, err := skill.ParseMarkdown("SKILL.md", []byte(doc)); !errors.Is(err, skill.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", doc, err, want)
		}
	}
}

func FuzzParseMarkdown(f *testing.F) {
	f.Add([]byte("---\nname: s\nsteps: [{id: a, tool: t, inputs: {x: '${{ inputs.y }}'}}]\n---\nbody"))
	f.Fuzz(func(_ *testing.T, doc []byte) {
		s, err := skill.ParseMarkdown("SKILL.md", doc)
		if err == nil {
			_, _ = skill.NewPlanner(skill.PlannerOptions{}).Plan(s)
		}
	})
}

func TestInputsAreAnObject(t *testing.T) {
	for inputs, ok := range map[string]bool{`{"type":"string"}`: false, `{"type":["array","null"]}`: false, `{"type":["object","null"]}`: true, `{}`: true} {
		_, err := skill.NewPlanner(skill.PlannerOptions{}).Plan(skill.Skill{Name: "a", Inputs: []byte(inputs), Steps: []skill.Step{{ID: "1", ToolID: "x"}}})
		if (err == nil) != ok || err != nil && !errors.Is(err, skill.ErrInvalid) {
			t.Errorf("%s: got %v", inputs, err)
		}
	}
}
