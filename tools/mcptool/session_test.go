package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// An asked is the peer of a call that answers questions.
type asked struct {
	recorder
	answer func(tools.Question) (tools.Answer, error)
}

func (a *asked) Ask(_ context.Context, q tools.Question) (tools.Answer, error) { return a.answer(q) }

// says answers every elicitation with a name.
func says(name string) *asked {
	return &asked{answer: func(tools.Question) (tools.Answer, error) {
		return tools.Answer{Result: json.RawMessage(`{"action":"accept","content":{"name":"` + name + `"}}`)}, nil
	}}
}

// newAsking returns a server whose tool "ask" asks a name of the caller and
// gives it back, with what it knows of the session. While it asks, it waits for
// gate, if that is not nil.
func newAsking(gate func()) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	form := &mcp.ElicitParams{Message: "who?", RequestedSchema: &jsonschema.Schema{Type: "object",
		Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}}}
	mcp.AddTool(server, &mcp.Tool{Name: "ask"},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			if gate != nil {
				gate()
			}
			res, err := r.Session.Elicit(ctx, form)
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(res.Content["name"], " ", r.Session.ID())}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "input"},
		func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			res, ok := r.Params.InputResponses["who"].(*mcp.ElicitResult)
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"who": form}, RequestState: "s1"}, nil, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(res.Content["name"], " ", r.Params.RequestState)}}}, nil, nil
		})
	return server
}

// caller is the context of a call by the session of a user.
func caller(t *testing.T, session, client string, peer tools.Peer) context.Context {
	ctx := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "ada", SessionID: session})
	return tools.WithEntrance(ctx, tools.Entrance{Peer: peer, Client: client, Capabilities: tools.Capabilities{ElicitForm: true}})
}

func TestSessionsAskTheirOwnCaller(t *testing.T) {
	for _, way := range []string{"http", "stdio"} {
		t.Run(way, func(t *testing.T) {
			cfg := &Config{Name: "odd"}
			if way == "stdio" {
				cfg = childConfig(t, "asking")
				cfg.Version = "2025-11-25"
			} else {
				cfg.URL = serveHTTP(t, newAsking(nil), false)
			}
			cfg.Session = SessionPerSession
			s := start(t, cfg)
			cat := catalogOf(t, s)
			var wg sync.WaitGroup
			for i := range 3 {
				for range 4 {
					wg.Go(func() {
						name := fmt.Sprint("caller", i)
						r, err := tools.Invoke(caller(t, name, name, says(name)), cat, "odd_ask", nil)
						if err != nil || !strings.HasPrefix(r.Text(), name+" ") {
							t.Errorf("%s: %q, %v", name, r.Text(), err)
						}
					})
				}
			}
			wg.Wait()
			if n := s.Status().Sessions; n != 3 {
				t.Errorf("%d connections beside the shared one", n)
			}
		})
	}
}

// Callers without a session never share a connection while they call, so that
// what the server asks belongs to one call, and use it one after another.
func TestConnectionsLeasedToOneCall(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	s := start(t, &Config{Name: "odd", URL: serveHTTP(t, newAsking(func() { both.Done(); both.Wait() }), false), Session: SessionPerSession})
	cat := catalogOf(t, s)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			name := fmt.Sprint("caller", i)
			r, err := tools.Invoke(caller(t, "stateless", "", says(name)), cat, "odd_ask", nil)
			if err != nil || !strings.HasPrefix(r.Text(), name+" ") {
				t.Errorf("%s: %q, %v", name, r.Text(), err)
			}
		})
	}
	wg.Wait()
	both.Add(1)
	if _, err := tools.Invoke(caller(t, "stateless", "", says("third")), cat, "odd_ask", nil); err != nil {
		t.Error(err)
	}
	if n := s.Status().Sessions; n != 2 {
		t.Errorf("%d connections", n)
	}
}

// A connection that callers share says that nobody can be asked.
func TestSharedConnectionsAskNobody(t *testing.T) {
	for _, mode := range []Session{"", SessionShared, SessionPerUser} {
		s := start(t, &Config{Name: "odd", URL: serveHTTP(t, newAsking(nil), false), Session: mode})
		cat := catalogOf(t, s)
		r, err := tools.Invoke(caller(t, "s", "c", says("nobody")), cat, "odd_ask", nil)
		if err != nil || !r.IsError || !strings.Contains(r.Text(), "elicitation") {
			t.Errorf("%q: %q, %v", mode, r.Text(), err)
		}
	}
}

