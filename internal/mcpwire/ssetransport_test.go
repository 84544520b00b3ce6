package mcpwire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// TestSSEServerOfSDK has our client speak to the go-sdk's HTTP+SSE server.
func TestSSEServerOfSDK(t *testing.T) {
	for _, version := range []string{"", mcpwire.Version20241105, mcpwire.Version20250326, mcpwire.Version20250618, mcpwire.Version20251125} {
		t.Run(version, func(t *testing.T) {
			s := sdkServer()
			url, rt := serveHTTP(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil))
			exerciseWireClient(t, version, &mcpwire.SSETransport{URL: url + "/sse", RoundTripper: rt})
		})
	}
	_, err := mcpwire.Connect(t.Context(), &mcpwire.SSETransport{URL: "http://localhost:1/"}, &mcpwire.ClientOptions{Version: mcpwire.Version20260728})
	if err == nil || !strings.Contains(err.Error(), "2026-07-28 is not spoken over HTTP+SSE") {
		t.Errorf("the stateless era: %v", err)
	}
}

// rawSSE is a hand-played server of HTTP+SSE. It answers initialize; the rest
// is up to the test.
type rawSSE struct {
	out    chan string        // written on the stream
	cut    chan struct{}      // breaks the stream off
	posts  chan mcpwire.Frame // what was posted after the handshake
	header chan http.Header   // of those
	accept func(http.ResponseWriter, *http.Request, mcpwire.Frame)
	closed chan struct{} // the stream has ended
}

func newRawSSE() *rawSSE {
	return &rawSSE{out: make(chan string, 16), cut: make(chan struct{}), posts: make(chan mcpwire.Frame, 16),
		header: make(chan http.Header, 16), closed: make(chan struct{}, 4)}
}

func (s *rawSSE) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.post(w, r)
		return
	}
	defer func() { s.closed <- struct{}{} }()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, ": hello\n\nretry: 5\n\nevent: endpoint\ndata: /messages?secret=s3cret\n\n")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case text := <-s.out:
			_, _ = io.WriteString(w, text)
		case <-s.cut:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		}
	}
}

func (s *rawSSE) post(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f, err := mcpwire.ScanFrame(body)
	switch {
	case err != nil || r.URL.RequestURI() != "/messages?secret=s3cret" || r.Header.Get("Authorization") != "Bearer b":
		http.Error(w, "bad request", http.StatusTeapot)
	case f.Method == "initialize":
		s.out <- fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{}}}\n\n", f.ID)
		w.WriteHeader(http.StatusAccepted)
	case f.Method == mcpwire.NotifyInitialized:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.header <- r.Header
		s.posts <- f
		if s.accept == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		s.accept(w, r, f)
	}
}

func (s *rawSSE) result(id mcpwire.ID, result string) {
	s.out <- fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\ndata: \"result\":%s}\n\n", id, result)
}

func connectRawSSE(t *testing.T, s *rawSSE, opts *mcpwire.ClientOptions) *mcpwire.Client {
	t.Helper()
	url, rt := serveHTTP(t, s)
	return connect(t, &mcpwire.SSETransport{URL: url + "/sse", RoundTripper: rt, Header: http.Header{"authorization": {"Bearer b"}}}, opts)
}

