package httptool_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

const key = "sk-very-secret"

// single is an API of two operations, /x and POST /x, at a server.
func single(t *testing.T, server string, change func(*httptool.OpenAPIConfig)) tools.LiveCatalog {
	t.Helper()
	cfg := httptool.OpenAPIConfig{ServerURL: server,
		Content: document("3.1.0", `"paths":{"/x":{"get":{"operationId":"get","responses":{}},"head":{"operationId":"head"},
			"post":{"operationId":"post","requestBody":{"content":{"application/json":{"schema":{}}}}}}}`),
		Policy: tools.ToolPolicy{MaxRetries: -1},
		Auth:   &httptool.Auth{Kind: httptool.AuthAPIKey, Query: "key", Secret: httptool.FixedSecret(key)}}
	if change != nil {
		change(&cfg)
	}
	return attach(t, openAPI(t, cfg))
}

func TestResults(t *testing.T) {
	answer := func(kind, body string, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "/y")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string // content blocks or structured value
	}{
		"json":         {answer("application/problem+json", ` {"a":1.10} `, 200), `{"a":1.10}`},
		"lying json":   {answer("application/json", "{oops", 200), `[{"text":"{oops","type":"text"}]`},
		"text":         {answer("text/plain; charset=iso-8859-1", "\xfcber", 200), `[{"text":"über","type":"text"}]`},
		"image":        {answer("image/png", "\x89PNG", 200), `[{"data":"iVBORw==","mimeType":"image/png","type":"image"}]`},
		"empty":        {answer("text/plain", "", 204), `{"location":"/y","status":204}`},
		"not modified": {answer("text/plain", "", 304), `{"location":"/y","status":304}`},
	} {
		srv, _ := serve(t, c.handler)
		res := call(t, single(t, srv.URL, nil), "api_get", `{}`)
		got := string(res.Structured)
		if len(res.Content) > 0 {
			got = "["
			for _, b := range res.Content {
				got += string(b.JSON)
			}
			got += "]"
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	srv, _ := serve(t, answer("application/zip", "PK\x03", 200))
	res := call(t, single(t, srv.URL, nil), "api_get", `{}`)
	want := `{"type":"resource","resource":{"uri":"` + srv.URL + `/x","mimeType":"application/zip","blob":"UEsD"}}`
	if string(res.Content[0].JSON) != want {
		t.Errorf("binary: got %s", res.Content[0].JSON)
	}
	head := call(t, single(t, srv.URL, nil), "api_head", `{}`)
	mustContain(t, string(head.Structured), `"content-type":"application/zip"`, `"status":200`)
}

func TestStatuses(t *testing.T) {
	for status, want := range map[int]tools.Error{
		400: {Class: tools.ErrClassPermanent, Delivery: tools.Answered},
		408: {Class: tools.ErrClassTransient, Delivery: tools.Answered},
		429: {Class: tools.ErrClassTransient, Delivery: tools.NotDelivered, RetryAfter: 7 * time.Second},
		503: {Class: tools.ErrClass5xx, Delivery: tools.Answered, RetryAfter: 7 * time.Second},
	} {
		srv, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			fmt.Fprintf(w, "bad key %s in %s", r.URL.Query().Get("key"), r.URL)
		})
		got := raw(t, single(t, srv.URL, nil))
		if want.RetryAfter == 0 {
			got.RetryAfter = 0
		}
		if got.Class != want.Class || got.Delivery != want.Delivery || got.RetryAfter != want.RetryAfter {
			t.Errorf("%d: got %+v", status, got)
		}
		mustContain(t, got.Message, fmt.Sprintf("GET /x: HTTP %d", status), "bad key [hidden]")
		if strings.Contains(got.Error(), key) {
			t.Errorf("%d: the error shows the secret: %v", status, got)
		}
	}
}

// raw makes one attempt at GET /x and returns its error, wherever it is in
// what the door returns.
func raw(t *testing.T, cat tools.ToolCatalog) *tools.Error {
	t.Helper()
	e := callError(t, cat, "api_get", `{}`)
	for {
		var inner *tools.Error
		if !errors.As(e.Err, &inner) {
			return e
		}
		e = inner
	}
}

func TestNoAnswer(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	e := raw(t, single(t, "http://"+gone.Addr().String(), nil))
	if e.Class != tools.ErrClassTransient || e.Delivery != tools.NotDelivered || e.Code != tools.ErrUnavailable || !e.Retryable {
		t.Errorf("refused connection: %+v", e)
	}
	mustContain(t, e.Message, "refused the connection")

	e = raw(t, single(t, "http://does-not-exist.invalid", nil))
	if e.Class != tools.ErrClassTransient || e.Delivery != tools.NotDelivered || e.Code != tools.ErrUnavailable {
		t.Errorf("unknown host: %+v", e)
	}

	srv, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		conn.Close()
	})
	e = raw(t, single(t, srv.URL, nil))
	if e.Delivery != tools.DeliveryUnknown || e.Code != nil || strings.Contains(e.Error(), key) {
		t.Errorf("closed connection: %+v", e)
	}
}

