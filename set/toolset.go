package set

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// Toolset is a named set of tools. It is safe for concurrent use.
type Toolset struct {
	name     string
	registry Registry
	filters  []FilterFunc
	policy   Policy
	caller   context.Context // of a set that For made; nil otherwise

	mu      sync.RWMutex
	own     map[string]*tools.Tool // given or added
	removed map[string]bool        // of the registry's tools
	cached  *listing
	edition string // names the set while it stays as it is; empty until it is asked for
}

// listing is what a set held when its registry was of a generation. It never
// changes.
type listing struct {
	generation uint64
	tools      []*tools.Tool // sorted by name
}

// Name returns the set's name.
func (t *Toolset) Name() string { return t.name }

// Get returns a copy of the tool of that name.
func (t *Toolset) Get(id string) (*tools.Tool, bool) {
	list := t.list()
	i, found := find(list, id)
	if !found {
		return nil, false
	}
	return copyOf(list[i]), true
}

// Count returns how many tools the set holds.
func (t *Toolset) Count() int { return len(t.list()) }

// IDs returns the names, sorted.
func (t *Toolset) IDs() []string {
	list := t.list()
	ids := make([]string, len(list))
	for i, tool := range list {
		ids[i] = tool.Name
	}
	return ids
}

// Tools returns copies of the tools, sorted by name.
func (t *Toolset) Tools() []*tools.Tool {
	list := t.list()
	out := make([]*tools.Tool, len(list))
	for i, tool := range list {
		out[i] = copyOf(tool)
	}
	return out
}

