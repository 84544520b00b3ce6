package set_test

import (
	"context"
	"errors"
	"fmt"
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

func ExampleToolset_Part() {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, name := range []string{"github.search", "slack.post"} {
		if err := cat.Register(descriptor(tool(name))); err != nil {
			fmt.Println(err)
		}
	}
	ts, err := set.NewBuilder("github").FromRegistry(cat).WithNamespace("github").Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := tools.WithPart(context.Background(), ts.Part)
	fmt.Println(tools.VisibleNames(cat, tools.FilterFrom(ctx)))
	_, err = tools.Invoke(ctx, cat, "slack.post", nil)
	fmt.Println(err)
	// Output:
	// [github.search]
	// tools: tool not found: "slack.post"
}

func build(t testing.TB, b *set.Builder) *set.Toolset {
	t.Helper()
	ts, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func within(ctx context.Context, ts *set.Toolset, cat tools.ToolCatalog) []string {
	return tools.VisibleNames(cat, tools.FilterFrom(tools.WithPart(ctx, ts.Part)))
}

func TestPartOfToolsOfItsOwn(t *testing.T) {
	cat := catalog(t, tool("x.a"), tool("x.b"), tool("y.a"))
	ts := build(t, set.NewBuilder("s").FromTools([]*tools.Tool{tool("x.a"), tool("x.gone")}).WithPolicy(set.DenyTags("z")))
	if got := within(t.Context(), ts, cat); !slices.Equal(got, []string{"x.a"}) {
		t.Errorf("got %v", got)
	}
	class := ts.Part(t.Context()).Class
	if err := ts.Add(tool("y.a")); err != nil {
		t.Fatal(err)
	}
	if got := within(t.Context(), ts, cat); !slices.Equal(got, []string{"x.a", "y.a"}) {
		t.Errorf("added: %v", got)
	}
	ts.Remove("x.a")
	if got := within(t.Context(), ts, cat); !slices.Equal(got, []string{"y.a"}) {
		t.Errorf("removed: %v", got)
	}
	if again := ts.Part(t.Context()).Class; again == class || again != ts.Part(t.Context()).Class {
		t.Errorf("classes %q and %q", class, again)
	}
	other := build(t, set.NewBuilder("s").FromTools([]*tools.Tool{tool("x.a")}))
	if other.Part(t.Context()).Class == class || other.Filter(set.TagsNone()).Part(t.Context()).Class == other.Part(t.Context()).Class {
		t.Error("two sets share a class")
	}
}

// byUser allows a user the tools that bear its name, and says so.
type byUser struct{ set.Policy }

func (byUser) AllowCaller(ctx context.Context, tool *tools.Tool) bool {
	id, _ := identity.From(ctx)
	return strings.HasSuffix(tool.Name, "."+id.UserID)
}

type byUserClass struct{ byUser }

func (byUserClass) CallerClass(ctx context.Context) string {
	id, _ := identity.From(ctx)
	return id.UserID
}

func as(tenant, user, session string, scopes ...string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: user, SessionID: session}, scopes...)
}

// What a policy reads of a caller is in the class; callers that it treats alike
// share one where it says so.
func TestClassesFollowWhatAPolicyReads(t *testing.T) {
	cat := catalog(t, tool("x.ada"), tool("x.bob"))
	for name, policy := range map[string]set.Policy{"unclassed": byUser{set.AllowAll()}, "classed": byUserClass{byUser{set.AllowAll()}}} {
		ts := build(t, set.NewBuilder("s").FromRegistry(cat).WithPolicy(policy))
		ada, bob := as("t", "ada", "1"), as("t", "bob", "1")
		for range 2 { // the second answer may be one that was kept
			if got := within(ada, ts, cat); !slices.Equal(got, []string{"x.ada"}) {
				t.Errorf("%s: ada sees %v", name, got)
			}
			if got := within(bob, ts, cat); !slices.Equal(got, []string{"x.bob"}) {
				t.Errorf("%s: bob sees %v", name, got)
			}
		}
		same := ts.Part(as("t", "ada", "2")).Class == ts.Part(ada).Class
		if same != (name == "classed") {
			t.Errorf("%s: two sessions of a user have the same class: %v", name, same)
		}
	}
	plain := build(t, set.NewBuilder("s").FromRegistry(cat).WithPolicy(set.AllowAll()))
	if plain.Part(as("t", "ada", "1")).Class != plain.Part(as("u", "bob", "2", "s")).Class {
		t.Error("a policy that reads no caller has a class for each")
	}
	ts := build(t, set.NewBuilder("s").FromRegistry(cat).WithPolicy(byUser{set.AllowAll()}))
	if ts.Part(as(`a" "b`, "c", "d")).Class == ts.Part(as("a", `b" "c`, "d")).Class {
		t.Error("a name forges the class of another caller")
	}
}

func TestNilIsOutside(t *testing.T) {
	ts := build(t, set.NewBuilder("s").FromRegistry(catalog(t)))
	if ts.Part(t.Context()).Holds(nil) {
		t.Error("a nil tool is in")
	}
}

