package a2atool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	a2agrpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bindings are the ways in which the library serves an agent.
var (
	overHTTP = []string{"JSONRPC 1.0", "HTTP+JSON 1.0", "JSONRPC 0.3", "HTTP+JSON 0.3"}
	bindings = append([]string{"GRPC 1.0", "GRPC 0.3"}, overHTTP...)
)

// An agentServer is an agent that the library serves. What it does is said by
// the first word of the message.
type agentServer struct {
	*httptest.Server
	card *a2a.AgentCard

	mu        sync.Mutex
	messages  []*a2a.Message
	cancelled chan a2a.TaskID
	running   chan a2a.TaskID
	proceed   chan struct{} // lets a task that waits go on
	stop      chan struct{} // ends what is left
}

// serveAgent serves an agent over the given binding; change may alter its card.
func serveAgent(t *testing.T, binding string, change func(*a2a.AgentCard)) *agentServer {
	t.Helper()
	s := &agentServer{cancelled: make(chan a2a.TaskID, 4), running: make(chan a2a.TaskID, 4), proceed: make(chan struct{}, 4), stop: make(chan struct{})}
	logger := slog.New(slog.DiscardHandler)
	handler := a2asrv.NewHandler(s, a2asrv.WithLogger(logger))
	mux := http.NewServeMux()
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(handler))
	mux.Handle("/rest/", http.StripPrefix("/rest", a2asrv.NewRESTHandler(handler)))
	mux.Handle("/v0rpc", a2av0.NewJSONRPCHandler(handler))
	mux.Handle("/v0rest/", http.StripPrefix("/v0rest", a2av0.NewRESTHandler(handler)))
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(s.card)
	})
	s.Server = httptest.NewServer(mux)
	protocol, version, _ := strings.Cut(binding, " ")
	path := map[string]string{"JSONRPC 1.0": "/rpc", "HTTP+JSON 1.0": "/rest", "JSONRPC 0.3": "/v0rpc", "HTTP+JSON 0.3": "/v0rest"}[binding]
	s.card = testCard(s.URL+path, protocol, version)
	if protocol == "GRPC" {
		s.card.SupportedInterfaces[0].URL = serveGRPC(t, version, handler)
	}
	if change != nil {
		change(s.card)
	}
	t.Cleanup(func() {
		close(s.stop)
		s.Close()
	})
	return s
}

// serveGRPC serves an agent over gRPC and returns its address.
func serveGRPC(t *testing.T, version string, handler a2asrv.RequestHandler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	if version == "1.0" {
		a2agrpc.NewHandler(handler).RegisterWith(srv)
	} else {
		a2agrpcv0.NewHandler(handler).RegisterWith(srv)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(listener) }()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	return listener.Addr().String()
}

func testCard(url, protocol, version string) *a2a.AgentCard {
	return &a2a.AgentCard{
		Name: "Test Agent", Description: "It does what the first word says.", Version: "1.2.3",
		SupportedInterfaces: []*a2a.AgentInterface{{URL: url, ProtocolBinding: a2a.TransportProtocol(protocol), ProtocolVersion: a2a.ProtocolVersion(version)}},
		Capabilities:        a2a.AgentCapabilities{Streaming: true},
		DefaultInputModes:   []string{"text/plain", "application/json", "image/png"},
		DefaultOutputModes:  []string{"text/plain"},
		Skills: []a2a.AgentSkill{
			{ID: "act", Name: "Act", Description: "Acts.", Tags: []string{"demo"}, Examples: []string{"echo hello"}},
		},
	}
}

func (s *agentServer) setCard(change func(*a2a.AgentCard)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := *s.card
	change(&next)
	s.card = &next
}

// received returns the messages so far.
func (s *agentServer) received() []*a2a.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*a2a.Message(nil), s.messages...)
}

// Execute implements a2asrv.AgentExecutor.
func (s *agentServer) Execute(ctx context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	s.mu.Lock()
	s.messages = append(s.messages, e.Message)
	s.mu.Unlock()
	say := func(text string) *a2a.Message {
		return a2a.NewMessageForTask(a2a.MessageRoleAgent, e, a2a.NewTextPart(text))
	}
	word, rest, _ := strings.Cut(textOf(e.Message), " ")
	return func(yield func(a2a.Event, error) bool) {
		if word == "message" {
			yield(say("just "+rest), nil)
			return
		}
		if e.StoredTask == nil && !yield(a2a.NewSubmittedTask(e, e.Message), nil) {
			return
		}
		if e.StoredTask != nil {
			word, rest = "answer", textOf(e.Message)
		}
		for _, event := range s.script(ctx, e, word, rest) {
			if !yield(event, nil) {
				return
			}
		}
		if word == "auth" { // the library takes the task for one that goes on by itself
			<-s.stop
			yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCompleted, nil), nil)
		}
	}
}

