package view_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// newCrib has a tool of each loading, a big unset one, and the meta-tools.
func newCrib(t *testing.T, metas ...string) tools.LiveCatalog {
	t.Helper()
	cat := newCatalog(t)
	register(t, cat, tools.Tool{Name: "always", Loading: tools.LoadingAlways})
	register(t, cat, tools.Tool{Name: "deferred", Loading: tools.LoadingDeferred, Source: "mcp:github"})
	register(t, cat, tools.Tool{Name: "unset", Source: "mcp:slack", Description: strings.Repeat("word ", 100)})
	for _, name := range metas {
		register(t, cat, tools.Tool{Name: name, Kind: tools.KindMeta, Description: "Meta."})
	}
	return cat
}

func declared(t *testing.T, ctx context.Context, cat tools.LiveCatalog, opts *view.DiscoveryOptions) view.Declared {
	t.Helper()
	d, err := view.NewDiscovery(nil, opts).Declared(ctx, cat)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLoadingThatSomebodySetMeansWhatItSaysInEveryMode(t *testing.T) {
	metas := []string{"tool_call", "tool_get", "tool_search"}
	cat := newCrib(t, metas...)
	for _, test := range []struct {
		mode   view.Mode
		budget int
		want   []string
	}{
		{view.ModeFull, 1, []string{"always", "tool_call", "tool_get", "tool_search", "unset"}},
		{view.ModeSearch, 0, []string{"always", "tool_call", "tool_get", "tool_search"}},
		{view.ModeAuto, 0, []string{"always", "tool_call", "tool_get", "tool_search", "unset"}},
		{view.ModeAuto, 50, []string{"always", "tool_call", "tool_get", "tool_search"}},
		{"", 50, []string{"always", "tool_call", "tool_get", "tool_search"}},
	} {
		d := declared(t, t.Context(), cat, &view.DiscoveryOptions{Mode: test.mode, BudgetTokens: test.budget})
		if got := d.Names(); !slices.Equal(got, test.want) {
			t.Errorf("mode %q, budget %d: %v, want %v", test.mode, test.budget, got, test.want)
		}
		if got := d.Deferred(); got != 6-len(test.want) {
			t.Errorf("mode %q: %d deferred", test.mode, got)
		}
		var names []string
		for _, tool := range d.Tools() {
			names = append(names, tool.Name)
		}
		if !slices.Equal(names, d.Names()) || d.Len() != len(names) || !d.Has("always") || d.Has("deferred") {
			t.Errorf("mode %q: the parts disagree", test.mode)
		}
	}
}

func TestNothingIsDeferredWhereTheSearchIsOutOfReach(t *testing.T) {
	all := []string{"always", "deferred", "unset"}
	cat := newCrib(t)
	if got := declared(t, t.Context(), cat, &view.DiscoveryOptions{Mode: view.ModeSearch}).Names(); !slices.Equal(got, all) {
		t.Errorf("without a search: %v", got)
	}
	register(t, cat, tools.Tool{Name: "tool_search", Kind: tools.KindMeta, AuthScopes: []string{"find"}})
	opts := &view.DiscoveryOptions{Mode: view.ModeSearch}
	if got := declared(t, caller("acme"), cat, opts).Names(); !slices.Equal(got, all) {
		t.Errorf("with a search that the caller does not see: %v", got)
	}
	if got := declared(t, caller("acme", "find"), cat, opts).Names(); !slices.Equal(got, []string{"always", "tool_search"}) {
		t.Errorf("with a search that it sees: %v", got)
	}
	other := newCrib(t, "tool_get")
	register(t, other, tools.Tool{Name: "tool_search", Description: "A tool of some source that has this name."})
	if got := declared(t, t.Context(), other, opts); got.Deferred() != 0 || !got.Has("tool_search") {
		t.Errorf("a source's tool is taken for the search: %v", got.Names())
	}
}

func TestMetaToolsAreDeclaredWhileSomethingIsDeferred(t *testing.T) {
	cat := newCatalog(t, "plain")
	for name, loading := range map[string]tools.LoadingMode{"tool_search": "", "tool_get": tools.LoadingAlways, "tool_call": tools.LoadingDeferred} {
		register(t, cat, tools.Tool{Name: name, Kind: tools.KindMeta, Loading: loading})
	}
	if got := declared(t, t.Context(), cat, nil).Names(); !slices.Equal(got, []string{"plain", "tool_get"}) {
		t.Errorf("nothing is deferred: %v", got)
	}
	got := declared(t, t.Context(), cat, &view.DiscoveryOptions{Mode: view.ModeSearch}).Names()
	if !slices.Equal(got, []string{"tool_get", "tool_search"}) {
		t.Errorf("something is deferred: %v", got)
	}
	d := view.NewDiscovery(nil, nil)
	add(t, d.Memory(), t.Context(), "tool_call")
	if got, err := d.Declared(t.Context(), cat); err != nil || !slices.Equal(got.Names(), []string{"plain", "tool_call", "tool_get"}) || got.Deferred() != 0 {
		t.Errorf("a meta-tool that is deferred itself was found: %v, %d deferred, %v", got.Names(), got.Deferred(), err)
	}
}

func TestWhatIsFoundIsDeclaredToItsFinderAlone(t *testing.T) {
	cat := newCrib(t, "tool_search")
	d := view.NewDiscovery(nil, &view.DiscoveryOptions{Mode: view.ModeSearch})
	ada := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "1"})
	if err := d.Memory().Add(ada, "unset", "gone", "always"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		who  identity.Identity
		want []string
	}{
		{identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "1"}, []string{"always", "tool_search", "unset"}},
		{identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "2"}, []string{"always", "tool_search"}},
		{identity.Identity{TenantID: "acme", UserID: "bob", SessionID: "1"}, []string{"always", "tool_search"}},
		{identity.Identity{TenantID: "zeta", UserID: "ada", SessionID: "1"}, []string{"always", "tool_search"}},
		{identity.Identity{}, []string{"always", "tool_search"}},
	} {
		got, err := d.Declared(identity.With(t.Context(), test.who), cat)
		if err != nil || !slices.Equal(got.Names(), test.want) {
			t.Errorf("%v is declared %v, want %v (%v)", test.who, got.Names(), test.want, err)
		}
	}
	got, _ := d.Declared(ada, cat)
	if !slices.Equal(got.Found(), []string{"unset"}) || got.Deferred() != 1 {
		t.Errorf("found %v, %d deferred", got.Found(), got.Deferred())
	}
	if got, _ := d.Declared(view.WithMemory(ada, view.NewMemory(nil)), cat); len(got.Found()) != 0 {
		t.Error("the memory on the context is not the one that counts")
	}
}

