package view_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/view"
)

// A model is declared the tools of every day and the means to find the others; it
// is declared what it found in its next turn, and nobody else is.
func ExampleDiscovery() {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for name, loading := range map[string]tools.LoadingMode{
		"weather.get_current":            tools.LoadingAlways,
		"niche.compute_orbital_elements": tools.LoadingDeferred,
	} {
		err := cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: name, Loading: loading}, Invoke: nothing})
		if err != nil {
			panic(err)
		}
	}
	discovery := view.NewDiscovery(nil, nil)
	if err := builtin.RegisterMeta(cat, &builtin.MetaOptions{Memory: discovery.Memory()}); err != nil {
		panic(err)
	}
	show := func(who string, ctx context.Context) {
		declared, err := discovery.Declared(ctx, cat)
		if err != nil {
			panic(err)
		}
		fmt.Println(who, declared.Names())
	}

	ada := identity.With(context.Background(), identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "1"})
	bob := identity.With(context.Background(), identity.Identity{TenantID: "acme", UserID: "bob", SessionID: "1"})
	show("ada", ada)
	if _, err := tools.Invoke(ada, cat, "tool_search", json.RawMessage(`{"query":"orbital elements"}`)); err != nil {
		panic(err)
	}
	show("ada", ada)
	show("bob", bob)
	// Output:
	// ada [tool_call tool_get tool_search weather.get_current]
	// ada [niche.compute_orbital_elements tool_call tool_get tool_search weather.get_current]
	// bob [tool_call tool_get tool_search weather.get_current]
}

func nothing(context.Context, json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{}, nil
}
