package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// newLibrary returns a server of the Go SDK with a resource, a resource
// template, a prompt and completions.
func newLibrary() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Ref.Name + "/" + r.Params.Argument.Value + "!"}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "text of " + r.Params.URI}}}, nil
	}
	server.AddResource(&mcp.Resource{URI: "lib://a", Name: "a", Title: "The first", MIMEType: "text/plain"}, read)
	server.AddResource(&mcp.Resource{URI: "lib://same/1", Name: "same"}, read)
	server.AddResource(&mcp.Resource{URI: "lib://same/2", Name: "same"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "book://{id}", Name: "book"}, read)
	server.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}, {Name: "how"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "A greeting", Messages: []*mcp.PromptMessage{
				{Role: "assistant", Content: &mcp.TextContent{Text: "whom?"}},
				{Role: "user", Content: &mcp.TextContent{Text: r.Params.Arguments["who"]}},
			}}, nil
		})
	return server
}

// serveHTTP serves a server of the Go SDK in one of the eras.
func serveHTTP(t *testing.T, server *mcp.Server, stateless bool) string {
	t.Helper()
	ts := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true}))
	t.Cleanup(ts.Close)
	return ts.URL
}

func eachEra(t *testing.T, f func(t *testing.T, stateless bool)) {
	for name, stateless := range map[string]bool{"sessions": false, "stateless": true} {
		t.Run(name, func(t *testing.T) { f(t, stateless) })
	}
}

func TestResourcesAndPromptsAreTools(t *testing.T) {
	eachEra(t, func(t *testing.T, stateless bool) {
		s := start(t, &Config{Name: "lib", URL: serveHTTP(t, newLibrary(), stateless)})
		cat := catalogOf(t, s)
		var names []string
		for _, tool := range cat.List(tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingDeferred}}) {
			names = append(names, tool.Name+" "+string(tool.Kind))
			if tool.SideEffects != tools.SideEffectRead || tool.Namespace != "lib" || tool.Description == "" {
				t.Errorf("%+v", tool)
			}
		}
		want := []string{"lib_prompt_greet prompt", "lib_read_resource resource_template", "lib_resource_a resource",
			"lib_resource_same_84ce6be4 resource", "lib_resource_same_a9fd90e6 resource", "lib_resource_template_book resource_template"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
		for call, want := range map[[2]string]string{
			{"lib_resource_a", `{}`}:                                   "text of lib://a",
			{"lib_resource_template_book", `{"uri":"book://7"}`}:       "text of book://7",
			{"lib_prompt_greet", `{"who":"Ada"}`}:                      "whom?\nAda",
			{"lib_resource_template_book", `{"uri":"lib://a"}`}:        "invalid arguments",
			{"lib_read_resource", `{"uri":"lib://a"}`}:                 "invalid arguments",
			{"lib_read_resource", `{"uri":"book://7"}`}:                "invalid arguments",
			{"lib_read_resource", `{"uri":"lib://nowhere"}`}:           "not found",
			{"lib_prompt_greet", `{"how":"loud"}`}:                     "invalid arguments",
			{"lib_resource_a", `{"uri":"lib://same/1"}`}:               "invalid arguments",
			{"lib_resource_same_84ce6be4", `{}`}:                       "text of lib://same/",
			{"lib_resource_template_book", `{"uri":"book://7\u0000"}`}: "invalid arguments",
		} {
			r, err := tools.Invoke(t.Context(), cat, call[0], json.RawMessage(call[1]))
			if got, _ := r.Value.(string); !strings.Contains(got, want) && (err == nil || !strings.Contains(strings.ToLower(err.Error()), want)) {
				t.Errorf("%v: %v, %v", call, r.Value, err)
			}
		}
	})
}

func TestNativeResultsAreKept(t *testing.T) {
	cat := catalogOf(t, start(t, &Config{Name: "lib", URL: serveHTTP(t, newLibrary(), false)}))
	r, err := tools.Invoke(t.Context(), cat, "lib_resource_a", nil)
	if err != nil || r.WireKind != tools.KindResource {
		t.Fatalf("%+v, %v", r, err)
	}
	content, _ := rawjson.Get(r.Content[0].JSON, "resource")
	contents, _ := rawjson.Get(r.Wire, "contents")
	if r.Content[0].Type != "resource" || string(contents) != "["+string(content)+"]" {
		t.Errorf("content %s of %s", content, r.Wire)
	}
	r, err = tools.Invoke(t.Context(), cat, "lib_prompt_greet", json.RawMessage(`{"who":"Ada"}`))
	if err != nil || r.WireKind != tools.KindPrompt || r.Text() != "whom?\nAda" {
		t.Errorf("%+v, %v", r, err)
	}
	if roles, _ := r.Provider["prompt_roles"].([]string); !slices.Equal(roles, []string{"assistant", "user"}) {
		t.Errorf("%v", r.Provider)
	}
}

