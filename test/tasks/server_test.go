package tasks

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// A server runs tasks, in one of the eras. It is written against the text of the protocol and of its extension alone. Its
// names of tasks are numbers, so that whoever can use another's name does.
type server struct {
	stateless bool
	// serial starts a task's name; two servers with the same use the same names.
	serial string
	stop   chan struct{}

	mu       sync.Mutex
	last     int
	sessions int
	tasks    map[string]*task
	heard    []string                 // method and task id of each request about a task
	streams  map[string][]chan string // of subscriptions, by task id
	notes    map[string]chan string   // of the sessions' own streams
}

// A task is what the server keeps of one.
type task struct {
	id, status, session string
	// fields are those of the state beside: result, error or inputRequests.
	fields string
	asked  map[string]bool // keys of input that is awaited
	begun  time.Time
	done   chan struct{}
	end    func(t *task)
}

func newServer(t testing.TB, stateless bool) (s *server, url string) {
	t.Helper()
	s = &server{stateless: stateless, serial: "task-", stop: make(chan struct{}), tasks: map[string]*task{},
		streams: map[string][]chan string{}, notes: map[string]chan string{}}
	web := toolstest.NewHTTPServer(t, func() (http.Handler, func()) { return s, nil })
	t.Cleanup(func() { close(s.stop) })
	return s, web.URL + "/mcp"
}

type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage

	session string
}

func (m *message) raw(path ...string) json.RawMessage {
	v, _ := rawjson.Get(m.Params, path...)
	return v
}

func (m *message) text(path ...string) string {
	s, _ := rawjson.Unquote(m.raw(path...))
	return s
}

const extension = "io.modelcontextprotocol/tasks"

func (s *server) declares(m *message) bool {
	return m.raw("_meta", "io.modelcontextprotocol/clientCapabilities", "extensions", extension) != nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && !s.stateless {
		s.stream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m message
	if r.Method != http.MethodPost || err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if name := m.text("taskId"); s.stateless && name != "" && r.Header.Get("Mcp-Name") != name {
		reply(w, &m, "error", `{"code":-32020,"message":"header mismatch"}`)
		return
	}
	if m.Method == "subscriptions/listen" {
		s.listen(w, r, &m)
		return
	}
	m.session = r.Header.Get("Mcp-Session-Id")
	if m.Method == "initialize" {
		s.mu.Lock()
		s.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("session-", s.sessions))
		s.mu.Unlock()
	}
	member, value := s.answer(r, &m)
	reply(w, &m, member, value)
}

func reply(w http.ResponseWriter, m *message, member, value string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"%s":%s}`, m.ID, member, value) // who is gone does not read
}

// stream is the stream of a session, on which it hears how tasks stand.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.(http.Flusher).Flush()
	notes := s.notesOf(r.Header.Get("Mcp-Session-Id"))
	for {
		select {
		case note := <-notes:
			fmt.Fprintf(w, "data: %s\n\n", note)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		case <-s.stop:
			return
		}
	}
}

func (s *server) notesOf(session string) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes[session] == nil {
		s.notes[session] = make(chan string, 64)
	}
	return s.notes[session]
}

// listen is a subscription of the stateless era to tasks.
func (s *server) listen(w http.ResponseWriter, r *http.Request, m *message) {
	ids := m.raw("notifications", "taskIds")
	if ids != nil && !s.declares(m) {
		reply(w, m, "error", `{"code":-32021,"message":"missing capability"}`)
		return
	}
	notes := make(chan string, 64)
	var list []string
	_ = json.Unmarshal(ids, &list)
	s.mu.Lock()
	for _, id := range list {
		s.streams[id] = append(s.streams[id], notes)
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(method, params string) {
		params = `{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(m.ID) + `},` + strings.TrimPrefix(params, "{")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":%s}\n\n", method, params)
		w.(http.Flusher).Flush()
	}
	granted, _ := json.Marshal(list)
	send("notifications/subscriptions/acknowledged", `{"notifications":{"taskIds":`+string(granted)+`}}`)
	for {
		select {
		case state := <-notes:
			send("notifications/tasks", state)
		case <-r.Context().Done():
			return
		case <-s.stop:
			return
		}
	}
}