// Whatever the filters, the policy and the caller: what the caller sees of a
// catalog that is narrowed to a set is what For says, what the caller sees
// without the set and the set would hold, and all that it can call.
func TestAPartIsTheSetAndWhatTheCallerSees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawTools(t)
		cat := catalogOf(t, list)
		policy := rapid.SampledFrom([]set.Policy{set.AllowAll(), set.DenyAll(), set.DenyTags("w"), set.AllowNamespaces("a"), tenantPolicy{set.AllowAll()}}).Draw(t, "policy")
		b := set.NewBuilder("s").FromRegistry(cat).WithPolicy(policy)
		for range rapid.IntRange(0, 3).Draw(t, "filters") {
			b.WithFilter(drawRule(t).f)
		}
		ts, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		ctx := caller(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"), rapid.SliceOfDistinct(rapid.SampledFrom([]string{"s1", "s2"}), rapid.ID[string]).Draw(t, "granted")...)
		visible := tools.VisibleNames(cat, tools.FilterFrom(ctx))
		narrowed := tools.WithPart(ctx, ts.Part)
		got := tools.VisibleNames(cat, tools.FilterFrom(narrowed))
		if !slices.Equal(got, ts.For(ctx).IDs()) {
			t.Fatalf("narrowed to %v, For says %v", got, ts.For(ctx).IDs())
		}
		for _, tool := range list {
			in := slices.Contains(got, tool.Name)
			if want := slices.Contains(visible, tool.Name) && ts.Permits(ctx, tool); in != want {
				// The catalog knows more of a tool than its list: ask with its own.
				known, _ := cat.Resolve(tool.Name)
				if want = slices.Contains(visible, tool.Name) && ts.Permits(ctx, &known.Tool); in != want {
					t.Fatalf("%s: in %v, want %v", tool.Name, in, want)
				}
			}
			_, err := tools.Invoke(narrowed, cat, tool.Name, nil)
			if called := !errors.Is(err, tools.ErrToolNotFound); called != in {
				t.Fatalf("%s: seen %v, called %v (%v)", tool.Name, in, called, err)
			}
		}
	})
}

// The policy has the last word, whatever the order of the filters and wherever
// among them it was set; and it is not asked about what a filter rejects.
func TestThePolicyIsFinalInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawTools(t)
		rules := []set.FilterFunc{set.TagsNone("x"), set.CategoryFilter("", "c"), set.DenyIDs("a.a")}
		order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order")
		var asked []string
		policy := set.PolicyFunc(func(tool *tools.Tool) bool {
			asked = append(asked, tool.Name)
			return slices.Contains(tool.Tags, "r")
		})
		b := set.NewBuilder("s").FromTools(list)
		for _, i := range order {
			if i == len(rules) {
				b.WithPolicy(policy)
			} else {
				b.WithFilter(rules[i])
			}
		}
		ts, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var passed, want []string
		for _, tool := range list {
			if rules[0](tool) && rules[1](tool) && rules[2](tool) {
				passed = append(passed, tool.Name)
				if slices.Contains(tool.Tags, "r") {
					want = append(want, tool.Name)
				}
			}
		}
		slices.Sort(want)
		if !slices.Equal(ts.IDs(), want) {
			t.Fatalf("got %v, want %v", ts.IDs(), want)
		}
		for _, name := range asked {
			if !slices.Contains(passed, name) {
				t.Fatalf("the policy was asked about %s, which a filter rejects", name)
			}
		}
	})
}

// A set is narrowed, changed and called in at the same time.
func TestPartsAreSafeForConcurrentUse(t *testing.T) {
	cat := catalog(t, tool("x.stays"))
	ts := build(t, set.NewBuilder("s").FromRegistry(cat).WithPolicy(byUserClass{byUser{set.AllowAll()}}))
	ctx := tools.WithPart(as("t", "stays", "1"), ts.Part)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 50 {
				name := fmt.Sprintf("x.t%d_%d.stays", i, j)
				if err := cat.Register(descriptor(tool(name))); err != nil {
					t.Error(err)
				}
				ts.Remove(name)
				if _, err := tools.Invoke(ctx, cat, "x.stays", nil); err != nil {
					t.Error(err)
				}
				if _, err := tools.Invoke(ctx, cat, name, nil); !errors.Is(err, tools.ErrToolNotFound) {
					t.Errorf("%s is there after it was removed from the set: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
	if got := tools.VisibleNames(cat, tools.FilterFrom(ctx)); !slices.Equal(got, []string{"x.stays"}) {
		t.Errorf("got %v", got)
	}
}

// An exposure can be read by many at once, and each reads the same.
func TestExposureIsSafeForConcurrentReads(t *testing.T) {
	ts := build(t, set.NewBuilder("s").FromRegistry(catalog(t, tool("b"), tool("a"))))
	exposure := set.NewExposure(ts, adapter.NewMCPAdapter())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			list, _, errs := exposure.ExportWithWarnings()
			if len(list) != 2 || list[0].Tool != "a" || len(errs) > 0 {
				t.Errorf("got %v, %v", list, errs)
			}
		})
	}
	wg.Wait()
}
