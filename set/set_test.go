package set_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/set"
	"github.com/toolcrib/toolcrib/tools"
)

func ExampleNewBuilder() {
	list := []*tools.Tool{
		{Name: "github.search", Tags: []string{"read"}, ArgsSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "github.merge", Tags: []string{"write"}, ArgsSchema: json.RawMessage(`{"type":"object"}`)},
		{Name: "slack.post", Tags: []string{"write"}, ArgsSchema: json.RawMessage(`{"type":"object"}`)},
	}
	ts, err := set.NewBuilder("github-reading").
		FromTools(list).
		WithNamespace("github").
		WithPolicy(set.DenyTags("write")).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ts.Name(), ts.IDs())
	declared, err := set.NewExposure(ts, adapter.NewMCPAdapter()).Export()
	fmt.Println(declared[0].Wire, err)
	// Output:
	// github-reading [github.search]
	// github.search <nil>
}

// The fragments of code that are published for sets compile and do what
// they say.
func TestPublishedFragments(t *testing.T) {
	registry := catalog(t, tool("github.search"), tool("slack.post"))
	ts, err := set.NewBuilder("github-tools").
		FromRegistry(registry).
		WithNamespace("github").
		Build()
	if err != nil || !slices.Equal(ts.IDs(), []string{"github.search"}) {
		t.Fatalf("got %v, %v", ts, err)
	}
	exposure := set.NewExposure(ts, adapter.NewMCPAdapter())
	tools, warnings, errs := exposure.ExportWithWarnings()
	for _, w := range warnings {
		log.Printf("Feature %s lost converting %s → %s", w.Feature, w.FromAdapter, w.ToAdapter)
	}
	if len(tools) != 1 || len(errs) != 0 {
		t.Errorf("got %v, %v", tools, errs)
	}
	if _, err := set.NewBuilder("none").Build(); !errors.Is(err, set.ErrNoSource) {
		t.Errorf("got %v", err)
	}
}

func tool(name string) *tools.Tool {
	return &tools.Tool{Name: name, ArgsSchema: json.RawMessage(`{"type":"object"}`)}
}

func descriptor(t *tools.Tool) tools.ToolDescriptor {
	return tools.ToolDescriptor{Tool: *t, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: "ok"}, nil
	}}
}

func catalog(t testing.TB, list ...*tools.Tool) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, tool := range list {
		if err := cat.Register(descriptor(tool)); err != nil {
			t.Fatal(err)
		}
	}
	return cat
}

func TestFiltersAndPolicies(t *testing.T) {
	full := &tools.Tool{Name: "git.log.show", Namespace: "git", Category: "vcs", Tags: []string{"a", "b"}, AuthScopes: []string{"r", "w"}}
	bare := &tools.Tool{Name: "ns.sub.x"}
	for name, tc := range map[string]struct {
		f    func(*tools.Tool) bool
		tool *tools.Tool
		want bool
	}{
		"namespace":           {set.NamespaceFilter("git"), full, true},
		"namespace, dotted":   {set.NamespaceFilter("ns.sub"), bare, true},
		"namespace, other":    {set.NamespaceFilter("ns"), bare, false},
		"namespace, none":     {set.NamespaceFilter(), bare, false},
		"category":            {set.CategoryFilter("x", "vcs"), full, true},
		"category, none":      {set.CategoryFilter(), full, false},
		"allow ids":           {set.AllowIDs("git.log.show"), full, true},
		"allow ids, none":     {set.AllowIDs(), full, false},
		"deny ids":            {set.DenyIDs("git.log.show"), full, false},
		"deny ids, none":      {set.DenyIDs(), full, true},
		"tags any":            {set.TagsAny("z", "b"), full, true},
		"tags any, none":      {set.TagsAny(), full, false},
		"tags all":            {set.TagsAll("a", "b"), full, true},
		"tags all, one lacks": {set.TagsAll("a", "z"), full, false},
		"tags all, none":      {set.TagsAll(), bare, true},
		"tags none":           {set.TagsNone("z"), full, true},
		"tags none, has":      {set.TagsNone("a"), full, false},
		"tags none, none":     {set.TagsNone(), full, true},

		"policy func nil":       {set.PolicyFunc(nil).Allow, full, false},
		"allow all":             {set.AllowAll().Allow, full, true},
		"deny all":              {set.DenyAll().Allow, full, false},
		"allow namespaces":      {set.AllowNamespaces("git").Allow, full, true},
		"allow namespaces none": {set.AllowNamespaces().Allow, full, false},
		"deny tags":             {set.DenyTags("b").Allow, full, false},
		"deny tags none":        {set.DenyTags().Allow, full, true},
		"allow scopes":          {set.AllowScopes("w", "r", "x").Allow, full, true},
		"allow scopes, short":   {set.AllowScopes("r").Allow, full, false},
		"allow scopes, none":    {set.AllowScopes().Allow, bare, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.f(tc.tool); got != tc.want {
				t.Errorf("got %v", got)
			}
			if tc.f(nil) {
				t.Error("a nil tool was accepted")
			}
		})
	}
}

