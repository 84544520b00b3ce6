package mcpwire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// gated is a handler whose calls wait for the test.
type gated struct {
	echo
	began  chan *mcpwire.Request
	finish chan json.RawMessage
	ended  chan error // causes of contexts that ended first
}

func newGated() *gated {
	return &gated{began: make(chan *mcpwire.Request, 1), finish: make(chan json.RawMessage), ended: make(chan error, 1)}
}

func (g *gated) ServeMCP(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	if r.Method != "tools/call" {
		return g.echo.ServeMCP(ctx, r)
	}
	if r.ProgressToken != nil {
		if err := r.Progress(ctx, json.RawMessage(`{"progress":0}`)); err != nil {
			return nil, err
		}
	}
	g.began <- r
	select {
	case result := <-g.finish:
		return result, nil
	case <-ctx.Done():
		g.ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}
}

func rawPost(ctx context.Context, t *testing.T, url, session, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	return req
}

func openSession(t *testing.T, url string, rt http.RoundTripper) string {
	t.Helper()
	return sessionOf(t, url, rt, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
}

// sessionOf opens a session with a handshake and returns its id.
func sessionOf(t *testing.T, url string, rt http.RoundTripper, handshake string) string {
	t.Helper()
	resp, err := rt.RoundTrip(rawPost(t.Context(), t, url, "", handshake))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Header.Get("Mcp-Session-Id")
}

// A client that loses the connection of a call which has begun to stream gets
// the rest of the stream, and the call does not end with the connection.
func TestLostStreamIsResumed(t *testing.T) {
	g := newGated()
	_, url, rt := serveWire(t, g, nil)
	session := openSession(t, url, rt)
	ctx, hangUp := context.WithCancel(t.Context())
	resp, err := rt.RoundTrip(rawPost(ctx, t, url, session,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	events := mcpwire.NewEventReader(resp.Body, 1000)
	_, _ = events.Next() // priming
	last, err := events.Next()
	if err != nil {
		t.Fatal(err)
	}
	request := <-g.began
	hangUp()
	resp.Body.Close()
	events.Release()

	get, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	get.Header.Set("Accept", "text/event-stream")
	get.Header.Set("Mcp-Session-Id", session)
	get.Header.Set("Last-Event-ID", last.ID)
	resumed, err := rt.RoundTrip(get)
	if err != nil || resumed.StatusCode != 200 {
		t.Fatalf("resume: %v %v", resumed, err)
	}
	defer resumed.Body.Close()
	if err := request.Progress(t.Context(), json.RawMessage(`{"progress":1}`)); err != nil {
		t.Errorf("progress while the client is away: %v", err)
	}
	g.finish <- json.RawMessage(`{"answer":42}`)
	body, err := io.ReadAll(resumed.Body) // the stream ends after the answer
	if err != nil || !strings.Contains(string(body), `"progress":1`) || !strings.Contains(string(body), `"result":{"answer":42}`) {
		t.Errorf("resumed: %s, %v", body, err)
	}
}

// Where nothing could be resumed, the end of the connection ends the call.
func TestDisconnectEndsTheCall(t *testing.T) {
	g := newGated()
	_, url, rt := serveWire(t, g, nil)
	for _, version := range []string{mcpwire.LatestStateful, mcpwire.LatestStateless} {
		ctx, hangUp := context.WithCancel(t.Context())
		body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		session := ""
		if version == mcpwire.LatestStateful {
			body, session = `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, openSession(t, url, rt)
		}
		req := rawPost(ctx, t, url, session, body)
		req.Header.Set("Mcp-Protocol-Version", version)
		req.Header.Set("Mcp-Method", "tools/call")
		req.Header.Set("Mcp-Name", "x")
		go func() {
			<-g.began
			hangUp()
		}()
		if resp, err := rt.RoundTrip(req); err == nil {
			resp.Body.Close()
			t.Fatalf("%s: answered %d", version, resp.StatusCode)
		}
		if err := <-g.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cause %v", version, err)
		}
	}
}

func TestNotificationsOfTheSession(t *testing.T) {
	opened := make(chan *mcpwire.Session, 1)
	closed := make(chan *mcpwire.Session, 1)
	_, url, rt := serveWire(t, echo{}, &mcpwire.ServerOptions{
		SessionOpened: func(s *mcpwire.Session) { opened <- s },
		SessionClosed: func(s *mcpwire.Session) { closed <- s },
	})
	notes := make(chan string, 10)
	c := connect(t, &mcpwire.HTTPTransport{URL: url, RoundTripper: rt}, &mcpwire.ClientOptions{
		Version: mcpwire.Version20250326, Info: json.RawMessage(`{"name":"n","x":9007199254740993}`),
		OnNotification: func(m string, p json.RawMessage) { notes <- m + string(p) },
		OnRequest: func(context.Context, *mcpwire.ServerRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"roots":[]}`), nil
		},
	})
	s := <-opened
	if s.Version() != mcpwire.Version20250326 || s.ID() != c.SessionID() || string(s.ClientInfo()) != `{"name":"n","x":9007199254740993}` {
		t.Errorf("session %+v", s)
	}
	for _, n := range []string{"1", "2"} {
		if err := s.Notify(t.Context(), "notifications/tools/list_changed", json.RawMessage(`{"n":`+n+`}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"1", "2"} {
		if got := <-notes; got != `notifications/tools/list_changed{"n":`+n+`}` {
			t.Errorf("got %s", got)
		}
	}
	if roots, err := s.Call(t.Context(), "roots/list", nil); err != nil || string(roots) != `{"roots":[]}` {
		t.Errorf("roots: %s, %v", roots, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if <-closed != s {
		t.Error("another session was closed")
	}
	<-s.Done()
	if err := s.Notify(t.Context(), "x", nil); !errors.Is(err, mcpwire.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestSessionLimit(t *testing.T) {
	s, url, rt := serveWire(t, echo{}, &mcpwire.ServerOptions{MaxSessions: 2})
	first := openSession(t, url, rt)
	openSession(t, url, rt)
	openSession(t, url, rt)
	if n := len(s.Sessions()); n != 2 {
		t.Errorf("%d sessions", n)
	}
	resp, err := rt.RoundTrip(rawPost(t.Context(), t, url, first, `{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("the session that was idle longest answers %d", resp.StatusCode)
	}
}

func TestSubscription(t *testing.T) {
	for _, where := range []string{"http", "stdio"} {
		t.Run(where, func(t *testing.T) {
			var tr mcpwire.Transport = child(t, "server")
			if where == "http" {
				_, url, rt := serveWire(t, echo{}, nil)
				tr = &mcpwire.HTTPTransport{URL: url, RoundTripper: rt}
			}
			c := connect(t, tr, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var got []string
			_, err := c.Call(ctx, mcpwire.MethodListen, json.RawMessage(`{"notifications":{"toolsListChanged":true}}`), &mcpwire.CallOptions{
				Notification: func(m string, p json.RawMessage) {
					id, _ := rawjson.Get(p, "_meta", mcpwire.MetaSubscriptionID)
					got = append(got, m+" "+string(id))
					if len(got) == 2 {
						cancel()
					}
				},
			})
			if !errors.Is(err, context.Canceled) || len(got) != 2 ||
				got[0] != "notifications/subscriptions/acknowledged 2" || got[1] != "notifications/tools/list_changed 2" {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := c.Call(t.Context(), "tools/list", nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestShutdown(t *testing.T) {
	g := newGated()
	s, url, rt := serveWire(t, g, nil)
	c := connect(t, &mcpwire.HTTPTransport{URL: url, RoundTripper: rt}, nil)
	subscribed := make(chan struct{}, 2)
	listening := callAsync(t.Context(), c, mcpwire.MethodListen, &mcpwire.CallOptions{
		Notification: func(string, json.RawMessage) { subscribed <- struct{}{} },
	})
	<-subscribed
	<-subscribed
	called := make(chan outcome, 1)
	go func() {
		result, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"x"}`), nil)
		called <- outcome{result, err}
	}()
	<-g.began
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(t.Context()) }()
	if got := <-listening; got.err != nil || !strings.Contains(string(got.result), `"io.modelcontextprotocol/subscriptionId":2`) {
		t.Errorf("the subscription ended with %s, %v", got.result, got.err)
	}
	_, err := c.Call(t.Context(), "tools/list", nil, nil)
	var je *mcpwire.Error
	if !errors.As(err, &je) {
		t.Errorf("a request during shutdown: %v", err)
	}
	g.finish <- json.RawMessage(`{"late":true}`)
	if got := <-called; !strings.Contains(string(got.result), `"late":true`) {
		t.Errorf("the call in flight: %s, %v", got.result, got.err)
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func TestCredentialsAreRefused(t *testing.T) {
	_, url, rt := serveWire(t, echo{}, &mcpwire.ServerOptions{Authenticate: bearer})
	_, err := mcpwire.Connect(t.Context(), &mcpwire.HTTPTransport{
		URL: url, RoundTripper: rt, Header: http.Header{"Authorization": {"Bearer bad"}},
	}, nil)
	var he *mcpwire.HTTPError
	if !errors.As(err, &he) || he.Status != 401 || he.Header.Get("WWW-Authenticate") == "" || mcpwire.DeliveryOf(err) != mcpwire.NotDelivered {
		t.Errorf("got %v", err)
	}
}

// One client that does not read its stream holds up nobody else.
func TestSlowReader(t *testing.T) {
	opened := make(chan *mcpwire.Session, 1)
	_, url, rt := serveWire(t, echo{}, &mcpwire.ServerOptions{ReplayBytes: 64 << 10, SessionOpened: func(s *mcpwire.Session) { opened <- s }})
	session := openSession(t, url, rt)
	get, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	get.Header.Set("Mcp-Session-Id", session)
	resp, err := rt.RoundTrip(get)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, _ := bufio.NewReader(resp.Body).ReadString('\n'); line != ": open\n" {
		t.Fatalf("stream begins with %q", line)
	}
	done, err := rt.RoundTrip(rawPost(t.Context(), t, url, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		t.Fatal(err)
	}
	done.Body.Close()
	s := <-opened
	big := json.RawMessage(`{"x":"` + strings.Repeat("y", 32<<10) + `"}`)
	for range 1000 { // far more than the sockets hold
		if err := s.Notify(t.Context(), "notifications/x", big); err != nil {
			t.Fatal(err)
		}
	}
}
