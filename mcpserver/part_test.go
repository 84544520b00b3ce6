package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/set"
	"github.com/toolcrib/toolcrib/tools"
)

// A server of a part serves that alone, in both eras and over pipes too, and tells
// of changes in it.
func TestServerOfAPart(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		c := newCrib(t)
		ts, err := set.NewBuilder("own").FromRegistry(c).WithFilter(func(t *tools.Tool) bool { return !strings.HasPrefix(t.Name, "up_") }).Build()
		if err != nil {
			t.Fatal(err)
		}
		s := c.serve(t, &mcpserver.Options{Part: ts.Part})
		for way, transport := range map[string]mcp.Transport{"http": overHTTP(t, listenHTTP(t, s), ""), "pipe": overPipe(t, s)} {
			var heard hearing
			session := connect(t, transport, revision, heard.options())
			names := sdkNames(t, session)
			if !slices.Contains(names, "go.object") || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "up_") }) {
				t.Errorf("%s %s: listed %v", revision, way, names)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "up_mirror"}); err == nil || !strings.Contains(err.Error(), "Unknown tool: up_mirror") {
				t.Errorf("%s %s: %v", revision, way, err)
			}
			if res := sdkCall(t, session, "go.text", nil); res.IsError {
				t.Errorf("%s %s: %v", revision, way, res)
			}
			if way == "http" {
				watching(t, c, &heard)
			}
		}
	}
}

// What a source says may be kept for everybody may not be where only a part is
// served, as that can depend on who asks.
func TestNothingOfAPartIsKeptForEverybody(t *testing.T) {
	c := newCrib(t)
	err := c.Register(tools.ToolDescriptor{
		Tool: tools.Tool{Name: "r_open", Kind: tools.KindResource, SourceName: "r:open"},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Wire: json.RawMessage(`{"contents":[],"ttlMs":5,"cacheScope":"public"}`), WireKind: tools.KindResource}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	all := func(context.Context) tools.Part {
		return tools.Part{Class: "all", Holds: func(*tools.Tool) bool { return true }}
	}
	for want, part := range map[string]tools.PartFunc{"public": nil, "private": all} {
		url := listenHTTP(t, c.serve(t, &mcpserver.Options{Part: part}))
		body := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"r:open",` + modernMeta + `}}`
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read", "Mcp-Name": "r:open"} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(raw), `"cacheScope":"`+want+`"`) {
			t.Errorf("want %s: %s", want, raw)
		}
	}
}
