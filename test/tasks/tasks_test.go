package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

func eachEra(t *testing.T, f func(t *testing.T, stateless bool)) {
	t.Helper()
	for name, stateless := range map[string]bool{"stateful": false, "stateless": true} {
		t.Run(name, func(t *testing.T) { f(t, stateless) })
	}
}

// A task begins, is asked for, and gives its result, in the server's own words but for its name.
func TestTaskEndsWithItsResult(t *testing.T) {
	toolstest.NothingLeft(t)
	eachEra(t, func(t *testing.T, stateless bool) {
		_, url := newServer(t, stateless)
		c := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url}).client(t, "a/x", stateless, true)
		id, state := c.begin(t, "up_slow_compute", `{"seconds":0.2}`)
		if got := text(state, "status"); got != "working" || !strings.Contains(string(state), `"future":9007199254740993`) {
			t.Errorf("it begins as %s", state)
		}
		state = c.awaitStatus(t, id, "completed")
		if got := text(state, "taskId"); got != id || !strings.Contains(string(state), `"future":9007199254740993`) {
			t.Errorf("it ends as %s", state)
		}
		result, path := state, []string{"result", "structuredContent", "sum"}
		if !stateless {
			path = path[1:]
			if result, _ = c.about(t, "tasks/result", id); text(result, "_meta", "io.modelcontextprotocol/related-task", "taskId") != id {
				t.Errorf("the result names another task: %s", result)
			}
		}
		if sum, _ := rawjson.Get(result, path...); string(sum) != "9007199254740993" {
			t.Errorf("the result: %s", result)
		}
	})
}

// A task that is begun through tool_call is that of the tool that runs.
func TestTaskBegunThroughAnotherTool(t *testing.T) {
	toolstest.NothingLeft(t)
	eachEra(t, func(t *testing.T, stateless bool) {
		_, url := newServer(t, stateless)
		crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
		if err := builtin.RegisterMeta(crib, nil, builtin.CallName); err != nil {
			t.Fatal(err)
		}
		c := crib.client(t, "a/x", stateless, true)
		id, _ := c.begin(t, builtin.CallName, `{"name":"up_slow_compute","args":{"seconds":0.2}}`)
		state := c.awaitStatus(t, id, "completed")
		if got := text(state, "taskId"); got != id {
			t.Errorf("it is called %s, then %s", id, got)
		}
		if stateless {
			return
		}
		if list := c.must(t, "tasks/list", `{}`); !strings.Contains(string(list), id) {
			t.Errorf("the list: %s", list)
		}
		if result := c.must(t, "tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)); text(result, "_meta", "io.modelcontextprotocol/related-task", "taskId") != id {
			t.Errorf("the result: %s", result)
		}
	})
}

// What is told of such a task has the name that the client was given.
func TestStatusOfATaskBegunThroughAnotherTool(t *testing.T) {
	toolstest.NothingLeft(t)
	_, url := newServer(t, false)
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
	if err := builtin.RegisterMeta(crib, nil, builtin.CallName); err != nil {
		t.Fatal(err)
	}
	c := crib.client(t, "a/x", false, true)
	resp, err := c.http.Do(c.request(t, bounded(t), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := c.begin(t, builtin.CallName, `{"name":"up_slow_compute","args":{"seconds":0.2}}`)
	messages(t, resp, func(m json.RawMessage) bool {
		if text(m, "method") != "notifications/tasks/status" {
			return false
		}
		if text(m, "params", "taskId") != id {
			t.Errorf("told: %s, of the task %s", m, id)
		}
		return true
	})
}

// A result that came through tool_call is bounded as one of the tool that ran.
func TestResultThroughAnotherToolIsThatOfTheTool(t *testing.T) {
	eachEra(t, func(t *testing.T, stateless bool) {
		_, url := newServer(t, stateless)
		crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
		if err := builtin.RegisterMeta(crib, nil, builtin.CallName); err != nil {
			t.Fatal(err)
		}
		crib.shelf.keep("up_slow_compute")
		c := crib.client(t, "a/x", stateless, false)
		result := c.must(t, "tools/call", `{"name":"tool_call","arguments":{"name":"up_slow_compute","args":{"seconds":0}}}`)
		if !strings.Contains(string(result), "kept 1 blocks") {
			t.Errorf("%s; bounded were results of %v", result, crib.shelf.asked)
		}
	})
}

// Up to 2025-11-25 a call asks for a task with an object.
func TestWishForATaskMustBeAnObject(t *testing.T) {
	_, url := newServer(t, false)
	c := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url}).client(t, "a/x", false, true)
	for _, wish := range []string{"5", "null", `"yes"`, "true", "[]"} {
		result, failure := c.ask(t, "tools/call", `{"name":"up_slow_compute","arguments":{"seconds":0},"task":`+wish+`}`)
		if result != nil || !strings.Contains(string(failure), "-32602") || !strings.Contains(string(failure), "must be an object") {
			t.Errorf("%s: %s %s", wish, result, failure)
		}
	}
}