// The caller's own word about a question reaches the server.
func TestRefusedQuestions(t *testing.T) {
	s := start(t, &Config{Name: "odd", URL: serveHTTP(t, newAsking(nil), false), Session: SessionPerSession})
	cat := catalogOf(t, s)
	peer := &asked{answer: func(tools.Question) (tools.Answer, error) {
		return tools.Answer{}, &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered,
			Err: &tools.AnswerError{Code: -1, Message: "the person said no"}}
	}}
	r, err := tools.Invoke(caller(t, "s", "c", peer), cat, "odd_ask", nil)
	if err != nil || !r.IsError || !strings.Contains(r.Text(), "the person said no") {
		t.Errorf("%q, %v", r.Text(), err)
	}
}

func TestInputThatAServerRequires(t *testing.T) {
	s := start(t, &Config{Name: "odd", URL: serveHTTP(t, newAsking(nil), true)})
	cat := catalogOf(t, s)
	keys := make(chan string, 1)
	peer := says("Ada")
	answer := peer.answer
	peer.answer = func(q tools.Question) (tools.Answer, error) {
		keys <- q.Key + " " + q.Method
		return answer(q)
	}
	r, err := tools.Invoke(caller(t, "s", "", peer), cat, "odd_input", nil)
	if err != nil || r.Text() != "Ada s1" || await(t, keys) != "who elicitation/create" {
		t.Errorf("%q, %v", r.Text(), err)
	}
	if _, err := tools.Invoke(t.Context(), cat, "odd_input", nil); !errors.Is(err, tools.ErrAskUnsupported) {
		t.Errorf("without a caller: %v", err)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	waiting := make(chan struct{}, 4)
	s := start(t, &Config{Name: "odd", URL: serveHTTP(t, newAsking(func() { waiting <- struct{}{}; <-hold }), false),
		Session: SessionPerSession, MaxSessions: 1})
	cat := catalogOf(t, s)
	done := make(chan error, 1)
	go func() {
		_, err := tools.Invoke(caller(t, "one", "one", says("one")), cat, "odd_ask", nil)
		done <- err
	}()
	await(t, waiting)
	ctx, cancel := context.WithTimeout(caller(t, "two", "two", says("two")), 100*time.Millisecond)
	defer cancel()
	var e *tools.Error
	if _, err := tools.Invoke(ctx, cat, "odd_ask", nil); !errors.Is(err, tools.ErrOverloaded) || !errors.As(err, &e) || e.Delivery != tools.NotDelivered {
		t.Errorf("%v", err)
	}
	release()
	if err := await(t, done); err != nil {
		t.Error(err)
	}
	if _, err := tools.Invoke(caller(t, "two", "two", says("two")), cat, "odd_ask", nil); err != nil {
		t.Errorf("the idle connection did not make place: %v", err)
	}
	if n := s.Status().Sessions; n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	s := start(t, &Config{Name: "odd", URL: serveHTTP(t, newAsking(nil), false), Session: SessionPerUser, SessionIdle: time.Millisecond})
	cat := catalogOf(t, s)
	if _, err := tools.Invoke(caller(t, "s", "c", says("x")), cat, "odd_ask", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return s.Status().Sessions == 0 })
}

// Some servers list what asks only for a client that can be asked.
func TestToolsThatDependOnTheClient(t *testing.T) {
	for mode, want := range map[Session]bool{SessionShared: false, SessionPerSession: true} {
		var server *mcp.Server
		server = mcp.NewServer(&mcp.Implementation{Name: "careful", Version: "1"}, &mcp.ServerOptions{
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
			InitializedHandler: func(_ context.Context, r *mcp.InitializedRequest) {
				if c := r.Session.InitializeParams().Capabilities; c != nil && c.Elicitation != nil {
					mcp.AddTool(server, &mcp.Tool{Name: "ask"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
						return nil, nil, nil
					})
				}
			},
		})
		s := start(t, &Config{Name: "odd", URL: serveHTTP(t, server, false), Session: mode})
		changed := make(chan struct{}, 16)
		s.OnChange(func() { changed <- struct{}{} })
		list, err := s.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want && len(list) == 0 { // it was added after the list was read
			await(t, changed)
			list, _ = s.Discover(t.Context())
		}
		if (len(list) == 1) != want {
			t.Errorf("%s: %d tools", mode, len(list))
		}
	}
}

