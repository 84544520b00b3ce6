package mcptool

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// A rawServer is a server written against the protocol's text alone: it says
// what no library would let it say. It serves a child's pipes, a pair of pipes
// in this process, and, one message at a time, an HTTP endpoint.
type rawServer struct {
	mode string

	mu        sync.Mutex
	out       io.Writer
	hanging   map[string]bool // ids of calls that are never answered
	cancelled chan string
	extra     int // tools beside the fixed ones
	deaf      bool
	called    int
	inits     int
	meta      json.RawMessage // of the last call
}

func newRawServer(mode string, out io.Writer) *rawServer {
	if dir := os.Getenv("STARTED"); dir != "" {
		f, err := os.OpenFile(dir, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, os.Getpid())
			f.Close()
		}
	}
	return &rawServer{mode: mode, out: out, hanging: map[string]bool{}, cancelled: make(chan string, 16)}
}

type rawMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Arguments json.RawMessage
		Cursor    string
		RequestID json.RawMessage
		Meta      json.RawMessage `json:"_meta"`
	}
}

// serve answers messages until the input ends.
func (s *rawServer) serve(in io.Reader) int {
	switch s.mode {
	case "talkative":
		fmt.Fprintln(os.Stderr, "token is", os.Getenv("API_TOKEN"))
		for i := range 5000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
	case "broken":
		fmt.Fprintln(os.Stderr, "API_TOKEN is not valid:", os.Getenv("API_TOKEN"))
		return 3
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "noisy":
		s.write("Listening on stdio!\n\n\x1b[32mready\x1b[0m\n")
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			go s.handle(line)
		}
		if err != nil {
			if s.mode == "stubborn" {
				select {}
			}
			return 0
		}
	}
}

func (s *rawServer) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.WriteString(s.out, text)
}

func (s *rawServer) handle(line []byte) {
	var m rawMessage
	if err := json.Unmarshal(line, &m); err != nil {
		fmt.Fprintln(os.Stderr, "not JSON-RPC:", err)
		return
	}
	if answer := s.answer(&m); answer != "" {
		s.write(answer + "\n")
	}
}

// answer returns the answer to a message, or "" for none.
func (s *rawServer) answer(m *rawMessage) string {
	s.mu.Lock()
	deaf := s.deaf
	s.mu.Unlock()
	switch {
	case m.Method == "notifications/cancelled":
		s.cancel(string(m.Params.RequestID))
		return ""
	case m.ID == nil || deaf:
		return ""
	}
	member, value := "result", ""
	switch m.Method {
	case "initialize":
		s.count(&s.inits)
		if s.mode == "mute" {
			return ""
		}
		value = `{"protocolVersion":"` + s.version() + `","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"` + s.name() + `","version":"1"},"instructions":"be odd"}`
	case "ping":
		value = `{}`
	case "tools/list":
		value = s.list(m.Params.Cursor)
	case "tools/call":
		s.mu.Lock()
		s.called++
		s.meta = m.Params.Meta
		s.mu.Unlock()
		member, value = s.call(m)
	case "server/discover":
		if s.mode == "silent" {
			return ""
		}
		fallthrough
	default:
		member, value = "error", `{"code":-32601,"message":"no such method"}`
	}
	if value == "" {
		return ""
	}
	if s.mode == "long" { // the id comes last
		return fmt.Sprintf(`{"%s":%s,"id":%s,"jsonrpc":"2.0"}`, member, value, m.ID)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`, m.ID, member, value)
}

func (s *rawServer) name() string {
	if s.mode == "leaky" {
		return os.Getenv("API_TOKEN")
	}
	return "raw"
}

// crowd writes n tools.
func crowd(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"t%d"}`, i)
	}
	return strings.Join(list, ",")
}

func (s *rawServer) version() string {
	if s.mode == "newer" {
		return "2025-11-25"
	}
	return "2025-06-18"
}

func (s *rawServer) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

func (s *rawServer) counts() (inits, called int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inits, s.called
}