func TestBuildRefusesAndDenies(t *testing.T) {
	if _, err := set.NewBuilder("s").FromRegistry(nil).Build(); !errors.Is(err, set.ErrNoSource) {
		t.Errorf("got %v", err)
	}
	if _, err := set.NewBuilder("s").FromTools([]*tools.Tool{tool("a"), tool("a")}).Build(); !errors.Is(err, set.ErrDuplicateID) || !strings.Contains(err.Error(), `"a" in set "s"`) {
		t.Errorf("got %v", err)
	}
	if _, err := set.NewBuilder("s").FromTools([]*tools.Tool{tool("a")}).FromRegistry(catalog(t, tool("a"))).Build(); !errors.Is(err, set.ErrDuplicateID) {
		t.Errorf("got %v", err)
	}
	for name, b := range map[string]*set.Builder{
		"nil filter": set.NewBuilder("s").FromTools([]*tools.Tool{tool("a")}).WithFilter(nil),
		"nil policy": set.NewBuilder("s").FromTools([]*tools.Tool{tool("a")}).WithPolicy(nil),
		"nil tool":   set.NewBuilder("s").FromTools([]*tools.Tool{nil}),
		"empty list": set.NewBuilder("s").FromTools(nil),
		"no ids":     set.NewBuilder("s").FromTools([]*tools.Tool{tool("a")}).WithTools(),
	} {
		if ts, err := b.Build(); err != nil || ts.Count() != 0 {
			t.Errorf("%s: got %v, %v", name, ts, err)
		}
	}
}

func TestExportReportsWhatIsNil(t *testing.T) {
	ts, err := set.NewBuilder("s").FromTools([]*tools.Tool{tool("a")}).Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.NewExposure(ts, nil).Export(); !errors.Is(err, set.ErrNilAdapter) {
		t.Errorf("got %v", err)
	}
	if _, err := set.NewExposure(nil, adapter.NewMCPAdapter()).Export(); !errors.Is(err, set.ErrNilToolset) {
		t.Errorf("got %v", err)
	}
	if _, err := (*set.Exposure)(nil).Export(); !errors.Is(err, set.ErrNilToolset) {
		t.Errorf("got %v", err)
	}
}

func TestExportSaysWhatIsLost(t *testing.T) {
	lossy := tool("lossy")
	lossy.ArgsSchema = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"},"b":{"not":{"type":"string"}}}}`)
	strict, err := adapter.New(adapter.OpenAI, &adapter.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	a, b := tool("a"), tool("b")
	a.ArgsSchema, b.ArgsSchema = json.RawMessage(`{"type":"object","properties":{}}`), json.RawMessage(`{"type":"object","properties":{}}`)
	ts, err := set.NewBuilder("s").FromTools([]*tools.Tool{lossy, b, a}).Build()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		list, warnings, _ := set.NewExposure(ts, strict).ExportWithWarnings()
		if len(warnings) == 0 {
			t.Fatal("nothing was lost")
		}
		for _, w := range warnings {
			if w.Tool != "lossy" || w.Feature == "" || w.FromAdapter != "canonical" || w.ToAdapter != strict.Name() || w.Path == "" || w.Reason == "" {
				t.Errorf("got %+v", w)
			}
		}
		if len(list) < 2 || list[0].Tool != "a" || list[1].Tool != "b" {
			t.Errorf("got %v", list)
		}
	}
}

