package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An odd is a server that does what a good one does not. It is written against the protocol's text, and served over a
// child's pipes or over HTTP.
type odd struct {
	// report tells the test what happens.
	report func(format string, args ...any)
	// tools are what this server offers beside what all do.
	tools map[string]func(s *odd, m *message, reply func(string))

	mu      sync.Mutex
	waiting map[string]func(string) // calls of "wait" by id
	extra   int                     // tools beside the fixed ones
	deaf    bool
}

type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Arguments json.RawMessage
		RequestID json.RawMessage
		Meta      struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
	// out writes a line to whoever sent the message, where that matters.
	out func(line string)
}

func newOdd(report func(string, ...any)) *odd {
	return &odd{report: report, waiting: map[string]func(string){}}
}

// handle takes a message and calls reply once with the answer; for a notification, with nothing.
func (s *odd) handle(m *message, reply func(string)) {
	switch m.Method {
	case "initialize":
		s.report("initialize")
		reply(result(m, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"}}`))
	case "notifications/cancelled":
		s.cancel(string(m.Params.RequestID))
		reply("")
	case "ping":
		s.report("ping")
		if s.isDeaf() {
			reply("")
			return
		}
		reply(result(m, `{}`))
	case "tools/list":
		reply(result(m, s.list()))
	case "tools/call":
		s.report("call %s", m.Params.Name)
		s.call(m, reply)
	default:
		if m.ID == nil {
			reply("")
			return
		}
		reply(failure(m, -32601, "no such method"))
	}
}

func result(m *message, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, value)
}

func failure(m *message, code int, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

func text(m *message, s string) string {
	b, _ := json.Marshal(s) // a text always encodes
	return result(m, `{"content":[{"type":"text","text":`+string(b)+`}]}`)
}

func (s *odd) isDeaf() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaf
}

func (s *odd) cancel(id string) {
	s.mu.Lock()
	_, known := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	if known {
		s.report("cancelled")
	}
}

// release answers every call of "wait".
func (s *odd) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, answer := range s.waiting {
		answer("released")
		delete(s.waiting, id)
	}
}

func (s *odd) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{"echo", "wait", "late", "big", "notes", "deafen"}
	for name := range s.tools {
		names = append(names, name)
	}
	for i := range s.extra {
		names = append(names, fmt.Sprintf("extra%d", i))
	}
	list := make([]string, 0, len(names)+1)
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	list = append(list, `{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	return `{"tools":[` + strings.Join(list, ",") + `]}`
}

func (s *odd) grow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extra++
}

func (s *odd) call(m *message, reply func(string)) {
	var args struct{ N, MS int }
	_ = json.Unmarshal(m.Params.Arguments, &args) // what is missing is zero
	switch m.Params.Name {
	case "echo":
		reply(text(m, string(m.Params.Arguments)))
	case "wait": // until it is released or cancelled
		s.mu.Lock()
		s.waiting[string(m.ID)] = func(t string) { reply(text(m, t)) }
		s.mu.Unlock()
		s.report("waiting")
	case "late":
		time.AfterFunc(time.Duration(args.MS)*time.Millisecond, func() {
			reply(text(m, "late"))
			s.report("answered")
		})
	case "big":
		reply(result(m, `{"content":[{"type":"text","text":"`+strings.Repeat("x", args.N)+`"}]}`))
	case "notes":
		for i := range args.N {
			m.out(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`,
				m.Params.Meta.ProgressToken, i+1))
		}
		reply(text(m, strconv.Itoa(args.N)))
	case "deafen":
		s.mu.Lock()
		s.deaf = true
		s.mu.Unlock()
		reply(text(m, "what?"))
	default:
		s.special(m, reply)
	}
}

func (s *odd) special(m *message, reply func(string)) {
	if run := s.tools[m.Params.Name]; run != nil {
		run(s, m, reply)
		return
	}
	reply(text(m, strconv.Itoa(os.Getpid())))
}
