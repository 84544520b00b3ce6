package a2atool

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/tools"
)

// pollHandler is an agent without a stream whose task works for a while.
type pollHandler struct {
	until   time.Time
	asked   []time.Time
	broken  func(n int) bool // whether the nth question is answered by an error
	stopped chan string
}

func (h *pollHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	task := map[string]any{"id": "t1", "contextId": "c1", "status": map[string]any{"state": "TASK_STATE_WORKING"}}
	switch {
	case strings.HasSuffix(r.URL.Path, "agent-card.json"):
		card := testCard("https://agent.example/rest", "HTTP+JSON", "1.0")
		card.Capabilities.Streaming = false
		writeJSON(w, http.StatusOK, card)
	case strings.HasSuffix(r.URL.Path, "message:send"):
		writeJSON(w, http.StatusOK, map[string]any{"task": task})
	case strings.HasSuffix(r.URL.Path, ":cancel"):
		h.stopped <- r.URL.Path
		writeJSON(w, http.StatusOK, task)
	case strings.HasSuffix(r.URL.Path, "tasks/t1"):
		h.asked = append(h.asked, time.Now())
		if h.broken != nil && h.broken(len(h.asked)) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if time.Now().After(h.until) {
			task["status"] = map[string]any{"state": a2a.TaskStateCompleted, "message": map[string]any{
				"messageId": "m", "role": "ROLE_AGENT", "parts": []any{map[string]any{"text": "done"}}}}
		}
		writeJSON(w, http.StatusOK, task)
	default:
		http.NotFound(w, r)
	}
}

// inFakeTime runs a test against h on a clock of its own.
func inFakeTime(t *testing.T, h *pollHandler, f func(t *testing.T, invoke tools.Invoker)) {
	synctest.Test(t, func(t *testing.T) {
		h.stopped = make(chan string, 1)
		p, err := New(Config{Name: "test", URL: "https://agent.example", CardTTL: -1,
			Wrap: func(http.RoundTripper) http.RoundTripper { return handlerTransport{h} }})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close(context.Background())
		list, err := p.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f(t, list[0].Invoke)
	})
}

func TestPollingBacksOff(t *testing.T) {
	h := &pollHandler{}
	inFakeTime(t, h, func(t *testing.T, invoke tools.Invoker) {
		h.until = time.Now().Add(10 * time.Minute)
		r, err := invoke(t.Context(), say("x"))
		if err != nil || r.Text() != "done" {
			t.Fatalf("%v %v", r, err)
		}
		if n := len(h.asked); n < 100 || n > 140 {
			t.Errorf("asked %d times in 10 minutes", n)
		}
		if first, last := h.asked[1].Sub(h.asked[0]), h.asked[len(h.asked)-1].Sub(h.asked[len(h.asked)-2]); first > 100*time.Millisecond || last != longestPoll {
			t.Errorf("pauses from %v to %v", first, last)
		}
	})
}

func TestPollingSurvivesFaults(t *testing.T) {
	h := &pollHandler{broken: func(n int) bool { return n%4 != 0 }}
	inFakeTime(t, h, func(t *testing.T, invoke tools.Invoker) {
		h.until = time.Now().Add(time.Minute)
		if r, err := invoke(t.Context(), say("x")); err != nil || r.Text() != "done" {
			t.Errorf("%v %v", r, err)
		}
	})
}

// When the agent can no longer be asked, nobody knows what became of the task.
func TestPollingGivesUp(t *testing.T) {
	h := &pollHandler{broken: func(int) bool { return true }}
	inFakeTime(t, h, func(t *testing.T, invoke tools.Invoker) {
		_, err := invoke(t.Context(), say("x"))
		var te *tools.Error
		if !errors.As(err, &te) || te.Class != tools.ErrClass5xx || te.Delivery != tools.DeliveryUnknown || len(h.asked) != maxMisses+1 {
			t.Errorf("%v after %d questions", err, len(h.asked))
		}
	})
}

func TestDeadlineWhilePolling(t *testing.T) {
	h := &pollHandler{}
	inFakeTime(t, h, func(t *testing.T, invoke tools.Invoker) {
		h.until = time.Now().Add(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		began := time.Now()
		_, err := invoke(ctx, say("x"))
		var te *tools.Error
		if !errors.As(err, &te) || !errors.Is(err, context.DeadlineExceeded) || te.Delivery != tools.DeliveryUnknown {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		if path := <-h.stopped; path != "/rest/tasks/t1:cancel" {
			t.Errorf("cancelled %s", path)
		}
	})
}
