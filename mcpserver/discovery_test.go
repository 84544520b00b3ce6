package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/view"
)

// discovering is a crib with the meta-tools and a way to find.
func discovering(t *testing.T, mode view.Mode) (*crib, *mcpserver.Options) {
	t.Helper()
	c := newCrib(t)
	if err := builtin.RegisterMeta(c, nil); err != nil {
		t.Fatal(err)
	}
	return c, &mcpserver.Options{Authenticate: bySession, Instructions: "Use it.",
		Discovery: view.NewDiscovery(nil, &view.DiscoveryOptions{Mode: mode, ToolsOnly: true})}
}

// bySession admits "Bearer TENANT SESSION SCOPE…"; the session "-" is that of the
// protocol.
func bySession(r *http.Request) (ctx context.Context, principal string, err error) {
	ctx, principal, err = byTenant(r)
	if err != nil {
		return nil, "", err
	}
	words := strings.Fields(r.Header.Get("Authorization"))
	id, _ := identity.From(ctx)
	if id.SessionID = words[2]; id.SessionID == "-" {
		id.SessionID = ""
	}
	return identity.With(ctx, id, words[3:]...), principal, nil
}

var metaTools = []string{"tool_call", "tool_get", "tool_search"}

// A client that finds a tool hears that its list changed, and is listed the tool;
// no other session hears or sees anything of it.
func TestFoundToolJoinsTheListOfItsFinder(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			c, opts := discovering(t, view.ModeSearch)
			url := listenHTTP(t, c.serve(t, opts))
			var mine, theirs hearing
			finder := connect(t, overHTTP(t, url, "Bearer acme one"), revision, mine.options())
			other := connect(t, overHTTP(t, url, "Bearer acme two"), revision, theirs.options())
			c.watched = tools.LoadingAlways // a change that every list shows
			for _, session := range []*mcp.ClientSession{finder, other} {
				if got := sdkNames(t, session); !slices.Equal(got, metaTools) {
					t.Fatalf("listed %v before a search", got)
				}
			}
			watching(t, c, &mine, &theirs)

			res := sdkCall(t, finder, "tool_get", map[string]any{"name": "go.object"})
			if res.IsError || !strings.Contains(textOf(res), `"found":true`) {
				t.Fatalf("tool_get: %s", textOf(res))
			}
			receive(t, mine.lists)
			if got := sdkNames(t, finder); !slices.Contains(got, "go.object") {
				t.Errorf("listed %v after a find", got)
			}
			if got := sdkNames(t, other); slices.Contains(got, "go.object") {
				t.Errorf("another session is listed %v", got)
			}
			sdkCall(t, other, "tool_get", map[string]any{"name": "no.such"})
			add(t, c, tools.Tool{Name: "later.open", Loading: tools.LoadingAlways})
			receive(t, theirs.lists)
			select {
			case <-theirs.lists:
				t.Error("a session hears of what another found")
			default:
			}
		})
	}
}

func textOf(res *mcp.CallToolResult) string {
	if len(res.Content) == 0 {
		return ""
	}
	text, _ := res.Content[0].(*mcp.TextContent)
	return text.Text
}

// What is not listed can be called, directly by a client that can, or through
// tool_call.
func TestUnlistedToolCanBeCalled(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			c, opts := discovering(t, view.ModeSearch)
			session := connect(t, overHTTP(t, listenHTTP(t, c.serve(t, opts)), "Bearer acme -"), revision, nil)
			for name, args := range map[string]any{
				"go.object": map[string]any{"n": 1},
				"tool_call": map[string]any{"name": "go.object", "args": map[string]any{"n": 1}},
			} {
				if res := sdkCall(t, session, name, args); res.IsError || textOf(res) != `{"a":9007199254740993}` {
					t.Errorf("%s: %q", name, textOf(res))
				}
			}
			if res := sdkCall(t, session, "tool_call", map[string]any{"name": "go.object"}); !res.IsError {
				t.Error("the arguments of the target are not checked")
			}
			for _, target := range []string{"go.secret", "no.such", "tool_call"} {
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool_call", Arguments: map[string]any{"name": target}})
				if err == nil || !strings.Contains(err.Error(), "Unknown tool: "+target) {
					t.Errorf("%s: %v", target, err)
				}
			}
		})
	}
}

