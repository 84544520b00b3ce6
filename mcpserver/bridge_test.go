//lint:file-ignore SA1019 What the newest revision deprecates is served to the others.

package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// newUpstream returns a server of the Go SDK that asks its caller something, in
// the way of the era in which it is served, and has resources and prompts.
func newUpstream(stateless bool) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "upstream", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Ref.Name + r.Params.Ref.URI}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	form := &mcp.ElicitParams{Message: "who?", RequestedSchema: &jsonschema.Schema{Type: "object",
		Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}}}
	draft := &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}}
	mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if stateless {
			return askByResult(r, form, draft), nil, nil
		}
		return askByRequest(ctx, r.Session, form, draft)
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text of " + r.Params.URI}}}, nil
	}
	server.AddResource(&mcp.Resource{URI: "lib://a", Name: "a"}, read)
	server.AddResource(&mcp.Resource{URI: "ui://page", Name: "page"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "book://{id}", Name: "book"}, read)
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "assistant", Content: &mcp.TextContent{Text: "Hello " + r.Params.Arguments["who"]}}}}, nil
		})
	return server
}

func askByRequest(ctx context.Context, session *mcp.ServerSession, form *mcp.ElicitParams, draft *mcp.CreateMessageParams) (*mcp.CallToolResult, any, error) {
	who, err := session.Elicit(ctx, form)
	if err != nil {
		return nil, nil, err
	}
	said, err := session.CreateMessage(ctx, draft)
	if err != nil {
		return nil, nil, err
	}
	roots, err := session.ListRoots(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	return answered(who, said.Content, roots), nil, nil
}

func askByResult(r *mcp.CallToolRequest, form *mcp.ElicitParams, draft *mcp.CreateMessageParams) *mcp.CallToolResult {
	in := r.Params.InputResponses
	who, ok := in["who"].(*mcp.ElicitResult)
	if !ok {
		return &mcp.CallToolResult{RequestState: "first", InputRequests: mcp.InputRequestMap{"who": form, "roots": &mcp.ListRootsParams{}, "draft": draft}}
	}
	said := in["draft"].(*mcp.CreateMessageWithToolsResult)
	return answered(who, said.Content[0], in["roots"].(*mcp.ListRootsResult))
}

func answered(who *mcp.ElicitResult, said mcp.Content, roots *mcp.ListRootsResult) *mcp.CallToolResult {
	text := fmt.Sprint(who.Content["name"], ", ", said.(*mcp.TextContent).Text, ", ", roots.Roots[0].URI)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// A bridge is a catalog with one upstream.
type bridge struct {
	tools.LiveCatalog
	upstream *mcp.Server
}

func newBridge(t *testing.T, stateless bool, prefix string) *bridge {
	t.Helper()
	return bridgeTo(t, newUpstream(stateless), stateless, prefix)
}

func bridgeTo(t *testing.T, upstream *mcp.Server, stateless bool, prefix string) *bridge {
	t.Helper()
	b := &bridge{upstream: upstream, LiveCatalog: tools.NewCatalog().(tools.LiveCatalog)}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return b.upstream },
		&mcp.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(web.Close)
	source, err := mcptool.New(&mcptool.Config{Name: "up", URL: web.URL, Prefix: &prefix, Session: mcptool.SessionPerSession})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	swap := func() {
		list, err := source.Discover(t.Context())
		if err != nil {
			t.Error(err)
		}
		b.SwapSource(source.SourceID(), list)
	}
	source.OnChange(swap)
	swap()
	return b
}

func (b *bridge) serve(t *testing.T) *mcpserver.Server {
	return (&crib{LiveCatalog: b.LiveCatalog}).serve(t, nil)
}

// answering are the options of a client that answers every question.
func answering() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "hi Ada"}}, nil
		},
	}
}

// eachBridge runs f for clients of both eras before servers of both eras, over
// HTTP and over a pipe.
func eachBridge(t *testing.T, prefix string, opts func() *mcp.ClientOptions, f func(t *testing.T, b *bridge, session *mcp.ClientSession)) {
	for _, revision := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for era, stateless := range map[string]bool{"a server with sessions": false, "a stateless server": true} {
			for _, way := range []string{"http", "pipe"} {
				t.Run(fmt.Sprintf("%s over %s before %s", revision, way, era), func(t *testing.T) {
					b := newBridge(t, stateless, prefix)
					s := b.serve(t)
					var transport mcp.Transport
					if way == "http" {
						transport = overHTTP(t, listenHTTP(t, s), "")
					} else {
						transport = overPipe(t, s)
					}
					client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, opts())
					client.AddRoots(&mcp.Root{URI: "file:///work"})
					session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { session.Close() })
					f(t, b, session)
				})
			}
		}
	}
}

