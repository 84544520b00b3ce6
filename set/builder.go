package set

import (
	"errors"
	"fmt"
	"slices"

	"github.com/toolcrib/toolcrib/tools"
)

// Sentinels, for callers that branch. Compare with errors.Is.
var (
	// ErrNoSource: Build was called before FromTools or FromRegistry.
	ErrNoSource = errors.New("set: no source of tools: call FromTools or FromRegistry")
	// ErrNilAdapter: an exposure has no adapter.
	ErrNilAdapter = errors.New("set: the adapter is nil")
	// ErrNilToolset: an exposure has no toolset.
	ErrNilToolset = errors.New("set: the toolset is nil")
	// ErrNilTool: the tool that was to be added is nil.
	ErrNilTool = errors.New("set: the tool is nil")
	// ErrDuplicateID: two tools have one name.
	ErrDuplicateID = errors.New("set: duplicate tool")
	// ErrDenied: the set's policy denies the tool that was to be added.
	ErrDenied = errors.New("set: the policy denies the tool")
)

// Registry lists tools. A catalog is one.
type Registry interface {
	List(filter tools.CatalogFilter) []tools.Tool
}

// Builder configures a set. It is for one goroutine: configure, then Build.
type Builder struct {
	name     string
	fixed    []*tools.Tool
	given    bool
	registry Registry
	filters  []FilterFunc
	policy   Policy
}

// NewBuilder begins a set of that name.
func NewBuilder(name string) *Builder { return &Builder{name: name, policy: AllowAll()} }

// FromTools takes the tools of a list; nil ones are passed over. It adds to what
// other sources give.
func (b *Builder) FromTools(list []*tools.Tool) *Builder {
	b.fixed, b.given = append(b.fixed, list...), true
	return b
}

// FromRegistry takes the tools of a registry and follows it. A nil registry is
// none.
func (b *Builder) FromRegistry(r Registry) *Builder {
	b.registry = r
	return b
}

// WithNamespace keeps tools of the namespace.
func (b *Builder) WithNamespace(namespace string) *Builder {
	return b.WithFilter(NamespaceFilter(namespace))
}

// WithNamespaces keeps tools of one of the namespaces.
func (b *Builder) WithNamespaces(namespaces ...string) *Builder {
	return b.WithFilter(NamespaceFilter(namespaces...))
}

// WithTags keeps tools that have one of the tags.
func (b *Builder) WithTags(tags ...string) *Builder { return b.WithFilter(TagsAny(tags...)) }

// WithCategories keeps tools of one of the categories.
func (b *Builder) WithCategories(categories ...string) *Builder {
	return b.WithFilter(CategoryFilter(categories...))
}

// WithTools keeps the tools of these names.
func (b *Builder) WithTools(ids ...string) *Builder { return b.WithFilter(AllowIDs(ids...)) }

// ExcludeTools drops the tools of these names.
func (b *Builder) ExcludeTools(ids ...string) *Builder { return b.WithFilter(DenyIDs(ids...)) }

// WithFilter adds a filter. All filters must accept a tool; they are asked in
// the order in which they were added.
func (b *Builder) WithFilter(f FilterFunc) *Builder {
	b.filters = append(b.filters, f)
	return b
}

// WithPolicy sets the policy, which is asked after the filters. The last one
// that is set counts; nil denies every tool. Without one, every tool that the
// filters accept is allowed.
func (b *Builder) WithPolicy(p Policy) *Builder {
	if p == nil {
		p = DenyAll()
	}
	b.policy = p
	return b
}

// Build returns the set. The error is ErrNoSource, or ErrDuplicateID when two of
// the tools that it is to hold have one name.
func (b *Builder) Build() (*Toolset, error) {
	if !b.given && b.registry == nil {
		return nil, fmt.Errorf("%w (set %q)", ErrNoSource, b.name)
	}
	t := &Toolset{name: b.name, registry: b.registry, filters: slices.Clone(b.filters), policy: b.policy, own: map[string]*tools.Tool{}}
	for _, tool := range b.fixed {
		if !t.chooses(tool) {
			continue
		}
		if t.own[tool.Name] != nil {
			return nil, fmt.Errorf("%w %q in set %q", ErrDuplicateID, tool.Name, b.name)
		}
		t.own[tool.Name] = copyOf(tool)
	}
	if err := t.clash(); err != nil {
		return nil, err
	}
	return t, nil
}
