package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// only returns the caller's only run.
func only(t testing.TB, runs flow.Runs, ctx context.Context) flow.RunState {
	t.Helper()
	list, err := runs.List(ctx)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %+v, %v", list, err)
	}
	return list[0]
}

func TestRunsAreKeptAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr tracker
		kept := flow.NewLog(nil)
		def, err := flow.ParseYAML("f.yaml", []byte(one(`{id: a, tool: wait.for}`)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := flow.Compose(def, &flow.Options{Runner: exec.NewRunner(catalog(t, &tr)), Recorder: kept})
		if err != nil {
			t.Fatal(err)
		}
		mine := allowed(t.Context())
		other := identity.With(t.Context(), identity.Identity{TenantID: "t", UserID: "other", SessionID: "s"})
		ended := make(chan error)
		go func() { _, err := f.Run(mine, nil); ended <- err }()
		synctest.Wait()
		id := only(t, kept, mine).ID
		if state, err := kept.Get(mine, id); err != nil || state.Flow != "f" || state.Status != flow.RunRunning ||
			len(state.Nodes) != 1 || state.Nodes[0].Status != flow.Started || !state.Ended.IsZero() {
			t.Fatalf("got %+v, %v", state, err)
		}
		if list, err := kept.List(other); len(list) != 0 || err != nil || !errors.Is(kept.Cancel(other, id), flow.ErrRunNotFound) {
			t.Error("another user reached the run")
		}
		if _, err := kept.Get(other, id); !errors.Is(err, flow.ErrRunNotFound) {
			t.Errorf("got %v", err)
		}
		if err := kept.Cancel(mine, id); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, flow.ErrCanceled) {
			t.Errorf("got %v", err)
		}
		if state, err := kept.Get(mine, id); err != nil || state.Ended.IsZero() || state.Status != flow.RunCanceled || !strings.Contains(state.Error, "cancelled") {
			t.Errorf("got %+v, %v", state, err)
		}
	})
}

func TestResumeDoesNotRepeatWhatIsDone(t *testing.T) {
	ctx := allowed(t.Context())
	var tr tracker
	kept, broken := flow.NewLog(nil), true
	def := flow.Definition{Name: "f", Entry: "a", Exit: "b", Nodes: []flow.Node{
		{ID: "a", Tool: "math.add", Inputs: map[string]any{"a": 1}, Next: []flow.Edge{{To: "b"}}},
		{ID: "b", Inputs: map[string]any{"a": "${{ nodes.a.sum }}"}, Func: flow.Func(func(_ context.Context, in numbers) (sum, error) {
			if broken {
				return sum{}, errBroken
			}
			return sum{in.A + 41}, nil
		})},
	}}
	f, err := flow.ComposeFor(ctx, def, &flow.Options{Runner: exec.NewRunner(catalog(t, &tr)), Recorder: kept})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Run(ctx, nil); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	broken = false
	out, err := f.Resume(ctx, only(t, kept, ctx).ID)
	if diff := cmp.Diff(map[string]any{"sum": json.Number("42")}, out); err != nil || diff != "" {
		t.Errorf("got %v, %v", out, err)
	}
	if len(tr.calls) != 1 {
		t.Errorf("got %v", tr.calls)
	}
	if _, err := f.Resume(ctx, "nosuch"); !errors.Is(err, flow.ErrRunNotFound) {
		t.Errorf("got %v", err)
	}
}

// crashed is a log of a process that ended while node a of a flow ran: what it was
// told of the run's end is lost.
type crashed struct {
	*flow.Log
	begun *flow.Run
	node  flow.NodeRecord
}

func (c crashed) Begin(ctx context.Context, r flow.Run) error {
	*c.begun = r
	return c.Log.Begin(ctx, r)
}

func (c crashed) Load(context.Context, string) (flow.Run, []flow.NodeRecord, error) {
	run := *c.begun
	run.Version = 1
	return run, []flow.NodeRecord{c.node}, nil
}