// Add puts a tool into the set, past the filters, which are for the sources. The
// error is ErrNilTool, ErrDuplicateID, or ErrDenied.
func (t *Toolset) Add(tool *tools.Tool) error {
	if tool == nil {
		return fmt.Errorf("%w (set %q)", ErrNilTool, t.name)
	}
	if !t.permits(tool) {
		return fmt.Errorf("%w %q (set %q)", ErrDenied, tool.Name, t.name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := find(t.current(), tool.Name); found {
		return fmt.Errorf("%w %q in set %q", ErrDuplicateID, tool.Name, t.name)
	}
	t.own[tool.Name] = copyOf(tool)
	t.cached, t.edition = nil, ""
	return nil
}

// Remove takes a tool out of the set, also for as long as the registry has it,
// and reports whether it was there.
func (t *Toolset) Remove(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, found := find(t.current(), id); !found {
		return false
	}
	if t.own[id] != nil {
		delete(t.own, id)
	} else {
		if t.removed == nil {
			t.removed = map[string]bool{}
		}
		t.removed[id] = true
	}
	t.cached, t.edition = nil, ""
	return true
}

// Filter returns the set of those tools that f accepts too. It follows the same
// registry; what is added to one of the two or removed from it later is not in
// the other.
func (t *Toolset) Filter(f FilterFunc) *Toolset {
	next := t.copied()
	next.filters = append(slices.Clip(next.filters), f)
	for id, tool := range next.own {
		if !f.accepts(tool) {
			delete(next.own, id)
		}
	}
	return next
}

// For returns what the caller on ctx may see of the set: the scopes that it
// holds, its tenant, and a CallerPolicy decide. It stays that of this caller.
func (t *Toolset) For(ctx context.Context) *Toolset {
	next := t.copied()
	next.caller = ctx
	for id, tool := range next.own {
		if !next.permits(tool) || !visible(ctx, tool) {
			delete(next.own, id)
		}
	}
	return next
}

// visible reports whether the caller on ctx may see a tool that is in no
// catalog.
func visible(ctx context.Context, tool *tools.Tool) bool {
	filter := tools.FilterFrom(ctx)
	if !AllowScopes(filter.GrantedScopes...).Allow(tool) {
		return false
	}
	return len(tool.Tenants) == 0 || slices.Contains(tool.Tenants, filter.TenantID)
}

func (t *Toolset) copied() *Toolset {
	t.mu.RLock()
	defer t.mu.RUnlock()
	next := &Toolset{name: t.name, registry: t.registry, filters: t.filters, policy: t.policy, caller: t.caller,
		own: make(map[string]*tools.Tool, len(t.own)), removed: make(map[string]bool, len(t.removed))}
	for id, tool := range t.own {
		next.own[id] = tool
	}
	for id := range t.removed {
		next.removed[id] = true
	}
	return next
}

// Permits reports whether the set would hold a tool of its registry for the
// caller on ctx, leaving aside what the caller may see of the registry.
func (t *Toolset) Permits(ctx context.Context, tool *tools.Tool) bool {
	if tool == nil || !t.accepted(tool) {
		return false
	}
	t.mu.RLock()
	removed := t.removed[tool.Name]
	t.mu.RUnlock()
	return !removed && allows(ctx, t.policy, tool)
}

// chooses reports whether filters and policy let a tool of a source in.
func (t *Toolset) chooses(tool *tools.Tool) bool {
	return tool != nil && t.accepted(tool) && t.permits(tool)
}

func (t *Toolset) accepted(tool *tools.Tool) bool {
	for _, f := range t.filters {
		if !f.accepts(tool) {
			return false
		}
	}
	return true
}

func (t *Toolset) permits(tool *tools.Tool) bool { return allows(t.caller, t.policy, tool) }

func allows(caller context.Context, p Policy, tool *tools.Tool) bool {
	if asked, ok := p.(CallerPolicy); ok && caller != nil {
		return asked.AllowCaller(caller, tool)
	}
	return p.Allow(tool)
}

// list returns the tools that the set holds now. They must not be changed.
func (t *Toolset) list() []*tools.Tool {
	t.mu.RLock()
	if c := t.cached; c != nil && t.fresh(c) {
		t.mu.RUnlock()
		return c.tools
	}
	t.mu.RUnlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current()
}

// current is list for a caller that holds the lock.
func (t *Toolset) current() []*tools.Tool {
	if c := t.cached; c != nil && t.fresh(c) {
		return c.tools
	}
	next := &listing{}
	var offered []tools.Tool
	next.generation, offered = t.offered()
	next.tools = make([]*tools.Tool, 0, len(t.own)+len(offered))
	for i := range offered {
		if tool := &offered[i]; t.own[tool.Name] == nil && !t.removed[tool.Name] && t.chooses(tool) {
			next.tools = append(next.tools, tool)
		}
	}
	for _, tool := range t.own {
		next.tools = append(next.tools, tool)
	}
	slices.SortFunc(next.tools, func(a, b *tools.Tool) int { return strings.Compare(a.Name, b.Name) })
	t.cached = next
	return next.tools
}

// fresh reports whether a listing still says what the set holds. Of a registry
// that does not tell its generation nothing is known.
func (t *Toolset) fresh(c *listing) bool {
	if t.registry == nil {
		return true
	}
	s, ok := t.registry.(tools.Snapshotter)
	return ok && s.Snapshot().Generation() == c.generation
}

// offered returns what the registry has, for the caller of the set if it has
// one.
func (t *Toolset) offered() (generation uint64, list []tools.Tool) {
	if t.registry == nil {
		return 0, nil
	}
	filter := tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingAlways, tools.LoadingDeferred}}
	if t.caller != nil {
		filter = tools.FilterFrom(t.caller)
	}
	if s, ok := t.registry.(tools.Snapshotter); ok {
		snapshot := s.Snapshot()
		return snapshot.Generation(), snapshot.Visible(filter).Tools()
	}
	return 0, t.registry.List(filter)
}

// clash refuses a set that is given a tool which its registry has too.
func (t *Toolset) clash() error {
	if len(t.own) == 0 {
		return nil
	}
	_, offered := t.offered()
	for i := range offered {
		if tool := &offered[i]; t.own[tool.Name] != nil && t.chooses(tool) {
			return fmt.Errorf("%w %q in set %q", ErrDuplicateID, tool.Name, t.name)
		}
	}
	return nil
}

func find(list []*tools.Tool, id string) (int, bool) {
	return slices.BinarySearchFunc(list, id, func(t *tools.Tool, id string) int { return strings.Compare(t.Name, id) })
}

// copyOf returns a tool that can be changed at its top without changing t. What
// its slices hold is not to be changed by anybody.
func copyOf(t *tools.Tool) *tools.Tool {
	copied := *t
	return &copied
}
