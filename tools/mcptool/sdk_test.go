package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

type greeting struct {
	Name string `json:"name"`
}

// newSDKServer returns a server of the Go SDK. parked receives the cancellation
// cause of each call of "park".
func newSDKServer(parked chan<- error) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	no := false
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Title: "Greet", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}},
		func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, greeting, error) {
			return nil, greeting{Name: "hello " + in.Name}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "refuse"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("I will not")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "meta"},
		func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}, Meta: mcp.Meta{"seen": req.Params.Meta["k"]}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "park"},
		func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			notify(ctx, req, 1)
			<-ctx.Done()
			parked <- context.Cause(ctx)
			return nil, nil, ctx.Err()
		})
	mcp.AddTool(server, &mcp.Tool{Name: "tell"},
		func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			for i := range 5 {
				notify(ctx, req, float64(i+1))
			}
			//lint:ignore SA1019 the message is what is tested
			err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "warning", Logger: "sdk", Data: "careful"})
			return nil, nil, err
		})
	mcp.AddTool(server, &mcp.Tool{Name: "grow"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			mcp.AddTool(server, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			})
			return nil, nil, nil
		})
	return server
}

func notify(ctx context.Context, req *mcp.CallToolRequest, progress float64) {
	if token := req.Params.GetProgressToken(); token != nil {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: progress})
	}
}

func serveSDK() int {
	if err := newSDKServer(make(chan error, 16)).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// sdkOver returns the configuration of a server of the Go SDK for each way to
// reach it, and what its "park" was cancelled with where that can be seen.
func sdkOver(t *testing.T, way string) (*Config, <-chan error) {
	t.Helper()
	parked := make(chan error, 16)
	if way == "stdio, sessions" || way == "stdio, stateless" {
		return childConfig(t, "sdk"), nil
	}
	server := newSDKServer(parked)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: strings.HasSuffix(way, "stateless"), PropagateRequestCancellation: true})
	ts := httptest.NewServer(handler)
	t.Cleanup(ts.Close)
	return &Config{Name: "odd", URL: ts.URL}, parked
}

func TestGoSDKServers(t *testing.T) {
	for way, version := range map[string]string{
		"http, sessions":   mcpwire.LatestStateful,
		"http, stateless":  mcpwire.LatestStateless,
		"stdio, sessions":  mcpwire.Version20250618,
		"stdio, stateless": mcpwire.LatestStateless,
	} {
		t.Run(way, func(t *testing.T) {
			cfg, parked := sdkOver(t, way)
			if strings.HasPrefix(way, "stdio, s") && version != mcpwire.LatestStateless {
				cfg.Version = version
			}
			s := start(t, cfg)
			changed := make(chan struct{}, 16)
			s.OnChange(func() { changed <- struct{}{} })
			cat := catalogOf(t, s)
			if got := s.Status(); got.Revision != version || !got.Connected || got.Tools != 6 {
				t.Fatalf("Status: %+v", got)
			}
			exerciseSDK(t, cat)
			exerciseCancel(t, cat, parked)
			if _, err := tools.Invoke(t.Context(), cat, "odd_grow", nil); err != nil {
				t.Fatal(err)
			}
			await(t, changed)
			if ch := swap(t, cat, s); len(ch.Added) != 1 || ch.Added[0] != "odd_grown" || ch.Unchanged != 6 {
				t.Errorf("changes: %+v", ch)
			}
		})
	}
}

func exerciseSDK(t *testing.T, cat tools.LiveCatalog) {
	t.Helper()
	call := func(name, args string, rec *recorder) tools.ToolResult {
		t.Helper()
		ctx := tools.WithEntrance(t.Context(), tools.Entrance{Peer: rec, Meta: json.RawMessage(`{"k":"caller's"}`)})
		r, err := tools.Invoke(ctx, cat, name, json.RawMessage(args))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return r
	}
	d, _ := cat.Resolve("odd_greet")
	if d.Tool.Title != "Greet" || d.Tool.Safety.ReadOnly != tools.Yes || d.Tool.Safety.OpenWorld != tools.No ||
		d.Tool.Safety.Idempotent != tools.No || d.Tool.SideEffects != tools.SideEffectRead || d.Tool.Namespace != "odd" {
		t.Errorf("greet: %+v, %q, %s", d.Tool.Safety, d.Tool.SideEffects, d.Tool.Definition)
	}
	rec := &recorder{}
	r := call("odd_greet", `{"name":"Ada"}`, rec)
	if got, _ := r.JSON(); string(got) != `{"name":"hello Ada"}` {
		t.Errorf("greet: %s", got)
	}
	if r := call("odd_refuse", `{}`, rec); !r.IsError || r.Text() != "I will not" {
		t.Errorf("refuse: %+v", r)
	}
	if r := call("odd_meta", `{}`, rec); r.Meta["seen"] != "caller's" {
		t.Errorf("meta: %s", r.Wire)
	}
	call("odd_tell", `{}`, rec)
	notes, logs := rec.notes()
	if len(notes) != 5 || notes[4].Progress != 5 {
		t.Errorf("notes: %+v", notes)
	}
	for _, l := range logs {
		if l.Level != "warning" || l.Logger != "sdk" || string(l.Data) != `"careful"` {
			t.Errorf("log: %+v", l)
		}
	}
}

func exerciseCancel(t *testing.T, cat tools.LiveCatalog, parked <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	rec := &recorder{onNote: cancel}
	if _, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Peer: rec}), cat, "odd_park", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("park: %v", err)
	}
	if parked != nil {
		if err := await(t, parked); err == nil {
			t.Error("the server's call was not cancelled")
		}
	}
}

// A message that came on a call's own stream belongs to that call.
func TestLogsOfACall(t *testing.T) {
	for _, way := range []string{"http, sessions", "http, stateless"} {
		t.Run(way, func(t *testing.T) {
			cfg, _ := sdkOver(t, way)
			cat := catalogOf(t, start(t, cfg))
			var rec recorder
			if _, err := tools.Invoke(tools.WithEntrance(t.Context(), tools.Entrance{Peer: &rec}), cat, "odd_tell", nil); err != nil {
				t.Fatal(err)
			}
			if _, logs := rec.notes(); len(logs) != 1 {
				t.Errorf("logs: %+v", logs)
			}
		})
	}
}
