package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

// libraryTools are tools of every kind that a toolset can tell apart.
func libraryTools() []tools.Tool {
	return []tools.Tool{
		{Name: "lib.search", Description: "Look for a book.", Tags: []string{"read"}, Safety: tools.Safety{ReadOnly: tools.Yes}},
		{Name: "lib.lend", Description: "Lend a book.", Tags: []string{"write"}},
		{Name: "lib.vault", Description: "Open the vault.", Tags: []string{"read"}, AuthScopes: []string{"vault"}},
		{Name: "lib.acme", Description: "What acme has alone.", Tags: []string{"read"}, Tenants: []string{"acme"}},
		{Name: "lib.dump", Description: "Give a large result.", Tags: []string{"read"}, Category: "bulk"},
		{Name: "lib.round", Description: "Send a letter about each book.", Tags: []string{"write"}},
		{Name: "lib.relay", Description: "Give a large result of another tool.", Category: "relayed"},
		{Name: "mail.send", Description: "Send a letter.", Tags: []string{"write"}},
		{Name: "lib_resource_readme", Kind: tools.KindResource, SourceName: "lib://readme", Namespace: "lib", Tags: []string{"read"}},
		{Name: "mail_resource_inbox", Kind: tools.KindResource, SourceName: "mail://inbox", Namespace: "mail"},
		{Name: "lib_prompt_advise", Kind: tools.KindPrompt, SourceName: "advise", Namespace: "lib"},
		{Name: "mail_prompt_answer", Kind: tools.KindPrompt, SourceName: "answer", Namespace: "mail"},
	}
}

func registerLibrary(cat tools.ToolCatalog) error {
	for _, tool := range libraryTools() {
		if err := cat.Register(tools.ToolDescriptor{Tool: tool, Invoke: runLibrary(cat, tool.Name)}); err != nil {
			return err
		}
	}
	return nil
}

func runLibrary(cat tools.ToolCatalog, name string) tools.Invoker {
	return func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		switch name {
		case "lib.round":
			return tools.Invoke(ctx, cat, "mail.send", nil)
		case "lib.relay":
			return tools.Invoke(ctx, cat, "lib.dump", nil)
		case "lib.dump":
			return tools.ToolResult{Content: []tools.Content{tools.TextContent(strings.Repeat("a long list of books ", 5000))}}, nil
		}
		return tools.ToolResult{Content: []tools.Content{tools.TextContent("done: " + name)}}, nil
	}
}

const libraryToolsets = `
mcp: {discovery: full, results: bounded}
toolsets:
  - {name: reading, title: Reading, description: Look things up., tags: [read]}
  - {name: lib, namespaces: [lib], exclude: [lib.dump, lib.relay]}
  - {name: bulk, categories: [bulk]}
  - {name: relayed, categories: [relayed]}
  - name: own
    include: ["lib*", "mail*"]
    policy: '"ops" in identity.scopes || tool.name.startsWith("lib.") && identity.tenant == "acme"'
`

func openLibrary(t *testing.T, config string) *gateway.Gateway {
	return open(t, parse(t, config), &gateway.Options{Register: []func(tools.ToolCatalog) error{registerLibrary}})
}

