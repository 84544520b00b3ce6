package a2atool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/tools"
)

// faulty is a peer whose card is good and whose agent does what handle does.
func faulty(t *testing.T, binding string, streaming bool, handle http.HandlerFunc) (*Peer, *httptest.Server) {
	t.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	protocol, version, _ := strings.Cut(binding, " ")
	card := testCard(srv.URL+"/agent", protocol, version)
	card.Capabilities.Streaming = streaming
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, card) })
	mux.HandleFunc("/agent", handle)
	mux.HandleFunc("/agent/", handle)
	return open(t, local(srv.URL)), srv
}

// attempt makes one attempt, without the policy of the door.
func attempt(t *testing.T, ctx context.Context, p *Peer) *tools.Error {
	t.Helper()
	if err := p.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := p.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = list[0].Invoke(ctx, say("echo x"))
	var te *tools.Error
	if !errors.As(err, &te) {
		t.Fatalf("got %v", err)
	}
	return te
}

func TestFaults(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const jsonKind, text = "application/json", "text/plain"
	for _, c := range []struct {
		name     string
		handle   http.HandlerFunc
		class    tools.ErrorClass
		delivery tools.Delivery
		says     string
	}{
		{"500", answer(500, text, "boom"), tools.ErrClass5xx, tools.Answered, "HTTP 500"},
		{"502", answer(502, text, ""), tools.ErrClass5xx, tools.DeliveryUnknown, "HTTP 502"},
		{"504", answer(504, text, ""), tools.ErrClassTimeout, tools.DeliveryUnknown, "HTTP 504"},
		{"429", answer(429, text, ""), tools.ErrClassTransient, tools.NotDelivered, "HTTP 429"},
		{"401", answer(401, jsonKind, `{"error":"no"}`), tools.ErrClassPermanent, tools.Answered, "refused the credentials"},
		{"404", answer(404, text, ""), tools.ErrClassPermanent, tools.Answered, "HTTP 404"},
		{"302", answer(302, text, ""), tools.ErrClassPermanent, tools.Answered, "not repeated"},
		{"garbage", answer(200, jsonKind, `<html>`), tools.ErrClassPermanent, tools.Answered, "not of the A2A protocol"},
		{"truncated", answer(200, jsonKind, `{"jsonrpc":`), tools.ErrClassPermanent, tools.Answered, "not of the A2A protocol"},
		{"other JSON", answer(200, jsonKind, `[1]`), tools.ErrClassPermanent, tools.Answered, "not of the A2A protocol"},
		{"broken off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", jsonKind)
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"a":`))
		}, tools.ErrClassTransient, tools.DeliveryUnknown, "broke off"},
		{"hung up", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		}, tools.ErrClassTransient, tools.DeliveryUnknown, "EOF"},
	} {
		for _, binding := range overHTTP {
			for _, streaming := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s %v", c.name, binding, streaming), func(t *testing.T) {
					p, _ := faulty(t, binding, streaming, c.handle)
					te := attempt(t, t.Context(), p)
					if te.Class != c.class || te.Delivery != c.delivery || !strings.Contains(te.Message, c.says) {
						t.Errorf("class %q delivery %d: %s", te.Class, te.Delivery, te.Message)
					}
					if c.name == "429" && te.RetryAfter != 7*time.Second {
						t.Errorf("retry after %v", te.RetryAfter)
					}
				})
			}
		}
	}
}

func TestErrorsOfTheProtocol(t *testing.T) {
	rpc := map[string]any{"jsonrpc": "2.0", "id": "1", "error": map[string]any{"code": -32005, "message": "only poems"}}
	rest := map[string]any{"error": map[string]any{"code": 400, "status": "INVALID_ARGUMENT", "message": "only poems", "details": []any{map[string]any{
		"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "CONTENT_TYPE_NOT_SUPPORTED", "domain": a2a.ProtocolDomain}}}}
	for _, c := range []struct {
		binding, kind string
		status        int
		body          any
	}{
		{"JSONRPC 1.0", "application/json", 200, rpc},
		{"JSONRPC 1.0", "application/json", 500, rpc}, // which the JavaScript SDK does
		{"HTTP+JSON 1.0", "application/json", 400, rest},
		{"HTTP+JSON 1.0", "application/a2a+json", 400, rest}, // what the specification registers
	} {
		for _, streaming := range []bool{true, false} {
			p, _ := faulty(t, c.binding, streaming, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_ = json.NewEncoder(w).Encode(c.body)
			})
			te := attempt(t, t.Context(), p)
			if te.Class != tools.ErrClassPermanent || te.Delivery != tools.Answered || !strings.Contains(te.Message, "only poems") ||
				!errors.Is(te, a2a.ErrUnsupportedContentType) {
				t.Errorf("%+v, streaming %v: %+v", c, streaming, te)
			}
		}
	}
}

func TestEmptyStream(t *testing.T) {
	p, _ := faulty(t, "JSONRPC 1.0", true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
	})
	if te := attempt(t, t.Context(), p); te.Delivery != tools.DeliveryUnknown || te.Class != tools.ErrClassTransient {
		t.Errorf("got %+v", te)
	}
}

// A stream that breaks off leaves a task, whose end is asked for.
func TestBrokenStreamIsFollowedUp(t *testing.T) {
	task := func(state string) map[string]any {
		return map[string]any{"id": "t1", "contextId": "c1", "status": map[string]any{"state": state},
			"artifacts": []any{map[string]any{"artifactId": "a", "parts": []any{map[string]any{"text": "whole"}}}}}
	}
	p, _ := faulty(t, "HTTP+JSON 1.0", true, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/agent/message:stream":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}`+"\n\n")
			http.NewResponseController(w).Flush()
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		case "/agent/tasks/t1":
			writeJSON(w, http.StatusOK, task("TASK_STATE_COMPLETED"))
		}
	})
	cat := catalogOf(t, p)
	if r := call(t, caller(t, "a", "s", nil), cat, say("x")); r.Text() != "whole" {
		t.Errorf("got %+v", r)
	}
}

