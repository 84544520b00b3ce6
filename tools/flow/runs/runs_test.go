package runs_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/tools/flow/flowtest"
	"github.com/toolcrib/toolcrib/tools/flow/runs"
)

func TestMain(m *testing.M) {
	child() // does not return in a child
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, path string, opts *runs.Options) (*runs.Log, *sqlstore.DB) {
	t.Helper()
	db, err := sqlstore.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := runs.New(db, opts)
	t.Cleanup(func() {
		if err := errors.Join(log.Close(context.Background()), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return log, db
}

func TestRuns(t *testing.T) {
	flowtest.Run(t, func(t *testing.T) flow.Runs {
		log, _ := open(t, filepath.Join(t.TempDir(), "runs.db"), nil)
		return log
	})
}

func ada(ctx context.Context) context.Context {
	return identity.With(ctx, identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s"})
}

func compose(t *testing.T, log flow.Recorder, f func(context.Context) (string, error)) *flow.Flow {
	t.Helper()
	composed, err := flow.Compose(flow.Definition{Name: "f", Entry: "a", Exit: "a", Nodes: []flow.Node{
		{ID: "a", Func: flow.Func(func(ctx context.Context, _ struct{}) (string, error) { return f(ctx) })}}}, &flow.Options{Recorder: log})
	if err != nil {
		t.Fatal(err)
	}
	return composed
}

// latest returns the run of ada that began last.
func latest(t *testing.T, log flow.Runs) flow.RunState {
	t.Helper()
	list, err := log.List(ada(t.Context()))
	if err != nil || len(list) == 0 {
		t.Fatalf("got %d runs, %v", len(list), err)
	}
	return list[0]
}

// A second process sees the runs of the first, and has it end one.
func TestAnotherProcessCancels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	one, _ := open(t, path, &runs.Options{Lease: 300 * time.Millisecond})
	two, _ := open(t, path, nil)
	running, ended := make(chan struct{}), make(chan error, 1)
	f := compose(t, one, func(ctx context.Context) (string, error) { close(running); <-ctx.Done(); return "", context.Cause(ctx) })
	go func() { _, err := f.Run(ada(t.Context()), nil); ended <- err }()
	<-running
	s := latest(t, two)
	if s.Status != flow.RunRunning {
		t.Errorf("got %+v", s)
	}
	if err := two.Cancel(ada(t.Context()), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, flow.ErrCanceled) {
		t.Errorf("got %v", err)
	}
	if s := latest(t, two); s.Status != flow.RunCanceled {
		t.Errorf("got %+v", s)
	}
}

// What is cut off because the process ends is interrupted, and can go on.
func TestClosingInterrupts(t *testing.T) {
	log, _ := open(t, filepath.Join(t.TempDir(), "runs.db"), nil)
	running, ended := make(chan struct{}), make(chan error, 1)
	f := compose(t, log, func(ctx context.Context) (string, error) { close(running); <-ctx.Done(); return "", ctx.Err() })
	ctx, cut := context.WithCancel(ada(t.Context()))
	go func() { _, err := f.Run(ctx, nil); ended <- err }()
	<-running
	log.Closing()
	cut()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if s := latest(t, log); s.Status != flow.RunInterrupted {
		t.Errorf("got %+v", s)
	}
	if _, err := f.Run(ada(t.Context()), nil); err == nil {
		t.Error("a run began after the end")
	}
}

// suspended is a store whose leases have run out without the process noticing, as
// after a long sleep of the machine.
type suspended struct{ *sqlstore.DB }

func (suspended) Renew(_ context.Context, l store.Lease, _ time.Duration) (store.Lease, error) {
	return l, nil
}

// A process that was out of touch cannot go on beside the one that took over.
func TestAProcessThatLostItsLeaseIsFencedOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	_, db := open(t, path, nil)
	asleep := runs.New(suspended{db}, &runs.Options{Lease: 50 * time.Millisecond})
	defer asleep.Close(context.Background())
	awake, _ := open(t, path, nil)

	running, wake, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f := compose(t, asleep, func(context.Context) (string, error) { close(running); <-wake; return "late", nil })
	go func() { _, err := f.Run(ada(t.Context()), nil); ended <- err }()
	<-running
	s := awaitStatus(t, awake, flow.RunInterrupted)
	again := compose(t, awake, func(context.Context) (string, error) { return "", errors.New("must not run") })
	_, err := again.Resume(ada(t.Context()), s.ID)
	if err == nil || awaitStatus(t, awake, flow.RunInterrupted).ID != s.ID {
		t.Errorf("a node with effects was begun and not ended: got %v", err)
	}
	close(wake)
	if err := <-ended; !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
	if err := awake.Cancel(ada(t.Context()), s.ID); err != nil || latest(t, awake).Status != flow.RunCanceled {
		t.Errorf("got %v, %+v", err, latest(t, awake))
	}
}

// awaitStatus asks until ada's latest run has a status.
func awaitStatus(t *testing.T, log flow.Runs, want flow.RunStatus) flow.RunState {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if s := latest(t, log); s.Status == want {
			return s
		}
		<-tick.C
	}
	t.Fatalf("the run is %s, not %s", latest(t, log).Status, want)
	return flow.RunState{}
}

// Of each user the latest runs are kept, and nothing of those that are dropped.
func TestOldRunsAreForgotten(t *testing.T) {
	log, db := open(t, filepath.Join(t.TempDir(), "runs.db"), &runs.Options{Most: 3})
	f := compose(t, log, func(context.Context) (string, error) { return "x", nil })
	for range 64 {
		if _, err := f.Run(ada(t.Context()), nil); err != nil {
			t.Fatal(err)
		}
	}
	list, err := log.List(ada(t.Context()))
	if err != nil || len(list) != 3 {
		t.Fatalf("got %d runs, %v", len(list), err)
	}
	page, err := db.List(t.Context(), store.Range{Collection: "flow.nodes", Owner: store.User(identity.Identity{TenantID: "acme", UserID: "ada"})})
	if err != nil || len(page.Records) != 6 {
		t.Errorf("got %d records, %v", len(page.Records), err)
	}
}

func TestRunsExpire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	log, _ := open(t, path, &runs.Options{Keep: 50 * time.Millisecond})
	f := compose(t, log, func(context.Context) (string, error) { return "", errors.New("no luck") })
	if _, err := f.Run(ada(t.Context()), nil); err == nil {
		t.Fatal("the run did not fail")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if list, err := log.List(ada(t.Context())); err != nil || len(list) == 0 {
			return
		}
		<-tick.C
	}
	t.Error("the run is still there")
}