// What a tool says about tasks stands in its definition, and what the endpoint can is announced.
func TestTasksAreAnnounced(t *testing.T) {
	_, url := newServer(t, true)
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
	c := crib.client(t, "a/x", true, true)
	if list := c.must(t, "tools/list", `{}`); !strings.Contains(string(list), `"execution":{"taskSupport":"optional","future":1}`) {
		t.Errorf("the list: %s", list)
	}
	if raw, ok := rawjson.Get(c.must(t, "server/discover", `{}`), "capabilities", "extensions", extension); !ok {
		t.Errorf("the extension: %s", raw)
	}
	old := crib.client(t, "a/x", false, false)
	resp := old.post(t, bounded(t), "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	resp.Body.Close()
	for method, params := range map[string]string{"tasks/result": `{"taskId":"x"}`, "tasks/list": `{}`} {
		if _, failure := c.ask(t, method, params); !strings.Contains(string(failure), "-32601") {
			t.Errorf("%s in the stateless era: %s", method, failure)
		}
	}
}

// A task is of no use to anybody else, who is told what is told of a task that does not exist.
func TestTaskOfSomebodyElse(t *testing.T) {
	toolstest.NothingLeft(t)
	eachEra(t, func(t *testing.T, stateless bool) {
		s, url := newServer(t, stateless)
		crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
		owner := crib.client(t, "a/x", stateless, true)
		id, _ := owner.begin(t, "up_slow_compute", `{"seconds":60}`)
		before := len(s.requests())
		others := map[string]*client{"another tenant": crib.client(t, "b/x", stateless, true), "another user": crib.client(t, "a/y", stateless, true)}
		if !stateless {
			others["another session"] = crib.client(t, "a/x", false, true)
		}
		methods := []string{"tasks/get", "tasks/cancel", map[bool]string{true: "tasks/update", false: "tasks/result"}[stateless]}
		for who, c := range others {
			for _, method := range methods {
				for _, name := range []string{id, "task-1", "x:up_slow_compute:task-1"} {
					result, failure := c.about(t, method, name)
					if want := fmt.Sprintf(`{"code":-32602,"message":"Unknown task: %s"}`, name); result != nil || string(failure) != want {
						t.Errorf("%s, %s of %s: %s %s", who, method, name, result, failure)
					}
				}
			}
		}
		if heard := s.requests(); len(heard) != before {
			t.Errorf("the server was asked: %v", heard[before:])
		}
		if _, failure := owner.about(t, "tasks/cancel", id); failure != nil {
			t.Errorf("its owner cancels it: %s", failure)
		}
		owner.awaitStatus(t, id, "cancelled")
	})
}

// Of the tasks that a server has for all its callers, each lists its own.
func TestListHasTheCallersTasks(t *testing.T) {
	s, url := newServer(t, false)
	_, second := newServer(t, false)
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url}, &mcptool.Config{Name: "other", URL: second})
	a, b := crib.client(t, "a/x", false, true), crib.client(t, "b/x", false, true)
	var want []string
	for i := range 30 {
		id, _ := a.begin(t, []string{"up_slow_compute", "other_slow_compute"}[i%2], `{"seconds":60}`)
		want = append(want, id)
		b.begin(t, "up_slow_compute", `{"seconds":60}`)
	}
	list := func(c *client) (ids []string) {
		params := `{}`
		for params != "" {
			page := c.must(t, "tasks/list", params)
			entries, _ := rawjson.Get(page, "tasks")
			for it := rawjson.Array(entries); it.Next(); {
				ids = append(ids, text(it.Value(), "taskId"))
			}
			params = ""
			if next := text(page, "nextCursor"); next != "" {
				params = fmt.Sprintf(`{"cursor":%q}`, next)
			}
		}
		return ids
	}
	if got := list(a); !slices.Equal(got, want) {
		t.Errorf("listed: %v, want %v", got, want)
	}
	s.mu.Lock()
	delete(s.tasks, "task-1")
	s.mu.Unlock()
	if got := list(a); !slices.Equal(got, want[1:]) {
		t.Errorf("listed when the server has forgotten one: %v", got)
	}
	if _, failure := a.ask(t, "tasks/list", `{"cursor":"x"}`); !strings.Contains(string(failure), "-32602") {
		t.Errorf("a cursor that is none: %s", failure)
	}
}

// Two servers whose tasks have the same names are told apart.
func TestTwoServersWithTheSameNames(t *testing.T) {
	eachEra(t, func(t *testing.T, stateless bool) {
		s, url := newServer(t, stateless)
		_, second := newServer(t, stateless)
		crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url}, &mcptool.Config{Name: "other", URL: second})
		c := crib.client(t, "a/x", stateless, true)
		one, _ := c.begin(t, "up_slow_compute", `{"seconds":60}`)
		two, _ := c.begin(t, "other_slow_compute", `{"seconds":0}`)
		c.awaitStatus(t, two, "completed")
		c.awaitStatus(t, one, "working")
		if heard := s.requests(); one == two || !slices.Contains(heard, "tasks/get task-1") {
			t.Errorf("%s, %s: %v", one, two, heard)
		}
	})
}

