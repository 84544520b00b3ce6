package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
)

// named is a client that names its session.
type named string

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	if n != "" {
		r = r.Clone(r.Context())
		r.Header.Set(gateway.SessionHeader, string(n))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// listed connects to a gateway, calls a tool if there is one to call, and returns
// the names that it is listed.
func listed(t *testing.T, g *gateway.Gateway, session, revision, tool string, args map[string]any) []string {
	t.Helper()
	server := httptest.NewServer(g.Handler())
	defer server.Close()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: named(session)}}
	s, err := client.Connect(bounded(t), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if tool != "" {
		if res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: tool, Arguments: args}); err != nil || res.IsError {
			t.Fatalf("%s: %+v, %v", tool, res, err)
		}
	}
	var names []string
	for tool, err := range s.Tools(bounded(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

const searching = "mcp: {discovery: search}\ntools: {built_in: [clock.now, text.echo], entries: [{name: clock.now, loading_mode: always}]}"

var metaTools = []string{"tool_call", "tool_get", "tool_search"}

func TestLoadingModesOfTheConfiguration(t *testing.T) {
	for text, want := range map[string][]string{
		"tools: {built_in: [text.echo, clock.now]}": {"clock.now", "text.echo"},
		searching: append([]string{"clock.now"}, metaTools...),
		"mcp: {discovery: full}\ntools: {built_in: [text.echo, clock.now], entries: [{name: clock.now, loading_mode: deferred}]}":                           append([]string{"text.echo"}, metaTools...),
		"mcp: {discovery_budget_tokens: 20}\ntools: {built_in: [text.echo, clock.now]}":                                                                     metaTools,
		"tools: {built_in: [text.echo, tool_search]}":                                                                                                       {"text.echo", "tool_search"},
		"mcp: {discovery: search}\ntools: {entries: [{name: tool_search, auth_scopes: [x]}], built_in: [text.echo]}":                                        {"text.echo"},
		"tools: {mcp_servers: [" + strings.TrimSuffix(child("kid"), "}") + ", loading_mode: deferred}], entries: [{name: kid_echo, loading_mode: always}]}": append([]string{"kid_echo"}, metaTools...),
	} {
		g := open(t, parse(t, text), nil)
		if got := listed(t, g, "", "2025-11-25", "", nil); !slices.Equal(got, want) {
			t.Errorf("%s\nlists %v, want %v", text, got, want)
		}
	}
}

func TestReloadChangesWhatIsAlwaysListed(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [text.echo]}"), nil)
	if err := g.Reload(bounded(t), parse(t, "tools: {built_in: [text.echo, tool_get]}")); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, g, "", "2025-11-25", "", nil); !slices.Equal(got, []string{"text.echo", "tool_get"}) {
		t.Errorf("listed %v", got)
	}
	if err := g.Reload(bounded(t), parse(t, "tools: {built_in: [text.echo]}")); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, g, "", "2025-11-25", "", nil); !slices.Equal(got, []string{"text.echo"}) {
		t.Errorf("listed %v", got)
	}
}

// What a session found is there after a restart of the gateway, in both eras, and
// in no other session.
func TestFindsSurviveARestart(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			run := func(use func(*gateway.Gateway)) {
				g, err := gateway.Open(bounded(t), parse(t, searching), &gateway.Options{DataDir: dir})
				if err != nil {
					t.Fatal(err)
				}
				use(g)
				if err := g.Close(bounded(t)); err != nil {
					t.Fatal(err)
				}
			}
			get := map[string]any{"name": "text.echo"}
			run(func(g *gateway.Gateway) {
				if got := listed(t, g, "mine", revision, "tool_get", get); !slices.Contains(got, "text.echo") {
					t.Errorf("listed %v at once", got)
				}
			})
			run(func(g *gateway.Gateway) {
				for session, want := range map[string]bool{"mine": true, "other": false, "": false} {
					got := listed(t, g, session, revision, "", nil)
					if slices.Contains(got, "text.echo") != want {
						t.Errorf("the session %q is listed %v after a restart", session, got)
					}
				}
			})
		})
	}
}

// Two clients that name no session share nothing, unless the protocol has no
// session and they call themselves the same.
func TestFindsStayInTheirSession(t *testing.T) {
	g := open(t, parse(t, searching), nil)
	get := map[string]any{"name": "text.echo"}
	if got := listed(t, g, "", "2025-11-25", "tool_get", get); !slices.Contains(got, "text.echo") {
		t.Errorf("listed %v", got)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		if got := listed(t, g, "", revision, "", nil); slices.Contains(got, "text.echo") {
			t.Errorf("%s: another session is listed %v", revision, got)
		}
	}
	if got := listed(t, g, "", "2026-07-28", "tool_get", get); !slices.Contains(got, "text.echo") {
		t.Errorf("listed %v", got)
	}
	if got := listed(t, g, "", "2026-07-28", "", nil); !slices.Contains(got, "text.echo") {
		t.Errorf("after a stateless continuation: %v", got)
	}
}