func TestSSECalls(t *testing.T) {
	s := newRawSSE()
	notes := make(chan string, 1)
	c := connectRawSSE(t, s, &mcpwire.ClientOptions{OnNotification: func(m string, _ json.RawMessage) { notes <- m }})
	if got := c.Server(); got.Version != mcpwire.Version20241105 || got.Era != mcpwire.EraStateful {
		t.Errorf("server: %+v", got)
	}
	first := callAsync(t.Context(), c, "a", &mcpwire.CallOptions{Header: http.Header{"x-own": {"1"}}})
	fa, header := <-s.posts, <-s.header
	if header.Get("X-Own") != "1" || header.Get("Content-Type") != "application/json" {
		t.Errorf("header: %v", header)
	}
	second := callAsync(t.Context(), c, "b", nil)
	fb := <-s.posts
	s.out <- "event: other\ndata: {}\n\nevent: endpoint\ndata: http://elsewhere.example/\n\ndata: no message\n\n"
	s.out <- "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"
	s.result(fb.ID, `{"m":"b"}`)
	if got := <-second; string(got.result) != `{"m":"b"}` {
		t.Errorf("b: %s, %v", got.result, got.err)
	}
	s.result(fa.ID, `{"m":"a"}`)
	if got := <-first; string(got.result) != `{"m":"a"}` {
		t.Errorf("a: %s, %v", got.result, got.err)
	}
	if got := <-notes; got != "notifications/x" {
		t.Errorf("notification %q", got)
	}
	if n := c.Stats().Noise; n != 1 {
		t.Errorf("noise: %d", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-s.closed // the server learns of the end
	if err := c.Err(); err != mcpwire.ErrClosed {
		t.Errorf("after Close: %v", err)
	}
}

// A stream that does not begin with an endpoint of its own origin is refused,
// and nothing is posted anywhere.
func TestSSEEndpointRefused(t *testing.T) {
	var posted atomic.Int32
	elsewhere, _ := serveHTTP(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posted.Add(1) }))
	event := func(data string) string { return "event: endpoint\ndata: " + data + "\n\n" }
	for name, tc := range map[string]struct {
		body, contentType, says string
		noEndpoint              bool
	}{
		"other port":     {body: event(elsewhere + "/m?s3cret"), says: "another origin"},
		"other host":     {body: event("//evil.example/m?s3cret"), says: "another origin"},
		"other scheme":   {body: event("https://127.0.0.1/m?s3cret"), says: "another origin"},
		"no URL":         {body: event("http://[s3cret"), says: "holds no URL"},
		"empty":          {body: event(""), says: "holds no URL"},
		"message first":  {body: "data: {}\n\n" + event("/m"), says: "begins with an event", noEndpoint: true},
		"ends":           {body: ": bye\n\n", says: "before the end of the stream", noEndpoint: true},
		"too large":      {body: event("/" + strings.Repeat("x", 10_000)), says: "size limit", noEndpoint: true},
		"positions only": {body: strings.Repeat("id: 1\n\n", 100), says: "among the first", noEndpoint: true},
		"not a stream":   {body: "<html>", contentType: "text/html", says: `"text/html"`, noEndpoint: true},
		"silence":        {body: "wait", says: "came within", noEndpoint: true},
		"silent headers": {body: "wait long", says: "came within", noEndpoint: true},
	} {
		t.Run(name, func(t *testing.T) {
			url, rt := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					posted.Add(1)
					return
				}
				if tc.body == "wait long" {
					<-r.Context().Done()
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				if tc.contentType != "" {
					w.Header().Set("Content-Type", tc.contentType)
				}
				if tc.body == "wait" {
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
					return
				}
				_, _ = io.WriteString(w, tc.body)
			}))
			tr := &mcpwire.SSETransport{URL: url, RoundTripper: rt}
			if strings.HasPrefix(tc.body, "wait") {
				tr.EndpointTimeout = 20 * time.Millisecond
			}
			_, err := mcpwire.Connect(t.Context(), tr, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("err = %v", err)
			}
			if errors.Is(err, mcpwire.ErrNoEndpoint) != tc.noEndpoint || mcpwire.DeliveryOf(err) != mcpwire.NotDelivered {
				t.Errorf("err = %v, %v", err, mcpwire.DeliveryOf(err))
			}
		})
	}
	if n := posted.Load(); n != 0 {
		t.Errorf("%d messages were posted", n)
	}
}

