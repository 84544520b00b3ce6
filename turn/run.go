package turn

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/view"
)

// Limits bound calls. A field that is zero or negative bounds nothing.
type Limits struct {
	// Calls is how many calls are made, whatever becomes of them.
	Calls int
	// Time is how long calls may take together, as the caller of Execute waits
	// for them. What runs when it is over is cancelled.
	Time time.Duration
	// Cost is what the calls may cost together, in the unit of Options.Cost.
	Cost float64
	// ResultBytes is how large results may be together. A result that goes
	// beyond it is the last one: what runs ends, and nothing is begun.
	ResultBytes int64
}

// Usage is what calls took of Limits.
type Usage struct {
	Calls       int           `json:"calls"`
	Time        time.Duration `json:"time"`
	Cost        float64       `json:"cost"`
	ResultBytes int64         `json:"result_bytes"`
}

// Run is the turns of one run of an agent, and what they used together. It is
// safe for concurrent use.
type Run struct {
	runner *Runner
	memory view.Memory // nil where the discovery's own is used

	mu    sync.Mutex
	used  Usage
	ids   map[string]struct{} // of calls, as events name them
	marks map[string]any
}

// NewRun begins a run. used is what it took before, where it was begun in
// another process; the zero value is a new run.
func (r *Runner) NewRun(used Usage) *Run {
	run := &Run{runner: r, used: used}
	if r.ownMemory {
		run.memory = new(memory)
	}
	return run
}

// memory is a view.Memory that is made when something is found.
type memory struct {
	mu   sync.Mutex
	kept view.Memory
}

// Found implements view.Memory.
func (m *memory) Found(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	kept := m.kept
	m.mu.Unlock()
	if kept == nil {
		return nil, nil
	}
	return kept.Found(ctx)
}

// Add implements view.Memory.
func (m *memory) Add(ctx context.Context, names ...string) error {
	m.mu.Lock()
	if m.kept == nil {
		m.kept = view.NewMemory(nil)
	}
	kept := m.kept
	m.mu.Unlock()
	return kept.Add(ctx, names...)
}

// Used returns what the run's turns used so far.
func (r *Run) Used() Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// Mark replaces what the run keeps under key by what change makes of it, nil at
// first, and returns that. change must not use the run. It is for middleware
// that counts.
func (r *Run) Mark(key string, change func(any) any) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := change(r.marks[key])
	if r.marks == nil {
		r.marks = map[string]any{}
	}
	r.marks[key] = next
	return next
}

// withMemory puts the run's memory on the context, or the discovery's where
// there is none on it, so that what a search finds is declared in the next turn.
func (r *Run) withMemory(ctx context.Context) context.Context {
	if r.memory != nil {
		return view.WithMemory(ctx, r.memory)
	}
	if _, ok := view.MemoryFrom(ctx); ok {
		return ctx
	}
	return view.WithMemory(ctx, r.runner.discovery.Memory())
}

// maxIDs bounds how many ids of calls a run remembers, and maxID how long one is
// that events repeat.
const (
	maxIDs = 100_000
	maxID  = 128
)

// eventID returns the id under which the door tells of a call: the provider's,
// where it is printable and no other call of the run has it, else none, so that
// the door makes one.
func (r *Run) eventID(id string) string {
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, used := r.ids[id]; used || len(r.ids) >= maxIDs {
		return ""
	}
	if r.ids == nil {
		r.ids = map[string]struct{}{}
	}
	r.ids[id] = struct{}{}
	return id
}

// meter counts the usage of a turn and of its run together. The run's lock
// guards both.
type meter struct {
	run  *Run
	turn *Usage
}

// bound is one of two Limits with what was used of it.
type bound struct {
	of     string
	limits *Limits
	used   *Usage
}

func (m meter) bounds() [2]bound {
	o := &m.run.runner.opts
	return [2]bound{{"turn", &o.Turn, m.turn}, {"run", &o.Run, &m.run.used}}
}

// exceeded says which limit keeps a call from running. It stands in the chain of
// the call's error.
type exceeded struct {
	of, what string
}

// Error says it in words for a model.
func (e *exceeded) Error() string {
	return fmt.Sprintf("the %s's limit of %s is used up", e.of, e.what)
}

// Is makes errors.Is find ErrBudget.
func (e *exceeded) Is(target error) bool { return target == ErrBudget }

// reserve takes one call of the given cost, or says which limit has no room.
func (m meter) reserve(cost float64) *exceeded {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	for _, b := range m.bounds() {
		switch l := b.limits; {
		case l.Calls > 0 && b.used.Calls >= l.Calls:
			return &exceeded{b.of, fmt.Sprintf("%d calls", l.Calls)}
		case l.Cost > 0 && b.used.Cost+cost > l.Cost:
			return &exceeded{b.of, fmt.Sprintf("%g for the cost of calls", l.Cost)}
		}
	}
	for _, b := range m.bounds() {
		b.used.Calls++
		b.used.Cost += cost
	}
	return nil
}

// refund gives back the cost of a call whose tool was not reached.
func (m meter) refund(cost float64) {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	for _, b := range m.bounds() {
		b.used.Cost -= cost
	}
}

// full says which limit is used up by what ran.
func (m meter) full() *exceeded {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	for _, b := range m.bounds() {
		switch l := b.limits; {
		case l.ResultBytes > 0 && b.used.ResultBytes >= l.ResultBytes:
			return &exceeded{b.of, fmt.Sprintf("%d bytes of results", l.ResultBytes)}
		case l.Time > 0 && b.used.Time >= l.Time:
			return &exceeded{b.of, fmt.Sprintf("%v for calls", l.Time)}
		}
	}
	return nil
}

func (m meter) addBytes(n int64) {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	for _, b := range m.bounds() {
		b.used.ResultBytes += n
	}
}

func (m meter) addTime(d time.Duration) {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	for _, b := range m.bounds() {
		b.used.Time += d
	}
}

// timeLeft returns how long calls may go on, and what ends them; nil when
// nothing does.
func (m meter) timeLeft() (time.Duration, *exceeded) {
	m.run.mu.Lock()
	defer m.run.mu.Unlock()
	var least time.Duration
	var by *exceeded
	for _, b := range m.bounds() {
		if b.limits.Time <= 0 {
			continue
		}
		if left := b.limits.Time - b.used.Time; by == nil || left < least {
			least, by = left, &exceeded{b.of, fmt.Sprintf("%v for calls", b.limits.Time)}
		}
	}
	return least, by
}
