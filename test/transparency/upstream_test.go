package transparency

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// pageSize is how many entries a page of the upstream has.
const pageSize = 173

// A script is what the upstream says when it is asked next.
type script struct {
	notes  []note
	stream bool // answer with an event stream also without notes
	// member is "result" or "error".
	member, value string
}

// A note is a notification before the answer. In its params, {token} stands for the progress token.
type note struct{ method, level, params string }

// An upstream is an MCP server that says what its script says, byte for byte. It is written against the text of the
// protocol alone.
type upstream struct {
	stateless bool
	catalogue *catalogue

	mu       sync.Mutex
	sessions map[string]string // log levels
	script   *script
	received []json.RawMessage // params of what the script was asked
	faults   []string
}

func newUpstream(stateless bool, c *catalogue) *upstream {
	return &upstream{stateless: stateless, catalogue: c, sessions: map[string]string{}}
}

// play sets what is said next, and forgets what was received.
func (u *upstream) play(s *script) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script, u.received = s, nil
}

func (u *upstream) heard() []json.RawMessage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.received
}

func (u *upstream) report(t *testing.T) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, fault := range u.faults {
		t.Error("the upstream says: " + fault)
	}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (m *message) text(path ...string) string {
	raw, _ := rawjson.Get(m.Params, path...)
	text, _ := rawjson.Unquote(raw)
	return text
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m message
	if err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "initialize" && !u.stateless {
		w.Header().Set("Mcp-Session-Id", u.open())
	}
	u.answer(w, r.Header.Get("Mcp-Session-Id"), &m)
}

func (u *upstream) open() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	id := fmt.Sprint("session-", len(u.sessions))
	u.sessions[id] = "info"
	return id
}

const upstreamCapabilities = `"capabilities":{"tools":{},"resources":{},"prompts":{},"completions":{},"logging":{}}`

func (u *upstream) answer(w http.ResponseWriter, session string, m *message) {
	switch {
	case m.Method == "initialize" && !u.stateless:
		reply(w, m, "result", `{"protocolVersion":"2025-11-25",`+upstreamCapabilities+`,"serverInfo":{"name":"upstream","version":"1"}}`)
	case m.Method == "server/discover" && u.stateless:
		reply(w, m, "result", `{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private",`+upstreamCapabilities+`}`)
	case strings.HasSuffix(m.Method, "/list"):
		reply(w, m, "result", u.list(m))
	case m.Method == "logging/setLevel" && !u.stateless:
		u.setLevel(session, m.text("level"))
		reply(w, m, "result", `{}`)
	case m.Method == "ping" && !u.stateless:
		reply(w, m, "result", `{}`)
	case slices.Contains(scripted, m.Method):
		u.perform(w, session, m)
	default:
		reply(w, m, "error", `{"code":-32601,"message":"method not found"}`)
	}
}

// scripted are the methods that a script answers.
var scripted = []string{"tools/call", "resources/read", "prompts/get", "completion/complete"}

func reply(w http.ResponseWriter, m *message, member, value string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, envelope(m, member, value)) // who is gone does not read
}

func envelope(m *message, member, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`, m.ID, member, value)
}

func (u *upstream) list(m *message) string {
	for _, l := range listMembers {
		if l.method != m.Method {
			continue
		}
		entries, next := page(u.catalogue.list(m.Method), m.text("cursor"), pageSize)
		out := `{"` + l.member + `":` + entries
		if next != "" {
			out += fmt.Sprintf(`,"nextCursor":%q`, next)
		}
		if u.stateless {
			out += `,"resultType":"complete","ttlMs":3600000,"cacheScope":"public"`
		}
		return out + "}"
	}
	return "{}"
}

func (u *upstream) setLevel(session, level string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sessions[session] = level
}

// perform does what the script says.
func (u *upstream) perform(w http.ResponseWriter, session string, m *message) {
	u.mu.Lock()
	s := u.script
	level := u.sessions[session]
	u.received = append(u.received, m.Params)
	if s == nil {
		u.faults = append(u.faults, "asked outside of an exchange: "+m.Method)
	}
	u.mu.Unlock()
	if s == nil {
		reply(w, m, "error", `{"code":-32000,"message":"there is no script"}`)
		return
	}
	if u.stateless {
		level = m.text("_meta", "io.modelcontextprotocol/logLevel")
	}
	if len(s.notes) == 0 && !s.stream {
		reply(w, m, s.member, s.value)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	token, _ := rawjson.Get(m.Params, "_meta", "progressToken")
	for _, n := range s.notes {
		if n.wanted(token, level) {
			params := strings.ReplaceAll(n.params, "{token}", string(token))
			event(w, fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, n.method, params))
		}
	}
	event(w, envelope(m, s.member, s.value))
}

func (n *note) wanted(token json.RawMessage, level string) bool {
	switch n.method {
	case "notifications/progress":
		return token != nil
	case "notifications/message":
		return level != "" && slices.Index(levels, n.level) >= slices.Index(levels, level)
	}
	return true
}

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// event sends one event, each line of the message a line of data.
func event(w io.Writer, text string) {
	_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", strings.ReplaceAll(text, "\n", "\ndata: ")) // who is gone does not read
}
