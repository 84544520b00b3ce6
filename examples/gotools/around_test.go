package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// frozen is a safety policy: nothing is changed while the shop takes stock.
type frozen struct{}

func (frozen) Decide(_ context.Context, tool *tools.Tool, _ json.RawMessage) (tools.Verdict, string, error) {
	if tool.Safety.ReadOnly == tools.Yes {
		return tools.Allow, "", nil
	}
	return tools.Deny, "the shop takes stock", nil
}

func Example_aroundEveryCall() {
	counted := 0
	count := func(next tools.Invoker) tools.Invoker {
		return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			counted++
			return next(ctx, args)
		}
	}
	cat := tools.NewCatalog(tools.WithMiddleware(count), tools.WithStages(tools.Stages{Safety: frozen{}}))
	if err := NewShop().Register(cat); err != nil {
		fmt.Println(err)
		return
	}
	id := identity.Identity{TenantID: "local", UserID: "ada", SessionID: "test"}
	ctx := identity.With(context.Background(), id, "orders.write")
	_, err := tools.Invoke(ctx, cat, "orders.cancel", []byte(`{"id":1}`))
	fmt.Println(err)
	_, err = tools.Invoke(ctx, cat, "orders.find", nil)
	fmt.Println(err, counted)
	// Output:
	// tools: call denied: "orders.cancel": the shop takes stock
	// <nil> 2
}