func TestASetFollowsItsRegistry(t *testing.T) {
	cat := catalog(t, tool("x.a"), tool("y.a"))
	ts, err := set.NewBuilder("s").FromRegistry(cat).WithNamespaces("x").Build()
	if err != nil {
		t.Fatal(err)
	}
	expect := func(ids ...string) {
		t.Helper()
		if got := ts.IDs(); !slices.Equal(got, ids) {
			t.Errorf("got %v, want %v", got, ids)
		}
	}
	expect("x.a")
	if err := cat.Register(descriptor(tool("x.b"))); err != nil {
		t.Fatal(err)
	}
	expect("x.a", "x.b")
	if !ts.Remove("x.a") || ts.Remove("x.a") || ts.Remove("y.a") {
		t.Error("what a set does not hold was removed, or the reverse")
	}
	expect("x.b")
	if err := ts.Add(tool("own")); err != nil {
		t.Fatal(err)
	}
	if err := ts.Add(tool("x.b")); !errors.Is(err, set.ErrDuplicateID) {
		t.Errorf("got %v", err)
	}
	if err := ts.Add(nil); !errors.Is(err, set.ErrNilTool) {
		t.Errorf("got %v", err)
	}
	expect("own", "x.b")
	if err := cat.Deregister("x.b"); err != nil {
		t.Fatal(err)
	}
	expect("own")
	if got, ok := ts.Get("own"); !ok || got.Name != "own" {
		t.Errorf("got %v", got)
	}
	if _, ok := ts.Get("x.b"); ok {
		t.Error("a tool that is gone was found")
	}
}

func TestAddAsksThePolicy(t *testing.T) {
	ts, err := set.NewBuilder("s").FromTools(nil).WithPolicy(set.AllowNamespaces("x")).Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := ts.Add(tool("y.a")); !errors.Is(err, set.ErrDenied) || ts.Count() != 0 {
		t.Errorf("got %v", err)
	}
}

type tenantPolicy struct{ set.Policy }

func (tenantPolicy) AllowCaller(ctx context.Context, tool *tools.Tool) bool {
	id, _ := identity.From(ctx)
	return strings.HasPrefix(tool.Name, id.TenantID)
}

func caller(tenant string, scopes ...string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: "u", SessionID: "s"}, scopes...)
}

func TestForShowsWhatTheCallerMaySee(t *testing.T) {
	guarded, theirs := tool("one.guarded"), tool("one.theirs")
	guarded.AuthScopes, theirs.Tenants = []string{"admin"}, []string{"two"}
	own := tool("one.own")
	own.AuthScopes = []string{"admin"}
	cat := catalog(t, guarded, theirs, tool("one.open"), tool("two.open"))
	ts, err := set.NewBuilder("s").FromRegistry(cat).FromTools([]*tools.Tool{own}).Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := ts.For(caller("one")).IDs(); !slices.Equal(got, []string{"one.open", "two.open"}) {
		t.Errorf("got %v", got)
	}
	if got := ts.For(caller("two", "admin")).IDs(); !slices.Equal(got, []string{"one.guarded", "one.open", "one.own", "one.theirs", "two.open"}) {
		t.Errorf("got %v", got)
	}
	asked, err := set.NewBuilder("s").FromRegistry(cat).WithPolicy(tenantPolicy{set.AllowAll()}).Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := asked.For(caller("two", "admin")).IDs(); !slices.Equal(got, []string{"two.open"}) {
		t.Errorf("got %v", got)
	}
	if !asked.Permits(caller("two"), tool("two.x")) || asked.Permits(caller("two"), tool("one.x")) || asked.Permits(caller("two"), nil) {
		t.Error("a caller's policy was not asked")
	}
}

func TestReturnedToolsAreCopies(t *testing.T) {
	given := tool("a")
	ts, err := set.NewBuilder("s").FromTools([]*tools.Tool{given}).Build()
	if err != nil {
		t.Fatal(err)
	}
	given.Name = "changed"
	got, _ := ts.Get("a")
	got.Name = "changed"
	ts.Tools()[0].Name = "changed"
	if !slices.Equal(ts.IDs(), []string{"a"}) {
		t.Errorf("got %v", ts.IDs())
	}
}