// A connection ends with its client, not before the last call of it is over.
func TestSessionsEndWithTheirClient(t *testing.T) {
	waiting, hold := make(chan struct{}, 1), make(chan struct{})
	s := start(t, &Config{Name: "odd", URL: serveHTTP(t, newAsking(func() { waiting <- struct{}{}; <-hold }), false), Session: SessionPerSession})
	cat := catalogOf(t, s)
	gone, done := make(chan struct{}), make(chan error, 1)
	ctx := tools.WithEntrance(caller(t, "s", "", nil), tools.Entrance{Peer: says("x"), Client: "c", ClientGone: gone,
		Capabilities: tools.Capabilities{ElicitForm: true}})
	go func() {
		_, err := tools.Invoke(ctx, cat, "odd_ask", nil)
		done <- err
	}()
	await(t, waiting)
	close(gone)
	close(hold)
	if err := await(t, done); err != nil {
		t.Error(err)
	}
	eventually(t, func() bool { return s.Status().Sessions == 0 })
}

func TestScopes(t *testing.T) {
	t.Parallel()
	with := func(tenant, user, session string) context.Context {
		return identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: user, SessionID: session})
	}
	call := &tools.Call{Client: "c1", Capabilities: tools.Capabilities{Roots: true}}
	for _, mode := range []Session{SessionPerUser, SessionPerSession} {
		a := mode.scopeOf(with("a", "u", "s"), call, false)
		if b := mode.scopeOf(with("b", "u", "s"), call, false); a == b || a.tenant != "a" {
			t.Errorf("%s: tenants share a connection: %+v", mode, a)
		}
	}
	if a, b := SessionPerUser.scopeOf(with("a", "u", "s"), call, false), SessionPerUser.scopeOf(with("a", "u", "s2"), nil, false); a != b {
		t.Errorf("%+v, %+v", a, b)
	}
	if got := SessionPerSession.scopeOf(with("a", "u", "s"), call, false); got.capabilities != `{"roots":{}}` || got.lone {
		t.Errorf("%+v", got)
	}
	if got := SessionPerSession.scopeOf(with("a", "u", "s"), call, true); got.capabilities != "" || got.lone {
		t.Errorf("stateless: %+v", got)
	}
	if got := SessionShared.scopeOf(with("a", "u", "s"), call, false); got != (scope{}) {
		t.Errorf("shared: %+v", got)
	}
}

func TestWhatIsCarried(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]tools.Capabilities{
		"": {},
		`{"sampling":{},"elicitation":{"form":{}},"roots":{}}`: {Sampling: true, ElicitForm: true, Roots: true},
		`{"elicitation":{"form":{},"url":{}}}`:                 {ElicitForm: true, ElicitURL: true},
		`{"sampling":{"tools":{}},"roots":{"listChanged":true},"extensions":{"x/y":{}}}`: {Sampling: true, Roots: true,
			Declared: json.RawMessage(`{"sampling":{"tools":{}},"roots":{"listChanged":true},"extensions":{"x/y":{},"io.modelcontextprotocol/tasks":{}},"other":1}`)},
	} {
		if got := string(carried(&tools.Call{Capabilities: c}, true)); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

func FuzzInputRequired(f *testing.F) {
	f.Add([]byte(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"x"}`))
	f.Add([]byte(`{"inputRequests":[],"requestState":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		questions, _, err := readInputRequired(raw)
		for _, q := range questions {
			if err == nil && !askable(q.Method) {
				t.Errorf("%q is asked", q.Method)
			}
		}
	})
}

func serveAsking() int {
	if err := newAsking(nil).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// What a caller said and the server did not take leaves open what the call did before
// it asked.
func TestAnswerThatIsNotDelivered(t *testing.T) {
	server := newAsking(nil)
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	calls := 0
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("inputResponses")) {
			calls++
			http.Error(w, "later", http.StatusTooManyRequests)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	cat := catalogOf(t, start(t, &Config{Name: "odd", URL: ts.URL, Version: mcpwire.LatestStateless}))
	_, err := tools.Invoke(caller(t, "s", "s", says("ada")), cat, "odd_input", nil)
	if !errors.Is(err, tools.ErrOutcomeUnknown) || calls != 1 {
		t.Errorf("%d times: %v", calls, err)
	}
}
