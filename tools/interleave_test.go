package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// tally counts the calls and the terminal events of one tenant.
type tally struct {
	id       identity.Identity
	calls    atomic.Int64
	terminal int64
	invoked  int64
}

// TestInterleavings changes, reads and calls one catalog from many goroutines
// for two tenants, and checks what each of them sees.
func TestInterleavings(t *testing.T) {
	const workers, steps = 8, 1250
	bus := events.NewBus(nil)
	cat := newCatalog(t, []tools.CatalogOption{tools.WithEvents(bus), tools.WithRequiredIdentity(), tools.WithLogger(slog.New(slog.DiscardHandler))})
	tenants := []*tally{{id: identity.Identity{TenantID: "red", UserID: "u", SessionID: "s"}}, {id: identity.Identity{TenantID: "blue", UserID: "u", SessionID: "s"}}}
	var counting sync.WaitGroup
	for _, tn := range tenants {
		sub := bus.Subscribe(events.Filter{TenantID: tn.id.TenantID}, &events.SubscribeOptions{Buffer: workers * steps * 4})
		counting.Go(func() { tn.count(t, sub) })
		defer sub.Close()
		t.Cleanup(counting.Wait)
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 7))
			for range steps {
				randomStep(t, cat, tenants[rng.IntN(2)], rng)
			}
		})
	}
	wg.Wait()
}

func (tn *tally) count(t *testing.T, sub *events.Subscription) {
	open := map[string]int{}
	for e := range sub.Events() {
		if e.Identity.Identity != tn.id {
			t.Errorf("%s got an event of %s", tn.id.TenantID, e.Identity.TenantID)
		}
		switch e.Type {
		case tools.EventTypeToolInvoked:
			tn.invoked++
		case tools.EventTypeToolPolicyExhausted:
		default:
			tn.terminal++
			if e.CallID != "" {
				if open[e.CallID]++; open[e.CallID] > 1 {
					t.Errorf("call %s has a second terminal event: %s", e.CallID, e.Type)
				}
			}
		}
	}
	if tn.terminal != tn.calls.Load() {
		t.Errorf("%s: %d calls, %d terminal events", tn.id.TenantID, tn.calls.Load(), tn.terminal)
	}
}

// setOf is a source's set: every tool of it says the same generation.
func setOf(tenant string, generation int) []tools.ToolDescriptor {
	var list []tools.ToolDescriptor
	for i := range 4 {
		list = append(list, plain(fmt.Sprintf("%s_set_%d", tenant, i), stamp(tenant), tools.WithTenants(tenant), tools.WithVersion(fmt.Sprint(generation))))
	}
	return list
}

// stamp answers with the tenant that the tool belongs to and the one that
// calls.
func stamp(owner string) tools.Invoker {
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: owner + "/" + identity.MustQuadrupleFrom(ctx).TenantID + string(args)}, nil
	}
}

func randomStep(t *testing.T, cat tools.LiveCatalog, tn *tally, rng *rand.Rand) {
	tenant := tn.id.TenantID
	name := fmt.Sprintf("%s_%d", tenant, rng.IntN(6))
	one := plain(name, stamp(tenant), tools.WithTenants(tenant), tools.WithVersion(fmt.Sprint(rng.IntN(9))))
	ctx := identity.With(context.Background(), tn.id)
	switch rng.IntN(8) {
	case 0:
		if err := cat.Register(one); err != nil && !errors.Is(err, tools.ErrToolDuplicateName) {
			t.Error(err)
		}
	case 1:
		if err := cat.Replace([]tools.ToolDescriptor{one}); err != nil && !errors.Is(err, tools.ErrToolNotFound) {
			t.Error(err)
		}
	case 2:
		if err := cat.Deregister(name); err != nil && !errors.Is(err, tools.ErrToolNotFound) {
			t.Error(err)
		}
	case 3:
		cat.SwapSource(tools.ToolSourceID(tenant), setOf(tenant, rng.IntN(1000)))
	case 4:
		checkList(t, cat.List(tools.FilterFrom(ctx)), tenant)
	case 5:
		if d, ok := cat.Resolve(name); ok && !strings.HasPrefix(d.Tool.Name, tenant) {
			t.Errorf("Resolve(%q) gave %q", name, d.Tool.Name)
		}
	default:
		checkCall(t, cat, tn, rng)
	}
}

// checkList finds tools of other tenants and sets of mixed generations.
func checkList(t *testing.T, list []tools.Tool, tenant string) {
	versions := map[string]int{}
	last := ""
	for _, tool := range list {
		if !strings.HasPrefix(tool.Name, tenant) {
			t.Errorf("%s sees %s", tenant, tool.Name)
		}
		if tool.Name <= last {
			t.Errorf("%s stands behind %s", tool.Name, last)
		}
		last = tool.Name
		if strings.Contains(tool.Name, "_set_") {
			versions[tool.Version]++
		}
	}
	if len(versions) > 1 {
		t.Errorf("a torn set: %v", versions)
	}
}

func checkCall(t *testing.T, cat tools.LiveCatalog, tn *tally, rng *rand.Rand) {
	owner := []string{"red", "blue"}[rng.IntN(2)]
	name := fmt.Sprintf("%s_set_%d", owner, rng.IntN(4))
	args := fmt.Sprintf(`{"n":%d}`, rng.Int())
	tn.calls.Add(1)
	res, err := tools.Invoke(identity.With(context.Background(), tn.id), cat, name, json.RawMessage(args))
	switch {
	case owner != tn.id.TenantID:
		if !errors.Is(err, tools.ErrToolNotFound) {
			t.Errorf("%s called %s: %v", tn.id.TenantID, name, err)
		}
	case err == nil:
		if want := owner + "/" + owner + args; res.Value != want {
			t.Errorf("answer %v, want %s", res.Value, want)
		}
	case !errors.Is(err, tools.ErrToolNotFound):
		t.Error(err)
	}
}