func (s *rawServer) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hanging[id] {
		s.cancelled <- id
	}
}

func (s *rawServer) list(cursor string) string {
	switch s.mode {
	case "circle": // a, b, a, …
		next := map[string]string{"": "a", "a": "b", "b": "a"}[cursor]
		return fmt.Sprintf(`{"tools":[{"name":"page%s","inputSchema":{"type":"object"}}],"nextCursor":%q}`, cursor, next)
	case "endless":
		n, _ := strconv.Atoi(cursor)
		return fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, n, n+1)
	case "same": // ignores the cursor, and makes a new one each time
		return fmt.Sprintf(`{"tools":[{"name":"only","inputSchema":{"type":"object"}}],"nextCursor":"%sx"}`, cursor)
	case "crowd":
		return `{"tools":[` + crowd(20_000) + `]}`
	case "leaky":
		name := os.Getenv("API_TOKEN")
		return fmt.Sprintf(`{"tools":[{"name":%q},{"name":%q}]}`, name, name)
	case "ttl":
		return `{"tools":[],"ttlMs":30000}`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{"say", "echo", "fail", "big", "crash", "hang", "cancelled", "count", "noise", "env", "pid", "grow", "deafen"}
	if s.mode == "long" {
		names = append(names, "garble", "cut")
	}
	for i := range s.extra {
		names = append(names, fmt.Sprintf("extra%d", i))
	}
	for i, n := range names {
		names[i] = fmt.Sprintf(`{"name":%q}`, n)
	}
	return `{"tools":[` + strings.Join(names, ",") + `]}`
}

// call returns the member of the answer, and its value; an empty value is none.
func (s *rawServer) call(m *rawMessage) (member, value string) {
	var args struct {
		Result, Error json.RawMessage
		N             int
	}
	json.Unmarshal(m.Params.Arguments, &args)
	switch m.Params.Name {
	case "say": // what it was given to say, byte for byte
		return "result", string(args.Result)
	case "fail":
		return "error", string(args.Error)
	case "echo": // its arguments, as they came
		return text(string(m.Params.Arguments))
	case "big":
		return "result", `{"content":[{"type":"text","text":"` + strings.Repeat("x", args.N) + `"}]}`
	case "garble": // what is no JSON at its very end
		return "result", `{"content":[{"type":"text","text":"` + strings.Repeat("x", args.N) + `\q"}]}`
	case "cut": // an answer that breaks off
		s.write(`{"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", args.N))
		os.Exit(3)
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of luck")
		os.Exit(3)
	case "hang":
		s.mu.Lock()
		s.hanging[string(m.ID)] = true
		s.mu.Unlock()
		s.progress(m, 1)
		return "", ""
	case "cancelled": // waits for a cancellation of a hanging call
		return text(<-s.cancelled)
	case "count":
		for i := range args.N {
			s.progress(m, i+1)
		}
		return text("done")
	case "noise":
		s.write("console.log(debug)\n{\"not\":\"a message\"}\n[1,2\n\n")
		return text("quiet again")
	case "env":
		return text(strings.Join(os.Environ(), "\n"))
	case "pid":
		return text(strconv.Itoa(os.Getpid()))
	case "grow": // adds n tools, and says so each time
		for range args.N {
			s.count(&s.extra)
			s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
		}
		return text("grown")
	case "deafen":
		s.mu.Lock()
		s.deaf = true
		s.mu.Unlock()
		return text("what?")
	}
	return "error", `{"code":-32602,"message":"unknown tool"}`
}

func text(s string) (member, value string) {
	b, _ := json.Marshal(s)
	return "result", `{"content":[{"type":"text","text":` + string(b) + `}]}`
}

func (s *rawServer) progress(m *rawMessage, n int) {
	var meta struct{ ProgressToken json.RawMessage }
	json.Unmarshal(m.Params.Meta, &meta)
	if meta.ProgressToken != nil {
		s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":9,"message":"step %d","x":9007199254740993}}`+"\n",
			meta.ProgressToken, n, n))
	}
}