func TestQuestionsCrossTheEras(t *testing.T) {
	eachBridge(t, "", answering, func(t *testing.T, _ *bridge, session *mcp.ClientSession) {
		res := sdkCall(t, session, "ask", nil)
		if text := res.Content[0].(*mcp.TextContent).Text; text != "Ada, hi Ada, file:///work" || res.IsError {
			t.Errorf("%q", text)
		}
	})
}

func TestResourcesAndPromptsCrossTheEras(t *testing.T) {
	eachBridge(t, "x_", answering, func(t *testing.T, _ *bridge, session *mcp.ClientSession) {
		ctx := t.Context()
		if names := sdkNames(t, session); !slices.Equal(names, []string{"x_ask"}) {
			t.Errorf("tools %v", names)
		}
		resources, err := session.ListResources(ctx, nil)
		if err != nil || len(resources.Resources) != 2 || resources.Resources[0].URI != "lib://a" || resources.Resources[1].URI != "ui://page" {
			t.Errorf("%+v, %v", resources, err)
		}
		templates, err := session.ListResourceTemplates(ctx, nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "book://{id}" {
			t.Errorf("%+v, %v", templates, err)
		}
		for _, uri := range []string{"lib://a", "ui://page", "book://7"} {
			read, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			if err != nil || read.Contents[0].Text != "text of "+uri {
				t.Errorf("%s: %+v, %v", uri, read, err)
			}
		}
		if _, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "lib://none"}); err == nil || !strings.Contains(strings.ToLower(err.Error()), "not found") {
			t.Errorf("%v", err)
		}
		prompts, err := session.ListPrompts(ctx, nil)
		if err != nil || len(prompts.Prompts) != 1 || prompts.Prompts[0].Name != "x_greet" || !prompts.Prompts[0].Arguments[0].Required {
			t.Errorf("%+v, %v", prompts, err)
		}
		prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "x_greet", Arguments: map[string]string{"who": "Ada"}})
		if err != nil || prompt.Messages[0].Role != "assistant" || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Hello Ada" {
			t.Errorf("%+v, %v", prompt, err)
		}
		for _, p := range []*mcp.GetPromptParams{{Name: "greet"}, {Name: "x_greet"}} {
			if _, err := session.GetPrompt(ctx, p); err == nil {
				t.Errorf("%s %v is answered", p.Name, p.Arguments)
			}
		}
		for ref, want := range map[*mcp.CompleteReference]string{
			{Type: "ref/prompt", Name: "x_greet"}:      "greet",
			{Type: "ref/resource", URI: "book://{id}"}: "book://{id}",
		} {
			res, err := session.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "A"}})
			if err != nil || !slices.Equal(res.Completion.Values, []string{want}) {
				t.Errorf("%+v: %+v, %v", ref, res, err)
			}
		}
		if _, err := session.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}}); err == nil {
			t.Error("a prompt that is not shown is completed")
		}
	})
}

func TestUpdatesCrossTheEras(t *testing.T) {
	updated := make(chan string, 64)
	changed := make(chan string, 64)
	opts := func() *mcp.ClientOptions {
		return &mcp.ClientOptions{
			ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed <- "resources" },
			PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { changed <- "prompts" },
		}
	}
	eachBridge(t, "", opts, func(t *testing.T, b *bridge, session *mcp.ClientSession) {
		for len(updated) > 0 {
			<-updated
		}
		for len(changed) > 0 {
			<-changed
		}
		ctx := t.Context()
		if err := session.Subscribe(ctx, &mcp.SubscribeParams{URI: "lib://a"}); err != nil {
			t.Fatal(err)
		}
		if uri := b.updateUntil(t, updated); uri != "lib://a" {
			t.Error(uri)
		}
		if err := session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "lib://a"}); err != nil {
			t.Error(err)
		}
		b.upstream.RemovePrompts("greet")
		if list := receive(t, changed); list != "prompts" {
			t.Error(list)
		}
		b.upstream.RemoveResources("lib://a")
		if list := receive(t, changed); list != "resources" {
			t.Error(list)
		}
	})
}

// updateUntil tells of an update until the client hears of one: over a pipe, the
// SDK's client does not wait for its subscription to hold.
func (b *bridge) updateUntil(t *testing.T, heard <-chan string) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(10 * time.Second); ; {
		if err := b.upstream.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "lib://a"}); err != nil {
			t.Fatal(err)
		}
		select {
		case uri := <-heard:
			return uri
		case <-tick.C:
		case <-limit:
			t.Fatal("no update was heard of for 10 s")
		}
	}
}