// What is too large to keep ends no run, but the run cannot be resumed.
func TestAValueThatIsTooLarge(t *testing.T) {
	log, _ := open(t, filepath.Join(t.TempDir(), "runs.db"), nil)
	huge := func(context.Context, struct{}) (string, error) { return string(make([]byte, store.MaxValueBytes)), nil }
	fails := func(context.Context, struct{}) (string, error) { return "", errors.New("no luck") }
	f, err := flow.Compose(flow.Definition{Name: "f", Entry: "a", Exit: "b", Nodes: []flow.Node{
		{ID: "a", Func: flow.Func(huge), Next: []flow.Edge{{To: "b"}}}, {ID: "b", Func: flow.Func(fails)}}}, &flow.Options{Recorder: log})
	if err != nil {
		t.Fatal(err)
	}
	var node *flow.NodeError
	if _, err := f.Run(ada(t.Context()), nil); !errors.As(err, &node) || node.Node != "b" {
		t.Errorf("got %v", err)
	}
	if _, err := f.Resume(ada(t.Context()), latest(t, log).ID); !errors.Is(err, flow.ErrNotResumable) {
		t.Errorf("got %v", err)
	}
}

// Of two that resume one run, one does.
func TestOneResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	one, _ := open(t, path, nil)
	two, _ := open(t, path, nil)
	if _, err := compose(t, one, func(context.Context) (string, error) { return "", errors.New("no luck") }).Run(ada(t.Context()), nil); err == nil {
		t.Fatal("the run did not fail")
	}
	id, release := latest(t, one).ID, make(chan struct{})
	waits := func(context.Context) (string, error) { <-release; return "x", nil }
	results := make(chan error, 8)
	for i := range 8 {
		f := compose(t, []flow.Recorder{one, two}[i%2], waits)
		go func() { _, err := f.Resume(ada(t.Context()), id); results <- err }()
	}
	for range 7 {
		if err := <-results; !errors.Is(err, flow.ErrNotResumable) {
			t.Errorf("got %v", err)
		}
	}
	close(release)
	if err := <-results; err != nil {
		t.Errorf("got %v", err)
	}
}

// slow is a store that stops once at a batch that changes the record of a run.
type slow struct {
	*sqlstore.DB
	ends          bool // at the second such batch, before it is written, and else after the first
	seen          atomic.Int64
	stopped, goOn chan struct{}
}

func (s *slow) Apply(ctx context.Context, b store.Batch) ([]store.Revision, error) {
	if len(b.Writes) == 0 || b.Writes[0].Key.Collection != "flow.runs" {
		return s.DB.Apply(ctx, b)
	}
	n := s.seen.Add(1)
	if s.ends && n == 2 {
		s.stop()
	}
	revisions, err := s.DB.Apply(ctx, b)
	if !s.ends && n == 1 {
		s.stop()
	}
	return revisions, err
}

func (s *slow) stop() {
	close(s.stopped)
	<-s.goOn
}

// A run is resumed by nobody else while its process is about to know that it began,
// or to record that it ended.
func TestOneResumesAtTheEdges(t *testing.T) {
	for name, ends := range map[string]bool{"it begins": false, "it ends": true} {
		t.Run(name, func(t *testing.T) {
			before, db := open(t, filepath.Join(t.TempDir(), "runs.db"), nil)
			if _, err := compose(t, before, func(context.Context) (string, error) { return "", errors.New("no luck") }).Run(ada(t.Context()), nil); err == nil {
				t.Fatal("the run did not fail")
			}
			id := latest(t, before).ID
			late := &slow{DB: db, ends: ends, stopped: make(chan struct{}), goOn: make(chan struct{})}
			log := runs.New(late, nil)
			defer func() {
				if err := log.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			var ran atomic.Int64
			f := compose(t, log, func(context.Context) (string, error) { ran.Add(1); return "x", nil })
			first := make(chan error, 1)
			go func() { _, err := f.Resume(ada(t.Context()), id); first <- err }()
			<-late.stopped
			if got := latest(t, log).Status; got != flow.RunRunning {
				t.Errorf("it is %s while %s", got, name)
			}
			if _, err := f.Resume(ada(t.Context()), id); !errors.Is(err, flow.ErrNotResumable) {
				t.Errorf("resumed beside another: %v", err)
			}
			close(late.goOn)
			if err := <-first; err != nil || ran.Load() != 1 {
				t.Errorf("got %v, and the step ran %d times", err, ran.Load())
			}
		})
	}
}