func TestDownAgent(t *testing.T) {
	p, srv := faulty(t, "JSONRPC 1.0", true, func(http.ResponseWriter, *http.Request) {})
	if err := p.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := p.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.Close()
	p.net.close() // no connection is left that could turn out to be dead
	_, err = list[0].Invoke(t.Context(), say("x"))
	var te *tools.Error
	if !errors.As(err, &te) || te.Delivery != tools.NotDelivered || te.Class != tools.ErrClassTransient || !te.Retryable || te.Code != tools.ErrUnavailable {
		t.Errorf("call: %+v", te)
	}
	if _, err = p.Discover(t.Context()); !errors.As(err, &te) || te.Delivery != tools.NotDelivered || p.Status().LastError == "" {
		t.Errorf("discover: %v", err)
	}
}

func TestSlowAgent(t *testing.T) {
	release := make(chan struct{})
	p, _ := faulty(t, "HTTP+JSON 1.0", false, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	te := attempt(t, ctx, p)
	if !errors.Is(te, context.DeadlineExceeded) || te.Delivery != tools.DeliveryUnknown {
		t.Errorf("got %+v", te)
	}
}

func TestLongAnswer(t *testing.T) {
	for _, binding := range overHTTP {
		for _, streaming := range []bool{true, false} {
			p, _ := faulty(t, binding, streaming, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.Header.Get("Accept"), "event-stream") {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				_, _ = w.Write(append([]byte(`data: {"a":"`), make([]byte, 5000)...))
			})
			p.cfg.MaxResponseBytes = 4000
			te := attempt(t, t.Context(), p)
			if te.Class != tools.ErrClassPermanent || !strings.Contains(te.Message, "limit is 4000 bytes") {
				t.Errorf("%s %v: %+v", binding, streaming, te)
			}
		}
	}
}

// The address is judged when it is dialled: a name of the card cannot stand for
// one of this machine.
func TestPrivateAddressIsNotDialled(t *testing.T) {
	card := testCard("https://localtest.example/", "JSONRPC", "1.0")
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, card) }))
	t.Cleanup(srv.Close)
	p, err := New(Config{Name: "x", URL: "https://agent.example"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	// The resolver is the machine's own, so the name is replaced after it.
	d := &net.Dialer{Control: p.cfg.policy().Control}
	p.net.secure.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, srv.Listener.Addr().String())
	}
	var te *tools.Error
	if err := p.Connect(t.Context()); !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || te.Delivery != tools.NotDelivered ||
		!strings.Contains(te.Message, "127.0.0.1 is loopback") {
		t.Errorf("got %v", err)
	}
}

