package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

func ownerNamed(principal, tenant, user, session string) taskOwner {
	return taskOwner{principal, identity.Identity{TenantID: tenant, UserID: user, SessionID: session}}
}

func TestTaskNamesHoldForTheirOwner(t *testing.T) {
	s, owner := newTaskSeal(), ownerNamed("p", "t", "u", "s")
	for _, id := range []string{"1", "", "a:b:c", "日本語", strings.Repeat("x", 1000)} {
		name := s.name(owner, "up_tool", id)
		if tool, got, ok := s.open(owner, name); !ok || tool != "up_tool" || got != id {
			t.Errorf("%q opens as %q %q %t", name, tool, got, ok)
		}
		for _, other := range []taskOwner{ownerNamed("q", "t", "u", "s"), ownerNamed("p", "v", "u", "s"), ownerNamed("p", "t", "v", "s"),
			ownerNamed("p", "t", "u", "v"), ownerNamed("p", "tu", "", "s"), {}} {
			if _, _, ok := s.open(other, name); ok {
				t.Errorf("%q opens for %v", name, other)
			}
		}
		if _, _, ok := newTaskSeal().open(owner, name); ok {
			t.Errorf("%q opens in another process", name)
		}
	}
}

// No text opens that the seal has not made, and what opens is what was made.
func FuzzTaskName(f *testing.F) {
	s, owner := newTaskSeal(), ownerNamed("p", "t", "u", "s")
	f.Add(s.name(owner, "tool", "1"))
	f.Add("::")
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAA:tool:1")
	f.Fuzz(func(t *testing.T, name string) {
		if tool, id, ok := s.open(owner, name); ok && s.name(owner, tool, id) != name {
			t.Errorf("%q opens as %q %q", name, tool, id)
		}
	})
}

func TestTaskVoice(t *testing.T) {
	s, owner := newTaskSeal(), ownerNamed("p", "t", "u", "s")
	own := string(rawjson.Quote(s.name(owner, "tool", "1")))
	for said, want := range map[string]string{
		`{"taskId":"1","a":1.0}`:         `{"taskId":` + own + `,"a":1.0}`,
		`{"task":{"x":[],"taskId":"1"}}`: `{"task":{"x":[],"taskId":` + own + `}}`,
		`{"taskId":"2"}`:                 `{"taskId":"2"}`,
		`{"taskId":1}`:                   `{"taskId":1}`,
		`{"content":[{"taskId":"1"}]}`:   `{"content":[{"taskId":"1"}]}`,
		`[{"taskId":"1"}]`:               `[{"taskId":"1"}]`,
		`{"task":"1"}`:                   `{"task":"1"}`,
		`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"},"b":1}}`: `{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":` + own + `},"b":1}}`,
	} {
		voice := &taskVoice{seal: s, owner: owner, tool: "tool", id: "1"}
		if got := string(voice.say(json.RawMessage(said))); got != want {
			t.Errorf("%s: %s, want %s", said, got, want)
		}
		if got := string((*taskVoice)(nil).say(json.RawMessage(said))); got != said {
			t.Errorf("without a task %s becomes %s", said, got)
		}
	}
}

func TestListedTasksAreBounded(t *testing.T) {
	tasks := newTasks()
	a, b := ownerNamed("a", "t", "u", "s1"), ownerNamed("b", "t", "u", "s2")
	for range tasksOfOne + 10 {
		tasks.add(a, "tool", "1")
	}
	tasks.add(b, "tool", "1")
	if n := len(tasks.of[a]); n != tasksOfOne || tasks.count != tasksOfOne+1 || tasks.of[a][0].number != 11 {
		t.Errorf("%d of one and %d of all", n, tasks.count)
	}
	tasks.forgetSession("b", "s1") // somebody else's
	tasks.forgetSession("a", "s1")
	tasks.forget(b, tasks.of[b][0].number)
	if tasks.count != 0 || len(tasks.of) != 0 {
		t.Errorf("%d are left: %v", tasks.count, tasks.of)
	}
}
