package bench

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/turn"
)

// BenchmarkTurn compares a turn of eight calls, from fixing what is declared to
// their results, with the same eight calls through the door: made at once, each on
// a goroutine, and made one after the other.
func BenchmarkTurn(b *testing.B) {
	ctx := identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
	for name, opts := range map[string][]tools.DescriptorOption{"door": nil, "inline": {tools.WithInline()}} {
		b.Run(name, func(b *testing.B) {
			bus := newBus(b)
			defer listen(bus)()
			cat := tools.NewCatalog(tools.WithEvents(bus)).(tools.LiveCatalog)
			if err := inproc.RegisterFunc(cat, "place_order", place, opts...); err != nil {
				b.Fatal(err)
			}
			call := func() {
				if _, err := tools.Invoke(ctx, cat, "place_order", json.RawMessage(orderArgs)); err != nil {
					b.Error(err)
				}
			}
			b.Run("at once", func(b *testing.B) {
				benchTurn(ctx, b, cat, func() {
					var all sync.WaitGroup
					for range turnCalls {
						all.Go(call)
					}
					all.Wait()
				})
			})
			b.Run("in a row", func(b *testing.B) {
				benchTurn(ctx, b, cat, func() {
					for range turnCalls {
						call()
					}
				})
			})
		})
	}
}

const turnCalls = 8

func benchTurn(ctx context.Context, b *testing.B, cat tools.LiveCatalog, floor func()) {
	calls := make([]turn.Call, turnCalls)
	for i := range calls {
		calls[i] = turn.Call{ID: "call_" + strconv.Itoa(i), Name: "place_order", Args: json.RawMessage(orderArgs)}
	}
	runner := turn.New(cat, nil)
	beside(b, floor, func() {
		t, err := runner.Begin(ctx)
		if err != nil {
			b.Fatal(err)
		}
		results, err := t.Execute(ctx, calls)
		if err != nil || results[turnCalls-1].Status != turn.StatusCompleted {
			b.Fatal(results, err)
		}
	})
}
