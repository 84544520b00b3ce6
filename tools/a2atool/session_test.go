package a2atool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

func TestConversationGoesOn(t *testing.T) {
	each(t, func(t *testing.T, s *agentServer, cat tools.LiveCatalog) {
		ctx := caller(t, "a", "s1", nil)
		first := call(t, ctx, cat, say("echo 1")).Meta[metaContext]
		second := call(t, ctx, cat, say("echo 2"))
		if second.Meta[metaContext] != first || s.received()[1].ContextID != first {
			t.Errorf("the second call left the conversation %v: %v", first, second.Meta)
		}
		if s.received()[1].TaskID != "" {
			t.Error("the second call goes on with a task that has ended")
		}
		other := call(t, ctx, cat, json.RawMessage(`{"message":"echo 3","context_id":"new"}`)).Meta[metaContext]
		if other == first {
			t.Error("no new conversation began")
		}
		back := call(t, ctx, cat, json.RawMessage(fmt.Sprintf(`{"message":"echo 4","context_id":%q}`, first))).Meta[metaContext]
		if back != first {
			t.Errorf("went back to %v, not %v", back, first)
		}
	})
}

func TestSessionsShareNothing(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	cat := catalogOf(t, open(t, local(s.URL)))
	var wait sync.WaitGroup
	contexts := make([]map[any]bool, 12)
	for i := range contexts {
		contexts[i] = map[any]bool{}
		ctx := caller(t, fmt.Sprintf("tenant%d", i%4), fmt.Sprintf("s%d", i/4), nil)
		wait.Go(func() {
			for range 10 {
				r, err := tools.Invoke(ctx, cat, "test_act", say("echo x"))
				if err != nil {
					t.Error(err)
					return
				}
				contexts[i][r.Meta[metaContext]] = true
			}
		})
	}
	wait.Wait()
	owner := map[any]int{}
	for i, own := range contexts {
		if len(own) != 1 {
			t.Errorf("caller %d had the conversations %v", i, own)
		}
		for id := range own {
			if o, taken := owner[id]; taken {
				t.Errorf("callers %d and %d shared %v", o, i, id)
			}
			owner[id] = i
		}
	}
	for id, i := range owner {
		ctx := caller(t, fmt.Sprintf("tenant%d", (i+1)%4), fmt.Sprintf("s%d", i/4), nil)
		_, err := tools.Invoke(ctx, cat, "test_act", json.RawMessage(fmt.Sprintf(`{"message":"echo x","context_id":%q}`, id)))
		if !errors.Is(err, tools.ErrToolInvalidArgs) {
			t.Errorf("another tenant reached %v: %v", id, err)
		}
	}
}

// A caller whose identity is not complete has no conversation, and names the
// context itself.
func TestCallerWithoutSession(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	p := open(t, local(s.URL))
	cat := catalogOf(t, p)
	for range 2 {
		call(t, t.Context(), cat, say("echo x"))
	}
	call(t, identity.With(t.Context(), identity.Identity{TenantID: "a"}), cat, json.RawMessage(`{"message":"echo x","context_id":"mine"}`))
	got := s.received()
	if got[0].ContextID != "" || got[1].ContextID != "" || got[2].ContextID != "mine" {
		t.Errorf("contexts %q %q %q", got[0].ContextID, got[1].ContextID, got[2].ContextID)
	}
	if p.Status().Sessions != 0 {
		t.Errorf("%d sessions are kept", p.Status().Sessions)
	}
}

// An agent that has forgotten the task that waited is told the message anew.
func TestForgottenTask(t *testing.T) {
	s := serveAgent(t, "JSONRPC 1.0", nil)
	p := open(t, local(s.URL))
	cat := catalogOf(t, p)
	ctx := caller(t, "a", "s1", nil)
	r := call(t, ctx, cat, say("echo x"))
	p.memory.end(ctx, thread{context: r.Meta[metaContext].(string), task: "gone"})
	if r := call(t, ctx, cat, say("echo again")); r.Text() != "echo: again" {
		t.Errorf("got %+v", r)
	}
}

// A conversation that the agent no longer knows does not stand in the way of the
// next call.
func TestForgottenConversation(t *testing.T) {
	var sent []string
	p, _ := faulty(t, "JSONRPC 1.0", false, func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Params struct{ Message a2a.Message }
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		id := req.Params.Message.ContextID
		sent = append(sent, id)
		if id != "" {
			writeJSON(w, 200, map[string]any{"jsonrpc": "2.0", "id": "1", "error": map[string]any{"code": -32602, "message": "unknown context"}})
			return
		}
		writeJSON(w, 200, map[string]any{"jsonrpc": "2.0", "id": "1", "result": map[string]any{"message": map[string]any{
			"messageId": "m", "contextId": "c1", "role": "ROLE_AGENT", "parts": []any{map[string]any{"text": "hi"}}}}})
	})
	cat := catalogOf(t, p)
	ctx := caller(t, "a", "s", nil)
	call(t, ctx, cat, say("one"))
	if _, err := tools.Invoke(ctx, cat, "test_act", say("two")); !errors.Is(err, a2a.ErrInvalidParams) {
		t.Errorf("got %v", err)
	}
	call(t, ctx, cat, say("three"))
	if !slices.Equal(sent, []string{"", "c1", ""}) {
		t.Errorf("the contexts were %q", sent)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemory(3)
		latest := map[string]string{}
		for i := range rapid.IntRange(1, 200).Draw(rt, "calls") {
			tenant := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "tenant")
			ctx := caller(t, tenant, "s", nil)
			begun, err := m.begin(ctx, "")
			if err != nil {
				rt.Fatal(err)
			}
			if begun.context != "" && begun.context != latest[tenant] {
				rt.Fatalf("tenant %s was given %q, not %q", tenant, begun.context, latest[tenant])
			}
			id := fmt.Sprintf("%s-%d", tenant, i)
			m.end(ctx, thread{context: id, task: a2a.TaskID(id)})
			latest[tenant] = id
			if m.len() > 3 || m.recent.Len() != m.len() || len(m.touch(sessionKey{tenant, "u", "s"}).threads) > maxContexts {
				rt.Fatalf("%d sessions, %d in order", m.len(), m.recent.Len())
			}
		}
	})
}

func TestHugeIDsAreNotRemembered(t *testing.T) {
	m, ctx, huge := newMemory(9), caller(t, "a", "s", nil), strings.Repeat("x", maxID+1)
	m.end(ctx, thread{context: huge})
	m.end(ctx, thread{context: "c", task: a2a.TaskID(huge)})
	if got, err := m.begin(ctx, ""); err != nil || got != (thread{context: "c"}) {
		t.Errorf("got %+v %v", got, err)
	}
}

// A task that waits is answered by one call only.
func TestWaitingTaskIsHandedOnce(t *testing.T) {
	m, ctx := newMemory(9), caller(t, "a", "s", nil)
	m.end(ctx, thread{context: "c", task: "t"})
	first, _ := m.begin(ctx, "")
	second, _ := m.begin(ctx, "c")
	if first.task != "t" || second.task != "" || second.context != "c" {
		t.Errorf("got %+v and %+v", first, second)
	}
}
