package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/tools"
)

// standInEnv makes this test binary the MCP server that stands in for the one from npm, which the tests under the tag peers
// start.
const standInEnv = "TOOLCRIB_TEST_WORKFLOW_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(standInEnv) != "" {
		if err := standIn().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func standIn() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "everything"}, nil)
	text := func(t string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "get-sum"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		A int `json:"a"`
		B int `json:"b"`
	}) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprintf("The sum of %d and %d is %d.", in.A, in.B, in.A+in.B)), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Message string `json:"message"`
	}) (*mcp.CallToolResult, any, error) {
		return text("Echo: " + in.Message), nil, nil
	})
	return s
}

// local copies the configuration, so that it uses the given API and the server that stands in.
func local(t *testing.T, api string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	change := func(name, from, to string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("%s has no %s: %v", name, from, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change("prices.yaml", "http://127.0.0.1:7782", api)
	change("toolcrib.yaml", `command: [npx, --yes, "@modelcontextprotocol/server-everything@2026.8.31"]`,
		fmt.Sprintf("command: [%q]\n      env: {%s: \"1\"}", os.Args[0], standInEnv))
	return filepath.Join(dir, "toolcrib.yaml")
}

func TestWorkflow(t *testing.T) {
	api := httptest.NewServer(prices())
	defer api.Close()
	cfg, err := gateway.Load(local(t, api.URL))
	if err != nil {
		t.Fatal(err)
	}
	g := gatewaytest.Open(t, cfg, nil)
	order := `{"answer":"Echo: 2 items, pen: The sum of 3 and 5 is 8.","items":[{"item":"pen","price":3},{"item":"paper","price":7}]}`
	for call, want := range map[[2]string]string{
		{"shop_quote", `{"item":"pen","shipping":4}`}: `"pen: The sum of 3 and 4 is 7."`,
		{"shop_order", `{"items":["pen","lamp"]}`}:    `{"answer":"Echo: 2 items, sent for free","items":[{"item":"pen","price":3},{"item":"lamp","price":60}]}`,
		{"shop_order", `{"items":["pen","paper"]}`}:   order,
	} {
		result, err := tools.Invoke(g.LocalContext(t.Context()), g.Catalog(), call[0], json.RawMessage(call[1]))
		if err != nil {
			t.Errorf("%v: %v", call, err)
			continue
		}
		if out, _ := result.JSON(); string(out) != want {
			t.Errorf("%v: got %s", call, out)
		}
	}
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	for _, path := range []string{"/mcp", "/mcp/shop"} {
		overMCP(t, server.URL+path, path == "/mcp/shop", order)
	}
}

// overMCP calls the flow as a client of MCP; in the toolset nothing else is listed that is not of the shop.
func overMCP(t *testing.T, url string, narrow bool, want string) {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	listed := map[string]bool{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed[tool.Name] = true
	}
	if !listed["shop_quote"] || !listed["shop_order"] || listed["everything_echo"] == narrow {
		t.Errorf("%s lists %v", url, listed)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "shop_order", Arguments: map[string]any{"items": []string{"pen", "paper"}}})
	if err != nil || res.IsError {
		t.Fatalf("%s: got %+v, %v", url, res, err)
	}
	if got, err := json.Marshal(res.StructuredContent); err != nil || string(got) != want {
		t.Errorf("%s: got %s, %v", url, got, err)
	}
}