const serverTools = `{"tools":[` +
	`{"name":"greet","inputSchema":{"type":"object"}},` +
	`{"name":"slow_compute","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["sum"]},"execution":{"taskSupport":"optional","future":1}},` +
	`{"name":"failing_job","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},` +
	`{"name":"protocol_error_job","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},` +
	`{"name":"confirm_delete","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},` +
	`{"name":"multi_input","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},` +
	`{"name":"test_tool_with_task","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]`

func (s *server) answer(r *http.Request, m *message) (member, value string) {
	switch {
	case m.Method == "initialize" && !s.stateless:
		return "result", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}`
	case m.Method == "server/discover" && s.stateless:
		return "result", `{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private","capabilities":{"tools":{},"extensions":{"` + extension + `":{}}}}`
	case m.Method == "tools/list" && s.stateless:
		return "result", serverTools + `,"resultType":"complete","ttlMs":3600000,"cacheScope":"public"}`
	case m.Method == "tools/list":
		return "result", serverTools + "}"
	case m.Method == "tools/call":
		return s.call(m)
	case m.Method == "tasks/list" && !s.stateless:
		return "result", s.list()
	case strings.HasPrefix(m.Method, "tasks/"):
		return s.about(r, m)
	}
	return "error", `{"code":-32601,"message":"method not found"}`
}

const unknown = `{"code":-32602,"message":"no such task"}`

// about answers a request about one task.
func (s *server) about(r *http.Request, m *message) (member, value string) {
	if s.stateless && !s.declares(m) {
		return "error", `{"code":-32021,"message":"missing capability"}`
	}
	id := m.text("taskId")
	s.mu.Lock()
	s.heard = append(s.heard, m.Method+" "+id)
	t := s.tasks[id]
	s.mu.Unlock()
	if t == nil {
		return "error", unknown
	}
	switch m.Method {
	case "tasks/get":
		return "result", s.state(t, s.stateless)
	case "tasks/cancel":
		s.settle(t, "cancelled", "")
		if s.stateless {
			return "result", `{"resultType":"complete"}`
		}
		return "result", s.state(t, false)
	case "tasks/update":
		s.update(t, m.raw("inputResponses"))
		return "result", `{"resultType":"complete"}`
	case "tasks/result":
		return s.result(r, t)
	}
	return "error", `{"code":-32601,"message":"method not found"}`
}

// result waits for the end of a task.
func (s *server) result(r *http.Request, t *task) (member, value string) {
	select {
	case <-t.done:
	case <-r.Context().Done():
	case <-s.stop:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := strings.CutPrefix(t.fields, `,"result":`)
	if !ok {
		return "error", `{"code":-32000,"message":"it was cancelled"}`
	}
	return "result", strings.TrimSuffix(raw, "}") + `,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + t.id + `"}}}`
}

// state is a task as it is told; whole also tells what it gave.
func (s *server) state(t *task, whole bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ttl, more := `"ttl":60000,"pollInterval":50`, ""
	if s.stateless {
		ttl, more = `"ttlMs":60000,"pollIntervalMs":50`, `"resultType":"complete",`
	}
	at := t.begun.UTC().Format(time.RFC3339)
	out := fmt.Sprintf(`{%s"taskId":%q,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,%s,"future":9007199254740993`, more, t.id, t.status, at, at, ttl)
	if whole {
		out += t.fields
	}
	return out + "}"
}

func (s *server) list() string {
	s.mu.Lock()
	var all []*task
	for _, t := range s.tasks {
		all = append(all, t)
	}
	s.mu.Unlock()
	var out []string
	for _, t := range all {
		out = append(out, s.state(t, false))
	}
	return `{"tasks":[` + strings.Join(out, ",") + `]}`
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}
