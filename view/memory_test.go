package view_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

func user(name string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: "acme", UserID: name, SessionID: "s"})
}

func found(t *testing.T, m view.Memory, ctx context.Context) []string {
	t.Helper()
	got, err := m.Found(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func add(t *testing.T, m view.Memory, ctx context.Context, names ...string) {
	t.Helper()
	if err := m.Add(ctx, names...); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryDropsTheOldest(t *testing.T) {
	m := view.NewMemory(&view.MemoryOptions{MaxFound: 3})
	ada := user("ada")
	add(t, m, ada, "a", "b", "c")
	add(t, m, ada, "a") // is the newest now
	add(t, m, ada, "d")
	if got := found(t, m, ada); !slices.Equal(got, []string{"a", "c", "d"}) {
		t.Errorf("kept %v", got)
	}
	add(t, m, ada, "1", "2", "3", "4", "4")
	if got := found(t, m, ada); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("kept %v", got)
	}
}

func TestMemoryForgetsWhoAskedLongestAgo(t *testing.T) {
	m := view.NewMemory(&view.MemoryOptions{MaxCallers: 2})
	add(t, m, user("ada"), "a")
	add(t, m, user("bob"), "b")
	found(t, m, user("ada"))
	add(t, m, user("eve"), "e")
	for name, want := range map[string][]string{"ada": {"a"}, "bob": nil, "eve": {"e"}} {
		if got := found(t, m, user(name)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestMemoryIsSafeForConcurrentUse(t *testing.T) {
	m := view.Watch(view.NewMemory(&view.MemoryOptions{MaxCallers: 5}))
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			stop := m.Hear(func(identity.Identity) {})
			defer stop()
			for j := range 50 {
				_ = m.Add(user(fmt.Sprint(i)), fmt.Sprint(j))
				_, _ = m.Found(user(fmt.Sprint(j % 20)))
			}
		})
	}
	callers.Wait()
}

func TestWatchedMemoryTellsWhoseFindsGrew(t *testing.T) {
	m := view.Watch(view.NewMemory(nil))
	if view.Watch(m) != m {
		t.Error("a watched memory is wrapped once more")
	}
	var heard []string
	stop := m.Hear(func(id identity.Identity) { heard = append(heard, id.UserID) })
	add(t, m, user("ada"), "x")
	add(t, m, user("bob"))
	stop()
	add(t, m, user("eve"), "x")
	if !slices.Equal(heard, []string{"ada"}) {
		t.Errorf("heard of %v", heard)
	}
}

// broken is a store that cannot be reached.
type broken struct{}

func (broken) Found(context.Context) ([]string, error) { return nil, errors.New("unreachable") }
func (broken) Add(context.Context, ...string) error    { return errors.New("unreachable") }

func TestBrokenMemoryLeavesTheRestDeclared(t *testing.T) {
	cat := newCrib(t, "tool_search")
	d, err := view.NewDiscovery(broken{}, &view.DiscoveryOptions{Mode: view.ModeSearch}).Declared(t.Context(), cat)
	if err == nil || !slices.Equal(d.Names(), []string{"always", "tool_search"}) {
		t.Errorf("declared %v, %v", d.Names(), err)
	}
	if _, err := view.NewDiscovery(broken{}, nil).Declared(t.Context(), newCatalogOf(t, tools.Tool{Name: "a"})); err != nil {
		t.Errorf("a memory that is not needed is asked: %v", err)
	}
}

func newCatalogOf(t *testing.T, list ...tools.Tool) tools.LiveCatalog {
	t.Helper()
	cat := newCatalog(t)
	for _, tool := range list {
		register(t, cat, tool)
	}
	return cat
}