// Resources of the same URI: the tool whose name comes first is shown and read.
func TestCollidingResources(t *testing.T) {
	c := newCrib(t)
	for _, name := range []string{"b.two", "a.one"} {
		err := c.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: name, Kind: tools.KindResource, SourceName: "same://x", Title: "T"},
			Invoke: gives("text of " + name)})
		if err != nil {
			t.Fatal(err)
		}
	}
	m := modern{url: listenHTTP(t, c.serve(t, nil))}
	_, list := m.post(t, "resources/list", "", nil)
	if !strings.Contains(string(list), `"resources":[{"uri":"same://x","name":"a.one","title":"T"}]`) {
		t.Errorf("%s", list)
	}
	m.header = http.Header{"Mcp-Name": {"same://x"}}
	_, read := m.post(t, "resources/read", "", map[string]json.RawMessage{"uri": json.RawMessage(`"same://x"`)})
	if !strings.Contains(string(read), `"contents":[{"uri":"same://x","text":"text of a.one"}]`) {
		t.Errorf("%s", read)
	}
}

// shouting is a redactor that changes every text.
type shouting struct{}

func (shouting) Redact(_ context.Context, _ *tools.Tool, r *tools.ToolResult) error {
	for i, c := range r.Content {
		r.Content[i].JSON = json.RawMessage(strings.ToUpper(string(c.JSON)))
		r.Content[i].JSON = json.RawMessage(strings.NewReplacer(`"TYPE"`, `"type"`, `"TEXT"`, `"text"`, `"RESOURCE"`, `"resource"`, `"URI"`, `"uri"`).Replace(string(r.Content[i].JSON)))
	}
	r.Wire = nil
	return nil
}

// What a redactor changed is changed in a read and in a prompt as well.
func TestRedactionHoldsForResourcesAndPrompts(t *testing.T) {
	b := newBridge(t, true, "")
	b.SwapStages(tools.Stages{Redactor: shouting{}})
	session := connect(t, overPipe(t, b.serve(t)), "2025-11-25", nil)
	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "lib://a"})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "TEXT OF LIB://A" {
		t.Errorf("%+v, %v", read, err)
	}
	got, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "Ada"}})
	if err != nil || got.Messages[0].Role != "assistant" || got.Messages[0].Content.(*mcp.TextContent).Text != "HELLO ADA" {
		t.Errorf("%+v, %v", got, err)
	}
}

// What only some callers see is kept for nobody else, whatever its source says.
func TestLimitedResourcesArePrivate(t *testing.T) {
	c := newCrib(t)
	for name, scopes := range map[string][]string{"open": nil, "limited": {"s"}} {
		err := c.Register(tools.ToolDescriptor{
			Tool: tools.Tool{Name: name, Kind: tools.KindResource, SourceName: "r:" + name, AuthScopes: scopes},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
				return tools.ToolResult{Wire: json.RawMessage(`{"contents":[],"ttlMs":5,"cacheScope":"public"}`), WireKind: tools.KindResource}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	url := listenHTTP(t, c.serve(t, &mcpserver.Options{Authenticate: byTenant}))
	read := func(auth, uri string) string {
		m := modern{url: url, auth: auth, header: http.Header{"Mcp-Name": {uri}}}
		_, answer := m.post(t, "resources/read", "", map[string]json.RawMessage{"uri": json.RawMessage(`"` + uri + `"`)})
		return string(answer)
	}
	for got, want := range map[string]string{
		read("Bearer acme s", "r:open"):    `"ttlMs":5,"cacheScope":"public"`,
		read("Bearer acme s", "r:limited"): `"ttlMs":5,"cacheScope":"private"`,
		read("Bearer acme", "r:limited"):   `"error":{"code":-32602,"message":"Resource not found","data":{"uri":"r:limited"}}`,
		read("Bearer acme", "r:limitem"):   `"error":{"code":-32602,"message":"Resource not found","data":{"uri":"r:limitem"}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What belongs to the client and not to a call reaches it when the call is over.
func TestNotificationsOfTheClient(t *testing.T) {
	c := newCrib(t)
	calls := make(chan *tools.Call, 1)
	err := c.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "later"}, Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		calls <- tools.CallFrom(ctx)
		return tools.ToolResult{Value: "done"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := openPipe(t, c.serve(t, nil))
	p.write(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	p.readAnswer(t)
	p.write(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later"}}`)
	p.readAnswer(t)
	if err := receive(t, calls).Notify(t.Context(), "notifications/elicitation/complete", json.RawMessage(`{"elicitationId":"e"}`)); err != nil {
		t.Error(err)
	}
	if _, method := p.read(t); method != "notifications/elicitation/complete" {
		t.Error(method)
	}
	p.end(t)
}

// A server that knows the roots of a client hears when they change.
func TestRootsThatChangeAreTold(t *testing.T) {
	told := make(chan struct{}, 16)
	upstream := mcp.NewServer(&mcp.Implementation{Name: "up", Version: "1"}, &mcp.ServerOptions{
		RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { told <- struct{}{} },
	})
	mcp.AddTool(upstream, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	b := bridgeTo(t, upstream, false, mcptool.NoPrefix)
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), overPipe(t, b.serve(t)), &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"}); err != nil {
		t.Fatal(err)
	}
	client.AddRoots(&mcp.Root{URI: "file:///another"})
	receive(t, told)
}