// A request that was answered with where its answer is may have had its effect: when
// that is not to be had, it is not made again, and its outcome is not known.
func TestAnswerElsewhereIsNotThere(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, c := range map[string]struct {
		to     string
		status int
		once   bool
	}{
		"nobody there":         {"http://" + gone.Addr().String() + "/x", 303, true},
		"not now":              {"/busy", 302, true},
		"to be repeated there": {"/busy", 307, false},
	} {
		var posts atomic.Int32
		srv, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/busy" {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			posts.Add(1)
			w.Header().Set("Location", c.to)
			w.WriteHeader(c.status)
		})
		cat := single(t, srv.URL, func(cfg *httptool.OpenAPIConfig) { cfg.Policy = tools.ToolPolicy{BackoffBase: time.Millisecond} })
		e := callError(t, cat, "api_post", `{"body":1}`)
		if e.OutcomeUnknown != c.once || (posts.Load() == 1) != c.once || errors.Is(e, tools.ErrUnavailable) {
			t.Errorf("%s: %d requests, %+v", name, posts.Load(), e)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	release := make(chan struct{})
	srv, _ := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	cat := single(t, srv.URL, func(cfg *httptool.OpenAPIConfig) {
		cfg.Policy.TimeoutMS = 50
	})
	e := callError(t, cat, "api_post", `{"body":1}`)
	if e.Class != tools.ErrClassTimeout || !errors.Is(e, tools.ErrOutcomeUnknown) {
		t.Errorf("got %+v", e)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tools.Invoke(ctx, cat, "api_get", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestLongAnswer(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"announced": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 101)) },
		"chunked": func(w http.ResponseWriter, _ *http.Request) {
			for range 101 {
				_, _ = w.Write([]byte("x"))
				w.(http.Flusher).Flush()
			}
		},
	} {
		srv, _ := serve(t, h)
		e := raw(t, single(t, srv.URL, func(cfg *httptool.OpenAPIConfig) { cfg.Network.MaxResponseBytes = 100 }))
		if e.Class != tools.ErrClassPermanent {
			t.Errorf("%s: %+v", name, e)
		}
		mustContain(t, e.Message, "limit of 100 bytes")
	}
	srv, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100)) })
	call(t, single(t, srv.URL, func(cfg *httptool.OpenAPIConfig) { cfg.Network.MaxResponseBytes = 100 }), "api_get", `{}`)
}

func TestBrokenAnswer(t *testing.T) {
	srv, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("12345"))
	})
	e := raw(t, single(t, srv.URL, nil))
	if e.Class != tools.ErrClassTransient || e.Delivery != tools.DeliveryUnknown {
		t.Errorf("got %+v", e)
	}
	mustContain(t, e.Message, "broke off after 5 bytes")
}

func TestRedirects(t *testing.T) {
	other, otherSaw := serve(t, answerJSON)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /x", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/same", http.StatusFound) })
	mux.HandleFunc("GET /same", answerJSON)
	mux.HandleFunc("POST /x", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/same", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("POST /same", answerJSON)
	srv, saw := serve(t, mux.ServeHTTP)
	headers := func(cfg *httptool.OpenAPIConfig) {
		cfg.Headers = map[string]string{"X-Secret": "header-secret", "Cookie": "c=secret"}
	}
	cat := single(t, srv.URL, headers)
	call(t, cat, "api_get", `{}`)
	saw()
	if got := saw(); got.URI != "/same?key="+key || got.Header.Get("X-Secret") == "" {
		t.Errorf("same origin: %+v", got)
	}
	call(t, cat, "api_post", `{"body":{"a":1}}`)
	saw()
	if got := saw(); got.Method != "POST" || got.Body != `{"a":1}` {
		t.Errorf("307: %+v", got)
	}

	away, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/away", http.StatusTemporaryRedirect)
	})
	cat = single(t, away.URL, headers)
	call(t, cat, "api_get", `{}`)
	got := otherSaw()
	for name, v := range got.Header {
		if strings.Contains(strings.Join(v, ""), "secret") {
			t.Errorf("another origin got %s: %v", name, v)
		}
	}
	if got.URI != "/away" {
		t.Errorf("another origin: %+v", got)
	}
	mustContain(t, callError(t, cat, "api_post", `{"body":1}`).Error(), "another origin")

	loop, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) })
	mustContain(t, raw(t, single(t, loop.URL, nil)).Message, "more than 5 redirects")
}

