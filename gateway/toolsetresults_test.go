package gateway_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/tools"
)

// Large results are shown in the toolsets that have the tool which gave them.
func TestLargeResultsInToolsets(t *testing.T) {
	g := openLibrary(t, libraryToolsets)
	ctx, err := g.SessionContext(bounded(t), "one")
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) context.Context {
		ctx, err := g.WithToolset(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
	local := g.LocalAPI()
	resp, err := local.Call(in("bulk"), api.CallRequest{Name: "lib.dump", Bounded: true})
	if err != nil || len(resp.Artifacts) != 1 {
		t.Fatalf("%+v, %v", resp, err)
	}
	upload, err := g.Artifacts().Put(in("lib"), strings.NewReader("mine"), artifacts.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	ref := resp.Artifacts[0].Ref
	fetch := func(ctx context.Context, ref string) string {
		args, _ := json.Marshal(artifacts.FetchArgs{Ref: ref})
		res, err := tools.Invoke(ctx, g.Catalog(), "artifact_fetch", args)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := res.JSON()
		return strings.ReplaceAll(string(raw), ref, "REF")
	}
	nothing := artifacts.RefPrefix + strings.Repeat("0", len(ref)-len(artifacts.RefPrefix))
	for name, shown := range map[string]bool{"bulk": true, "reading": true, "lib": false} {
		list, err := local.ListArtifacts(in(name), api.ArtifactsRequest{})
		if err != nil || len(list.Artifacts) != map[bool]int{true: 2, false: 1}[shown] {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
		_, err = local.GetArtifact(in(name), ref)
		if (err == nil) != shown {
			t.Errorf("%s: %v", name, err)
		}
		if got := fetch(in(name), ref); strings.Contains(got, "a long list") != shown || !shown && got != fetch(in(name), nothing) {
			t.Errorf("%s: %.200s", name, got)
		}
		if _, err := local.GetArtifact(in(name), upload.Ref); err != nil {
			t.Errorf("%s: what was stored: %v", name, err)
		}
	}
}

// What a tool gives is its own in a toolset, wherever it has it from.
func TestLargeResultsOfOtherToolsInToolsets(t *testing.T) {
	url := behindAuth(t, openLibrary(t, libraryToolsets))
	s := connectTo(t, url+"/mcp/relayed", "2025-11-25", headers{"Toolcrib-Session": "mine"}, nil)
	res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "tool_call", Arguments: map[string]any{"name": "lib.relay"}})
	if err != nil || res.IsError {
		t.Fatalf("%v, %v", res, err)
	}
	i := slices.IndexFunc(res.Content, func(c mcp.Content) bool { _, ok := c.(*mcp.ResourceLink); return ok })
	if i < 0 {
		t.Fatalf("no link to the rest: %s", textOf(res))
	}
	link := res.Content[i].(*mcp.ResourceLink)
	if read, err := s.ReadResource(bounded(t), &mcp.ReadResourceParams{URI: link.URI}); err != nil || !strings.Contains(read.Contents[0].Text, "a long list") {
		t.Errorf("read %v", err)
	}
	bulk := connectTo(t, url+"/mcp/bulk", "2025-11-25", headers{"Toolcrib-Session": "mine"}, nil)
	if _, err := bulk.ReadResource(bounded(t), &mcp.ReadResourceParams{URI: link.URI}); err == nil {
		t.Error("it is read where the tool that gave it is not")
	}
}
