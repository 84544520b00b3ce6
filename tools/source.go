package tools

import (
	"context"
	"encoding/json"
)

// ToolCatalog holds the tools that can be called. Implementations are safe for
// concurrent use.
type ToolCatalog interface {
	// Register adds a tool. It returns ErrToolDuplicateName when there is one
	// of that name, and ErrToolInvalid or ErrToolExampleInvalid when the
	// descriptor cannot be used.
	Register(d ToolDescriptor) error
	// Resolve returns the descriptor of that name. Its Invoke is the whole
	// road of a call. What is returned belongs to the caller.
	Resolve(name string) (ToolDescriptor, bool)
	// List returns the tools that filter selects, sorted by name. What is
	// returned belongs to the caller.
	List(filter CatalogFilter) []Tool
	// Search returns the tools that match query and carry all the tags, best
	// first, among those that the caller on ctx sees. Without a search index
	// it returns nothing.
	Search(ctx context.Context, query string, tags []string, limit int) []Tool
}

// CatalogReplacer is a catalog that can replace tools in place.
type CatalogReplacer interface {
	// Replace swaps the named descriptors, all at once or, with an error,
	// none. It returns ErrToolNotFound when a name is not registered, and the
	// errors of Register. What is put around a source's tool is gone when the
	// source's tools are swapped; middleware of the catalog stays.
	Replace(wrapped []ToolDescriptor) error
}

// BatchRegistrar is a catalog that can add many tools in one step.
type BatchRegistrar interface {
	// RegisterAll adds all the descriptors or, with an error, none.
	RegisterAll(list []ToolDescriptor) error
}

// Deregisterer is a catalog that can remove tools.
type Deregisterer interface {
	// Deregister removes a tool. Calls that it runs go on. It returns
	// ErrToolNotFound when there is no tool of that name.
	Deregister(name string) error
}

// SourceSwapper is a catalog that takes a source's tools as a set.
type SourceSwapper interface {
	// SwapSource makes list the whole set of tools of a source, in one step:
	// new tools are added, tools of the same name replaced, and tools that
	// are not in list removed. A tool that cannot be registered, or whose
	// name belongs to another source, is refused alone.
	SwapSource(id ToolSourceID, list []ToolDescriptor) Changes
}

// Changes says what SwapSource did. The names are sorted.
type Changes struct {
	Added, Updated, Removed []string
	// Unchanged counts tools whose definition stayed the same, and who sees them.
	Unchanged int
	Refused   []Refusal
}

// Refusal is a tool that was not registered, and why.
type Refusal struct {
	Name string
	Err  error
}

// Quarantiner is a catalog that can hide a tool from every caller.
type Quarantiner interface {
	// Quarantine hides a tool, or shows it again. It returns ErrToolNotFound
	// when there is no tool of that name.
	Quarantine(name string, hidden bool) error
}

// Watcher is a catalog that tells when its tools changed.
type Watcher interface {
	// Watch returns a channel that receives the newest generation after a
	// change, at most one at a time, and a function that ends the watch and
	// closes the channel.
	Watch() (generations <-chan uint64, stop func())
}

// StageSwapper is a catalog whose stages can be swapped while it serves.
type StageSwapper interface {
	SwapStages(s Stages)
}

// Caller is a catalog that runs a tool by name and gives the same answer, and
// the same event, for a tool that does not exist as for one that the caller
// may not see.
type Caller interface {
	Call(ctx context.Context, name string, args json.RawMessage) (ToolResult, error)
}

// Snapshotter is a catalog whose state can be read at one moment.
type Snapshotter interface {
	Snapshot() *Snapshot
}

// LiveCatalog is everything that the catalog of NewCatalog can do.
type LiveCatalog interface {
	ToolCatalog
	CatalogReplacer
	BatchRegistrar
	Deregisterer
	SourceSwapper
	Quarantiner
	Watcher
	StageSwapper
	Caller
	Snapshotter
	Amender
}

// ToolProvider is an external source of tools.
type ToolProvider interface {
	// Connect is called once, before Discover.
	Connect(ctx context.Context) error
	// Discover returns the source's current tools. It may be called again.
	Discover(ctx context.Context) ([]ToolDescriptor, error)
	// Close releases what the source holds. It may be called more than once.
	Close(ctx context.Context) error
	// SourceID identifies the source; it never changes.
	SourceID() ToolSourceID
}

// ChangeNotifier is a ToolProvider that tells when Discover would return
// something else.
type ChangeNotifier interface {
	// OnChange sets the function to be called after a change. It is set
	// before Connect.
	OnChange(f func())
}

// ToolSearchCache is a search index of tools.
type ToolSearchCache interface {
	// Search returns the tools that match query and carry all the tags, best
	// first; limit bounds how many.
	Search(ctx context.Context, query string, tags []string, limit int) ([]Tool, error)
	// Sync makes tools the whole content of the index.
	Sync(ctx context.Context, tools []Tool) error
	Close() error
}

// VisibleSearcher is a ToolSearchCache that searches a visible set itself, so
// that what it finds, and in which order, depends on that set alone. A catalog
// prefers it to Search, and never calls Sync then.
type VisibleSearcher interface {
	// SearchVisible returns the names of the tools of v that match query and
	// carry all the tags, best first; limit bounds how many.
	SearchVisible(ctx context.Context, v *VisibleSet, query string, tags []string, limit int) ([]string, error)
}

// Invoke runs a tool of cat by name: the entrance's way in. Arguments are JSON;
// empty means an object without members.
func Invoke(ctx context.Context, cat ToolCatalog, name string, args json.RawMessage) (ToolResult, error) {
	if cat == nil {
		return ToolResult{}, notFound(name)
	}
	if c, ok := cat.(Caller); ok {
		return c.Call(ctx, name, args)
	}
	if d, ok := cat.Resolve(name); ok {
		return d.Invoke(ctx, args)
	}
	return ToolResult{}, notFound(name)
}

func notFound(name string) *Error {
	return &Error{Tool: truncate(name, maxShownName), Code: ErrToolNotFound, Class: ErrClassPermanent, Delivery: NotDelivered}
}

// maxShownName bounds how much of an unknown name is repeated, in bytes.
const maxShownName = 128

// Refuser is a ToolProvider that found tools at its source which it cannot
// describe at all.
type Refuser interface {
	// Refused returns what the last Discover left out, and why.
	Refused() []Refusal
}

// Amender is a catalog whose tools can be adjusted by their operator.
type Amender interface {
	// Amend sets the function that adjusts each tool's metadata before it is
	// bound, and binds every tool anew. With an error nothing changed.
	Amend(f func(*Tool)) error
}