func TestFiltersNameResourcesAndPrompts(t *testing.T) {
	url := serveHTTP(t, newLibrary(), false)
	s := start(t, &Config{Name: "lib", URL: url, Include: []string{"prompt_*", "resource_a"}})
	list, err := s.Discover(t.Context())
	if err != nil || len(list) != 2 {
		t.Errorf("%d, %v", len(list), err)
	}
}

func TestCompletionIsAskedOfTheServer(t *testing.T) {
	eachEra(t, func(t *testing.T, stateless bool) {
		cat := catalogOf(t, start(t, &Config{Name: "lib", URL: serveHTTP(t, newLibrary(), stateless)}))
		d, _ := cat.Resolve("lib_prompt_greet")
		raw, err := d.Companion.Complete(t.Context(), json.RawMessage(`{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"A"}}`))
		if err != nil || !strings.Contains(string(raw), `"greet/A!"`) {
			t.Errorf("%s, %v", raw, err)
		}
	})
}

func TestSubscriptionsAreSharedAndEnd(t *testing.T) {
	eachEra(t, func(t *testing.T, stateless bool) {
		library := newLibrary()
		s := start(t, &Config{Name: "lib", URL: serveHTTP(t, library, stateless)})
		catalogOf(t, s)
		heard := make(chan string, 16)
		subscribe := func(who string) func() {
			stop, err := s.Subscribe(t.Context(), "lib://a", func(params json.RawMessage) {
				if _, stamped := rawjson.Get(params, "_meta"); stamped {
					t.Errorf("%s", params)
				}
				heard <- who + " " + uriOf(params)
			})
			if err != nil {
				t.Fatal(err)
			}
			return stop
		}
		stopFirst, stopSecond := subscribe("first"), subscribe("second")
		tell := func() {
			if err := library.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "lib://a"}); err != nil {
				t.Fatal(err)
			}
		}
		tell()
		got := []string{await(t, heard), await(t, heard)}
		slices.Sort(got)
		if !slices.Equal(got, []string{"first lib://a", "second lib://a"}) {
			t.Errorf("%v", got)
		}
		stopFirst()
		eventually(t, func() bool {
			s.subscribed.mu.Lock()
			defer s.subscribed.mu.Unlock()
			return len(s.subscribed.byURI["lib://a"].subscribers) == 1
		})
		tell()
		if got := await(t, heard); got != "second lib://a" {
			t.Error(got)
		}
		stopSecond()
		stopSecond()
		eventually(t, func() bool { return len(s.subscribed.uris()) == 0 })
	})
}

func TestSubscribingToWhatCannotBeWatched(t *testing.T) {
	cfg, _ := sdkOver(t, "http, sessions")
	s := start(t, cfg)
	catalogOf(t, s)
	_, err := s.Subscribe(t.Context(), "lib://a", func(json.RawMessage) {})
	var rpc *RPCError
	if !errors.As(err, &rpc) || len(s.subscribed.uris()) != 0 {
		t.Errorf("%v", err)
	}
}

func TestListsOfResourcesDescribe(t *testing.T) {
	t.Parallel()
	s := plainServer(t)
	found, refused := s.describeAll([]*entryList{
		listOfKind(tools.KindTool, `{"name":"resource_x"}`),
		listOfKind(tools.KindResource, `{"uri":"u:1","name":"x","future":1}`, `{"uri":"u:1","name":"x"}`, `{"name":"none"}`, `{"uri":"u:2"}`, `7`),
		listOfKind(tools.KindResourceTemplate, `{"uriTemplate":"u:{broken","name":"t"}`),
		listOfKind(tools.KindPrompt, `{"name":"p","arguments":[{"name":"a","required":true,"title":"A"},{"name":7},{}]}`, `{"name":"q","arguments":{}}`),
	})
	got := map[string]tools.Tool{}
	for _, d := range found {
		got[d.Tool.Name] = d.Tool
	}
	if len(got) != 6 || len(refused) != 4 {
		t.Fatalf("found %v, refused %v", got, refused)
	}
	if schema := string(got["odd_prompt_p"].ArgsSchema); schema != `{"type":"object","properties":{"a":{"type":"string","title":"A"}},"required":["a"]}` {
		t.Error(schema)
	}
	if schema := string(got["odd_prompt_q"].ArgsSchema); schema != `{"type":"object","properties":{},"required":[]}` {
		t.Error(schema)
	}
	cat := tools.NewCatalog()
	for _, d := range found {
		if err := cat.Register(d); err != nil {
			t.Error(err)
		}
	}
}
