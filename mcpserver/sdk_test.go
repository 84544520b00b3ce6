package mcpserver_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
)

// revisions are one of each era, and the oldest.
var revisions = []string{"2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(t *testing.T, url, auth string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(auth)}}
}

func overPipe(t *testing.T, s *mcpserver.Server) mcp.Transport {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.ServeStdio(context.Background(), inR, outW)
		outW.Close()
		done <- err
	}()
	t.Cleanup(func() {
		inW.Close()
		if err := receive(t, done); err != nil {
			t.Error(err)
		}
	})
	return &mcp.IOTransport{Reader: outR, Writer: inW}
}

func connect(t *testing.T, transport mcp.Transport, revision string, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("revision %s was negotiated for %s", got, revision)
	}
	return session
}

func TestSDKClient(t *testing.T) {
	for _, revision := range revisions {
		for _, way := range []string{"http", "pipe"} {
			t.Run(revision+" "+way, func(t *testing.T) {
				c := newCrib(t)
				s := c.serve(t, &mcpserver.Options{Name: "crib", Version: "1", Instructions: "Use it.", PageSize: 7})
				transport := func() mcp.Transport {
					if way == "pipe" {
						return overPipe(t, s)
					}
					return overHTTP(t, listenHTTP(t, s), "")
				}
				converseWithSDK(t, c, transport(), revision)
			})
		}
	}
}

func converseWithSDK(t *testing.T, c *crib, transport mcp.Transport, revision string) {
	heard := &hearing{}
	session := connect(t, transport, revision, heard.options())
	if got := session.InitializeResult().Instructions; got != "Use it." {
		t.Errorf("instructions %q", got)
	}
	listed := sdkNames(t, session)
	if want := tools.VisibleNames(c, tools.FilterFrom(t.Context())); !slices.Equal(listed, want) {
		t.Errorf("listed %v, want %v", listed, want)
	}
	res := sdkCall(t, session, "go.object", map[string]any{"n": 1})
	if text := res.Content[0].(*mcp.TextContent).Text; text != `{"a":9007199254740993}` || res.IsError {
		t.Errorf("%q", text)
	}
	if res := sdkCall(t, session, "go.object", nil); !res.IsError {
		t.Error("missing arguments are no error")
	}
	if res := sdkCall(t, session, "fail.plain", nil); !res.IsError || res.Meta["toolcrib/error"] == nil {
		t.Errorf("%+v", res)
	}
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "go.secret"}); err == nil || !strings.Contains(err.Error(), "Unknown tool: go.secret") {
		t.Errorf("%v", err)
	}
	sdkProgress(t, session, heard)
	sdkCancel(t, c, session)
}

func sdkNames(t *testing.T, session *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

func sdkCall(t *testing.T, session *mcp.ClientSession, name string, args any) *mcp.CallToolResult {
	t.Helper()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func sdkProgress(t *testing.T, session *mcp.ClientSession, heard *hearing) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "talk.progress"}
	params.SetProgressToken("mine")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	for _, want := range []float64{0, 1, 2} {
		note := receive(t, heard.progress())
		if note.Progress != want || note.ProgressToken != "mine" {
			t.Errorf("progress %v with token %v, want %v", note.Progress, note.ProgressToken, want)
		}
	}
}

func sdkCancel(t *testing.T, c *crib, session *mcp.ClientSession) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "talk.hang"})
		failed <- err
	}()
	receive(t, c.started)
	cancel()
	receive(t, c.ended)
	if err := receive(t, failed); err == nil {
		t.Error("a cancelled call was answered")
	}
}

// hearing is what a client was told.
type hearing struct {
	once  sync.Once
	notes chan *mcp.ProgressNotificationParams
	lists chan struct{}
}

func (h *hearing) make() {
	h.once.Do(func() {
		h.notes = make(chan *mcp.ProgressNotificationParams, 64)
		h.lists = make(chan struct{}, 64)
	})
}

func (h *hearing) progress() <-chan *mcp.ProgressNotificationParams { h.make(); return h.notes }

func (h *hearing) options() *mcp.ClientOptions {
	h.make()
	return &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { h.notes <- r.Params },
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { h.lists <- struct{}{} },
	}
}