// behindAuth serves a gateway as a program does that knows its callers: the header
// X-Who names tenant, user and scopes.
func behindAuth(t *testing.T, g *gateway.Gateway) string {
	t.Helper()
	inner := g.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := strings.Fields(r.Header.Get("X-Who")); len(who) > 1 {
			r = r.WithContext(identity.With(r.Context(), identity.Identity{TenantID: who[0], UserID: who[1]}, who[2:]...))
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// headers adds headers to every request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connectTo(t *testing.T, url, revision string, h headers, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: h}}
	s, err := client.Connect(bounded(t), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func toolNames(t *testing.T, s *mcp.ClientSession) []string {
	t.Helper()
	names := []string{}
	for tool, err := range s.Tools(bounded(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(tool.Name, "tool_") {
			names = append(names, tool.Name)
		}
	}
	return names
}

func textOf(res *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

var bothEras = []string{"2025-11-25", "2026-07-28"}

// Clients of MCP and of the JSON protocol are listed the same in a toolset, which
// is what they may see and the toolset has.
func TestWhatIsInAToolset(t *testing.T) {
	url := behindAuth(t, openLibrary(t, libraryToolsets))
	for _, c := range []struct {
		who, toolset string
		want         []string
	}{
		{"acme ada", "reading", []string{"lib.acme", "lib.dump", "lib.search"}},
		{"zeta zoe", "reading", []string{"lib.dump", "lib.search"}},
		{"zeta zoe vault", "reading", []string{"lib.dump", "lib.search", "lib.vault"}},
		{"zeta zoe", "lib", []string{"lib.lend", "lib.round", "lib.search"}},
		{"acme ada vault", "lib", []string{"lib.acme", "lib.lend", "lib.round", "lib.search", "lib.vault"}},
		{"acme ada", "own", []string{"lib.acme", "lib.dump", "lib.lend", "lib.relay", "lib.round", "lib.search"}},
		{"zeta zoe ops", "own", []string{"lib.dump", "lib.lend", "lib.relay", "lib.round", "lib.search", "mail.send"}},
		{"", "bulk", []string{"lib.dump"}},
		{"", "own", []string{}},
	} {
		for _, revision := range bothEras {
			s := connectTo(t, url+"/mcp/"+c.toolset, revision, headers{"X-Who": c.who}, nil)
			if diff := cmp.Diff(c.want, toolNames(t, s)); diff != "" {
				t.Errorf("%q in %s by MCP %s: %s", c.who, c.toolset, revision, diff)
			}
		}
		client, err := api.NewClient(url, &api.ClientOptions{HTTPClient: &http.Client{Transport: headers{"X-Who": c.who}}, Toolset: c.toolset})
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.List(bounded(t), api.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, row := range list.Tools {
			if row.Kind == "" {
				names = append(names, row.Name)
			}
		}
		if diff := cmp.Diff(c.want, names); diff != "" {
			t.Errorf("%q in %s by the JSON protocol: %s", c.who, c.toolset, diff)
		}
	}
}

// A toolset is a server of its own: it says its own name, what it is for, and has
// sessions of its own.
func TestAToolsetIsAServerOfItsOwn(t *testing.T) {
	url := behindAuth(t, openLibrary(t, libraryToolsets))
	s := connectTo(t, url+"/mcp/reading", "2025-11-25", headers{}, nil)
	hello := s.InitializeResult()
	if hello.ServerInfo.Name != "reading" || hello.ServerInfo.Title != "Reading" || hello.Instructions != "Look things up." {
		t.Errorf("%+v, %q", hello.ServerInfo, hello.Instructions)
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for path, want := range map[string]int{"/reading": http.StatusOK, "/lib": http.StatusNotFound, "": http.StatusNotFound} {
		r, _ := http.NewRequestWithContext(bounded(t), http.MethodPost, url+"/mcp"+path, strings.NewReader(ping))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Session-Id", s.ID())
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("the session at /mcp%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// What is outside of a toolset is answered, in every way, as what does not exist.
func TestWhatIsOutsideAToolsetDoesNotExist(t *testing.T) {
	url := behindAuth(t, openLibrary(t, libraryToolsets))
	for _, revision := range bothEras {
		s := connectTo(t, url+"/mcp/lib", revision, headers{"X-Who": "acme ada vault"}, nil)
		whole := connectTo(t, url+"/mcp", revision, headers{"X-Who": "acme ada vault"}, nil)
		// Each is asked about a tool outside and about one that does not exist.
		for kind, ask := range map[string]func(s *mcp.ClientSession, name string) (string, error){
			"call": func(s *mcp.ClientSession, name string) (string, error) {
				res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: name})
				return fmt.Sprintf("%+v", res), err
			},
			"tool_call": func(s *mcp.ClientSession, name string) (string, error) {
				res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "tool_call", Arguments: map[string]any{"name": name}})
				return fmt.Sprintf("%+v", res), err
			},
			"tool_get": func(s *mcp.ClientSession, name string) (string, error) {
				res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "tool_get", Arguments: map[string]any{"name": name}})
				if err != nil || strings.Contains(textOf(res), `"found":true`) {
					return textOf(res), err
				}
				return "", errors.New(textOf(res))
			},
			"tool_search": func(s *mcp.ClientSession, name string) (string, error) {
				res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "tool_search", Arguments: map[string]any{"query": name}})
				if err != nil || strings.Contains(textOf(res), `"name":"`+name+`"`) {
					return textOf(res), err
				}
				return "", errors.New("not among what was found: " + name)
			},
			"resource": func(s *mcp.ClientSession, name string) (string, error) {
				uri := map[string]string{"mail.send": "mail://inbox", "lib.search": "lib://readme"}[name]
				if uri == "" {
					uri = "mail://inbax"
				}
				res, err := s.ReadResource(bounded(t), &mcp.ReadResourceParams{URI: uri})
				if err != nil {
					err = errors.New(strings.ReplaceAll(strings.ReplaceAll(err.Error(), uri, name), "/", "."))
				}
				return fmt.Sprint(res != nil), err
			},
			"prompt": func(s *mcp.ClientSession, name string) (string, error) {
				prompt := map[string]string{"mail.send": "mail_answer", "lib.search": "lib_advise"}[name]
				if prompt == "" {
					prompt = "mail_answar"
				}
				res, err := s.GetPrompt(bounded(t), &mcp.GetPromptParams{Name: prompt})
				if err != nil {
					err = errors.New(strings.ReplaceAll(err.Error(), prompt, name))
				}
				return fmt.Sprint(res != nil), err
			},
		} {
			if got, err := ask(s, "lib.search"); err != nil {
				t.Errorf("%s %s of what is inside: %s, %v", revision, kind, got, err)
			}
			if got, err := ask(whole, "mail.send"); err != nil {
				t.Errorf("%s %s without a toolset: %s, %v", revision, kind, got, err)
			}
			_, hidden := ask(s, "mail.send")
			_, absent := ask(s, "mail.sendx")
			if hidden == nil || absent == nil || strings.ReplaceAll(hidden.Error(), "mail.send", "mail.sendx") != absent.Error() {
				t.Errorf("%s %s: what is outside is answered %v, what does not exist %v", revision, kind, hidden, absent)
			}
		}
		for _, list := range []func() int{
			func() int { l, _ := s.ListResources(bounded(t), nil); return len(l.Resources) },
			func() int { l, _ := s.ListPrompts(bounded(t), nil); return len(l.Prompts) },
		} {
			if n := list(); n != 1 {
				t.Errorf("%s: %d are listed", revision, n)
			}
		}
	}
}

// What a tool calls of its own is for its author to choose, in a toolset too.
func TestAToolReachesWhatItNeedsFromAToolset(t *testing.T) {
	url := behindAuth(t, openLibrary(t, libraryToolsets))
	s := connectTo(t, url+"/mcp/lib", "2025-11-25", headers{"X-Who": "acme ada"}, nil)
	for _, name := range []string{"lib.round", "tool_call"} {
		res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"name": "lib.round"}})
		if name == "lib.round" {
			res, err = s.CallTool(bounded(t), &mcp.CallToolParams{Name: name})
		}
		if err != nil || res.IsError || textOf(res) != "done: mail.send" {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
}

const skillToolsets = `
toolsets:
  - {name: voice, include: ["greet*", "skill_*"]}
  - {name: both, include: ["greet*", "lib.search", "skill_*"]}
skills:
  - name: greeting
    description: Greet with a book.
    steps: [{id: one, tool: lib.search}]
`

// A skill runs in a toolset that has not its tools, and is listed where it has.
func TestSkillsInToolsets(t *testing.T) {
	url := behindAuth(t, openLibrary(t, skillToolsets))
	for toolset, shown := range map[string]bool{"voice": false, "both": true} {
		s := connectTo(t, url+"/mcp/"+toolset, "2025-11-25", headers{}, nil)
		if res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "greeting"}); err != nil || res.IsError {
			t.Errorf("%s: %v, %v", toolset, res, err)
		}
		res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "skill_list"})
		if err != nil || strings.Contains(textOf(res), "greeting") != shown {
			t.Errorf("%s: %s, %v", toolset, textOf(res), err)
		}
	}
}