func TestToolsOnlyLeavesListsOfOtherKindsAlone(t *testing.T) {
	cat := newCatalog(t, "plain")
	register(t, cat, tools.Tool{Name: "tool_search", Kind: tools.KindMeta})
	register(t, cat, tools.Tool{Name: "a_page", Kind: tools.KindResource, SourceName: "x://a", Loading: tools.LoadingDeferred})
	if got := declared(t, t.Context(), cat, &view.DiscoveryOptions{ToolsOnly: true}); got.Deferred() != 0 || !slices.Equal(got.Names(), []string{"plain"}) {
		t.Errorf("tools alone: %v, %d deferred", got.Names(), got.Deferred())
	}
	if got := declared(t, t.Context(), cat, nil); got.Deferred() != 1 || !got.Has("tool_search") {
		t.Errorf("all kinds: %v, %d deferred", got.Names(), got.Deferred())
	}
	d := view.NewDiscovery(nil, &view.DiscoveryOptions{ToolsOnly: true, Mode: view.ModeSearch})
	add(t, d.Memory(), t.Context(), "a_page")
	got, err := d.Declared(t.Context(), cat)
	if err != nil || !slices.Equal(got.Names(), []string{"a_page", "tool_search"}) || got.Deferred() != 1 {
		t.Errorf("once it was found: %v, %d deferred, %v", got.Names(), got.Deferred(), err)
	}
}

