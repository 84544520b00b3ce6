package mcpwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// serveHTTP runs a handler on a loopback port until the test ends.
func serveHTTP(t testing.TB, h http.Handler) (url string, rt http.RoundTripper) {
	t.Helper()
	srv := httptest.NewServer(h)
	tr := &http.Transport{}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL, tr
}

func serveWire(t testing.TB, h mcpwire.Handler, opts *mcpwire.ServerOptions) (*mcpwire.Server, string, http.RoundTripper) {
	t.Helper()
	s := mcpwire.NewServer(h, opts)
	url, rt := serveHTTP(t, s)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Shutdown(ctx)
	})
	return s, url, rt
}

func connect(t testing.TB, tr mcpwire.Transport, opts *mcpwire.ClientOptions) *mcpwire.Client {
	t.Helper()
	c, err := mcpwire.Connect(t.Context(), tr, opts)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

var allVersions = []string{"", mcpwire.Version20241105, mcpwire.Version20250326, mcpwire.Version20250618, mcpwire.Version20251125, mcpwire.Version20260728}

// TestSDKClient has the go-sdk's client speak to our server.
func TestSDKClient(t *testing.T) {
	for _, version := range allVersions {
		t.Run("http/"+version, func(t *testing.T) {
			_, url, rt := serveWire(t, echo{}, nil)
			exerciseSDKClient(t, version, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: rt}})
		})
		t.Run("stdio/"+version, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{roleEnv + "=server"}
			exerciseSDKClient(t, version, &mcp.CommandTransport{Command: cmd})
		})
	}
}

func exerciseSDKClient(t *testing.T, version string, tr mcp.Transport) {
	ctx := t.Context()
	progress := make(chan float64, 3)
	logged := make(chan string, 1)
	c := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			progress <- r.Params.Progress
		},
		//lint:ignore SA1019 the revisions before 2026-07-28 have it, and they are served.
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { logged <- string(r.Params.Level) },
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "ann"}}, nil
		},
	})
	s, err := c.Connect(ctx, tr, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := version
	if want == "" {
		want = mcpwire.LatestStateless
	}
	if got := s.InitializeResult().ProtocolVersion; got != want {
		t.Errorf("version %s, want %s", got, want)
	}
	tools, err := s.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "echo" {
		t.Fatalf("ListTools: %+v, %v", tools, err)
	}
	p := &mcp.CallToolParams{Name: "progress"}
	p.SetProgressToken("tok")
	if res, err := s.CallTool(ctx, p); err != nil || sdkText(res) != "done" {
		t.Fatalf("CallTool: %v, %v", res, err)
	}
	if sum := <-progress + <-progress + <-progress; sum != 6 { // the sdk does not keep their order
		t.Errorf("progress sums to %v", sum)
	}
	if res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "log"}); err != nil || sdkText(res) != "logged" {
		t.Fatalf("CallTool log: %v, %v", res, err)
	}
	if got := <-logged; got != "info" {
		t.Errorf("logged %q", got)
	}
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "ask"})
	switch {
	case mcpwire.EraOf(want) == mcpwire.EraStateless:
		if err == nil || !strings.Contains(err.Error(), "not possible") {
			t.Errorf("ask in the stateless era: %v, %v", res, err)
		}
	case err != nil || !strings.Contains(sdkText(res), `"ann"`):
		t.Errorf("ask: %v, %v", res, err)
	}
	if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "nope"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("unknown tool: %v", err)
	}
	cancelInFlight(t, s)
}

func cancelInFlight(t *testing.T, s *mcp.ClientSession) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
}

func sdkText(r *mcp.CallToolResult) string {
	if r == nil || len(r.Content) == 0 {
		return ""
	}
	if c, ok := r.Content[0].(*mcp.TextContent); ok {
		return c.Text
	}
	return ""
}

// TestSDKServer has our client speak to the go-sdk's server.
func TestSDKServer(t *testing.T) {
	for _, version := range allVersions {
		t.Run("http/"+version, func(t *testing.T) {
			stateless := version == "" || mcpwire.EraOf(version) == mcpwire.EraStateless
			s := sdkServer()
			url, rt := serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
				&mcp.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true}))
			exerciseWireClient(t, version, &mcpwire.HTTPTransport{URL: url, RoundTripper: rt})
		})
		t.Run("stdio/"+version, func(t *testing.T) { exerciseWireClient(t, version, child(t, "sdk")) })
	}
	t.Run("http/fallback", func(t *testing.T) {
		s := sdkServer()
		url, rt := serveHTTP(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
		c := connect(t, &mcpwire.HTTPTransport{URL: url, RoundTripper: rt}, nil)
		if got := c.Server().Version; got != mcpwire.LatestStateful {
			t.Errorf("version %s", got)
		}
		if c.SessionID() == "" {
			t.Error("no session id")
		}
	})
}

func exerciseWireClient(t *testing.T, version string, tr mcpwire.Transport) {
	ctx := t.Context()
	asked := make(chan string, 1)
	c := connect(t, tr, &mcpwire.ClientOptions{
		Version:      version,
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
		OnRequest: func(_ context.Context, r *mcpwire.ServerRequest) (json.RawMessage, error) {
			asked <- r.Method
			return json.RawMessage(`{"action":"decline"}`), nil
		},
	})
	server := c.Server()
	if version != "" && server.Version != version || !strings.Contains(string(server.Info), `"sdk"`) || server.Instructions != "be kind" {
		t.Errorf("server: %+v", server)
	}
	result, err := c.Call(ctx, "tools/call", json.RawMessage(`{"name":"echo","arguments":{"text":"hi"},"_meta":{"progressToken":"foreign","k":1}}`), nil)
	if err != nil || !strings.Contains(string(result), `"hi"`) {
		t.Fatalf("echo: %s, %v", result, err)
	}
	var progress []string
	_, err = c.Call(ctx, "tools/call", json.RawMessage(`{"name":"progress","arguments":{"text":""}}`), &mcpwire.CallOptions{
		Progress: func(p json.RawMessage) { progress = append(progress, string(p)) },
	})
	if err != nil || len(progress) != 3 || !strings.Contains(progress[2], `"progress":3`) {
		t.Fatalf("progress: %q, %v", progress, err)
	}
	if server.Era == mcpwire.EraStateful {
		result, err := c.Call(ctx, "tools/call", json.RawMessage(`{"name":"ask","arguments":{"text":""}}`), nil)
		if err != nil || !strings.Contains(string(result), "decline") || <-asked != "elicitation/create" {
			t.Errorf("ask: %s, %v", result, err)
		}
	}
	_, err = c.Call(ctx, "no/such", nil, nil)
	var je *mcpwire.Error
	if !errors.As(err, &je) || mcpwire.DeliveryOf(err) != mcpwire.Answered {
		// The sdk's stateful HTTP server refuses an unknown method with plain 400.
		var he *mcpwire.HTTPError
		if !errors.As(err, &he) || he.Status != http.StatusBadRequest {
			t.Errorf("unknown method: %v", err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	_, err = c.Call(cancelled, "tools/call", json.RawMessage(`{"name":"wait","arguments":{"text":""}}`), &mcpwire.CallOptions{
		Progress: func(json.RawMessage) { cancel() },
	})
	if !errors.Is(err, context.Canceled) || mcpwire.DeliveryOf(err) != mcpwire.MaybeDelivered {
		t.Errorf("cancelled call: %v", err)
	}
	if _, err := c.Call(ctx, "tools/list", nil, nil); err != nil {
		t.Errorf("after a cancelled call: %v", err)
	}
}
