package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// A world is one catalog that two tenants share, and for each tenant a catalog
// that holds only what that tenant may see. Whatever a tenant is told by the one
// must be, byte for byte, what it is told by the other: then nothing of the other
// tenant has a part in it.
type world struct {
	*rand.Rand
	shared *crib
	alone  map[string]*crib
	owners map[string][]string // by the names of tools
	log    []string
}

var tenants = []string{"acme", "zeta"}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), shared: newCrib(t), alone: map[string]*crib{}, owners: map[string][]string{}}
	for _, tenant := range tenants {
		w.alone[tenant] = newCrib(t)
	}
	return w
}

func pick[T any](w *world, list ...T) T { return list[w.IntN(len(list))] }

func (w *world) word() string {
	return pick(w, "ticket", "invoice", "mail", "file", "branch", "deploy", "customer", "calendar", "secret", "report")
}

func (w *world) verb() string { return pick(w, "create", "list", "delete", "send", "open", "search") }

// name is one of few, so that tenants have the same names one after the other.
func (w *world) name() string {
	return w.verb() + "_" + w.word() + pick(w, "", "", "s", "_v2")
}

// register adds a tool for one tenant, for the other, or for both.
func (w *world) register(t *testing.T) {
	source := pick(w, "", "mcp:desk", "mcp:forge", "openapi:ledger")
	owners := pick(w, tenants[:1], tenants[1:], tenants)
	tool := tools.Tool{
		Name: w.name(), Description: fmt.Sprintf("%s a %s of the %s.", w.verb(), w.word(), w.word()), Tags: []string{w.word()},
		Source: tools.ToolSourceID(source), Tenants: owners, Loading: pick(w, "", tools.LoadingAlways, tools.LoadingDeferred),
	}
	if w.owners[tool.Name] != nil {
		w.deregister(t, tool.Name)
	}
	w.log = append(w.log, fmt.Sprintf("register %s for %v", tool.Name, owners))
	w.owners[tool.Name] = owners
	w.shared.add(t, tool)
	tool.Tenants = nil
	for _, tenant := range owners {
		w.alone[tenant].add(t, tool)
	}
}

func (w *world) deregister(t *testing.T, name string) {
	w.log = append(w.log, "deregister "+name)
	catalogs := []*crib{w.shared}
	for _, tenant := range w.owners[name] {
		catalogs = append(catalogs, w.alone[tenant])
	}
	delete(w.owners, name)
	for _, c := range catalogs {
		if err := c.Deregister(name); err != nil {
			t.Fatal(err)
		}
	}
}

// question is something that a tenant can ask a catalog, and its whole answer.
func (w *world) question() (string, func(context.Context, *crib) string) {
	name, args := w.name(), map[string]any{}
	switch w.IntN(7) {
	case 0:
		return "list", func(ctx context.Context, c *crib) string { return told(ctx, c) }
	case 1:
		name, args = "tool_get", map[string]any{"name": pick(w, name, strings.ToUpper(name), name+"x", "nothing")}
	case 2:
		name, args = "tool_call", map[string]any{"name": name}
	case 3:
		name, args = "tool_search", map[string]any{"source": pick(w, "desk", "forge", "ledger", "local", "else"), "limit": 1 + w.IntN(5)}
	case 4:
		name, args = "tool_search", map[string]any{"query": w.word(), "tags": []string{w.word()}}
	case 5:
		name, args = "tool_search", map[string]any{"query": pick(w, name, w.verb()+" "+w.word(), "tikcet", "quantum harp", w.word())}
	}
	raw, _ := json.Marshal(args)
	return fmt.Sprintf("%s %s", name, raw), func(ctx context.Context, c *crib) string {
		res, err := tools.Invoke(ctx, c, name, raw)
		if err != nil {
			return err.Error()
		}
		out, _ := res.JSON()
		return string(out) + res.Text()
	}
}

// told is all that a list tells: names, descriptions, counts.
func told(ctx context.Context, c *crib) string {
	d, err := view.NewDiscovery(c.memory, &view.DiscoveryOptions{BudgetTokens: 200}).Declared(ctx, c)
	var b strings.Builder
	fmt.Fprintln(&b, err, d.Deferred(), d.Tokens(), d.Sources(), tools.VisibleNames(c, tools.FilterFrom(ctx)))
	for _, t := range d.Tools() {
		fmt.Fprintln(&b, t.Name, t.Description, t.Source)
	}
	return b.String()
}

func TestNoTenantLearnsOfAnother(t *testing.T) {
	w := newWorld(t, 20260728)
	for range operations {
		switch n := w.IntN(10); {
		case n < 2:
			w.register(t)
			continue
		case n < 3 && len(w.owners) > 20:
			names := make([]string, 0, len(w.owners))
			for name := range w.owners {
				names = append(names, name)
			}
			slices.Sort(names)
			w.deregister(t, pick(w, names...))
			continue
		}
		tenant := pick(w, tenants...)
		ctx := identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: "u", SessionID: pick(w, "one", "two")})
		what, ask := w.question()
		if shared, alone := ask(ctx, w.shared), ask(ctx, w.alone[tenant]); shared != alone {
			t.Fatalf("after %s\n%s asks %s and is told\n%s\nwhere it is alone:\n%s", strings.Join(w.log[max(0, len(w.log)-5):], "; "), tenant, what, shared, alone)
		}
	}
}

// A name that is another tenant's takes as long to be refused as it does where
// nobody has it.
func TestHiddenAndUnknownTakeTheSameTime(t *testing.T) {
	w := newWorld(t, 7)
	for range 200 {
		w.register(t)
	}
	w.shared.add(t, tools.Tool{Name: "theirs_alone", Tenants: tenants[1:]})
	ctx := as(tenants[0])
	args := json.RawMessage(`{"name":"theirs_alone"}`)
	for _, tool := range []string{"tool_get", "tool_call"} {
		var hidden, unknown []time.Duration
		for range 400 {
			for c, times := range map[*crib]*[]time.Duration{w.shared: &hidden, w.alone[tenants[0]]: &unknown} {
				begin := time.Now()
				_, _ = tools.Invoke(ctx, c, tool, args)
				*times = append(*times, time.Since(begin))
			}
		}
		slices.Sort(hidden)
		slices.Sort(unknown)
		if a, b := hidden[200], unknown[200]; a > 3*b || b > 3*a {
			t.Errorf("%s: %v for a hidden name, %v for an unknown one", tool, a, b)
		}
		t.Logf("%s: %v for a hidden name, %v for an unknown one", tool, hidden[200], unknown[200])
	}
}