// A set is read while its registry and it change.
func TestToolsetIsSafeForConcurrentUse(t *testing.T) {
	cat := catalog(t, tool("x.a"))
	ts, err := set.NewBuilder("s").FromRegistry(cat).WithNamespaces("x").Build()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				name := fmt.Sprintf("x.t%d_%d", i, j)
				if err := cat.Register(descriptor(tool(name))); err != nil {
					t.Error(err)
				}
				if _, ok := ts.Get(name); !ok {
					t.Errorf("%s is not there", name)
				}
				if !slices.IsSorted(ts.IDs()) || ts.Filter(set.AllowIDs(name)).Count() != 1 {
					t.Error("a torn set was seen")
				}
				if !ts.Remove(name) {
					t.Errorf("%s was not removed", name)
				}
			}
		})
	}
	wg.Wait()
	if got := ts.IDs(); !slices.Equal(got, []string{"x.a"}) {
		t.Errorf("got %v", got)
	}
}

type rule struct {
	name string
	f    func(*tools.Tool) bool
}

func drawTools(t *rapid.T) []*tools.Tool {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab](\.[a-c]){0,2}`), 0, 12, rapid.ID[string]).Draw(t, "names")
	var list []*tools.Tool
	for _, name := range names {
		tool := tool(name)
		tool.Tags = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"r", "w", "x"}), rapid.ID[string]).Draw(t, "tags")
		tool.AuthScopes = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"s1", "s2"}), rapid.ID[string]).Draw(t, "scopes")
		tool.Category = rapid.SampledFrom([]string{"", "c", "d"}).Draw(t, "category")
		list = append(list, tool)
	}
	return list
}

func drawRule(t *rapid.T) rule {
	tags := rapid.SliceOf(rapid.SampledFrom([]string{"r", "w", "x", "y"})).Draw(t, "rule tags")
	ids := rapid.SliceOf(rapid.SampledFrom([]string{"a", "a.a", "b.b.c"})).Draw(t, "ids")
	return rapid.SampledFrom([]rule{
		{"any", set.TagsAny(tags...)}, {"all", set.TagsAll(tags...)}, {"none", set.TagsNone(tags...)},
		{"allow", set.AllowIDs(ids...)}, {"deny", set.DenyIDs(ids...)},
		{"namespace", set.NamespaceFilter("a", "b.a")}, {"category", set.CategoryFilter("c")},
	}).Draw(t, "rule")
}

// Build equals its naive specification for any tools, filters and policy, in
// whatever order the filters come.
func TestBuildEqualsItsSpecification(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawTools(t)
		var filters []rule
		for range rapid.IntRange(0, 4).Draw(t, "filters") {
			filters = append(filters, drawRule(t))
		}
		policy := rapid.SampledFrom([]set.Policy{set.AllowAll(), set.DenyAll(), set.DenyTags("w"), set.AllowScopes("s1"), set.AllowNamespaces("a")}).Draw(t, "policy")
		var want []string
		for _, tool := range list {
			in := policy.Allow(tool)
			for _, f := range filters {
				in = in && f.f(tool)
			}
			if in {
				want = append(want, tool.Name)
			}
		}
		slices.Sort(want)
		for range 2 {
			b := set.NewBuilder("s").FromTools(list).WithPolicy(policy)
			for _, f := range filters {
				b.WithFilter(f.f)
			}
			ts, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			if got := ts.IDs(); !slices.Equal(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			filters = rapid.Permutation(filters).Draw(t, "another order")
		}
		visible := tools.VisibleNames(catalogOf(t, list), tools.FilterFrom(caller("t", "s1")))
		ts, err := set.NewBuilder("s").FromRegistry(catalogOf(t, list)).WithPolicy(policy).Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ts.For(caller("t", "s1")).IDs() {
			if !slices.Contains(visible, id) {
				t.Fatalf("%s is not for the caller to see", id)
			}
		}
	})
}

func catalogOf(t *rapid.T, list []*tools.Tool) tools.LiveCatalog {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, tool := range list {
		if err := cat.Register(descriptor(tool)); err != nil {
			t.Fatal(err)
		}
	}
	return cat
}