func TestResumeRepeatsNothingWhoseOutcomeIsUnknown(t *testing.T) {
	ctx := allowed(t.Context())
	started := flow.NodeRecord{Node: "a", Ran: "a", Status: flow.Started}
	for name, tc := range map[string]struct {
		node   string
		record flow.NodeRecord
		want   error
	}{
		"pure":                {`{id: a, tool: math.add, inputs: {a: 1}}`, started, nil},
		"unclassified":        {`{id: a, tool: math.fail, inputs: {a: 1}}`, started, tools.ErrOutcomeUnknown},
		"failed before":       {`{id: a, tool: math.fail, inputs: {a: 1}}`, flow.NodeRecord{Node: "a", Status: flow.Failed, Error: "e"}, errBroken},
		"unknown before":      {`{id: a, tool: math.fail, inputs: {a: 1}}`, flow.NodeRecord{Node: "a", Status: flow.Failed, Unknown: true}, tools.ErrOutcomeUnknown},
		"undone before":       {`{id: a, tool: math.fail, inputs: {a: 1}}`, flow.NodeRecord{Node: "a", Status: flow.Undone}, errBroken},
		"asked, not answered": {`{id: a, ask: {message: m}}`, started, tools.ErrAskUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			var tr tracker
			def, err := flow.ParseYAML("f.yaml", []byte(one(tc.node)))
			if err != nil {
				t.Fatal(err)
			}
			log := crashed{flow.NewLog(nil), &flow.Run{}, tc.record}
			f, err := flow.ComposeFor(ctx, def, &flow.Options{Runner: exec.NewRunner(catalog(t, &tr)), Recorder: log})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.Run(ctx, nil)
			before := len(tr.calls)
			_, err = f.Resume(ctx, log.begun.ID)
			if ran := len(tr.calls) > before; !errors.Is(err, tc.want) || ran == (tc.want == tools.ErrOutcomeUnknown || tc.want == tools.ErrAskUnsupported) {
				t.Errorf("got %v after %v", err, tr.calls)
			}
		})
	}
}

func TestResumeRefusesAFlowThatChanged(t *testing.T) {
	ctx := allowed(t.Context())
	kept := flow.NewLog(nil)
	cat := catalog(t, &tracker{})
	composed := func(node string) *flow.Flow {
		def, err := flow.ParseYAML("f.yaml", []byte(one(node)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := flow.ComposeFor(ctx, def, &flow.Options{Runner: exec.NewRunner(cat), Recorder: kept})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if _, err := composed(`{id: a, tool: math.fail, inputs: {a: 1}}`).Run(ctx, nil); !errors.Is(err, errBroken) {
		t.Fatalf("got %v", err)
	}
	if _, err := composed(`{id: a, tool: math.fail, inputs: {a: 2}}`).Resume(ctx, only(t, kept, ctx).ID); !errors.Is(err, flow.ErrNotResumable) {
		t.Errorf("got %v", err)
	}
	if _, err := composed(`{id: a, tool: math.fail, inputs: {a: 1}, timeout_ms: 5000}`).Resume(ctx, only(t, kept, ctx).ID); !errors.Is(err, errBroken) {
		t.Errorf("a limit is no change of what runs: got %v", err)
	}
}

// Runs of one flow never see each other: a thousand one after the other, and a
// hundred at once.
func TestRunsDoNotMix(t *testing.T) {
	f := compose(t, diamond, catalog(t, &tracker{}))
	check := func(i int) {
		want := fmt.Sprintf(`{"total":%d}`, i+1+100+5)
		if i+1 >= 10 {
			want = fmt.Sprintf(`{"total":%d}`, i+1+1000+5)
		}
		out, err := f.Run(t.Context(), json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)))
		if enc, _ := json.Marshal(out); err != nil || string(enc) != want {
			t.Errorf("got %s, %v, want %s", enc, err, want)
		}
	}
	for i := range 1000 {
		check(i)
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			for range 10 {
				check(i)
			}
		})
	}
	wg.Wait()
}
