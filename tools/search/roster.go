package search

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// roster is the tools that Sync was given, for a catalog that keeps no visible sets.
type roster struct {
	mu    sync.Mutex
	all   []*entry // sorted by name
	views map[string]*listed
}

// entry is one tool. Its address is its edition.
type entry struct{ tool tools.Tool }

// listed is the tools of a roster that one class of callers sees.
type listed struct {
	class string
	list  []*entry
	once  sync.Once
	value any
}

func (l *listed) Len() int      { return len(l.list) }
func (l *listed) Class() string { return l.class }

func (l *listed) edition(i int) edition { return l.list[i] }
func (l *listed) name(i int) string     { return l.list[i].tool.Name }

func (l *listed) tools(from, n int) []tools.Tool {
	out := make([]tools.Tool, n)
	for i := range out {
		out[i] = l.list[from+i].tool
	}
	return out
}

func (l *listed) memo(_ any, build func() any) any {
	l.once.Do(func() { l.value = build() })
	return l.value
}

// Sync implements [tools.ToolSearchCache]: it makes list the whole content that Search looks at. Tools that
// did not change are not read again.
func (x *Index) Sync(ctx context.Context, list []tools.Tool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	x.roster.mu.Lock()
	defer x.roster.mu.Unlock()
	old := map[string]*entry{}
	for _, e := range x.roster.all {
		old[e.tool.Name] = e
	}
	next := make([]*entry, len(list))
	for i := range list {
		next[i] = &entry{list[i]}
		if have := old[list[i].Name]; have != nil && sameWords(&have.tool, &list[i]) {
			next[i] = have
		}
	}
	slices.SortStableFunc(next, func(a, b *entry) int { return strings.Compare(a.tool.Name, b.tool.Name) })
	x.roster.all = slices.CompactFunc(next, func(a, b *entry) bool { return a.tool.Name == b.tool.Name })
	x.roster.views = map[string]*listed{}
	return nil
}

// sameWords reports whether two tools are found, and seen, alike.
func sameWords(a, b *tools.Tool) bool {
	return a.DefinitionDigest != "" && a.DefinitionDigest == b.DefinitionDigest &&
		a.Namespace == b.Namespace && a.SourceName == b.SourceName && a.Category == b.Category && a.Source == b.Source && a.SourcePart == b.SourcePart &&
		a.Description == b.Description && a.Title == b.Title && string(a.ArgsSchema) == string(b.ArgsSchema) &&
		slices.Equal(a.Tags, b.Tags) && slices.Equal(a.AuthScopes, b.AuthScopes) && slices.Equal(a.Tenants, b.Tenants)
}

// Search implements [tools.ToolSearchCache]: it looks among the tools that Sync was given and that the caller
// on ctx may see.
func (x *Index) Search(ctx context.Context, query string, tags []string, limit int) ([]tools.Tool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v := x.roster.view(tools.FilterFrom(ctx))
	found := x.find(ctx, v, Query{Text: query, Tags: tags, Limit: limit})
	out := make([]tools.Tool, 0, len(found.Hits))
	for _, h := range found.Hits {
		i, ok := slices.BinarySearchFunc(v.list, h.Name, func(e *entry, name string) int { return strings.Compare(e.tool.Name, name) })
		if ok {
			out = append(out, v.list[i].tool)
		}
	}
	return out, nil
}

// maxViews bounds how many classes of callers a roster remembers.
const maxViews = 64

// view returns what a caller sees.
func (r *roster) view(f tools.CatalogFilter) *listed {
	r.mu.Lock()
	defer r.mu.Unlock()
	class := r.class(&f)
	if v := r.views[class]; v != nil {
		return v
	}
	v := &listed{class: class}
	for _, e := range r.all {
		if f.Permits(&e.tool) {
			v.list = append(v.list, e)
		}
	}
	if len(r.views) < maxViews && r.views != nil {
		r.views[class] = v
	}
	return v
}

// class names what of a caller decides which tools are seen.
func (r *roster) class(f *tools.CatalogFilter) string {
	held := map[string]bool{}
	for _, e := range r.all {
		for _, scope := range e.tool.AuthScopes {
			if slices.Contains(f.GrantedScopes, scope) {
				held[" "+scope] = true
			}
		}
		if slices.Contains(e.tool.Tenants, f.TenantID) {
			held["@"+f.TenantID] = true
		}
	}
	parts := make([]string, 0, len(held))
	for p := range held {
		parts = append(parts, p)
	}
	slices.Sort(parts)
	return "synced\x00" + strings.Join(append(parts, f.PartClass()), "\x00")
}
