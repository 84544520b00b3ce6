package tools

import (
	"context"
	"regexp"
	"slices"

	"github.com/toolcrib/toolcrib/identity"
)

// CatalogFilter selects the tools that List returns.
type CatalogFilter struct {
	// TenantID, UserID and SessionID name the caller. An empty triple is the
	// administrator's view; whoever serves callers must demand a scope for it.
	TenantID, UserID, SessionID string
	// GrantedScopes are the scopes that the caller holds. A tool is visible
	// when every one of its AuthScopes is among them.
	GrantedScopes []string
	// LoadingModes selects by loading mode. Empty means LoadingAlways alone.
	LoadingModes []LoadingMode
	// NameRegex, when not nil, selects by name.
	NameRegex *regexp.Regexp

	// caller says that the filter was made from a context, so that an empty
	// triple is a caller without identity and not the administrator.
	caller bool
	part   *Part // nil: all
}

// HasFullTriple reports whether tenant, user and session are all present.
func (f CatalogFilter) HasFullTriple() bool {
	return f.TenantID != "" && f.UserID != "" && f.SessionID != ""
}

// FilterFrom returns the filter of the caller on ctx: its identity and granted
// scopes, the part of WithPart, tools of both loading modes.
func FilterFrom(ctx context.Context) CatalogFilter {
	id, _ := identity.From(ctx)
	return CatalogFilter{
		TenantID: id.TenantID, UserID: id.UserID, SessionID: id.SessionID,
		GrantedScopes: slices.Clone(identity.ScopesFrom(ctx)),
		LoadingModes:  allLoadingModes(),
		caller:        true,
		part:          partFuncOf(ctx).at(ctx),
	}
}

func allLoadingModes() []LoadingMode { return []LoadingMode{LoadingAlways, LoadingDeferred} }

// admin reports whether the filter is the administrator's view.
func (f *CatalogFilter) admin() bool {
	return !f.caller && f.TenantID == "" && f.UserID == "" && f.SessionID == ""
}

// VisibleNames returns the sorted names of every tool that filter lets
// through, in both loading modes whatever filter says about them. A nil
// catalog gives nil.
func VisibleNames(cat ToolCatalog, filter CatalogFilter) []string {
	if cat == nil {
		return nil
	}
	filter.LoadingModes = allLoadingModes()
	if s, ok := cat.(Snapshotter); ok {
		return s.Snapshot().Visible(filter).Names()
	}
	list := cat.List(filter)
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.Name
	}
	slices.Sort(names)
	return names
}

// PlannerView is what one run sees of a catalog: descriptions and schemas,
// never the means to run a tool. It is made for one run and must not be shared
// between callers.
type PlannerView struct {
	cat    ToolCatalog
	filter CatalogFilter
}

// NewPlannerView returns the view of cat through filter. The filter's slices
// are copied.
func NewPlannerView(cat ToolCatalog, filter CatalogFilter) PlannerView {
	filter.GrantedScopes = slices.Clone(filter.GrantedScopes)
	filter.LoadingModes = slices.Clone(filter.LoadingModes)
	return PlannerView{cat: cat, filter: filter}
}

// List returns the tools that the run sees, sorted by name.
func (v PlannerView) List() []Tool {
	if v.cat == nil {
		return nil
	}
	return v.cat.List(v.filter)
}

// Resolve returns the tool of that name, of either loading mode, if the run
// may see it.
func (v PlannerView) Resolve(name string) (Tool, bool) {
	if v.cat == nil {
		return Tool{}, false
	}
	d, ok := v.cat.Resolve(name)
	if !ok || !v.filter.permits(&d.Tool) {
		return Tool{}, false
	}
	if v.filter.NameRegex != nil && !v.filter.NameRegex.MatchString(name) {
		return Tool{}, false
	}
	return d.Tool, true
}

// permits reports whether scopes, tenant and part let the caller see t.
func (f *CatalogFilter) permits(t *Tool) bool {
	for _, s := range t.AuthScopes {
		if !slices.Contains(f.GrantedScopes, s) {
			return false
		}
	}
	if len(t.Tenants) > 0 && !f.admin() && !slices.Contains(t.Tenants, f.TenantID) {
		return false
	}
	return f.part.holds(t)
}

// loads reports whether the filter selects the loading mode.
func (f *CatalogFilter) loads(m LoadingMode) bool {
	if m == "" {
		m = LoadingAlways
	}
	if len(f.LoadingModes) == 0 {
		return m == LoadingAlways
	}
	return slices.Contains(f.LoadingModes, m)
}
