package search_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

// The words of the generated tools: common ones, ones that only few tools have, product names that no table
// knows, and near misspellings of them.
var (
	verbs    = []string{"create", "list", "delete", "send", "merge", "rotate", "frobnicate"}
	nouns    = []string{"issue", "invoice", "secret", "channel", "zorblax", "quuxify", "kubernetes", "zorblex"}
	asked    = []string{"create issue", "open a ticket", "zorblax", "zorblx", "quxify invoice", "send a mesage", "list_secret", "frobnicatezorblax", "kubernets", "delete everything"}
	scopes   = []string{"", "", "billing", "admin"}
	tenants  = []string{"", "", "acme", "globex"}
	callers  = []string{"acme", "globex", "initech"}
	grants   = [][]string{nil, {"billing"}, {"billing", "admin"}}
	toolName = rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "source") + "." + rapid.SampledFrom(verbs).Draw(t, "verb") + "_" + rapid.SampledFrom(nouns).Draw(t, "noun")
	})
)

func drawTool(t *rapid.T) tools.ToolDescriptor {
	words := rapid.SliceOfN(rapid.SampledFrom(append(verbs, nouns...)), 1, 8).Draw(t, "words")
	d := described(toolName.Draw(t, "name"), strings.Join(words, " "))
	if s := rapid.SampledFrom(scopes).Draw(t, "scope"); s != "" {
		d.Tool.AuthScopes = []string{s}
	}
	if s := rapid.SampledFrom(tenants).Draw(t, "tenant"); s != "" {
		d.Tool.Tenants = []string{s}
	}
	return d
}

func as(tenant string, granted []string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: "u", SessionID: "s"}, granted...)
}

// change does one thing to a catalog.
func change(t *rapid.T, cat tools.LiveCatalog) {
	d := drawTool(t)
	_, have := cat.Resolve(d.Tool.Name)
	switch {
	case !have:
		if err := cat.Register(d); err != nil {
			t.Fatal(err)
		}
	case rapid.Bool().Draw(t, "replace"):
		if err := cat.Replace([]tools.ToolDescriptor{d}); err != nil {
			t.Fatal(err)
		}
	default:
		if err := cat.Deregister(d.Tool.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// alone returns what a fresh index of a catalog that holds nothing but what the caller sees finds.
func alone(t *rapid.T, ctx context.Context, cat tools.LiveCatalog, q search.Query) search.Result {
	only := tools.NewCatalog().(tools.LiveCatalog)
	for _, tool := range cat.List(tools.FilterFrom(ctx)) {
		tool.AuthScopes, tool.Tenants = nil, nil
		if err := only.Register(tools.ToolDescriptor{Tool: tool, Invoke: invoke}); err != nil {
			t.Fatal(err)
		}
	}
	return find(t, search.New(nil), context.Background(), only, q)
}

func find(t interface{ Fatal(...any) }, index *search.Index, ctx context.Context, cat tools.LiveCatalog, q search.Query) search.Result {
	r, err := index.Find(ctx, cat.Snapshot().Visible(tools.FilterFrom(ctx)), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever the catalog holds and held, and whoever searched before, a caller gets to the last digit what it
// would get if the tools that it cannot see did not exist.
func TestNothingHiddenHasAPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index := search.New(nil)
		cat := tools.NewCatalog(tools.WithSearchCache(index)).(tools.LiveCatalog)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for range rapid.IntRange(1, 8).Draw(t, "changes") {
				change(t, cat)
			}
			ctx := as(rapid.SampledFrom(callers).Draw(t, "caller"), rapid.SampledFrom(grants).Draw(t, "grants"))
			q := search.Query{Text: rapid.SampledFrom(asked).Draw(t, "query"), Limit: rapid.IntRange(1, 12).Draw(t, "limit")}
			if diff := cmp.Diff(alone(t, ctx, cat, q), find(t, index, ctx, cat, q)); diff != "" {
				t.Fatalf("%q depends on more than what is visible (-alone +here):\n%s", q.Text, diff)
			}
		}
	})
}

// The same with an index that a catalog synchronises as a whole.
func TestNothingHiddenHasAPartInSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index := search.New(nil)
		cat := tools.NewCatalog().(tools.LiveCatalog)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			for range rapid.IntRange(1, 8).Draw(t, "changes") {
				change(t, cat)
			}
			if err := index.Sync(context.Background(), cat.List(tools.CatalogFilter{GrantedScopes: []string{"billing", "admin"}})); err != nil {
				t.Fatal(err)
			}
			ctx := as(rapid.SampledFrom(callers).Draw(t, "caller"), rapid.SampledFrom(grants).Draw(t, "grants"))
			query := rapid.SampledFrom(asked).Draw(t, "query")
			got, err := index.Search(ctx, query, nil, 5)
			if err != nil {
				t.Fatal(err)
			}
			want := alone(t, ctx, cat, search.Query{Text: query, Limit: 5})
			if fmt.Sprint(names(got)) != fmt.Sprint(hitNames(want)) {
				t.Fatalf("%q found %v; alone %v", query, names(got), hitNames(want))
			}
		}
	})
}

func hitNames(r search.Result) []string {
	out := make([]string, len(r.Hits))
	for i, h := range r.Hits {
		out[i] = h.Name
	}
	return out
}

// A repaired word is one that the caller's own tools have, or one of the fixed table.
func TestRepairsNameNothingHidden(t *testing.T) {
	cat := catalog(t, search.New(nil), described("list_zorblax", "List the zorblax."), described("list_issues", "List issues."))
	if err := cat.Replace([]tools.ToolDescriptor{{Tool: tools.Tool{Name: "list_zorblax", Description: "List the zorblax.", AuthScopes: []string{"admin"}}, Invoke: invoke}}); err != nil {
		t.Fatal(err)
	}
	index := search.New(nil)
	if r := find(t, index, as("acme", []string{"admin"}), cat, search.Query{Text: "zorblxa"}); len(r.Repairs) != 1 || r.Repairs[0].To != "zorblax" {
		t.Errorf("who may see it got the repairs %v", r.Repairs)
	}
	if r := find(t, index, as("acme", nil), cat, search.Query{Text: "zorblxa"}); len(r.Hits) != 0 || len(r.Repairs) != 0 {
		t.Errorf("who may not see it got %+v", r)
	}
}
