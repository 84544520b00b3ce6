package turn

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// Turn is one request to a model and the calls it answers with. What is declared
// in it does not change. It is safe for concurrent use.
type Turn struct {
	run      *Run
	declared view.Declared
	// dropped are the names that the selection left out, sorted.
	dropped []string

	mu   sync.Mutex
	head bool  // a call was dispatched
	used Usage // guarded by the run's lock
}

// Begin begins a turn: it fixes what is declared to the caller on ctx. What was
// found in an earlier turn is declared, what is found in this one is not yet.
func (r *Run) Begin(ctx context.Context) (*Turn, error) {
	runner := r.runner
	declared, err := runner.discovery.Declared(r.withMemory(ctx), runner.cat)
	if err != nil {
		return nil, fmt.Errorf("turn: what the caller has found: %w", err)
	}
	t := &Turn{run: r, declared: declared}
	if runner.opts.Select == nil {
		return t, nil
	}
	keep, err := runner.opts.Select(ctx, shown(declared.Tools()))
	if err != nil {
		return nil, fmt.Errorf("turn: selection of tools: %w", err)
	}
	keep = slices.Sorted(slices.Values(keep))
	for _, name := range declared.Names() {
		if _, kept := slices.BinarySearch(keep, name); !kept {
			t.dropped = append(t.dropped, name)
		}
	}
	return t, nil
}

// Tools returns what is declared in the turn, sorted by name, for an adapter to
// show to the model. Hidden arguments are in none of their fields.
func (t *Turn) Tools() []tools.Tool {
	return slices.DeleteFunc(shown(t.declared.Tools()), func(tool tools.Tool) bool { return !t.Has(tool.Name) })
}

// shown removes from tools what a model is not told: the names of hidden
// arguments, and the definition as its source wrote it where that has them too.
func shown(list []tools.Tool) []tools.Tool {
	for i := range list {
		if len(list[i].Injected) > 0 {
			list[i].Injected, list[i].Definition = nil, nil
		}
	}
	return list
}

// Names returns the canonical names of what is declared, sorted.
func (t *Turn) Names() []string {
	return slices.DeleteFunc(t.declared.Names(), func(name string) bool { return !t.Has(name) })
}

// Has reports whether a tool of that canonical name is declared in the turn.
func (t *Turn) Has(name string) bool {
	_, dropped := slices.BinarySearch(t.dropped, name)
	return !dropped && t.declared.Has(name)
}

// Deferred returns how many tools the caller sees that are not declared, apart
// from those that the selection left out.
func (t *Turn) Deferred() int { return t.declared.Deferred() }

// Run returns the run that the turn belongs to.
func (t *Turn) Run() *Run { return t.run }

// Used returns what the turn's calls used so far.
func (t *Turn) Used() Usage {
	t.run.mu.Lock()
	defer t.run.mu.Unlock()
	return t.used
}

func (t *Turn) meter() meter { return meter{run: t.run, turn: &t.used} }

// takeHead reports whether no call of the turn was dispatched before.
func (t *Turn) takeHead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.head
	t.head = true
	return first
}

// permits reports whether a call of the declared tool by that name may run tool,
// which is another one where the call was redirected.
func (t *Turn) permits(ctx context.Context, name string, tool *tools.Tool) bool {
	if !t.Has(name) {
		return false
	}
	if tool.Name == name || t.Has(tool.Name) {
		return true
	}
	if _, dropped := slices.BinarySearch(t.dropped, tool.Name); dropped || !t.declared.View().Has(tool.Name) {
		return false
	}
	return t.selects(ctx, tool.Name)
}

// selects asks the selection about a tool that is not declared.
func (t *Turn) selects(ctx context.Context, name string) bool {
	choose := t.run.runner.opts.Select
	if choose == nil {
		return true
	}
	tool, ok := t.declared.View().Tool(name)
	if !ok {
		return false
	}
	keep, err := choose(ctx, shown([]tools.Tool{tool}))
	return err == nil && slices.Contains(keep, name)
}
