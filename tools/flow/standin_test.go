package flow_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// A run whose process ended, or that failed, while a node ran in the place of
// another does not run either again if one of them may have had its effect.
func TestResumeKnowsOfBothNodesOfAFallback(t *testing.T) {
	for name, tc := range map[string]struct {
		first, spare string
		died         bool // the process ended while the spare ran
		resumes      bool
	}{
		"the spare had begun":               {"read.down", "write.down", true, false},
		"the first is not known":            {"write.lost", "read.down", false, false},
		"the first is not known, it died":   {"write.lost", "read.down", true, false},
		"neither has effects":               {"read.down", "read.down", false, true},
		"neither has effects, it died":      {"read.down", "read.down", true, true},
		"both said that nothing came of it": {"write.down", "write.down", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := allowed(t.Context())
			cat := tools.NewCatalog().(tools.LiveCatalog)
			calls := 0
			for tool, effect := range map[string]tools.SideEffect{"read.down": tools.SideEffectRead, "write.down": tools.SideEffectWrite, "write.lost": tools.SideEffectWrite} {
				err := inproc.RegisterFunc(cat, tool, func(context.Context, struct{}) (sum, error) {
					calls++
					if tool == "write.lost" {
						return sum{}, &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.DeliveryUnknown, OutcomeUnknown: true, Message: "no answer"}
					}
					return sum{}, errBroken
				}, tools.WithSideEffect(effect), tools.WithPolicy(tools.ToolPolicy{MaxRetries: -1}))
				if err != nil {
					t.Fatal(err)
				}
			}
			kept := &dying{Log: flow.NewLog(nil), died: tc.died}
			f, err := flow.ComposeFor(ctx, flow.Definition{Name: "f", Entry: "a", Exit: "a", Nodes: []flow.Node{
				{ID: "a", Tool: tc.first, OnError: flow.OnError{Do: flow.Fallback, Node: "b"}},
				{ID: "b", Tool: tc.spare},
			}}, &flow.Options{Runner: exec.NewRunner(cat), Recorder: kept})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Run(ctx, nil); err == nil {
				t.Fatal("the run came to its end")
			}
			before := calls
			_, err = f.Resume(ctx, kept.begun.ID)
			if again := calls > before; again != tc.resumes || errors.Is(err, tools.ErrOutcomeUnknown) == tc.resumes {
				t.Errorf("called again: %t, %v; records %+v", again, err, kept.nodes)
			}
		})
	}
}

// A process that ended between an undoing and what is noted of it does not leave a
// node that passes for done.
func TestResumeKnowsOfWhatWasUndone(t *testing.T) {
	ctx := allowed(t.Context())
	var done []string
	step := func(name string, fails bool) *flow.Function {
		return flow.Func(func(context.Context, struct{}) (sum, error) {
			done = append(done, name)
			if fails {
				return sum{}, errBroken
			}
			return sum{}, nil
		})
	}
	kept := &dying{Log: flow.NewLog(nil)}
	f, err := flow.ComposeFor(ctx, flow.Definition{Name: "f", Entry: "a", Exit: "b", Nodes: []flow.Node{
		{ID: "a", Func: step("a", false), Undo: "u", Next: []flow.Edge{{To: "b"}}},
		{ID: "b", Func: step("b", true), OnError: flow.OnError{Do: flow.Compensate}},
		{ID: "u", Func: step("u", false)},
	}}, &flow.Options{Recorder: kept})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(ctx, nil); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	all := kept.nodes
	for cut := range all {
		if all[cut].Node != "u" && all[cut].Status != flow.Undone {
			continue
		}
		kept.nodes, done = slices.Clone(all[:cut+1]), nil
		_, err := f.Resume(ctx, kept.begun.ID)
		if again := slices.Contains(done, "a"); !again && !errors.Is(err, tools.ErrOutcomeUnknown) {
			t.Errorf("after the record %+v: ran %v, %v", all[cut], done, err)
		}
	}
}

// dying is a log that gives a run as it was recorded up to some point.
type dying struct {
	*flow.Log
	died  bool // before a node that stands in for another said what became of it
	begun flow.Run
	times int64 // that a run began
	nodes []flow.NodeRecord
}

func (e *dying) Begin(ctx context.Context, r flow.Run) error {
	e.begun = r
	e.times++
	return e.Log.Begin(ctx, r)
}

func (e *dying) Node(ctx context.Context, id string, n flow.NodeRecord) error {
	if !e.died || n.Ran == n.Node || n.Status == flow.Started {
		e.nodes = append(e.nodes, n)
	}
	return e.Log.Node(ctx, id, n)
}

func (e *dying) Load(context.Context, string) (flow.Run, []flow.NodeRecord, error) {
	run, last := e.begun, map[string]flow.NodeRecord{}
	run.Version = e.times
	for _, n := range e.nodes {
		last[n.Node] = n
	}
	var nodes []flow.NodeRecord
	for _, n := range last {
		nodes = append(nodes, n)
	}
	return run, nodes, nil
}