// A task whose tool the caller no longer sees is unknown.
func TestTaskOfAToolThatIsGone(t *testing.T) {
	_, url := newServer(t, true)
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
	c := crib.client(t, "a/x", true, true)
	id, _ := c.begin(t, "up_slow_compute", `{"seconds":60}`)
	if err := crib.Amend(func(tool *tools.Tool) {
		if tool.Name == "up_slow_compute" {
			tool.Tenants = []string{"b"}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if result, failure := c.about(t, "tasks/get", id); result != nil || !strings.Contains(string(failure), "Unknown task") {
		t.Errorf("%s %s", result, failure)
	}
}

// A client that does not know tasks is given results, and the server's own refusal where there are none.
func TestClientWithoutTasks(t *testing.T) {
	_, url := newServer(t, true)
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
	c := crib.client(t, "a/x", true, false)
	if result := c.must(t, "tools/call", `{"name":"up_slow_compute","arguments":{}}`); text(result, "resultType") != "complete" {
		t.Errorf("the result: %s", result)
	}
	if _, failure := c.ask(t, "tools/call", `{"name":"up_failing_job","arguments":{}}`); !strings.Contains(string(failure), "-32021") {
		t.Errorf("a tool that is always a task: %s", failure)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if _, failure := c.about(t, method, "x"); !strings.Contains(string(failure), "-32021") {
			t.Errorf("%s: %s", method, failure)
		}
	}
	if _, failure := c.ask(t, "subscriptions/listen", `{"notifications":{"taskIds":["x"]}}`); !strings.Contains(string(failure), "-32021") {
		t.Errorf("listening: %s", failure)
	}
}

type shouting struct{}

func (shouting) Redact(_ context.Context, _ *tools.Tool, r *tools.ToolResult) error {
	r.Wire, r.Content = nil, []tools.Content{tools.TextContent("REDACTED")}
	return nil
}

// Where results are redacted there are no tasks, whose results would not be.
func TestNoTasksWhereResultsAreRedacted(t *testing.T) {
	eachEra(t, func(t *testing.T, stateless bool) {
		s, url := newServer(t, stateless)
		crib := newCrib(t, tools.Stages{Redactor: shouting{}}, &mcptool.Config{Name: "up", URL: url})
		c := crib.client(t, "a/x", stateless, true)
		result := c.must(t, "tools/call", `{"name":"up_slow_compute","arguments":{},"task":{}}`)
		if !strings.Contains(string(result), "REDACTED") || len(s.tasks) != 0 {
			t.Errorf("%s, tasks: %v", result, s.tasks)
		}
	})
}

// A session hears how its tasks stand, and nobody else does.
func TestStatusOfATaskIsToldToItsSession(t *testing.T) {
	toolstest.NothingLeft(t)
	for _, session := range []mcptool.Session{mcptool.SessionShared, mcptool.SessionPerSession} {
		t.Run(string(session), func(t *testing.T) {
			_, url := newServer(t, false)
			crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url, Session: session})
			a, b := crib.client(t, "a/x", false, true), crib.client(t, "b/x", false, true)
			for _, c := range []*client{a, b} {
				resp, err := c.http.Do(c.request(t, bounded(t), http.MethodGet, ""))
				if err != nil {
					t.Fatal(err)
				}
				id, _ := c.begin(t, "up_slow_compute", `{"seconds":0.2}`)
				messages(t, resp, func(m json.RawMessage) bool {
					if text(m, "method") != "notifications/tasks/status" {
						return false
					}
					if text(m, "params", "taskId") != id || text(m, "params", "status") != "completed" {
						t.Errorf("told: %s", m)
					}
					return true
				})
			}
		})
	}
}

// Who listens to tasks hears of its own alone.
func TestStatusOfATaskIsToldToWhoListens(t *testing.T) {
	toolstest.NothingLeft(t)
	_, url := newServer(t, true)
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
	a, b := crib.client(t, "a/x", true, true), crib.client(t, "b/x", true, true)
	own, _ := a.begin(t, "up_confirm_delete", `{}`)
	others, _ := b.begin(t, "up_slow_compute", `{"seconds":60}`)
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	resp := a.post(t, ctx, "subscriptions/listen", fmt.Sprintf(`{"notifications":{"taskIds":[%q,%q,"x"]}}`, others, own))
	messages(t, resp, func(m json.RawMessage) bool {
		switch text(m, "method") {
		case "notifications/subscriptions/acknowledged":
			if ids, _ := rawjson.Get(m, "params", "notifications", "taskIds"); string(ids) != fmt.Sprintf("[%q]", own) {
				t.Errorf("granted: %s", m)
			}
			a.must(t, "tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":{"confirm":{"action":"accept"}}}`, own))
		case "notifications/tasks":
			if text(m, "params", "taskId") != own || text(m, "params", "status") != "completed" {
				t.Errorf("told: %s", m)
			}
			return true
		}
		return false
	})
}
