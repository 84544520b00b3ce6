package view

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/identity"
)

// Memory keeps the names of the deferred tools that a caller has found. The
// caller is the identity on the context: tenant, user and session together, so
// that what one session finds no other is told of. It is safe for concurrent
// use.
type Memory interface {
	// Found returns what the caller has found, sorted. A tool among them may
	// be gone, or hidden from the caller, by now.
	Found(ctx context.Context) ([]string, error)
	// Add remembers names for the caller. What it keeps is bounded; what was
	// added longest ago is dropped first.
	Add(ctx context.Context, names ...string) error
}

// The bounds of what is remembered, where options do not say otherwise.
const (
	// DefaultMaxFound is how many names are kept for one caller. At the size of
	// usual declarations so many take about as much of a model's context as
	// DefaultBudgetTokens.
	DefaultMaxFound = 64
	// DefaultMaxCallers is how many callers are remembered.
	DefaultMaxCallers = 10_000
)

// MemoryOptions configure [NewMemory]. A zero field means its default.
type MemoryOptions struct {
	// MaxFound is how many names are kept for one caller.
	MaxFound int
	// MaxCallers is how many callers are remembered; beyond it, the one that
	// asked or added longest ago is forgotten.
	MaxCallers int
}

// NewMemory returns a memory that lives in this process. Nil options are the
// defaults. Callers without an identity are one caller.
func NewMemory(opts *MemoryOptions) Memory {
	m := &memory{byCaller: map[identity.Identity]*list.Element{}, recent: list.New()}
	if opts != nil {
		m.opts = *opts
	}
	m.opts.MaxFound = cmp.Or(max(m.opts.MaxFound, 0), DefaultMaxFound)
	m.opts.MaxCallers = cmp.Or(max(m.opts.MaxCallers, 0), DefaultMaxCallers)
	return m
}

type memory struct {
	opts MemoryOptions

	mu       sync.Mutex
	byCaller map[identity.Identity]*list.Element
	recent   *list.List // of *remembered, the most recent first
}

type remembered struct {
	caller identity.Identity
	names  []string // the oldest first
}

// Found implements Memory.
func (m *memory) Found(ctx context.Context) ([]string, error) {
	caller, _ := identity.From(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byCaller[caller]
	if e == nil {
		return nil, nil
	}
	m.recent.MoveToFront(e)
	return slices.Sorted(slices.Values(e.Value.(*remembered).names)), nil
}

// Add implements Memory.
func (m *memory) Add(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	caller, _ := identity.From(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.byCaller[caller]
	if e == nil {
		e = m.recent.PushFront(&remembered{caller: caller})
		m.byCaller[caller] = e
	}
	m.recent.MoveToFront(e)
	r := e.Value.(*remembered)
	r.names = Remember(r.names, m.opts.MaxFound, names...)
	for len(m.byCaller) > m.opts.MaxCallers {
		last := m.recent.Remove(m.recent.Back()).(*remembered)
		delete(m.byCaller, last.caller)
	}
	return nil
}

// Remember returns the names that a memory keeps, the oldest first, once more
// were added: each once, where it was added last, and at most limit. It is for
// memories that are kept elsewhere.
func Remember(kept []string, limit int, names ...string) []string {
	out := make([]string, 0, len(kept)+len(names))
	for _, name := range kept {
		if !slices.Contains(names, name) {
			out = append(out, name)
		}
	}
	for i, name := range names {
		if !slices.Contains(names[i+1:], name) {
			out = append(out, name)
		}
	}
	return out[max(0, len(out)-limit):]
}

type memoryKey struct{}

// WithMemory returns a context whose caller's finds are kept in mem, whatever
// memory is used otherwise.
func WithMemory(ctx context.Context, mem Memory) context.Context {
	return context.WithValue(ctx, memoryKey{}, mem)
}

// MemoryFrom returns the memory of WithMemory.
func MemoryFrom(ctx context.Context) (Memory, bool) {
	mem, ok := ctx.Value(memoryKey{}).(Memory)
	return mem, ok && mem != nil
}

// Watched is a memory that tells whose finds grew. It is safe for concurrent
// use.
type Watched struct {
	Memory

	mu      sync.Mutex
	hearers map[*hearer]struct{}
}

type hearer struct{ hear func(identity.Identity) }

// Watch returns mem as one that tells, or mem itself if it does already.
func Watch(mem Memory) *Watched {
	if w, ok := mem.(*Watched); ok {
		return w
	}
	return &Watched{Memory: mem, hearers: map[*hearer]struct{}{}}
}

// Add implements Memory.
func (w *Watched) Add(ctx context.Context, names ...string) error {
	if err := w.Memory.Add(ctx, names...); err != nil || len(names) == 0 {
		return err
	}
	caller, _ := identity.From(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for h := range w.hearers {
		h.hear(caller)
	}
	return nil
}

// Hear has f called with each caller for whom something was added, until stop
// is called. f must not block, nor use the memory.
func (w *Watched) Hear(f func(identity.Identity)) (stop func()) {
	h := &hearer{f}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hearers[h] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.hearers, h)
	}
}
