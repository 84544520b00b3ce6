package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// Turn is one request to a model and the calls it answers with. What is declared
// in it does not change. It is safe for concurrent use.
type Turn struct {
	run      *Run
	declared view.Declared
	caller   identity.Identity // to whom it is declared
	native   bool              // deferred tools are declared for the provider's own search
	// dropped are the names that the selection left out, sorted.
	dropped []string

	hints atomic.Int32 // how many calls were told which name they may have meant

	mu   sync.Mutex
	head bool  // a call was dispatched
	used Usage // guarded by the run's lock
}

// Begin begins a turn: it fixes what is declared to the caller on ctx. What was
// found in an earlier turn is declared, what is found in this one is not yet.
//
// The error is tools.ErrIdentityRequired where the catalog demands an identity and
// ctx carries none, as every call of the turn would be refused for that.
func (r *Run) Begin(ctx context.Context) (*Turn, error) {
	runner := r.runner
	if err := checkCaller(ctx, runner.cat); err != nil {
		return nil, err
	}
	declared, err := runner.discovery.Declared(r.withMemory(ctx), runner.cat)
	if err != nil {
		return nil, fmt.Errorf("turn: what the caller has found: %w", err)
	}
	t := &Turn{run: r, declared: declared, native: runner.opts.NativeDeferral}
	if who, ok := identity.QuadrupleFrom(ctx); ok {
		t.caller = who.Identity
	}
	if t.native {
		t.dropMeta()
	}
	if runner.opts.Select != nil {
		if err := t.narrow(ctx, runner.opts.Select); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkCaller asks a catalog, if it can say so, whether it takes calls of the
// caller on ctx.
func checkCaller(ctx context.Context, cat tools.LiveCatalog) error {
	c, ok := cat.(interface{ CheckCaller(context.Context) error })
	if !ok {
		return nil
	}
	if err := c.CheckCaller(ctx); errors.Is(err, tools.ErrIdentityRequired) {
		return fmt.Errorf("turn: %w", err)
	}
	return nil
}

// dropMeta leaves out the tools that a provider's own search stands in for.
func (t *Turn) dropMeta() {
	for _, name := range t.declared.Names() {
		if tool := t.declared.View().Ref(name); tool.Kind == tools.KindMeta && (tool.Loading == "" || name == view.SearchTool && tool.Loading != tools.LoadingAlways) {
			t.dropped = append(t.dropped, name)
		}
	}
}

// narrow leaves out what is not selected.
func (t *Turn) narrow(ctx context.Context, choose Selector) error {
	keep, err := selection(ctx, choose, t.Tools())
	if err != nil {
		return fmt.Errorf("turn: selection of tools: %w", err)
	}
	keep = slices.Sorted(slices.Values(keep))
	dropped := t.dropped
	for _, name := range t.Names() {
		if _, kept := slices.BinarySearch(keep, name); !kept {
			dropped = append(dropped, name)
		}
	}
	slices.Sort(dropped)
	t.dropped = dropped
	return nil
}

// selection asks choose, which fails when it panics.
func selection(ctx context.Context, choose Selector, list []tools.Tool) (keep []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			keep, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	return choose(ctx, list)
}

// Tools returns what is declared in the turn, sorted by name, for an adapter to
// show to the model. Hidden arguments are in none of their fields.
func (t *Turn) Tools() []tools.Tool {
	names := t.Names()
	list := make([]tools.Tool, 0, len(names))
	for _, name := range names {
		tool, ok := t.declared.Tool(name)
		if !ok {
			tool, _ = t.declared.View().Tool(name)
			tool.Loading = tools.LoadingDeferred
		}
		list = append(list, tool)
	}
	return shown(list)
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
	all := t.declared.Names
	if t.native {
		all = t.declared.View().Names
	}
	return slices.DeleteFunc(all(), func(name string) bool { return !t.Has(name) })
}

// Has reports whether a tool of that canonical name is declared in the turn.
func (t *Turn) Has(name string) bool {
	_, dropped := slices.BinarySearch(t.dropped, name)
	return !dropped && (t.declared.Has(name) || t.native && t.isDeferred(name))
}

// isDeferred reports whether a tool is seen and not declared.
func (t *Turn) isDeferred(name string) bool {
	tool := t.declared.View().Ref(name)
	return tool != nil && tool.Kind != tools.KindMeta
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

// isFor reports whether the caller on ctx is the one to whom the turn is declared.
// A turn that was begun without an identity is for everybody.
func (t *Turn) isFor(ctx context.Context) bool {
	who, _ := identity.QuadrupleFrom(ctx)
	return t.caller == identity.Identity{} || t.caller == who.Identity
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
	keep, err := selection(ctx, choose, shown([]tools.Tool{tool}))
	return err == nil && slices.Contains(keep, name)
}