// script is what the agent does after its task began.
func (s *agentServer) script(ctx context.Context, e *a2asrv.ExecutorContext, word, rest string) []a2a.Event {
	status := func(state a2a.TaskState, text string) a2a.Event {
		var m *a2a.Message
		if text != "" {
			m = a2a.NewMessageForTask(a2a.MessageRoleAgent, e, a2a.NewTextPart(text))
		}
		return a2a.NewStatusUpdateEvent(e, state, m)
	}
	done := status(a2a.TaskStateCompleted, "")
	switch word {
	case "echo":
		return []a2a.Event{status(a2a.TaskStateWorking, ""), a2a.NewArtifactEvent(e, a2a.NewTextPart("echo: "+rest)), done}
	case "long":
		out := []a2a.Event{}
		for i := range 3 {
			out = append(out, status(a2a.TaskStateWorking, fmt.Sprintf("step %d", i+1)))
		}
		first := a2a.NewArtifactEvent(e, a2a.NewTextPart("one "))
		return append(out, first, a2a.NewArtifactUpdateEvent(e, first.Artifact.ID, a2a.NewTextPart("two")), done)
	case "ask":
		return []a2a.Event{status(a2a.TaskStateInputRequired, "Which city?")}
	case "answer":
		return []a2a.Event{a2a.NewArtifactEvent(e, a2a.NewTextPart("the answer was "+rest)), done}
	case "auth":
		return []a2a.Event{status(a2a.TaskStateAuthRequired, "Log in at https://login.example/")}
	case "fail":
		return []a2a.Event{status(a2a.TaskStateFailed, "no luck with "+rest)}
	case "reject":
		return []a2a.Event{status(a2a.TaskStateRejected, "")}
	case "wait":
		s.running <- e.TaskID
		select {
		case <-s.proceed:
			return []a2a.Event{a2a.NewArtifactEvent(e, a2a.NewTextPart("waited")), done}
		case <-ctx.Done():
			return nil
		}
	case "parts":
		return s.parts(e, done)
	}
	return []a2a.Event{status(a2a.TaskStateFailed, "unknown word "+word)}
}

// parts sends back everything that came, and files of its own.
func (s *agentServer) parts(e *a2asrv.ExecutorContext, done a2a.Event) []a2a.Event {
	back := a2a.NewArtifactEvent(e, e.Message.Parts[1:]...)
	back.Artifact.Name, back.Artifact.Description = "back", "what came"
	own := a2a.NewArtifactEvent(e,
		&a2a.Part{Content: a2a.Raw("a,b\n1,2\n"), Filename: "t.csv", MediaType: "text/csv"},
		&a2a.Part{Content: a2a.Raw([]byte{0, 1, 255}), Filename: "x.bin", MediaType: "application/x-thing"},
		&a2a.Part{Content: a2a.URL("https://files.example/r.pdf"), Filename: "r.pdf", MediaType: "application/pdf"},
	)
	return []a2a.Event{back, own, done}
}

// Cancel implements a2asrv.AgentExecutor.
func (s *agentServer) Cancel(_ context.Context, e *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	s.cancelled <- e.TaskID
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(e, a2a.TaskStateCanceled, nil), nil)
	}
}

// open returns a peer that is closed when the test ends.
func open(t *testing.T, cfg Config) *Peer {
	t.Helper()
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// local describes an agent on this machine.
func local(url string) Config {
	return Config{Name: "test", URL: url, AllowInsecureLoopback: true, CardTTL: -1}
}

// catalogOf puts the agent's tools into a catalog.
func catalogOf(t *testing.T, p *Peer) tools.LiveCatalog {
	t.Helper()
	if err := p.Connect(t.Context()); err != nil {
		t.Fatalf("Connect: %v", err)
	}
	list, err := p.Discover(t.Context())
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, r := range cat.SwapSource(p.SourceID(), list).Refused {
		t.Errorf("%s was refused: %v", r.Name, r.Err)
	}
	return cat
}

// caller is a context with an identity of its own, and a peer that may be nil.
func caller(t *testing.T, tenant, session string, peer tools.Peer) context.Context {
	t.Helper()
	ctx := identity.With(t.Context(), identity.Identity{TenantID: tenant, UserID: "u", SessionID: session})
	return tools.WithEntrance(ctx, tools.Entrance{Peer: peer, Capabilities: tools.Capabilities{ElicitForm: peer != nil}})
}

func say(text string) json.RawMessage {
	raw, err := json.Marshal(map[string]string{"message": text})
	if err != nil {
		panic(err)
	}
	return raw
}

// call runs the tool and fails the test when the call fails.
func call(t *testing.T, ctx context.Context, cat tools.ToolCatalog, args json.RawMessage) tools.ToolResult {
	t.Helper()
	r, err := tools.Invoke(ctx, cat, "test_act", args)
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return r
}

// A listener is the peer of a call. It keeps what reaches the caller, and
// answers questions with answer.
type listener struct {
	answer string
	heard  func(note string)

	mu        sync.Mutex
	notes     []string
	questions []string
}

func (l *listener) Progress(_ context.Context, p tools.ProgressNote) error {
	l.mu.Lock()
	l.notes = append(l.notes, p.Message)
	l.mu.Unlock()
	if l.heard != nil {
		l.heard(p.Message)
	}
	return nil
}

func (l *listener) Log(context.Context, tools.LogNote) error { return nil }

func (l *listener) Ask(_ context.Context, q tools.Question) (tools.Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer == "" {
		return tools.Answer{}, tools.ErrAskUnsupported
	}
	l.questions = append(l.questions, string(q.Params))
	return tools.Answer{Result: json.RawMessage(l.answer)}, nil
}

func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.notes...)
}

// handlerTransport answers requests from a handler, without a network, so that
// time can be a test's own.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if req.Body == nil {
		req.Body = io.NopCloser(strings.NewReader(""))
	}
	h.ServeHTTP(w, req)
	return w.Result(), nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
