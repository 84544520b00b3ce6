package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
)

// DefaultKeep is how many ended runs a Log keeps of each user.
const DefaultKeep = 100

// LogOptions tune a Log.
type LogOptions struct {
	// Keep is how many ended runs are kept of each user; DefaultKeep when it is
	// 0.
	Keep int
}

// Log is a Recorder in this process: runs can be looked at, cancelled, and, after
// a failure, resumed. A caller reaches those of its own tenant and user.
type Log struct {
	keep int
	mu   sync.Mutex
	runs map[owner]map[string]*entry
	by   map[string]owner // of the run ids
}

// owner is whose runs are kept together.
type owner struct{ tenant, user string }

func ownerOn(ctx context.Context) owner {
	id, _ := identity.From(ctx)
	return owner{id.TenantID, id.UserID}
}

type entry struct {
	run   Run // its version counts how often it began
	nodes []NodeRecord
	ended time.Time
	err   error
}

// NewLog returns an empty log. Nil options are the defaults.
func NewLog(opts *LogOptions) *Log {
	if opts == nil {
		opts = &LogOptions{}
	}
	return &Log{keep: cmp.Or(opts.Keep, DefaultKeep), runs: map[owner]map[string]*entry{}, by: map[string]owner{}}
}

// Begin implements Recorder.
func (l *Log) Begin(_ context.Context, r Run) error {
	who := owner{r.Identity.TenantID, r.Identity.UserID}
	l.mu.Lock()
	defer l.mu.Unlock()
	if have, ok := l.by[r.ID]; ok && have != who {
		return fmt.Errorf("%w: %q", ErrRunNotFound, r.ID)
	}
	if l.runs[who] == nil {
		l.runs[who] = map[string]*entry{}
	}
	e := &entry{run: r}
	if old := l.runs[who][r.ID]; old != nil {
		if old.ended.IsZero() || old.run.Version != r.Version {
			return fmt.Errorf("%w: %q went on in the meantime", ErrNotResumable, r.ID)
		}
		e.nodes, e.run.Began = old.nodes, old.run.Began
	}
	e.run.Version++
	l.runs[who][r.ID], l.by[r.ID] = e, who
	l.drop(who)
	return nil
}

// drop forgets the oldest ended runs beyond those that are kept.
func (l *Log) drop(who owner) {
	var ended []*entry
	for _, e := range l.runs[who] {
		if !e.ended.IsZero() {
			ended = append(ended, e)
		}
	}
	if len(ended) <= l.keep {
		return
	}
	slices.SortFunc(ended, func(a, b *entry) int { return a.ended.Compare(b.ended) })
	for _, e := range ended[:len(ended)-l.keep] {
		delete(l.runs[who], e.run.ID)
		delete(l.by, e.run.ID)
	}
}

func (l *Log) entry(runID string) (*entry, error) {
	if e := l.runs[l.by[runID]][runID]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrRunNotFound, runID)
}

// Node implements Recorder.
func (l *Log) Node(_ context.Context, runID string, n NodeRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, err := l.entry(runID)
	if err != nil {
		return err
	}
	for i := range e.nodes {
		if e.nodes[i].Node == n.Node {
			e.nodes[i] = n
			return nil
		}
	}
	e.nodes = append(e.nodes, n)
	return nil
}

// End implements Recorder.
func (l *Log) End(_ context.Context, runID string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, missing := l.entry(runID)
	if missing != nil {
		return missing
	}
	e.ended, e.err, e.run.Cancel = time.Now(), err, nil
	return nil
}

// Load implements Loader.
func (l *Log) Load(ctx context.Context, runID string) (Run, []NodeRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.runs[ownerOn(ctx)][runID]
	if e == nil {
		return Run{}, nil, fmt.Errorf("%w: %q", ErrRunNotFound, runID)
	}
	if e.ended.IsZero() || e.err == nil {
		return Run{}, nil, fmt.Errorf("%w: %q did not fail, so that there is nothing to resume", ErrNotResumable, runID)
	}
	return e.run, slices.Clone(e.nodes), nil
}

// List implements Runs.
func (l *Log) List(ctx context.Context) ([]RunState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []RunState{}
	for _, e := range l.runs[ownerOn(ctx)] {
		s := e.state()
		s.Inputs, s.Nodes = nil, nil
		list = append(list, s)
	}
	slices.SortFunc(list, Latest)
	return list, nil
}

func (e *entry) state() RunState {
	s := RunState{Run: e.run, Nodes: slices.Clone(e.nodes), Ended: e.ended, Status: RunRunning}
	if !e.ended.IsZero() {
		s.Status = StatusOf(e.err)
	}
	if e.err != nil {
		s.Error = e.err.Error()
	}
	return s
}

// Get implements Runs.
func (l *Log) Get(ctx context.Context, runID string) (RunState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.runs[ownerOn(ctx)][runID]
	if e == nil {
		return RunState{}, fmt.Errorf("%w: %q", ErrRunNotFound, runID)
	}
	return e.state(), nil
}

// Cancel implements Runs.
func (l *Log) Cancel(ctx context.Context, runID string) error {
	l.mu.Lock()
	e := l.runs[ownerOn(ctx)][runID]
	var cancel func()
	if e != nil {
		cancel = e.run.Cancel
	}
	l.mu.Unlock()
	if e == nil {
		return fmt.Errorf("%w: %q", ErrRunNotFound, runID)
	}
	if cancel != nil {
		cancel()
	}
	return nil
}

var _ Runs = (*Log)(nil)
