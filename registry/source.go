package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// SourceID is the source of all tools that workers serve.
const SourceID tools.ToolSourceID = "workers"

// Source is the tools of all toolsets as one source for a catalog.
type Source struct {
	reg    *Registry
	mu     sync.Mutex
	change func()
	closed atomic.Bool
}

var (
	_ tools.ToolProvider   = (*Source)(nil)
	_ tools.ChangeNotifier = (*Source)(nil)
)

// Source returns the tools of all toolsets as a source for a catalog. Closing it
// does not close the registry.
func (r *Registry) Source() *Source { return &Source{reg: r} }

// Connect implements tools.ToolProvider.
func (s *Source) Connect(context.Context) error {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if s.reg.closed || s.closed.Load() {
		return refuse(tools.ErrClassPermanent, errClosed)
	}
	s.reg.notify = append(s.reg.notify, s)
	return nil
}

// Discover implements tools.ToolProvider. Toolsets without a worker keep their
// tools.
func (s *Source) Discover(context.Context) ([]tools.ToolDescriptor, error) {
	if s.closed.Load() {
		return nil, refuse(tools.ErrClassPermanent, errClosed)
	}
	var list []tools.ToolDescriptor
	for _, ts := range byAge(s.reg.all()) {
		for _, d := range ts.descriptors() {
			d.Invoke = s.open(d.Invoke)
			list = append(list, d)
		}
	}
	return list, nil
}

// byAge sorts toolsets so that the one comes first that was there first: a catalog
// refuses the second tool of a name, and no worker takes a tool from another.
func byAge(list []*toolset) []*toolset {
	founded := make(map[*toolset]time.Time, len(list))
	for _, ts := range list {
		ts.mu.Lock()
		founded[ts] = ts.agreed.founded()
		ts.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b *toolset) int {
		return cmp.Or(founded[a].Compare(founded[b]), strings.Compare(a.name, b.name))
	})
	return list
}

// open lets calls through until the source is closed.
func (s *Source) open(invoke tools.Invoker) tools.Invoker {
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if s.closed.Load() {
			return tools.ToolResult{}, refuse(tools.ErrClassPermanent, errClosed)
		}
		return invoke(ctx, args)
	}
}

// Close implements tools.ToolProvider. Calls under way go on.
func (s *Source) Close(context.Context) error {
	s.closed.Store(true)
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	s.reg.notify = slices.DeleteFunc(s.reg.notify, func(o *Source) bool { return o == s })
	return nil
}

// SourceID implements tools.ToolProvider.
func (s *Source) SourceID() tools.ToolSourceID { return SourceID }

// OnChange implements tools.ChangeNotifier.
func (s *Source) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = f
}

// changedTools tells the sources that Discover would return something else.
func (r *Registry) changedTools() {
	r.mu.Lock()
	list := slices.Clone(r.notify)
	r.mu.Unlock()
	for _, s := range list {
		s.mu.Lock()
		change := s.change
		s.mu.Unlock()
		if change != nil {
			change()
		}
	}
}
