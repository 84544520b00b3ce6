package mcptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// A server's tools become tools of a catalog, and are called through it.
func Example() {
	endpoint := weatherServer()
	defer endpoint.Close()
	ctx := context.Background()

	server, err := mcptool.New(&mcptool.Config{Name: "weather", URL: endpoint.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close(ctx)
	found, err := server.Discover(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	catalog := tools.NewCatalog().(tools.LiveCatalog)
	catalog.SwapSource(server.SourceID(), found)

	result, err := tools.Invoke(ctx, catalog, "weather_now", json.RawMessage(`{"city":"Oslo"}`))
	fmt.Println(result.Text(), err)
	// Output: Oslo: 4 degrees <nil>
}

func weatherServer() *httptest.Server {
	type place struct {
		City string `json:"city"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "now", Description: "Weather of a city."},
		func(_ context.Context, _ *mcp.CallToolRequest, p place) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: p.City + ": 4 degrees"}}}, nil, nil
		})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}
