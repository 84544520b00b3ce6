package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/test/control"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// An upstream is an odd server over HTTP with sessions.
type upstream struct {
	*control.Desk
	*toolstest.HTTPServer

	mu      sync.Mutex
	odd     *odd // of the current incarnation
	session int
	extra   int           // tools that an incarnation begins with
	hang    chan struct{} // while it is open, initialize is not answered
	hanging int
}

func newUpstream(t testing.TB) *upstream {
	t.Helper()
	u := &upstream{Desk: control.Open(t, nil)}
	u.HTTPServer = toolstest.NewHTTPServer(t, func() (http.Handler, func()) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.session++
		u.odd = newOdd(func(format string, args ...any) { u.Note(fmt.Sprintf(format, args...)) })
		u.odd.extra = u.extra
		u.odd.tools = map[string]func(*odd, *message, func(string)){"broken": nil}
		return u, nil
	})
	return u
}

// source is the upstream as a configured server, with further keys.
func (u *upstream) source(name, more string) string {
	return fmt.Sprintf("{name: %s, url: '%s/mcp'%s}", name, u.URL, more)
}

// forget loses every session; what the server offers may be something else then.
func (u *upstream) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.session++
	u.odd.grow()
}

func (u *upstream) server() *odd {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.odd
}

func (u *upstream) stuck() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.hanging
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		u.Note(r.Method)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !u.admit(w, r, &m) {
		return
	}
	if m.Method == "tools/call" && m.Params.Name == "broken" {
		breakDown(w, &m)
		return
	}
	answer := u.answer(w, r, &m)
	switch {
	case r.Context().Err() != nil:
	case answer == "":
		w.WriteHeader(http.StatusAccepted)
	case w.Header().Get("Content-Type") == "text/event-stream":
		fmt.Fprintf(w, "data: %s\n\n", answer)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer) // who is gone does not read
	}
}

// admit checks the session, or answers.
func (u *upstream) admit(w http.ResponseWriter, r *http.Request, m *message) bool {
	u.mu.Lock()
	current, hang := fmt.Sprint("session-", u.session), u.hang
	u.mu.Unlock()
	if m.Method == "initialize" || m.Method == "server/discover" {
		if m.Method == "initialize" {
			w.Header().Set("Mcp-Session-Id", current)
		}
		return u.pass(r, hang)
	}
	if r.Header.Get("Mcp-Session-Id") != current {
		u.Note("unknown " + m.Method)
		w.WriteHeader(http.StatusNotFound)
		return false
	}
	return true
}

// pass waits while the server hangs.
func (u *upstream) pass(r *http.Request, hang chan struct{}) bool {
	if hang == nil {
		return true
	}
	u.count(1)
	defer u.count(-1)
	select {
	case <-hang:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (u *upstream) count(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.hanging += n
}

// answer returns what the odd server answers, and sends before it what that sends.
func (u *upstream) answer(w http.ResponseWriter, r *http.Request, m *message) string {
	m.out = func(line string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", line)
	}
	done := make(chan string, 1)
	u.server().handle(m, func(answer string) { done <- answer })
	select {
	case answer := <-done:
		return answer
	case <-r.Context().Done():
		if strings.HasPrefix(m.Method, "tools/") {
			u.Note("dropped " + m.Method)
		}
		return ""
	}
}

// breakDown answers as no server should.
func breakDown(w http.ResponseWriter, m *message) {
	var args struct{ How string }
	_ = json.Unmarshal(m.Params.Arguments, &args) // what is missing is no way to break
	body := result(m, `{"content":[]}`)
	contentType := "application/json"
	switch args.How {
	case "html":
		contentType, body = "text/html", "<h1>Welcome</h1>"
	case "half":
		body = body[:len(body)/2]
	case "empty":
		body = ""
	case "another id":
		body = `{"jsonrpc":"2.0","id":"4711","result":{"content":[]}}`
	case "a stream without an answer":
		contentType, body = "text/event-stream", ": nothing\n\n"
	case "a stream of noise":
		contentType, body = "text/event-stream", "data: {\n\ndata: nonsense\n\n"
	case "cut off":
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+10))
	case "reset":
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, body) // who is gone does not read
	if args.How == "cut off" {
		panic(http.ErrAbortHandler)
	}
}
