package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
)

// A catalog with one tool, served over HTTP to a client of another maker.
func Example() {
	ctx := context.Background()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	err := cat.Register(tools.ToolDescriptor{
		Tool: tools.Tool{Name: "greet", Description: "Says hello."},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Value: "hello"}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	server := mcpserver.New(cat, &mcpserver.Options{Name: "example", Version: "1"})
	defer server.Shutdown(ctx)
	web := httptest.NewServer(server)
	defer web.Close()

	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL}, nil)
	if err != nil {
		panic(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		panic(err)
	}
	fmt.Println(session.InitializeResult().ProtocolVersion, result.Content[0].(*mcp.TextContent).Text)
	// Output: 2026-07-28 hello
}
