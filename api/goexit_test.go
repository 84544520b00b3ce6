package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/tools"
)

// inlineCatalog has one tool, which runs on the goroutine of its caller.
func inlineCatalog(t *testing.T, invoke tools.Invoker) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	if err := cat.Register(tools.ResolveOptions(tools.WithInline()).Descriptor(tools.Tool{Name: "inline"}, invoke)); err != nil {
		t.Fatal(err)
	}
	return cat
}

func postCall(ctx context.Context, t *testing.T, url, accept string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/tools/call", strings.NewReader(`{"name":"inline"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	return http.DefaultClient.Do(req)
}

func TestToolThatEndsItsGoroutineIsAnswered(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	server := httptest.NewServer(api.New(inlineCatalog(t, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		runtime.Goexit()
		return tools.ToolResult{}, nil
	}), nil))
	t.Cleanup(server.Close)
	for _, accept := range []string{"text/event-stream", "application/json"} {
		resp, err := postCall(t.Context(), t, server.URL, accept)
		if err != nil {
			t.Fatalf("%s: %v", accept, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(body), `"code":"internal"`) {
			t.Errorf("%s: %d %s, %v", accept, resp.StatusCode, body, err)
		}
	}
}

// A stream whose client is gone ends, also while its tool does not look.
func TestStreamEndsWithItsClient(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	begun, release := make(chan struct{}), make(chan struct{})
	cat := inlineCatalog(t, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		close(begun)
		<-release
		return tools.ToolResult{}, nil
	})
	served, ended := api.New(cat, nil), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if resp, err := postCall(ctx, t, server.URL, "text/event-stream"); err == nil {
		resp.Body.Close()
		t.Error("the call was answered")
	}
	<-ended
}

// breaking is what a tool says about its result, and panics when it is written.
type breaking struct{}

func (breaking) MarshalJSON() ([]byte, error) { panic("meta") }

// What a tool gave is written behind the road of its call, and on a stream on a
// goroutine of its own, where a panic would end the program.
func TestResultThatPanicsWhenItIsWrittenIsAnswered(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	server := httptest.NewServer(api.New(inlineCatalog(t, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: 1, Meta: map[string]any{"x": breaking{}}}, nil
	}), nil))
	t.Cleanup(server.Close)
	for _, accept := range []string{"text/event-stream", "application/json"} {
		resp, err := postCall(t.Context(), t, server.URL, accept)
		if err != nil {
			t.Fatalf("%s: %v", accept, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(body), `"code":"internal"`) {
			t.Errorf("%s: %d %s, %v", accept, resp.StatusCode, body, err)
		}
	}
}