func TestSearchSaysWhichSourcesItCovers(t *testing.T) {
	cat := newCatalog(t)
	register(t, cat, tools.Tool{Name: "tool_search", Kind: tools.KindMeta, Description: "Finds."})
	for i := range 5 {
		register(t, cat, tools.Tool{Name: fmt.Sprint("g", i), Source: "mcp:github", Loading: tools.LoadingDeferred})
	}
	register(t, cat, tools.Tool{Name: "s", Source: "openapi:slack", Loading: tools.LoadingDeferred})
	register(t, cat, tools.Tool{Name: "theirs", Source: "mcp:secret", Loading: tools.LoadingDeferred, Tenants: []string{"acme"}})
	register(t, cat, tools.Tool{Name: "mine", Loading: tools.LoadingAlways})
	search, _ := declared(t, caller("zeta"), cat, nil).Tool("tool_search")
	if want := "Finds. Sources: github (5), slack (1)."; search.Description != want {
		t.Errorf("%q, want %q", search.Description, want)
	}
	search, _ = declared(t, caller("acme"), cat, nil).Tool("tool_search")
	if want := "Finds. Sources: github (5), secret (1), slack (1)."; search.Description != want {
		t.Errorf("%q, want %q", search.Description, want)
	}
	for i := range 500 {
		register(t, cat, tools.Tool{Name: fmt.Sprint("many", i), Source: tools.ToolSourceID(fmt.Sprintf("mcp:server-%03d", i)), Loading: tools.LoadingDeferred})
	}
	search, _ = declared(t, caller("zeta"), cat, nil).Tool("tool_search")
	if len(search.Description) > 400 || !strings.Contains(search.Description, "github (5)") || !strings.Contains(search.Description, "more.") {
		t.Errorf("of many sources: %q", search.Description)
	}
	sources := declared(t, caller("acme"), cat, nil).Sources()
	if i := slices.Index(sources, view.SourceCount{Name: "github", Tools: 5, Deferred: 5}); i < 0 {
		t.Errorf("sources: %v", sources)
	}
	if i := slices.Index(sources, view.SourceCount{Name: "local", Tools: 1}); i < 0 {
		t.Errorf("sources: %v", sources)
	}
}

func TestDeclaredListIsEncodedOnce(t *testing.T) {
	cat := newCrib(t, "tool_search")
	var encoded []string
	f := &view.Format{Element: func(t tools.Tool) []byte {
		encoded = append(encoded, t.Name)
		return []byte(fmt.Sprintf("%q", t.Name+": "+t.Description[:min(len(t.Description), 12)]))
	}, Head: "[", Tail: "]"}
	d := view.NewDiscovery(nil, &view.DiscoveryOptions{Mode: view.ModeSearch})
	list := func() *view.List {
		declared, err := d.Declared(t.Context(), cat)
		if err != nil {
			t.Fatal(err)
		}
		return f.Declared(declared)
	}
	var shown view.Shown
	first := list()
	shown.Show(first)
	if got, want := string(first.Whole()), `["always: ","tool_search: Meta. Source"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if list() != first {
		t.Error("what nobody found anything of is put together twice")
	}
	if shown.Changed(list()) {
		t.Error("a change of nothing")
	}
	add(t, d.Memory(), t.Context(), "deferred")
	second := list()
	if got, want := string(second.Whole()), `["always: ","deferred: ","tool_search: Meta. Source"]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !shown.Changed(second) || shown.Changed(second) {
		t.Error("a find is a change, once")
	}
	if page, err := second.Page("", 2); err != nil || string(page.Elements) != `"always: ","deferred: "` || page.Next == "" {
		t.Errorf("page %s, %v", page.Elements, err)
	}
	if !slices.Equal(encoded, []string{"always", "tool_search", "deferred"}) { // what is declared, once
		t.Errorf("encoded %v", encoded)
	}
	if got := string(f.Declared(view.Declared{}).Whole()); got != "[]" {
		t.Errorf("the zero value is %s", got)
	}
}
