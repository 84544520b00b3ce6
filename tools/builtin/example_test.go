package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// A model finds a tool by what it does, looks at it, and calls it by its name.
func ExampleRegisterMeta() {
	ctx := context.Background()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	if err := builtin.RegisterMeta(cat, nil); err != nil {
		panic(err)
	}
	err := cat.Register(tools.ToolDescriptor{
		Tool: tools.Tool{Name: "desk.open_ticket", Description: "Open a ticket for a customer.",
			ArgsSchema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`)},
		Invoke: func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Value: "opened " + string(args)}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	for _, call := range []struct{ tool, args string }{
		{"tool_search", `{"query":"open a ticket"}`},
		{"tool_get", `{"name":"desk.open_ticket"}`},
		{"tool_call", `{"name":"desk.open_ticket","args":{"title":"It smokes"}}`},
	} {
		res, err := tools.Invoke(ctx, cat, call.tool, json.RawMessage(call.args))
		if err != nil {
			panic(err)
		}
		answer, err := res.JSON()
		if err != nil {
			panic(err)
		}
		fmt.Println(string(answer))
	}
	// Output:
	// {"tools":[{"name":"desk.open_ticket","description":"Open a ticket for a customer."}],"count":1}
	// {"name":"desk.open_ticket","description":"Open a ticket for a customer.","args_schema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]},"found":true}
	// "opened {\"title\":\"It smokes\"}"
}
