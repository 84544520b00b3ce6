package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// A rawEndpoint serves a rawServer over HTTP with sessions that it can forget.
type rawEndpoint struct {
	raw *rawServer

	mu       sync.Mutex
	session  int
	unknown  int // requests of sessions that were forgotten
	refuse   func(http.ResponseWriter) bool
	received http.Header // of the last call
}

func newRawEndpoint() *rawEndpoint {
	return &rawEndpoint{raw: newRawServer("http", io.Discard)}
}

func (e *rawEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m rawMessage
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if e.admits(w, r, &m) {
		answer := e.raw.answer(&m)
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer)
	}
}

// admits answers a request that does not get through to the server.
func (e *rawEndpoint) admits(w http.ResponseWriter, r *http.Request, m *rawMessage) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	current := fmt.Sprint("s", e.session)
	switch {
	case m.Method == "server/discover":
		return true
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", current)
	case r.Header.Get("Mcp-Session-Id") != current:
		e.unknown++
		w.WriteHeader(http.StatusNotFound)
		return false
	case m.Method == "tools/call" && e.refuse != nil:
		e.received = r.Header
		return !e.refuse(w)
	}
	e.received = r.Header
	return true
}

func (e *rawEndpoint) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session++
}

// When a session expires under fifty callers, it is opened again once, and
// every call runs once.
func TestSessionForgottenUnderLoad(t *testing.T) {
	t.Parallel()
	e := newRawEndpoint()
	ts := httptest.NewServer(e)
	defer ts.Close()
	s := start(t, &Config{Name: "odd", URL: ts.URL})
	changed := make(chan struct{}, 16)
	s.OnChange(func() { changed <- struct{}{} })
	echo := discover(t, s)["echo"]
	e.forget()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := echo.Invoke(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if inits, called := e.raw.counts(); inits != 2 || called != 50 {
		t.Errorf("initialized %d times, ran %d calls", inits, called)
	}
	await(t, changed) // what the new session lists may be something else
}

// An endpoint that forgets each session at once is not initialized in a storm.
func TestSessionsThatNeverLast(t *testing.T) {
	t.Parallel()
	e := newRawEndpoint()
	ts := httptest.NewServer(e)
	defer ts.Close()
	s := start(t, &Config{Name: "odd", URL: ts.URL})
	echo := discover(t, s)["echo"]
	e.refuse = func(w http.ResponseWriter) bool {
		e.session++
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	var last error
	for range 200 {
		_, last = echo.Invoke(t.Context(), nil)
	}
	var te *tools.Error
	if !errors.As(last, &te) || te.Delivery != tools.NotDelivered {
		t.Errorf("error: %#v", last)
	}
	if inits, _ := e.raw.counts(); inits > 12 {
		t.Errorf("initialized %d times", inits)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	e := newRawEndpoint()
	ts := httptest.NewServer(e)
	defer ts.Close()
	s := start(t, &Config{Name: "odd", URL: ts.URL + "/?key=url-secret", Headers: map[string]string{"Authorization": "Bearer top-secret"}})
	echo := discover(t, s)["echo"]
	for _, tc := range []struct {
		status     int
		retryAfter string
		class      tools.ErrorClass
		delivery   tools.Delivery
		wait       time.Duration
		says       string
	}{
		{401, "", tools.ErrClassPermanent, tools.NotDelivered, 0, "refused the credentials"},
		{403, "", tools.ErrClassPermanent, tools.NotDelivered, 0, "refused the credentials"},
		{405, "", tools.ErrClassPermanent, tools.NotDelivered, 0, "does not lead to an MCP endpoint"},
		{413, "", tools.ErrClassPermanent, tools.NotDelivered, 0, "413"},
		{418, "", tools.ErrClassPermanent, tools.Answered, 0, "418"},
		{429, "7", tools.ErrClassTransient, tools.NotDelivered, 7 * time.Second, "429"},
		{500, "", tools.ErrClass5xx, tools.Answered, 0, "500"},
		{502, "", tools.ErrClass5xx, tools.DeliveryUnknown, 0, "502"},
		{503, "3", tools.ErrClass5xx, tools.Answered, 3 * time.Second, "503"},
		{504, "", tools.ErrClassTimeout, tools.DeliveryUnknown, 0, "504"},
	} {
		e.mu.Lock()
		e.refuse = func(w http.ResponseWriter) bool {
			if tc.retryAfter != "" {
				w.Header().Set("Retry-After", tc.retryAfter)
			}
			http.Error(w, "you sent Bearer top-secret", tc.status)
			return true
		}
		e.mu.Unlock()
		_, err := echo.Invoke(t.Context(), nil)
		var te *tools.Error
		if !errors.As(err, &te) {
			t.Fatalf("%d: %v", tc.status, err)
		}
		if te.Class != tc.class || te.Delivery != tc.delivery || te.RetryAfter != tc.wait || te.Code != nil {
			t.Errorf("%d: class %s, delivery %d, retry after %v", tc.status, te.Class, te.Delivery, te.RetryAfter)
		}
		if !strings.Contains(te.Message, tc.says) || !strings.Contains(te.Message, `"odd"`) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %s", tc.status, err)
		}
	}
	if e.received.Get("Authorization") != "Bearer top-secret" {
		t.Error("the configured header was not sent")
	}
}

// A server's own error text may repeat what it was sent.
func TestSecretsInAServersError(t *testing.T) {
	t.Parallel()
	e := newRawEndpoint()
	ts := httptest.NewServer(e)
	defer ts.Close()
	s := start(t, &Config{Name: "odd", URL: ts.URL, Headers: map[string]string{"X-Api-Key": `top"secret`}})
	_, err := discover(t, s)["fail"].Invoke(t.Context(),
		json.RawMessage(`{"error":{"code":-32000,"message":"bad key top\"secret","data":{"key":"top\"secret","n":1}}}`))
	var rpc *RPCError
	if !errors.As(err, &rpc) || rpc.Code != -32000 || string(rpc.Data) != `{"key":"[hidden]","n":1}` || rpc.Message != "bad key [hidden]" {
		t.Errorf("error: %#v", rpc)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	for _, hidden := range []string{`{"code":-32000,"message":"m","x":"top\"secret"}`, `{"code":-32000,"message":{"m":"top\"secret"}}`} {
		_, err := discover(t, s)["fail"].Invoke(t.Context(), json.RawMessage(`{"error":`+hidden+`}`))
		if !errors.As(err, &rpc) || rpc.Code != -32000 || strings.Contains(string(rpc.Raw()), "secret") {
			t.Errorf("%s: error %#v", hidden, rpc)
		}
	}
}

// A server that goes away and comes back is found again by the next call.
func TestServerThatComesBack(t *testing.T) {
	t.Parallel()
	e := newRawEndpoint()
	ts := httptest.NewServer(e)
	addr := ts.Listener.Addr().String()
	s := start(t, &Config{Name: "odd", URL: "http://" + addr + "/?key=url-secret"})
	echo := discover(t, s)["echo"]
	invoke(t, echo, "{}")
	ts.Close()
	s.http.(*http.Transport).CloseIdleConnections() // or the call may leave on one that is just ending
	_, err := echo.Invoke(t.Context(), nil)
	var te *tools.Error
	if !errors.As(err, &te) || te.Delivery != tools.NotDelivered || te.Class != tools.ErrClassTransient || !te.Retryable ||
		!errors.Is(err, tools.ErrUnavailable) {
		t.Fatalf("server down: %#v", err)
	}
	if strings.Contains(err.Error(), "url-secret") {
		t.Error(err)
	}
	e.forget()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("the address was taken meanwhile: %v", err)
	}
	back := &httptest.Server{Listener: listener, Config: &http.Server{Handler: e}}
	back.Start()
	defer back.Close()
	invoke(t, echo, "{}")
	if inits, _ := e.raw.counts(); inits != 2 {
		t.Errorf("initialized %d times", inits)
	}
}

func TestLostConnectionOverHTTP(t *testing.T) {
	t.Parallel()
	e := newRawEndpoint()
	ts := httptest.NewServer(e)
	defer ts.Close()
	echo := discover(t, start(t, &Config{Name: "odd", URL: ts.URL}))["echo"]
	e.refuse = func(w http.ResponseWriter) bool { panic(http.ErrAbortHandler) }
	_, err := echo.Invoke(t.Context(), nil)
	var te *tools.Error
	if !errors.As(err, &te) || te.Delivery != tools.DeliveryUnknown || te.Class != tools.ErrClassTransient {
		t.Errorf("error: %#v", err)
	}
}

func TestRefusedCredentialsAtConnect(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer ts.Close()
	err := start(t, &Config{Name: "odd", URL: ts.URL}).Connect(t.Context())
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || te.Delivery != tools.NotDelivered ||
		!strings.Contains(err.Error(), "credentials") {
		t.Errorf("Connect: %#v", err)
	}
}

func TestCallersDeadline(t *testing.T) {
	t.Parallel()
	e := newRawEndpoint()
	ts := httptest.NewServer(e)
	defer ts.Close()
	s := start(t, &Config{Name: "odd", URL: ts.URL})
	discover(t, s)
	release := make(chan struct{})
	defer close(release)
	e.refuse = func(http.ResponseWriter) bool { <-release; return true }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.describe(definition{name: "echo"}).Invoke(ctx, nil)
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != "" || te.Delivery != tools.DeliveryUnknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error: %#v", err)
	}
}