// A turn of a model is in the toolset that its context is narrowed to.
func TestTurnsInToolsets(t *testing.T) {
	g := openLibrary(t, libraryToolsets)
	ctx, err := g.WithToolset(g.LocalContext(bounded(t)), "lib")
	if err != nil {
		t.Fatal(err)
	}
	tn, err := g.Runner(nil).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := tn.Names(); !slices.Contains(got, "lib.search") || slices.Contains(got, "mail.send") {
		t.Errorf("declared %v", got)
	}
	results, err := tn.Execute(ctx, []turn.Call{{Name: "lib.round", Args: json.RawMessage("{}")}, {Name: "mail.send"}})
	if err != nil || results[0].Status != turn.StatusCompleted || results[1].Status != turn.StatusUnknown {
		t.Errorf("%+v, %v", results, err)
	}
}

// A name that no toolset has tells nothing, nor does one whose tools the caller
// does not see.
func TestUnknownToolsets(t *testing.T) {
	url := behindAuth(t, openLibrary(t, strings.Replace(libraryToolsets, "toolsets:", "toolsets:\n  - {name: secret-plan, include: [lib.vault]}", 1)))
	ask := func(method, path string, h headers) (int, string) {
		r, err := http.NewRequestWithContext(bounded(t), method, url+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := (&http.Client{Transport: h}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(bytes.TrimSpace(body))
	}
	zoe := headers{"X-Who": "zeta zoe"}
	for _, c := range []struct {
		path   string
		h      headers
		status int
		says   string
	}{
		{"/mcp/nosuch", zoe, 404, `there is no toolset \"nosuch\""`},
		{"/mcp/secret-plan", zoe, 404, `there is no toolset \"secret-plan\""`},
		{"/mcp/secret-plam", zoe, 404, `there is no toolset \"secret-plam\""`},
		{"/mcp/secret-plam", headers{"X-Who": "zeta zoe vault"}, 404, `, did you mean \"secret-plan\"?"`},
		{"/mcp/secret-plam", headers{}, 404, `, did you mean \"secret-plan\"?"`},
		{"/mcp/readin", zoe, 404, `, did you mean \"reading\"?"`},
		{"/mcp/", zoe, 404, `there is no toolset \"\""`},
		{"/mcp/lib/more", zoe, 404, `there is no toolset \"lib/more\""`},
		{"/mcp/LIB", zoe, 404, `there is no toolset \"LIB\", did you mean \"lib\"?"`},
		{"/mcp/%2e%2e%2fv1%2ftools%2flist", zoe, 404, `there is no toolset`},
		{"/mcp/%00%1b[31m", zoe, 404, `\\x00\\x1b[31m`},
		{"/mcp/" + strings.Repeat("x", 5000), zoe, 404, `xxx…\""`},
		{"/mcp", headers{"Toolcrib-Toolset": "lib"}, 400, `expected the toolset in the path, /mcp/NAME`},
		{"/mcp/lib", headers{"Toolcrib-Toolset": "reading"}, 400, `expected the toolset in the path, /mcp/NAME`},
		{"/v1/tools/list", headers{"Toolcrib-Toolset": "nosuch"}, 404, `"code":"toolset_not_found"`},
		{"/v1/tools/list", headers{"Toolcrib-Toolset": ""}, 404, `"code":"toolset_not_found"`},
		{"/v1/tools/list", headers{"Toolcrib-Toolset": "secret-plan", "X-Who": "zeta zoe"}, 404, `there is no toolset \"secret-plan\""`},
		{"/v1/artifacts/content/x", headers{"Toolcrib-Toolset": "nosuch"}, 404, `"code":"toolset_not_found"`},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			if method != http.MethodPost && strings.HasPrefix(c.path, "/v1") {
				continue
			}
			if status, body := ask(method, c.path, c.h); status != c.status || !strings.Contains(body, c.says) {
				t.Errorf("%s %.60s of %v: %d %s", method, c.path, c.h, status, body)
			}
		}
	}
	client, err := api.NewClient(url, &api.ClientOptions{HTTPClient: &http.Client{Transport: zoe}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Toolsets(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Toolset{
		{Name: "reading", Title: "Reading", Description: "Look things up.", Path: "/mcp/reading", Tools: 3}, // and a resource
		{Name: "lib", Path: "/mcp/lib", Tools: 5},
		{Name: "bulk", Path: "/mcp/bulk", Tools: 1},
		{Name: "relayed", Path: "/mcp/relayed", Tools: 1},
	}
	if diff := cmp.Diff(want, resp.Toolsets); diff != "" {
		t.Errorf("another tenant is told of %s", diff)
	}
}

// A program can keep its client on stdio in a toolset.
func TestStdioInAToolset(t *testing.T) {
	_, err := gateway.Open(bounded(t), parse(t, libraryToolsets), &gateway.Options{Toolset: "nosuch"})
	if e, ok := errors.AsType[*api.Error](err); !ok || e.Code != api.CodeToolsetNotFound {
		t.Errorf("an unknown toolset: %v", err)
	}
	g := open(t, parse(t, libraryToolsets), &gateway.Options{Toolset: "bulk", Register: []func(tools.ToolCatalog) error{registerLibrary}})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := g.ServeStdio(context.Background(), inR, outW)
		outW.Close()
		served <- err
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(bounded(t), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := toolNames(t, s); !slices.Equal(got, []string{"lib.dump"}) {
		t.Errorf("listed %v", got)
	}
	s.Close()
	inW.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
