package gateway_test

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/turn"
)

// heavy is an argument of text.echo whose result is larger than the threshold.
var heavy = strings.Repeat("A line of a report that goes on and on.\n", 2500)

func shownTo(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	list, err := session.ListTools(bounded(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		if raw, _ := json.Marshal(tool.OutputSchema); !strings.Contains(string(raw), "toolcrib_artifacts") && (tool.Name == "text.echo" || tool.OutputSchema != nil) {
			t.Errorf("%s promises results that may not be whole: %s", tool.Name, raw)
		}
		names = append(names, tool.Name)
	}
	return names
}

func linkIn(t *testing.T, res *mcp.CallToolResult) *mcp.ResourceLink {
	t.Helper()
	for _, c := range res.Content {
		if link, ok := c.(*mcp.ResourceLink); ok {
			return link
		}
	}
	t.Fatalf("no link in %d blocks", len(res.Content))
	return nil
}

func TestLargeResultsOverMCP(t *testing.T) {
	g := openFor(t, "tools: {built_in: [text.echo]}")
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	dial := func(name string) *mcp.ClientSession {
		client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil)
		session, err := client.Connect(bounded(t), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: server.Client()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	session, other := dial("one"), dial("other")
	defer session.Close()
	defer other.Close()
	if names := shownTo(t, session); !slices.Equal(names, []string{"text.echo"}) {
		t.Errorf("listed %q before there was anything to read", names)
	}
	res, err := session.CallTool(bounded(t), &mcp.CallToolParams{Name: "text.echo", Arguments: map[string]any{"text": heavy}})
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	if kept, _ := res.StructuredContent.(map[string]any); kept["toolcrib_artifacts"] == nil || kept["text"] != nil {
		t.Errorf("structured: %+v", res.StructuredContent)
	}
	raw, _ := json.Marshal(res)
	if len(raw) > 12<<10 || !strings.Contains(string(raw), "artifact_fetch") {
		t.Errorf("%d bytes: %.300s", len(raw), raw)
	}
	link := linkIn(t, res)
	if link.MIMEType != "application/json" || link.Size == nil || *link.Size < int64(len(heavy)) {
		t.Errorf("link %+v", link)
	}
	if names := shownTo(t, session); !slices.Equal(names, []string{"artifact_fetch", "text.echo"}) {
		t.Errorf("listed %q", names)
	}
	if names := shownTo(t, other); !slices.Equal(names, []string{"text.echo"}) {
		t.Errorf("another session is listed %q", names)
	}
	ref := strings.TrimPrefix(link.URI, "artifact://")
	fetched, err := session.CallTool(bounded(t), &mcp.CallToolParams{Name: "artifact_fetch", Arguments: map[string]any{"ref": ref, "query": ".text | length"}})
	if text, _ := json.Marshal(fetched); err != nil || !strings.Contains(string(text), "100000") {
		t.Errorf("%s, %v", text, err)
	}
	big, err := session.CallTool(bounded(t), &mcp.CallToolParams{Name: "artifact_fetch", Arguments: map[string]any{"ref": ref, "max_bytes": 90_000}})
	if text, _ := json.Marshal(big); err != nil || len(text) < 90_000 || strings.Contains(string(text), "resource_link") {
		t.Errorf("a fetched part was stored again: %.300s, %v", text, err)
	}
	checkRead(t, session, link.URI)
	for _, uri := range []string{link.URI, "artifact://art-s" + strings.Repeat("a", 26)} {
		if _, err := other.ReadResource(bounded(t), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "Resource not found") {
			t.Errorf("another session read %s: %v", uri, err)
		}
	}
}

func checkRead(t *testing.T, session *mcp.ClientSession, uri string) {
	t.Helper()
	whole, err := session.ReadResource(bounded(t), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	var value struct{ Text string }
	if err := json.Unmarshal([]byte(whole.Contents[0].Text), &value); err != nil || value.Text != heavy {
		t.Errorf("read %d bytes, %v", len(whole.Contents[0].Text), err)
	}
	part, err := session.ReadResource(bounded(t), &mcp.ReadResourceParams{URI: uri + "?offset=9&length=6"})
	if err != nil || part.Contents[0].Text != "A line" {
		t.Errorf("%+v, %v", part, err)
	}
	for _, query := range []string{"?offset=-1", "?lines=3", "?offset=x", "?offset=99999999"} {
		if _, err := session.ReadResource(bounded(t), &mcp.ReadResourceParams{URI: uri + query}); err == nil {
			t.Errorf("%s was read", query)
		}
	}
}

func TestLargeResultsPassAFullEntranceWhole(t *testing.T) {
	for _, yaml := range []string{"mcp: {discovery: full}", "mcp: {results: full}", "artifacts: {heavy_output_threshold_bytes: 1000000}"} {
		g := openFor(t, "tools: {built_in: [text.echo]}\n"+yaml)
		server := httptest.NewServer(g.Handler())
		defer server.Close()
		session := connect(t, &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: server.Client()})
		defer session.Close()
		res, err := session.CallTool(bounded(t), &mcp.CallToolParams{Name: "text.echo", Arguments: map[string]any{"text": heavy}})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := res.StructuredContent.(map[string]any); got["text"] != heavy {
			t.Errorf("%s: %.300v", yaml, res.StructuredContent)
		}
	}
}

func TestATurnKeepsLargeResults(t *testing.T) {
	g := openFor(t, "tools: {built_in: [text.echo]}\nartifacts: {heavy_output_threshold_bytes: 5000}")
	ctx := g.LocalContext(bounded(t))
	run := g.Runner(nil)
	tn, err := run.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(tn.Names(), "artifact_fetch") {
		t.Error("declared before there was anything to read")
	}
	args, _ := json.Marshal(map[string]string{"text": heavy[:8000]})
	results, err := tn.Execute(ctx, []turn.Call{{ID: "1", Name: "text.echo", Args: args}})
	if err != nil || len(results[0].Artifacts) != 1 || len(results[0].Text()) > 5000 {
		t.Fatalf("%+v, %v", results, err)
	}
	if tn, err = run.Begin(ctx); err != nil || !slices.Contains(tn.Names(), "artifact_fetch") {
		t.Errorf("declared %q, %v", tn.Names(), err)
	}
}
