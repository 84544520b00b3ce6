package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/internal/nearest"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/view"
)

// FlowRuns returns the runs of flows. Whose they are is on the context of each
// call; see LocalContext.
func (g *Gateway) FlowRuns() flow.Runs { return g.runs }

// apiComposed shows skills and flows to callers of the JSON protocol.
type apiComposed struct{ g *Gateway }

var _ api.Composed = apiComposed{}

// Skills implements api.Composed.
func (a apiComposed) Skills(ctx context.Context) []api.Composition {
	return a.list(ctx, func(c *composition) bool { return c.skill != nil })
}

// Flows implements api.Composed.
func (a apiComposed) Flows(ctx context.Context) []api.Composition {
	return a.list(ctx, func(c *composition) bool { return c.flow != nil })
}

// list shows those of the compositions that the caller on ctx may know of: who
// operates the gateway is told of those that cannot run as well, and why.
func (a apiComposed) list(ctx context.Context, which func(*composition) bool) []api.Composition {
	c := a.g.composer()
	if c == nil {
		return nil
	}
	v, operator, reasons := view.From(ctx, a.g.cat), operates(ctx), a.g.refusals()
	var list []api.Composition
	for i := range c.list {
		one := &c.list[i]
		if !which(one) {
			continue
		}
		row := one.row()
		switch t := v.Ref(one.name()); {
		case !one.runs():
			row.State = api.CompositionText
			if !operator && !builtin.Permits(v, &builtin.Skill{Tools: row.Tools}) {
				continue
			}
		case t != nil && t.Source == composedName:
			row.State = api.CompositionReady
		case operator && reasons[one.name()] != "":
			row.State, row.Reason = api.CompositionUnavailable, reasons[one.name()]
		default:
			continue
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b api.Composition) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// refusals says of the compositions that cannot run why that is.
func (g *Gateway) refusals() map[string]string {
	reasons := map[string]string{}
	for _, s := range g.running() {
		if s.spec.kind != kindComposed {
			continue
		}
		for _, r := range s.status().Refused {
			reasons[r.Name] = r.Reason
		}
	}
	return reasons
}

func (c *composition) row() api.Composition {
	if s := c.skill; s != nil {
		return api.Composition{Name: s.Name, Description: s.Description, Tags: listOf(s.Tags), Tools: listOf(s.Tools()), Steps: len(s.Steps)}
	}
	var names []string
	for _, p := range c.parts() {
		names = append(names, p.tool)
	}
	slices.Sort(names)
	return api.Composition{Name: c.flow.Name, Description: c.flow.Description, Tags: listOf(c.flow.Tags),
		Tools: listOf(slices.Compact(names)), Steps: len(c.flow.Nodes)}
}

// listOf is a list that is [] in JSON when there is nothing in it.
func listOf(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// ready returns a composition that the caller on ctx can call.
func (a apiComposed) ready(ctx context.Context, name, kind string) (built, error) {
	v := view.From(ctx, a.g.cat)
	if c := a.g.composer(); c != nil {
		if t := v.Ref(name); t != nil && t.Source == composedName {
			if b, ok := c.made(name); ok && (kind == kindFlow) == (b.flow != nil) {
				return b, nil
			}
		}
	}
	message := fmt.Sprintf("there is no %s %q", kind, clip(name))
	var known []string
	for t := range v.All() {
		if t.Source == composedName && t.Category == kind {
			known = append(known, t.Name)
		}
	}
	if near, ok := nearest.Word(name, known); ok {
		message += fmt.Sprintf(", did you mean %q?", near)
	}
	return built{}, &api.Error{Code: api.CodeToolNotFound, Message: message, Class: tools.ErrClassPermanent}
}

// What skills and flows are called, which is the category of their tools too.
const (
	kindSkill = "skill"
	kindFlow  = "flow"
)

// Plan implements api.Composed.
func (a apiComposed) Plan(ctx context.Context, req api.PlanRequest) (*api.PlanResponse, error) {
	b, err := a.ready(ctx, req.Name, kindSkill)
	if err != nil {
		return nil, err
	}
	plan := b.plan
	if len(req.Arguments) > 0 {
		if plan, err = plan.With(req.Arguments); err != nil {
			return nil, &api.Error{Code: api.CodeInvalidArguments, Message: err.Error(), Class: tools.ErrClassPermanent}
		}
	}
	return planned(ctx, plan)
}

func planned(ctx context.Context, plan *skill.Plan) (*api.PlanResponse, error) {
	steps, err := plan.Steps(ctx)
	if err != nil {
		return nil, api.ErrorFrom(err)
	}
	s := plan.Skill()
	out := &api.PlanResponse{Name: s.Name, Steps: []api.PlannedStep{}}
	for _, step := range steps {
		out.Steps = append(out.Steps, api.PlannedStep(step))
	}
	if s.Output != nil {
		enc, err := json.Marshal(s.Output)
		if err != nil {
			return nil, api.ErrorFrom(err)
		}
		out.Output = rawjson.UnescapeHTML(enc)
	}
	return out, nil
}

// Graph implements api.Composed.
func (a apiComposed) Graph(ctx context.Context, name string) (*api.Graph, error) {
	b, err := a.ready(ctx, name, kindFlow)
	if err != nil {
		return nil, err
	}
	return &api.Graph{Name: name, Mermaid: b.flow.Mermaid()}, nil
}

// Runs implements api.Composed.
func (a apiComposed) Runs(ctx context.Context) ([]api.FlowRun, error) {
	list, err := a.g.runs.List(ctx)
	if err != nil {
		return nil, runError(err)
	}
	out := make([]api.FlowRun, 0, len(list))
	for i := range list {
		if a.shows(ctx, &list[i]) {
			out = append(out, shownRun(&list[i]))
		}
	}
	return out, nil
}

// shows reports whether the caller on ctx is shown a run of its own: in a toolset
// only those of the flows that it sees there.
func (a apiComposed) shows(ctx context.Context, s *flow.RunState) bool {
	filter := tools.FilterFrom(ctx)
	return filter.PartClass() == "" || a.g.cat.Snapshot().Visible(filter).Has(s.Flow)
}

// run returns a run that the caller on ctx is shown.
func (a apiComposed) run(ctx context.Context, id string) (flow.RunState, error) {
	state, err := a.g.runs.Get(ctx, id)
	if err == nil && !a.shows(ctx, &state) {
		err = fmt.Errorf("%w: %q", flow.ErrRunNotFound, id)
	}
	return state, err
}

// Run implements api.Composed.
func (a apiComposed) Run(ctx context.Context, id string) (*api.FlowRun, error) {
	state, err := a.run(ctx, id)
	if err != nil {
		return nil, runError(err)
	}
	run := shownRun(&state)
	return &run, nil
}

func shownRun(s *flow.RunState) api.FlowRun {
	out := api.FlowRun{ID: s.ID, Flow: s.Flow, Parent: s.Parent, Status: string(s.Status), Began: s.Began, Error: s.Error, Inputs: s.Inputs}
	if !s.Ended.IsZero() {
		ended := s.Ended
		out.Ended = &ended
	}
	for _, n := range s.Nodes {
		row := api.FlowNode{Node: n.Node, Status: string(n.Status), Value: n.Value, Error: n.Error, OutcomeUnknown: n.Unknown, Attempts: n.Attempts, At: n.At}
		if n.Ran != n.Node {
			row.Ran = n.Ran
		}
		out.Nodes = append(out.Nodes, row)
	}
	return out
}

// Cancel implements api.Composed.
func (a apiComposed) Cancel(ctx context.Context, id string) error {
	_, err := a.run(ctx, id)
	if err == nil {
		err = a.g.runs.Cancel(ctx, id)
	}
	if err != nil {
		return runError(err)
	}
	return nil
}

// Resuming implements api.Composed. Whether the run can go on is looked at here, so
// that who asks is told as such, and again when it does.
func (a apiComposed) Resuming(ctx context.Context, name, id string) (context.Context, json.RawMessage, error) {
	if _, err := a.run(ctx, id); err != nil {
		return nil, nil, runError(err)
	}
	run, _, err := a.g.runs.Load(ctx, id)
	if err != nil {
		return nil, nil, runError(err)
	}
	if name != run.Flow {
		return nil, nil, runError(fmt.Errorf("%w: %q is a run of %q", flow.ErrRunNotFound, clip(id), run.Flow))
	}
	b, err := a.ready(ctx, name, kindFlow)
	if err != nil {
		return nil, nil, err
	}
	if b.flow.Digest() != run.Digest {
		return nil, nil, runError(fmt.Errorf("%w: %q has changed since it began", flow.ErrNotResumable, name))
	}
	return flow.Resuming(ctx, id), run.Inputs, nil
}

// runError states what is wrong with a run in the words of the protocol.
func runError(err error) *api.Error {
	e := *api.ErrorFrom(err)
	switch {
	case errors.Is(err, flow.ErrRunNotFound):
		e = api.Error{Code: api.CodeRunNotFound, Message: err.Error()}
	case errors.Is(err, flow.ErrNotResumable):
		e = api.Error{Code: api.CodeNotResumable, Message: err.Error()}
	}
	e.Class = cmp.Or(e.Class, tools.ErrClassPermanent)
	return &e
}
