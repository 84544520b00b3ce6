package mcptool

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// A legacyEndpoint is the Go SDK's HTTP+SSE server, which answers what is
// posted to the URL of the stream with a status of its own, and becomes one of
// streamable HTTP when it is modernized.
type legacyEndpoint struct {
	sse, streamable http.Handler
	status          int // of a POST without a session; 0 leaves it to the SDK
	getStatus       int // of a GET; 0 is a stream
	modern          atomic.Bool
	posts, gets     atomic.Int32  // to the URL of the stream
	release         chan struct{} // closed: the tool "hold" returns
}

func newLegacyEndpoint(parked chan<- error) *legacyEndpoint {
	server := newSDKServer(parked)
	get := func(*http.Request) *mcp.Server { return server }
	e := &legacyEndpoint{sse: mcp.NewSSEHandler(get, nil), streamable: mcp.NewStreamableHTTPHandler(get, nil), release: make(chan struct{})}
	mcp.AddTool(server, &mcp.Tool{Name: "hold"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		notify(ctx, req, 1)
		<-e.release
		return nil, nil, nil
	})
	return e
}

func (e *legacyEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first := r.URL.RawQuery == ""
	switch {
	case e.modern.Load():
		if r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") == "" {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		e.streamable.ServeHTTP(w, r)
	case first && r.Method == http.MethodPost:
		e.posts.Add(1)
		if e.status != 0 {
			w.WriteHeader(e.status)
			return
		}
		e.sse.ServeHTTP(w, r)
	case first && e.getStatus != 0:
		e.gets.Add(1)
		w.WriteHeader(e.getStatus)
	default:
		if first {
			e.gets.Add(1)
		}
		e.sse.ServeHTTP(w, r)
	}
}

// serve returns the URL of the endpoint; cut breaks all its connections off.
func (e *legacyEndpoint) serve(t *testing.T) (url string, cut func()) {
	ts := httptest.NewServer(e)
	t.Cleanup(ts.Close)
	return ts.URL + "/sse", ts.CloseClientConnections
}

func TestLegacyServers(t *testing.T) {
	for _, mode := range []TransportMode{TransportSSE, TransportAuto} {
		t.Run(string(mode), func(t *testing.T) {
			parked := make(chan error, 16)
			e := newLegacyEndpoint(parked)
			url, _ := e.serve(t)
			s := start(t, &Config{Name: "odd", URL: url, TransportMode: mode})
			changed := make(chan struct{}, 16)
			s.OnChange(func() { changed <- struct{}{} })
			cat := catalogOf(t, s)
			if got := s.Status(); got.Revision != mcpwire.LatestStateful || !got.Connected || got.Tools != 7 {
				t.Fatalf("Status: %+v", got)
			}
			if asked := e.posts.Load() > 0; asked != (mode == TransportAuto) {
				t.Errorf("streamable HTTP was tried: %v", asked)
			}
			exerciseSDK(t, cat)
			exerciseCancel(t, cat, parked)
			if _, err := tools.Invoke(t.Context(), cat, "odd_grow", nil); err != nil {
				t.Fatal(err)
			}
			await(t, changed)
			if ch := swap(t, cat, s); len(ch.Added) != 1 || ch.Unchanged != 7 {
				t.Errorf("changes: %+v", ch)
			}
		})
	}
}

// HTTP+SSE is tried where streamable HTTP is refused in the way of a server that
// does not have it, and nowhere else.
func TestFallbackToSSE(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name              string
		status, getStatus int
		cfg               Config
		tries             bool
		says              string // "" for a connection
	}{
		{"405", 405, 0, Config{}, true, ""},
		{"404", 404, 0, Config{TransportMode: TransportAuto}, true, ""},
		{"400", 400, 0, Config{Version: mcpwire.Version20241105}, true, ""},
		{"chosen otherwise", 405, 0, Config{TransportMode: TransportStreamableHTTP}, false, "HTTP 405"},
		{"stateless", 405, 0, Config{Version: mcpwire.Version20260728}, false, "HTTP 405"},
		{"no credentials", 401, 0, Config{}, false, "refused the credentials"},
		{"broken", 500, 0, Config{}, false, "HTTP 500"},
		{"neither", 404, 405, Config{}, true, "HTTP 404 Not Found: the URL does not lead to an MCP endpoint"},
		{"no credentials for the stream", 405, 403, Config{}, true, "refused the credentials (HTTP 403"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := newLegacyEndpoint(nil)
			e.status, e.getStatus = tc.status, tc.getStatus
			tc.cfg.Name = "odd"
			tc.cfg.URL, _ = e.serve(t)
			err := start(t, &tc.cfg).Connect(t.Context())
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("err = %v, want %q", err, tc.says)
			}
			if tried := e.gets.Load() > 0; tried != tc.tries {
				t.Errorf("HTTP+SSE was tried: %v", tried)
			}
		})
	}
}

// A lost stream is opened anew by the transport that is known by then. A call
// that was in flight may have run; a server that was modernized meanwhile is
// reached the new way.
func TestLegacyReconnects(t *testing.T) {
	t.Parallel()
	e := newLegacyEndpoint(nil)
	url, cut := e.serve(t)
	t.Cleanup(func() { close(e.release) })
	s := start(t, &Config{Name: "odd", URL: url})
	cat := catalogOf(t, s)
	posts := e.posts.Load()
	var te *tools.Error
	ctx := tools.WithEntrance(t.Context(), tools.Entrance{Peer: &recorder{onNote: cut}})
	if _, err := tools.Invoke(ctx, cat, "odd_hold", nil); !errors.As(err, &te) || te.Delivery != tools.DeliveryUnknown {
		t.Errorf("cut off: %v", err)
	}
	if _, err := tools.Invoke(t.Context(), cat, "odd_greet", []byte(`{"name":"Ada"}`)); err != nil {
		t.Errorf("after the cut: %v", err)
	}
	if n := e.posts.Load(); n != posts {
		t.Errorf("streamable HTTP was tried %d times more", n-posts)
	}
	e.modern.Store(true)
	cut()
	eventually(t, func() bool {
		_, err := tools.Invoke(t.Context(), cat, "odd_greet", []byte(`{"name":"Ada"}`))
		return err == nil
	})
	if got := s.Status(); !got.Connected || s.legacy.Load() {
		t.Errorf("modernized: %+v", got)
	}
}

// Where there is no stream either, what refused streamable HTTP is reported; who
// chose HTTP+SSE is told what came instead of a stream.
func TestNoLegacyServerEither(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>welcome</html>")
	}))
	defer ts.Close()
	err := start(t, &Config{Name: "odd", URL: ts.URL}).Connect(context.Background())
	if err == nil || !strings.Contains(err.Error(), "HTTP 404") {
		t.Errorf("auto: %v", err)
	}
	err = start(t, &Config{Name: "odd", URL: ts.URL, TransportMode: TransportSSE}).Connect(context.Background())
	if err == nil || !strings.Contains(err.Error(), `no endpoint event: the response is "text/html"`) {
		t.Errorf("sse: %v", err)
	}
}