func TestSSEHandshakeFailures(t *testing.T) {
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	for _, code := range []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusServiceUnavailable} {
		url, rt := serveHTTP(t, status(code))
		_, err := mcpwire.Connect(t.Context(), &mcpwire.SSETransport{URL: url, RoundTripper: rt}, nil)
		var he *mcpwire.HTTPError
		if !errors.As(err, &he) || he.Status != code || errors.Is(err, mcpwire.ErrNoEndpoint) {
			t.Errorf("%d: %v", code, err)
		}
	}
	asked := make(chan struct{})
	url, rt := serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := mcpwire.Connect(ctx, &mcpwire.SSETransport{URL: url, RoundTripper: rt}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if _, err := mcpwire.Connect(t.Context(), &mcpwire.SSETransport{URL: "/sse"}, nil); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("relative: %v", err)
	}
}

// What a failed POST says of its call.
func TestSSERefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		accept   func(http.ResponseWriter, *http.Request, mcpwire.Frame)
		delivery mcpwire.Delivery
		is       error
		status   int
	}{
		"400":     {refuseWith(400, "bad"), mcpwire.NotDelivered, nil, 400},
		"429":     {refuseWith(429, ""), mcpwire.NotDelivered, nil, 429},
		"502":     {refuseWith(502, ""), mcpwire.MaybeDelivered, nil, 502},
		"404":     {refuseWith(404, "session not found"), mcpwire.NotDelivered, mcpwire.ErrSessionLost, 0},
		"session": {refuseWith(400, "No transport found for sessionId"), mcpwire.NotDelivered, mcpwire.ErrSessionLost, 0},
		"answer":  {refuseWith(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`), mcpwire.Answered, &mcpwire.Error{Code: mcpwire.CodeInvalidRequest}, 0},
		"reset":   {func(http.ResponseWriter, *http.Request, mcpwire.Frame) { panic(http.ErrAbortHandler) }, mcpwire.MaybeDelivered, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRawSSE()
			s.accept = tc.accept
			c := connectRawSSE(t, s, nil)
			_, err := c.Call(t.Context(), "x", nil, nil)
			if got := mcpwire.DeliveryOf(err); err == nil || got != tc.delivery {
				t.Errorf("%v, %v", err, got)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("err = %v", err)
			}
			var he *mcpwire.HTTPError
			if tc.status != 0 && (!errors.As(err, &he) || he.Status != tc.status) {
				t.Errorf("err = %v", err)
			}
			if lost := errors.Is(c.Err(), mcpwire.ErrSessionLost); lost != errors.Is(tc.is, mcpwire.ErrSessionLost) {
				t.Errorf("the connection: %v", c.Err())
			}
		})
	}
}

func refuseWith(status int, body string) func(http.ResponseWriter, *http.Request, mcpwire.Frame) {
	return func(w http.ResponseWriter, _ *http.Request, _ mcpwire.Frame) { http.Error(w, body, status) }
}

// When nobody listens at the endpoint any more, nothing was delivered.
func TestSSEEndpointUnreachable(t *testing.T) {
	s := newRawSSE()
	url, rt := serveHTTP(t, s)
	down := &dialFails{RoundTripper: rt}
	c := connect(t, &mcpwire.SSETransport{URL: url, RoundTripper: down, Header: http.Header{"Authorization": {"Bearer b"}}}, nil)
	down.posts.Store(true)
	_, err := c.Call(t.Context(), "x", nil, nil)
	if !errors.Is(err, errDown) || mcpwire.DeliveryOf(err) != mcpwire.NotDelivered {
		t.Errorf("err = %v", err)
	}
}

var errDown = errors.New("down")

type dialFails struct {
	http.RoundTripper
	posts atomic.Bool
}

func (d *dialFails) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && d.posts.Load() {
		return nil, errDown
	}
	return d.RoundTripper.RoundTrip(r)
}

// A call that was accepted when the stream breaks off may have run; calls to
// come certainly have not.
func TestSSEStreamCut(t *testing.T) {
	s := newRawSSE()
	c := connectRawSSE(t, s, nil)
	done := callAsync(t.Context(), c, "x", nil)
	f := <-s.posts
	s.out <- fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"resu", f.ID)
	s.cut <- struct{}{}
	got := <-done
	if !errors.Is(got.err, mcpwire.ErrClosed) || mcpwire.DeliveryOf(got.err) != mcpwire.MaybeDelivered {
		t.Errorf("got %v", got.err)
	}
	<-c.Done()
	_, err := c.Call(t.Context(), "y", nil, nil)
	if !errors.Is(err, mcpwire.ErrClosed) || mcpwire.DeliveryOf(err) != mcpwire.NotDelivered {
		t.Errorf("after the end: %v", err)
	}
}

// A request that is refused just as the stream breaks off was not delivered.
func TestSSECutAndRefused(t *testing.T) {
	s := newRawSSE()
	s.accept = func(w http.ResponseWriter, _ *http.Request, _ mcpwire.Frame) {
		s.cut <- struct{}{}
		<-s.closed
		w.WriteHeader(http.StatusNotFound)
	}
	c := connectRawSSE(t, s, nil)
	if _, err := c.Call(t.Context(), "x", nil, nil); err == nil || mcpwire.DeliveryOf(err) != mcpwire.NotDelivered {
		t.Errorf("err = %v", err)
	}
}

// Some servers accept a request only when it has been answered, or never say.
func TestSSESlowAcceptance(t *testing.T) {
	s := newRawSSE()
	held := make(chan struct{}, 4)
	s.accept = func(_ http.ResponseWriter, r *http.Request, f mcpwire.Frame) {
		switch f.Method {
		case "quick":
			s.result(f.ID, `{"ok":true}`)
		case mcpwire.NotifyCancelled:
			return
		}
		<-r.Context().Done()
		held <- struct{}{}
	}
	c := connectRawSSE(t, s, nil)
	if result, err := c.Call(t.Context(), "quick", nil, nil); err != nil || string(result) != `{"ok":true}` {
		t.Errorf("%s, %v", result, err)
	}
	<-s.posts
	ctx, cancel := context.WithCancel(t.Context())
	done := callAsync(ctx, c, "slow", nil)
	f := <-s.posts
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) || mcpwire.DeliveryOf(got.err) != mcpwire.MaybeDelivered {
		t.Errorf("cancelled: %v", got.err)
	}
	if n := <-s.posts; n.Method != mcpwire.NotifyCancelled || !strings.Contains(string(n.Params), `"requestId":`+string(f.ID)) {
		t.Errorf("not told: %+v", n)
	}
	last := callAsync(t.Context(), c, "slow", nil)
	<-s.posts
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := <-last; !errors.Is(got.err, mcpwire.ErrClosed) || mcpwire.DeliveryOf(got.err) != mcpwire.MaybeDelivered {
		t.Errorf("closed: %v", got.err)
	}
	for range 3 {
		<-held // none of them outlives the connection
	}
}

// An event beyond the limit costs the call that it answers, and no other.
func TestSSEOverlongEvent(t *testing.T) {
	s := newRawSSE()
	c := connectRawSSE(t, s, &mcpwire.ClientOptions{MaxMessageBytes: 1000})
	big := callAsync(t.Context(), c, "big", nil)
	fb := <-s.posts
	small := callAsync(t.Context(), c, "small", nil)
	fs := <-s.posts
	s.result(fb.ID, `"`+strings.Repeat("x", 100_000)+`"`)
	if got := <-big; !errors.Is(got.err, mcpwire.ErrTooLarge) || mcpwire.DeliveryOf(got.err) != mcpwire.MaybeDelivered {
		t.Errorf("big: %v", got.err)
	}
	last := callAsync(t.Context(), c, "last", nil)
	fl := <-s.posts
	s.out <- fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"result\":\ndata: \"%s\",\ndata: \"id\":%s}\n\n", strings.Repeat("x", 100_000), fl.ID)
	if got := <-last; !errors.Is(got.err, mcpwire.ErrTooLarge) {
		t.Errorf("last: %v", got.err)
	}
	s.result(fs.ID, `{}`)
	if got := <-small; got.err != nil {
		t.Errorf("small: %v", got.err)
	}
}
