package mcpwire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// greeter is a server with one tool.
type greeter struct{}

func (greeter) Describe(context.Context, *mcpwire.Session) (*mcpwire.Description, error) {
	return &mcpwire.Description{Capabilities: json.RawMessage(`{"tools":{}}`)}, nil
}

func (greeter) ServeMCP(_ context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	if r.Method != "tools/call" {
		return nil, mcpwire.Errorf(mcpwire.CodeMethodNotFound, "method not found: %s", r.Method)
	}
	return json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"precise":9007199254740993}`), nil
}

// A server and a client of it. Nothing of the result is lost, not even what no
// Go type knows.
func Example() {
	srv := httptest.NewServer(mcpwire.NewServer(greeter{}, nil))
	defer srv.Close()
	ctx := context.Background()
	c, err := mcpwire.Connect(ctx, &mcpwire.HTTPTransport{URL: srv.URL, RoundTripper: srv.Client().Transport}, &mcpwire.ClientOptions{
		Version: mcpwire.Version20250618,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	result, err := c.Call(ctx, "tools/call", json.RawMessage(`{"name":"greet"}`), nil)
	fmt.Println(string(result), err)
	_, err = c.Call(ctx, "no/such", nil, nil)
	fmt.Println(err, mcpwire.DeliveryOf(err))
	// Output:
	// {"content":[{"type":"text","text":"hello"}],"precise":9007199254740993} <nil>
	// method not found: no/such (code -32601) answered
}
