package tasks

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// call answers tools/call: with a task where the tool has them and the caller wants one, in the words of the era.
func (s *server) call(m *message) (member, value string) {
	name := m.text("name")
	wants := m.raw("task") != nil
	if s.stateless {
		wants = s.declares(m)
	}
	switch name {
	case "greet":
		return "result", s.complete(`{"content":[{"type":"text","text":"Hello, ` + m.text("arguments", "name") + `!"}]}`)
	case "test_tool_with_task":
		if s.stateless && m.raw("inputResponses") == nil {
			return "result", `{"resultType":"input_required","inputRequests":{"user_name":` + question("who?") + `},"requestState":"s"}`
		}
	}
	required := name == "failing_job" || name == "test_tool_with_task"
	switch {
	case required && !wants && s.stateless:
		return "error", `{"code":-32021,"message":"missing capability","data":{"requiredCapabilities":{"extensions":{"` + extension + `":{}}}}}`
	case required && !wants:
		return "error", `{"code":-32601,"message":"only as a task"}`
	case !wants:
		return "result", s.complete(s.work(m))
	}
	return "result", s.begin(m, name)
}

// complete adds what the stateless era demands.
func (s *server) complete(result string) string {
	if s.stateless {
		return `{"resultType":"complete",` + result[1:]
	}
	return result
}

func question(text string) string {
	return fmt.Sprintf(`{"method":"elicitation/create","params":{"mode":"form","message":%q,"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`, text)
}

// work is what a tool gives in the end.
func (s *server) work(m *message) string {
	switch m.text("name") {
	case "failing_job":
		return `{"content":[{"type":"text","text":"it failed"}],"isError":true}`
	case "slow_compute":
		return `{"content":[{"type":"text","text":"computed"}],"structuredContent":{"sum":9007199254740993}}`
	}
	name, _ := rawjson.Get(m.Params, "inputResponses", "user_name", "content", "name")
	text, _ := rawjson.Unquote(name)
	return `{"content":[{"type":"text","text":"done ` + text + `"}]}`
}

// begin makes a task and sees to its end.
func (s *server) begin(m *message, name string) string {
	var seconds float64
	_ = json.Unmarshal(m.raw("arguments", "seconds"), &seconds) // none is zero
	s.mu.Lock()
	s.last++
	t := &task{session: m.session, id: fmt.Sprint(s.serial, s.last), status: "working", begun: time.Now(), done: make(chan struct{})}
	s.tasks[t.id] = t
	s.mu.Unlock()
	result := `,"result":` + s.work(m)
	t.end = func(t *task) { s.settle(t, "completed", result) }
	switch name {
	case "confirm_delete":
		s.ask(t, "confirm")
	case "multi_input":
		s.ask(t, "first", "second")
	case "protocol_error_job":
		time.AfterFunc(100*time.Millisecond, func() { s.settle(t, "failed", `,"error":{"code":-32603,"message":"it broke"}`) })
	case "failing_job":
		time.AfterFunc(200*time.Millisecond, func() { t.end(t) })
	default:
		time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() { t.end(t) })
	}
	if s.stateless {
		state := s.state(t, false)
		return `{"resultType":"task"` + state[len(`{"resultType":"complete"`):]
	}
	return `{"task":` + s.state(t, false) + `,"future":[1.0]}`
}

func (s *server) ask(t *task, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.asked = map[string]bool{}
	for _, key := range keys {
		t.asked[key] = true
	}
	t.await()
}

// await says what input is awaited. The caller holds the lock.
func (t *task) await() {
	t.status, t.fields = "input_required", `,"inputRequests":{`
	sep := ""
	for key := range t.asked {
		t.fields += sep + fmt.Sprintf("%q:%s", key, question(key+"?"))
		sep = ","
	}
	t.fields += "}"
}

func (s *server) update(t *task, responses json.RawMessage) {
	s.mu.Lock()
	open := len(t.asked)
	for it := rawjson.Object(responses); it.Next(); {
		delete(t.asked, it.Key())
	}
	left := len(t.asked)
	if open > 0 && left > 0 {
		t.await()
	}
	s.mu.Unlock()
	if open > 0 && left == 0 {
		t.end(t)
	}
}

// settle ends a task, once, and tells of it.
func (s *server) settle(t *task, status, fields string) {
	s.mu.Lock()
	select {
	case <-t.done:
		s.mu.Unlock()
		return
	default:
	}
	t.status, t.fields = status, fields
	close(t.done)
	streams := s.streams[t.id]
	s.mu.Unlock()
	state := s.state(t, s.stateless)
	for _, stream := range streams {
		stream <- state
	}
	if !s.stateless {
		s.notesOf(t.session) <- `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + state + `}`
	}
}
