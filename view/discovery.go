package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/tools"
)

// SearchTool is the name of the meta-tool that finds deferred tools. Where a
// caller does not see a [tools.KindMeta] tool of that name, nothing is deferred
// for it, as it would be out of reach.
const SearchTool = "tool_search"

// Mode says which of the tools that a caller sees are declared to it from the
// start. In every mode a tool whose loading somebody set is declared as that
// says; the modes differ in tools whose loading nobody set.
type Mode string

// The Mode values.
const (
	// ModeAuto defers tools of unset loading once the tools that are not
	// deferred otherwise take more of a model's context than the budget. It is
	// the default.
	ModeAuto Mode = "auto"
	// ModeFull declares them.
	ModeFull Mode = "full"
	// ModeSearch defers them.
	ModeSearch Mode = "search"
)

// ParseMode returns the mode of that name. The empty name is ModeAuto.
func ParseMode(name string) (Mode, error) {
	switch m := cmp.Or(Mode(name), ModeAuto); m {
	case ModeAuto, ModeFull, ModeSearch:
		return m, nil
	}
	return "", fmt.Errorf("view: unknown discovery mode %q: expected auto, full or search", name)
}

// DefaultBudgetTokens is how much of a model's context the declared tools may
// take before ModeAuto defers some, in tokens. Forty to fifty usual tools stay
// below it, which models still choose well among; it is a twentieth of a context
// of 200,000.
const DefaultBudgetTokens = 10_000

// DiscoveryOptions configure [NewDiscovery]. A zero field means its default.
type DiscoveryOptions struct {
	// Mode is ModeAuto by default. An unknown one counts as that.
	Mode Mode
	// BudgetTokens is for ModeAuto.
	BudgetTokens int
	// ToolsOnly is for protocols that have lists of their own for resources,
	// resource templates and prompts: they are then not deferred, and declared
	// like tools only once they were found.
	ToolsOnly bool
}

// Discovery decides what a caller is declared of what it sees. It is safe for
// concurrent use.
type Discovery struct {
	memory *Watched
	rule   atomic.Pointer[rule]
}

// NewDiscovery returns a discovery that remembers in mem what callers find; nil
// is a memory of its own, in this process. Nil options are the defaults.
func NewDiscovery(mem Memory, opts *DiscoveryOptions) *Discovery {
	if mem == nil {
		mem = NewMemory(nil)
	}
	d := &Discovery{memory: Watch(mem)}
	d.Change(opts)
	return d
}

// Change has the discovery decide by other options from now on. What callers have
// found stays. Who shows lists to callers looks at them anew when the catalog
// changes.
func (d *Discovery) Change(opts *DiscoveryOptions) {
	var r rule
	if opts != nil {
		r = rule{opts.Mode, opts.BudgetTokens, opts.ToolsOnly}
	}
	if mode, err := ParseMode(string(r.mode)); err != nil || r.mode == "" {
		r.mode = cmp.Or(mode, ModeAuto)
	}
	r.budget = cmp.Or(max(r.budget, 0), DefaultBudgetTokens)
	d.rule.Store(&r)
}

// Memory returns the memory, which tells whose finds grew.
func (d *Discovery) Memory() *Watched { return d.memory }

// Mode returns the mode.
func (d *Discovery) Mode() Mode { return d.rule.Load().mode }

// Declared returns what the caller on ctx is declared now: what is not deferred
// for it, the deferred tools that it has found, and the meta-tools while
// anything that it sees is deferred. What it has found is in the memory of
// [WithMemory], if there is one on ctx, else in the discovery's own.
//
// With an error, which is the memory's, what is returned is complete but for
// the tools that the caller has found.
func (d *Discovery) Declared(ctx context.Context, cat tools.Snapshotter) (Declared, error) {
	v, rule := From(ctx, cat), *d.rule.Load()
	out := Declared{view: v, division: Memo(v, rule, rule.divide)}
	out.names = out.division.names
	if len(out.division.deferred)+len(out.division.apart) == 0 {
		return out, nil
	}
	mem, ok := MemoryFrom(ctx)
	if !ok {
		mem = d.memory
	}
	found, err := mem.Found(ctx)
	for _, name := range found {
		if out.division.adds(name) {
			out.found = append(out.found, name)
		}
	}
	if len(out.found) > 0 {
		out.names = merge(out.names, out.found)
	}
	return out, err
}

// merge returns the sorted names of two sorted lists that share none.
func merge(a, b []string) []string {
	out := make([]string, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Declared is what one caller is declared at one moment, sorted by name. It is a
// small value, never changes, and is safe for concurrent use. The zero Declared
// is empty.
type Declared struct {
	view     View
	division *division
	names    []string
	found    []string // those of them that were found
}

// View returns all that the caller sees, declared or not.
func (d Declared) View() View { return d.view }

// Len returns how many tools are declared.
func (d Declared) Len() int { return len(d.names) }

// Has reports whether a tool of that canonical name is declared.
func (d Declared) Has(name string) bool {
	_, found := slices.BinarySearch(d.names, name)
	return found
}

// Names returns the canonical names, sorted.
func (d Declared) Names() []string { return slices.Clone(d.names) }

// Tool returns a copy of the declared tool of that canonical name. The
// description of [SearchTool] names the sources whose tools it finds.
func (d Declared) Tool(name string) (tools.Tool, bool) {
	if !d.Has(name) {
		return tools.Tool{}, false
	}
	t, ok := d.view.Tool(name)
	d.division.describe(&t)
	return t, ok
}

// Tools returns copies of all the declared tools.
func (d Declared) Tools() []tools.Tool {
	out := make([]tools.Tool, 0, len(d.names))
	for _, name := range d.names {
		if t, ok := d.Tool(name); ok {
			out = append(out, t)
		}
	}
	return out
}

// Found returns the names of the tools that are declared because they were found,
// sorted.
func (d Declared) Found() []string { return slices.Clone(d.found) }

// Deferred returns how many tools that the caller sees are not declared.
func (d Declared) Deferred() int {
	if d.division == nil {
		return 0
	}
	n := len(d.division.deferred)
	for _, name := range d.found {
		if d.division.defers(name) {
			n--
		}
	}
	return n
}

// Tokens estimates how much of a model's context the declared tools take, those
// that were found aside.
func (d Declared) Tokens() int {
	if d.division == nil {
		return 0
	}
	return d.division.tokens
}

// Sources returns where the tools that the caller sees come from, by name.
func (d Declared) Sources() []SourceCount {
	if d.division == nil {
		return nil
	}
	return slices.Clone(d.division.sources)
}