func TestCredentials(t *testing.T) {
	const secret = "s3cret-value"
	secretly := func(context.Context) (string, error) { return secret, nil }
	for _, c := range []struct {
		auth Auth
		got  func(*http.Request) string
		want string
	}{
		{Auth{Kind: AuthBearer}, func(r *http.Request) string { return r.Header.Get("Authorization") }, "Bearer " + secret},
		{Auth{Kind: AuthBasic}, func(r *http.Request) string { return r.Header.Get("Authorization") }, "Basic " + base64.StdEncoding.EncodeToString([]byte(secret))},
		{Auth{Kind: AuthAPIKey, Header: "X-Key"}, func(r *http.Request) string { return r.Header.Get("X-Key") }, secret},
		{Auth{Kind: AuthAPIKey, Query: "key"}, func(r *http.Request) string { return r.URL.Query().Get("key") }, secret},
		{Auth{Kind: AuthCookie, Cookie: "sid"}, func(r *http.Request) string { return r.Header.Get("Cookie") }, "sid=" + secret},
	} {
		p, _ := faulty(t, "JSONRPC 1.0", false, func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, 200, map[string]any{"jsonrpc": "2.0", "id": "1", "error": map[string]any{"code": -32602, "message": "you sent " + c.got(r)}})
		})
		c.auth.Secret = secretly
		p.cfg.Auth = &c.auth
		te := attempt(t, t.Context(), p)
		if !strings.Contains(te.Message, "you sent ") || !strings.Contains(te.Message, "[hidden]") || strings.Contains(fmt.Sprintf("%+v %v", te, te.Err), secret) {
			t.Errorf("%s: %s", c.auth.Kind, te.Message)
		}
	}
}

// A card may name another place; the credential stays with the configured one.
func TestCredentialsStayWithTheOrigin(t *testing.T) {
	seen := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(other.Close)
	s := serveAgent(t, "JSONRPC 1.0", func(c *a2a.AgentCard) { c.SupportedInterfaces[0].URL = other.URL })
	cfg := local(s.URL)
	cfg.Auth = &Auth{Kind: AuthBearer, Secret: func(context.Context) (string, error) { return "s3cret-value", nil }}
	te := attempt(t, t.Context(), open(t, cfg))
	if got := <-seen; got != "" || !strings.Contains(te.Message, "refused the credentials") {
		t.Errorf("the other place got %q: %v", got, te)
	}
}

func TestConfigurations(t *testing.T) {
	secret := func(context.Context) (string, error) { return "x", nil }
	for want, cfg := range map[string]Config{
		"absolute https URL":         {URL: "agent.example"},
		"user name or password":      {URL: "https://u:p@agent.example"},
		"plain http to":              {URL: "http://agent.example", AllowInsecureLoopback: true, AllowPrivate: true},
		"plain http is refused":      {URL: "http://localhost:1"},
		"10.0.0.1 is private":        {URL: "https://10.0.0.1", AllowInsecureLoopback: true},
		"localhost is loopback":      {URL: "https://localhost"},
		`the scheme "ftp"`:           {URL: "ftp://agent.example"},
		"trust tier 6":               {URL: "https://agent.example", TrustTier: 6},
		`name "a b"`:                 {URL: "https://agent.example", Name: "a b"},
		"auth: no secret":            {URL: "https://agent.example", Auth: &Auth{Kind: AuthBearer}},
		"api_key needs":              {URL: "https://agent.example", Auth: &Auth{Kind: AuthAPIKey, Secret: secret}},
		"bearer is sent in a header": {URL: "https://agent.example", Auth: &Auth{Kind: AuthBearer, Query: "q", Secret: secret}},
		"at most one of":             {URL: "https://agent.example", Auth: &Auth{Kind: AuthAPIKey, Query: "q", Header: "h", Secret: secret}},
		`kind "oauth"`:               {URL: "https://agent.example", Auth: &Auth{Kind: "oauth", Secret: secret}},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for _, cfg := range []Config{
		{URL: "https://agent.example"}, {URL: "http://127.0.0.1:9/x", AllowInsecureLoopback: true}, {URL: "https://192.168.0.9", AllowPrivate: true},
	} {
		if _, err := New(cfg); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestClosedPeer(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	p := open(t, local(s.URL))
	cat := catalogOf(t, p)
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tools.Invoke(t.Context(), cat, "test_act", say("echo x"))
	if err == nil || !strings.Contains(err.Error(), "the peer is closed") {
		t.Errorf("got %v", err)
	}
}