// TestGuard checks that a private address is refused when it is dialled, also
// when a redirect leads there.
func TestGuard(t *testing.T) {
	srv, _ := serve(t, answerJSON)
	u, _ := url.Parse(srv.URL)
	src, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "api", ServerURL: "http://localtest.example:" + u.Port(),
		Content: document("3.1.0", `"paths":{"/x":{"get":{"operationId":"get"}}}`),
		Network: httptool.Network{Wrap: func(base http.RoundTripper) http.RoundTripper {
			// What a name that resolves to a loopback address comes to.
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				r.URL.Host = u.Host
				return base.RoundTrip(r)
			})
		}}})
	if err != nil {
		t.Fatal(err)
	}
	e := raw(t, attach(t, src))
	if e.Class != tools.ErrClassPermanent || e.Delivery != tools.NotDelivered {
		t.Errorf("got %+v", e)
	}
	mustContain(t, e.Message, "127.0.0.1 is loopback", "allow_private")

	doc := document("3.1.0", `"servers":[{"url":"http://[::1]:1/"}],"paths":{"/x":{"get":{"operationId":"get"}}}`)
	src, _ = httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "api", Content: doc})
	attach(t, src)
	if r := src.Refused(); len(r) != 1 || !strings.Contains(r[0].Err.Error(), "set allow_private") {
		t.Errorf("refused: %v", r)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCredentials(t *testing.T) {
	for name, c := range map[string]struct {
		auth  httptool.Auth
		check func(seen) string
		want  string
	}{
		"header": {httptool.Auth{Kind: "api_key", Header: "X-Key"}, func(s seen) string { return s.Header.Get("X-Key") }, "u:p"},
		"query":  {httptool.Auth{Kind: "api_key", Query: "k"}, func(s seen) string { return s.URI }, "/x?k=u%3Ap"},
		"bearer": {httptool.Auth{Kind: "bearer"}, func(s seen) string { return s.Header.Get("Authorization") }, "Bearer u:p"},
		"basic":  {httptool.Auth{Kind: "basic"}, func(s seen) string { return s.Header.Get("Authorization") }, "Basic dTpw"},
		"cookie": {httptool.Auth{Kind: "cookie", Cookie: "sid"}, func(s seen) string { return s.Header.Get("Cookie") }, "sid=u:p"},
	} {
		srv, saw := serve(t, answerJSON)
		c.auth.Secret = httptool.FixedSecret("u:p")
		call(t, single(t, srv.URL, func(cfg *httptool.OpenAPIConfig) { cfg.Auth = &c.auth }), "api_get", `{}`)
		if got := c.check(saw()); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	srv, _ := serve(t, answerJSON)
	for _, secret := range []string{"", "a\r\nX: y"} {
		e := raw(t, single(t, srv.URL, func(cfg *httptool.OpenAPIConfig) {
			cfg.Auth = &httptool.Auth{Kind: "bearer", Secret: httptool.FixedSecret(secret)}
		}))
		if e.Delivery != tools.NotDelivered || e.Class != tools.ErrClassPermanent {
			t.Errorf("secret %q: %+v", secret, e)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	srv, saw := serve(t, answerJSON)
	cat := single(t, srv.URL, nil)
	ctx := tools.WithEntrance(context.Background(), tools.Entrance{IdempotencyKey: "once-1"})
	for tool, want := range map[string]string{"api_post": "once-1", "api_get": ""} {
		if _, err := tools.Invoke(ctx, cat, tool, nil); err != nil {
			t.Fatal(err)
		}
		if got := saw().Header.Get("Idempotency-Key"); got != want {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

func TestNotTLS(t *testing.T) {
	srv, _ := serve(t, answerJSON)
	e := raw(t, single(t, strings.Replace(srv.URL, "http:", "https:", 1), nil))
	if e.Class != tools.ErrClassPermanent || e.Delivery != tools.NotDelivered {
		t.Errorf("got %+v", e)
	}
	tlsServer := httptest.NewUnstartedServer(http.HandlerFunc(answerJSON))
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	defer tlsServer.Close()
	e = raw(t, single(t, tlsServer.URL, nil))
	if e.Class != tools.ErrClassPermanent || e.Delivery != tools.NotDelivered {
		t.Errorf("unknown authority: %+v", e)
	}
}

// TestRetriesAcrossRestart checks with the real door that a write whose
// connection was refused is tried again and one without an answer is not.
func TestRetriesAcrossRestart(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	arrived := make(chan string, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(arrived)
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				arrived <- req.Method
			}
			conn.Close()
		}
	}()
	cat := single(t, "http://"+listener.Addr().String(), func(cfg *httptool.OpenAPIConfig) {
		cfg.Policy = tools.ToolPolicy{BackoffBase: time.Millisecond}
	})
	e := callError(t, cat, "api_post", `{"body":1}`)
	if !errors.Is(e, tools.ErrOutcomeUnknown) || e.Attempts != 1 {
		t.Errorf("got %+v", e)
	}
	listener.Close()
	sent := 0
	for range arrived {
		sent++
	}
	if sent != 1 {
		t.Errorf("the write was sent %d times", sent)
	}
	e = callError(t, cat, "api_post", `{"body":1}`)
	if e.Attempts != 4 || errors.Is(e, tools.ErrOutcomeUnknown) {
		t.Errorf("refused connection: %+v", e)
	}
}
