package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

func Example() {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	err := cat.Register(tools.ToolDescriptor{
		Tool: tools.Tool{Name: "order.status", Description: "Says where an order is."},
		Invoke: func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Structured: json.RawMessage(`{"state":"shipped"}`)}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(api.New(cat, &api.Options{
		Authenticate: func(r *http.Request) (context.Context, error) {
			return identity.With(r.Context(), identity.Identity{TenantID: "acme", UserID: "ann", SessionID: "1"}), nil
		},
	}))
	defer server.Close()

	client, err := api.NewClient(server.URL, &api.ClientOptions{HTTPClient: server.Client()})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Call(context.Background(), api.CallRequest{Name: "order.status", Arguments: json.RawMessage(`{"order":7}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(resp.Structured))
	// Output: {"state":"shipped"}
}