func TestSessionNamesAreChecked(t *testing.T) {
	h := open(t, parse(t, searching), nil).Handler()
	for path, want := range map[string]string{"/mcp": "Toolcrib-Session", "/v1/tools/list": `"code":"invalid_request"`} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		r.Header.Set(gateway.SessionHeader, "not a name")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	g := open(t, parse(t, searching), &gateway.Options{Session: "not a name"})
	if err := g.ServeStdio(bounded(t), strings.NewReader(""), &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "session") {
		t.Errorf("on stdio: %v", err)
	}
}

// A tool about tools is for models: it is in no list of the JSON protocol, and in
// no answer of the search, unless the operator offers it.
func TestMetaToolsAreListedWhenTheyAreOffered(t *testing.T) {
	for text, want := range map[string]int{searching: 2, "tools: {built_in: [text.echo, tool_search]}": 2} {
		g := open(t, parse(t, text), nil)
		h := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/tools/list", nil)
		g.Handler().ServeHTTP(h, r)
		if got := strings.Count(h.Body.String(), `"id":`); got != want {
			t.Errorf("%s: %s", text, h.Body)
		}
	}
}

// The JSON protocol and tool_search find the same, and none finds what the caller
// may not see.
func TestSearchOfTheGateway(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [clock.now, text.echo], entries: [{name: text.echo, auth_scopes: [x]}]}"), nil)
	found, err := g.LocalAPI().Search(g.LocalContext(bounded(t)), api.SearchRequest{Query: "what time is it"})
	if err != nil || len(found.Tools) == 0 || found.Tools[0].Name != "clock.now" || found.Tools[0].Description == "" {
		t.Errorf("%+v, %v", found, err)
	}
	for _, hit := range found.Tools {
		if hit.Name == "text.echo" || strings.HasPrefix(hit.Name, "tool_") {
			t.Errorf("%s was found", hit.Name)
		}
	}
	if got := call(t, g, "tool_search", `{"query":"what time is it"}`); !strings.Contains(got, `"clock.now"`) || strings.Contains(got, "text.echo") {
		t.Error(got)
	}
	if listed := g.Catalog().Search(g.LocalContext(bounded(t)), "what time is it", nil, 5); len(listed) == 0 || listed[0].Name != "clock.now" {
		t.Errorf("the catalog's own search finds %v", listed)
	}
}

// The tools about tools are always there, so an entry for one is no mistake, and a
// call through one is told of in the name of its target.
func TestMetaToolsAreKnown(t *testing.T) {
	cfg := parse(t, "tools: {built_in: [text.echo], entries: [{name: tool_search, description: Find.}, {name: tool_call, loading_mode: deferred}]}")
	if warnings, err := cfg.Examine(); err != nil || len(warnings) > 0 {
		t.Errorf("%v, warnings %v", err, warnings)
	}
	g := open(t, cfg, nil)
	if got := g.PendingEntries(); len(got) > 0 {
		t.Errorf("pending %v", got)
	}
	_, err := g.LocalAPI().Call(g.LocalContext(bounded(t)), api.CallRequest{Name: "tool_call", Arguments: []byte(`{"name":"text.ecko"}`)})
	if err == nil || !strings.Contains(err.Error(), `"text.ecko", did you mean "text.echo"`) {
		t.Errorf("%v", err)
	}
}

// A change of the discovery mode reaches clients while the gateway serves.
func TestReloadChangesTheDiscovery(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			g := open(t, parse(t, "tools: {built_in: [clock.now, text.echo]}"), nil)
			server := httptest.NewServer(g.Handler())
			defer server.Close()
			changed := make(chan struct{}, 8)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			s, err := client.Connect(bounded(t), &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			names := func() (out []string) {
				for tool, err := range s.Tools(bounded(t), nil) {
					if err != nil {
						t.Fatal(err)
					}
					out = append(out, tool.Name)
				}
				return out
			}
			whole := []string{"clock.now", "text.echo"}
			if got := names(); !slices.Equal(got, whole) {
				t.Fatalf("listed %v", got)
			}
			if err := g.Reload(bounded(t), parse(t, "mcp: {discovery: search}\ntools: {built_in: [clock.now, text.echo]}")); err != nil {
				t.Fatal(err)
			}
			if revision == "2025-11-25" { // a client of the other revision subscribes when it likes to
				select {
				case <-changed:
				case <-bounded(t).Done():
					t.Error("the client never heard that its list changed")
				}
			}
			if got := names(); !slices.Equal(got, metaTools) {
				t.Errorf("listed %v after the reload", got)
			}
			bad := parse(t, "mcp: {discovery: full}\ntools: {entries: [{name: x, approval: {policy: gated}}]}")
			if err := g.Reload(bounded(t), bad); err == nil {
				t.Error("a configuration that cannot be applied is applied")
			}
			if got := names(); !slices.Equal(got, metaTools) {
				t.Errorf("listed %v after a reload that was refused", got)
			}
		})
	}
}
