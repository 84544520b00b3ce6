package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// declare returns the caller's tools as a model is told of them, whose names
// may hold no dots, and the name of each in the catalog.
func declare(ctx context.Context, cat tools.ToolCatalog) (declared []tools.Tool, canonical map[string]string) {
	canonical = map[string]string{}
	for _, t := range cat.List(tools.FilterFrom(ctx)) {
		name := strings.ReplaceAll(t.Name, ".", "__")
		canonical[name] = t.Name
		t.Name = name
		declared = append(declared, t)
	}
	return declared, canonical
}

// A model is told of the tools that its user may use, and calls one.
func Example_offerToAModel() {
	cat := tools.NewCatalog()
	if err := NewShop().Register(cat); err != nil {
		fmt.Println(err)
		return
	}
	ctx := identity.With(context.Background(), identity.Identity{TenantID: "local", UserID: "ann", SessionID: "1"})
	declared, canonical := declare(ctx, cat)
	for _, t := range declared {
		fmt.Println(t.Name, len(t.ArgsSchema) > 0)
	}
	// What the model answers with.
	name, arguments := "orders__find", []byte(`{"state":"shipped"}`)
	res, err := tools.Invoke(ctx, cat, canonical[name], arguments)
	if err != nil {
		fmt.Println(err) // safe to give back to the model
		return
	}
	fmt.Println(string(res.Structured))
	// Output:
	// orders__find true
	// orders__report true
	// {"orders":[{"id":2,"state":"shipped","placed":"2026-03-02T09:00:00Z"}]}
}
