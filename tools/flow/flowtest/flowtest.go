// Package flowtest holds what every log of runs must do, as one suite.
package flowtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// Run holds logs to what flow.Runs says. open returns a log that keeps nothing yet.
func Run(t *testing.T, open func(t *testing.T) flow.Runs) {
	for name, test := range map[string]func(*testing.T, flow.Runs){
		"a run is kept":                 kept,
		"runs are those of their user":  guarded,
		"a run can be cancelled":        cancelled,
		"a failed run goes on":          resumed,
		"what is over stays over":       over,
		"an unknown run":                unknown,
		"what went on meanwhile":        meanwhile,
		"nothing repeats that may not":  outcome,
		"concurrent runs do not mix":    concurrent,
		"large inputs and large values": large,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func caller(ctx context.Context, tenant, user string) context.Context {
	return identity.WithRun(identity.With(ctx, identity.Identity{TenantID: tenant, UserID: user, SessionID: "s"}), "agent-run")
}

func compose(t *testing.T, runs flow.Runs, nodes ...flow.Node) *flow.Flow {
	t.Helper()
	for i := range nodes[:len(nodes)-1] {
		nodes[i].Next = []flow.Edge{{To: nodes[i+1].ID}}
	}
	f, err := flow.Compose(flow.Definition{Name: "kept.flow", Inputs: json.RawMessage(`{"type":"object"}`), Entry: nodes[0].ID, Exit: nodes[len(nodes)-1].ID, Nodes: nodes},
		&flow.Options{Recorder: runs})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func node(id string, f func(ctx context.Context) (string, error)) flow.Node {
	return flow.Node{ID: id, Func: flow.Func(func(ctx context.Context, _ struct{}) (string, error) { return f(ctx) })}
}

func gives(id, value string) flow.Node {
	return node(id, func(context.Context) (string, error) { return value, nil })
}

func latest(t *testing.T, runs flow.Runs, ctx context.Context) flow.RunState {
	t.Helper()
	list, err := runs.List(ctx)
	if err != nil || len(list) == 0 {
		t.Fatalf("got %d runs, %v", len(list), err)
	}
	state, err := runs.Get(ctx, list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func kept(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	began := time.Now()
	if _, err := compose(t, runs, gives("a", "1"), gives("b", "2")).Run(ctx, json.RawMessage(`{"n":9007199254740993}`)); err != nil {
		t.Fatal(err)
	}
	s := latest(t, runs, ctx)
	if s.Flow != "kept.flow" || s.Status != flow.RunDone || s.Error != "" || string(s.Inputs) != `{"n":9007199254740993}` || s.Digest == "" {
		t.Errorf("got %+v", s)
	}
	if s.Began.Before(began.Add(-time.Second)) || s.Ended.Before(s.Began) || s.Ended.After(time.Now().Add(time.Second)) {
		t.Errorf("from %v to %v", s.Began, s.Ended)
	}
	if who := s.Identity; who.TenantID != "acme" || who.UserID != "ada" || who.SessionID != "s" || who.RunID != "agent-run" {
		t.Errorf("got %+v", who)
	}
	var nodes []string
	for _, n := range s.Nodes {
		nodes = append(nodes, fmt.Sprint(n.Node, " ", n.Ran, " ", n.Status, " ", string(n.Value)))
	}
	if diff := cmp.Diff([]string{`a a done "1"`, `b b done "2"`}, nodes); diff != "" {
		t.Error(diff)
	}
}

func guarded(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	running, release := make(chan struct{}), make(chan struct{})
	f := compose(t, runs, node("a", func(context.Context) (string, error) { close(running); <-release; return "", errors.New("no luck") }))
	ended := make(chan error, 1)
	go func() { _, err := f.Run(ctx, nil); ended <- err }()
	<-running
	id := latest(t, runs, ctx).ID
	reach := func() {
		t.Helper()
		for _, other := range []context.Context{caller(t.Context(), "acme", "bob"), caller(t.Context(), "other", "ada"), t.Context()} {
			if list, err := runs.List(other); err != nil || len(list) != 0 {
				t.Errorf("got %v, %v", list, err)
			}
			_, getErr := runs.Get(other, id)
			_, _, loadErr := runs.Load(other, id)
			for what, err := range map[string]error{"get": getErr, "load": loadErr, "cancel": runs.Cancel(other, id)} {
				if !errors.Is(err, flow.ErrRunNotFound) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			if _, err := f.Resume(other, id); !errors.Is(err, flow.ErrRunNotFound) {
				t.Errorf("resume: got %v", err)
			}
		}
	}
	reach()
	close(release)
	if err := <-ended; err == nil {
		t.Error("the run did not fail")
	}
	reach()
	other := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "another"})
	if s := latest(t, runs, other); s.ID != id || s.Status != flow.RunFailed {
		t.Errorf("another session of the user got %+v", s)
	}
}

func cancelled(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	running := make(chan struct{})
	f := compose(t, runs, node("a", func(ctx context.Context) (string, error) { close(running); <-ctx.Done(); return "", context.Cause(ctx) }))
	ended := make(chan error, 1)
	go func() { _, err := f.Run(ctx, nil); ended <- err }()
	<-running
	s := latest(t, runs, ctx)
	if s.Status != flow.RunRunning || !s.Ended.IsZero() || len(s.Nodes) != 1 || s.Nodes[0].Status != flow.Started {
		t.Errorf("got %+v", s)
	}
	if _, _, err := runs.Load(ctx, s.ID); !errors.Is(err, flow.ErrNotResumable) {
		t.Errorf("a run that goes on: got %v", err)
	}
	if err := runs.Cancel(ctx, s.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, flow.ErrCanceled) {
		t.Errorf("got %v", err)
	}
	if s := latest(t, runs, ctx); s.Status != flow.RunCanceled || s.Ended.IsZero() || s.Error == "" {
		t.Errorf("got %+v", s)
	}
	if err := runs.Cancel(ctx, s.ID); err != nil {
		t.Errorf("a run that ended stays as it is: got %v", err)
	}
}

func resumed(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	fails, ran := true, 0
	first := node("a", func(context.Context) (string, error) { ran++; return "once", nil })
	second := node("b", func(context.Context) (string, error) {
		if fails {
			return "", errors.New("not yet")
		}
		return "done", nil
	})
	f := compose(t, runs, first, second)
	if _, err := f.Run(ctx, nil); err == nil {
		t.Fatal("the run did not fail")
	}
	before := latest(t, runs, ctx)
	if before.Status != flow.RunFailed || before.Error == "" {
		t.Errorf("got %+v", before)
	}
	fails = false
	if out, err := f.Resume(ctx, before.ID); err != nil || out != "done" || ran != 1 {
		t.Errorf("got %v, %v, after %d", out, err, ran)
	}
	after := latest(t, runs, ctx)
	if after.ID != before.ID || after.Status != flow.RunDone || after.Error != "" || !after.Began.Equal(before.Began) || len(after.Nodes) != 2 {
		t.Errorf("got %+v", after)
	}
}

func over(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	f := compose(t, runs, gives("a", "1"))
	if _, err := f.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resume(ctx, latest(t, runs, ctx).ID); !errors.Is(err, flow.ErrNotResumable) {
		t.Errorf("got %v", err)
	}
}

// meanwhile loads a run, has it go on and fail again, and then tries to go on with
// what was loaded.
func meanwhile(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	f := compose(t, runs, node("a", func(context.Context) (string, error) { return "", errors.New("no luck") }))
	if _, err := f.Run(ctx, nil); err == nil {
		t.Fatal("the run did not fail")
	}
	loaded, _, err := runs.Load(ctx, latest(t, runs, ctx).ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resume(ctx, loaded.ID); err == nil || errors.Is(err, flow.ErrNotResumable) {
		t.Fatalf("got %v", err)
	}
	if err := runs.Begin(ctx, loaded); !errors.Is(err, flow.ErrNotResumable) {
		t.Errorf("got %v", err)
	}
	fresh := loaded
	fresh.Version = 0
	if err := runs.Begin(ctx, fresh); !errors.Is(err, flow.ErrNotResumable) {
		t.Errorf("a run that is there already: got %v", err)
	}
}

func unknown(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	for _, id := range []string{"nosuch", "", "a/b", string(make([]byte, 100_000))} {
		if _, err := runs.Get(ctx, id); !errors.Is(err, flow.ErrRunNotFound) {
			t.Errorf("get %.20q: got %v", id, err)
		}
		if err := runs.Cancel(ctx, id); !errors.Is(err, flow.ErrRunNotFound) {
			t.Errorf("cancel %.20q: got %v", id, err)
		}
		if _, _, err := runs.Load(ctx, id); !errors.Is(err, flow.ErrRunNotFound) {
			t.Errorf("load %.20q: got %v", id, err)
		}
	}
}

func outcome(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	calls := 0
	f := compose(t, runs, node("a", func(context.Context) (string, error) {
		calls++
		return "", &tools.Error{Class: tools.ErrClassTimeout, OutcomeUnknown: true, Message: "no answer"}
	}))
	if _, err := f.Run(ctx, nil); !errors.Is(err, tools.ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	s := latest(t, runs, ctx)
	if len(s.Nodes) != 1 || !s.Nodes[0].Unknown {
		t.Errorf("got %+v", s.Nodes)
	}
	if _, err := f.Resume(ctx, s.ID); !errors.Is(err, tools.ErrOutcomeUnknown) || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

func concurrent(t *testing.T, runs flow.Runs) {
	echo := flow.Node{ID: "a", Inputs: map[string]any{"v": "${{ inputs.v }}"}, Func: flow.Func(func(_ context.Context, in struct {
		V string `json:"v"`
	}) (string, error) {
		return in.V, nil
	})}
	f := compose(t, runs, echo, gives("b", "end"))
	var wg sync.WaitGroup
	for user := range 4 {
		for n := range 8 {
			wg.Go(func() {
				if _, err := f.Run(caller(t.Context(), "acme", fmt.Sprint(user)), json.RawMessage(fmt.Sprintf(`{"v":"%d.%d"}`, user, n))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for user := range 4 {
		ctx := caller(t.Context(), "acme", fmt.Sprint(user))
		list, err := runs.List(ctx)
		if err != nil || len(list) != 8 || !slices.IsSortedFunc(list, flow.Latest) {
			t.Fatalf("got %d runs, %v", len(list), err)
		}
		for _, s := range list {
			s, err := runs.Get(ctx, s.ID)
			if err != nil {
				t.Fatal(err)
			}
			var in struct{ V string }
			if err := json.Unmarshal(s.Inputs, &in); err != nil || len(s.Nodes) != 2 || string(s.Nodes[0].Value) != `"`+in.V+`"` || in.V[:1] != fmt.Sprint(user) {
				t.Errorf("got %+v, %v", s, err)
			}
		}
	}
}

func large(t *testing.T, runs flow.Runs) {
	ctx := caller(t.Context(), "acme", "ada")
	text := make([]byte, 1<<20)
	for i := range text {
		text[i] = 'x'
	}
	f := compose(t, runs, gives("a", string(text)))
	if _, err := f.Run(ctx, json.RawMessage(`{"v":"`+string(text)+`"}`)); err != nil {
		t.Fatal(err)
	}
	if s := latest(t, runs, ctx); len(s.Inputs) != len(text)+8 || len(s.Nodes[0].Value) != len(text)+2 {
		t.Errorf("got %d and %d bytes", len(s.Inputs), len(s.Nodes[0].Value))
	}
}