// A stateless client has no session of the protocol; what its identity found is
// there in its next request.
func TestFindsSurviveAStatelessContinuation(t *testing.T) {
	c, opts := discovering(t, view.ModeSearch)
	url := listenHTTP(t, c.serve(t, opts))
	mine := modern{url: url, auth: "Bearer acme one"}
	mine.post(t, "tools/call", "tool_get", map[string]json.RawMessage{"arguments": json.RawMessage(`{"name":"go.text"}`)})
	for auth, want := range map[string]bool{"Bearer acme one": true, "Bearer acme two": false, "Bearer zeta one": false} {
		_, body := modern{url: url, auth: auth}.post(t, "tools/list", "", nil)
		if got := strings.Contains(string(body), `"name":"go.text"`); got != want {
			t.Errorf("%s is listed the find: %v", auth, got)
		}
	}
}

func TestInstructionsSayHowToFindWhatIsNotListed(t *testing.T) {
	for mode, want := range map[view.Mode]bool{view.ModeSearch: true, view.ModeFull: false} {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			c, opts := discovering(t, mode)
			session := connect(t, overHTTP(t, listenHTTP(t, c.serve(t, opts)), "Bearer acme -"), revision, nil)
			got := session.InitializeResult().Instructions
			if !strings.HasPrefix(got, "Use it.") || strings.Contains(got, "tool_search") != want {
				t.Errorf("%s, %s: %q", mode, revision, got)
			}
		}
	}
}

// In full mode nothing changes for a client: the meta-tools are not listed.
func TestFullModeListsWhatItDidBefore(t *testing.T) {
	c, opts := discovering(t, view.ModeFull)
	before := newCrib(t)
	plain := connect(t, overHTTP(t, listenHTTP(t, before.serve(t, &mcpserver.Options{Authenticate: bySession})), "Bearer acme -"), "2025-11-25", nil)
	full := connect(t, overHTTP(t, listenHTTP(t, c.serve(t, opts)), "Bearer acme -"), "2025-11-25", nil)
	want, got := listedJSON(t, plain), listedJSON(t, full)
	if want != got {
		t.Errorf("listed\n%s\nwant\n%s", got, want)
	}
}

func listedJSON(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	res, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(res.Tools)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A resource stays in its own list, and becomes a tool as well for a client that
// finds it.
func TestFoundResourceIsListedAsATool(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		c, opts := discovering(t, view.ModeSearch)
		add(t, c, tools.Tool{Name: "desk_resource_note", Kind: tools.KindResource, SourceName: "note://1", Loading: tools.LoadingDeferred,
			Description: "The note on the desk.", Definition: json.RawMessage(`{"uri":"note://1","name":"note","mimeType":"text/plain"}`)})
		session := connect(t, overHTTP(t, listenHTTP(t, c.serve(t, opts)), "Bearer acme one"), revision, nil)
		sdkCall(t, session, "tool_get", map[string]any{"name": "desk_resource_note"})
		var found json.RawMessage
		for tool, err := range session.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if tool.Name == "desk_resource_note" {
				found, _ = json.Marshal(tool)
			}
		}
		if !strings.Contains(string(found), `"description":"The note on the desk."`) || !strings.Contains(string(found), `"inputSchema":{"type":"object"}`) ||
			strings.Contains(string(found), "note://1") {
			t.Errorf("%s: listed as the tool %s", revision, found)
		}
		resources, err := session.ListResources(t.Context(), nil)
		if err != nil || !slices.ContainsFunc(resources.Resources, func(r *mcp.Resource) bool { return r.URI == "note://1" }) {
			t.Errorf("%s: the resource is not in its list (%v)", revision, err)
		}
	}
}

// The declarations of the meta-tools are part of every turn, so they are small,
// however many sources there are.
func TestMetaToolsAreSmall(t *testing.T) {
	c, opts := discovering(t, view.ModeSearch)
	for i := range 40 {
		name := "source-with-a-name-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		c.SwapSource(tools.ToolSourceID("mcp:"+name), []tools.ToolDescriptor{{Tool: tools.Tool{Name: name + "_tool"}, Invoke: gives(nil)}})
	}
	url := listenHTTP(t, c.serve(t, opts))
	_, body := modern{url: url, auth: "Bearer acme one"}.post(t, "tools/list", "", nil)
	var answer struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, tool := range answer.Result.Tools {
		sum += len(tool)
	}
	if len(answer.Result.Tools) != 3 || sum > 1200 {
		t.Errorf("%d tools take %d bytes: %s", len(answer.Result.Tools), sum, body)
	}
	t.Logf("%d bytes", sum)
}
