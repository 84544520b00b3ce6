package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/store/storetest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// What a task gave is bounded as the result of a call is.
func TestResultOfATaskIsBounded(t *testing.T) {
	toolstest.NothingLeft(t)
	eachEra(t, func(t *testing.T, stateless bool) {
		_, url := newServer(t, stateless)
		crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
		crib.shelf.keep("up_slow_compute")
		c := crib.client(t, "a/x", stateless, true)
		id, _ := c.begin(t, "up_slow_compute", `{"seconds":0}`)
		result, path := c.awaitStatus(t, id, "completed"), []string{"result"}
		if !stateless {
			result, path = c.must(t, "tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)), nil
			if text(result, "_meta", "io.modelcontextprotocol/related-task", "taskId") != id {
				t.Errorf("the result names another task: %s", result)
			}
		}
		content, _ := rawjson.Get(result, append(path, "content")...)
		if !strings.Contains(string(content), "9007199254740993") || !strings.Contains(string(content), "kept 1 blocks") {
			t.Errorf("the result: %s", result)
		}
		if raw, ok := rawjson.Get(result, append(path, "structuredContent")...); ok {
			t.Errorf("what is kept is shown: %s", raw)
		}
	})
}

// What a notification says that a task gave is bounded as the result of a call is.
func TestNoticeOfATaskIsBounded(t *testing.T) {
	toolstest.NothingLeft(t)
	_, url := newServer(t, true)
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
	crib.shelf.keep("up_confirm_delete")
	c := crib.client(t, "a/x", true, true)
	id, _ := c.begin(t, "up_confirm_delete", `{}`)
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	resp := c.post(t, ctx, "subscriptions/listen", fmt.Sprintf(`{"notifications":{"taskIds":[%q]}}`, id))
	messages(t, resp, func(m json.RawMessage) bool {
		switch text(m, "method") {
		case "notifications/subscriptions/acknowledged":
			c.must(t, "tasks/update", fmt.Sprintf(`{"taskId":%q,"inputResponses":{"confirm":{"action":"accept"}}}`, id))
		case "notifications/tasks":
			content, _ := rawjson.Get(m, "params", "result", "content")
			if text(m, "params", "taskId") != id || text(m, "params", "status") != "completed" || !strings.Contains(string(content), "kept 1 blocks") {
				t.Errorf("told: %s", m)
			}
			return true
		}
		return false
	})
}

// However often it is told what a task gave, that is stored once, and again when it is gone.
func TestResultOfATaskIsStoredOnce(t *testing.T) {
	toolstest.NothingLeft(t)
	eachEra(t, func(t *testing.T, stateless bool) {
		_, url := newServer(t, stateless)
		crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: url})
		clock := storetest.NewClock()
		records, err := sqlstore.OpenMemory(t.Context(), &sqlstore.Options{Now: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		bucket := memblob.OpenBucket(nil)
		t.Cleanup(func() { _ = errors.Join(bucket.Close(), records.Close()) })
		store := artifacts.New(bucket, records, &artifacts.Options{Now: clock.Now})
		crib.serve(t, &mcpserver.Options{Bounder: store.Bounder(&artifacts.Bounds{Threshold: 8}), Artifacts: store})
		c := crib.client(t, "a/x", stateless, true)
		id, _ := c.begin(t, "up_slow_compute", `{"seconds":0}`)
		c.awaitStatus(t, id, "completed")
		method := map[bool]string{true: "tasks/get", false: "tasks/result"}[stateless]
		told := func(objects int) string {
			t.Helper()
			answer := string(c.must(t, method, fmt.Sprintf(`{"taskId":%q}`, id)))
			page, _, err := bucket.ListPage(t.Context(), blob.FirstPageToken, 100, nil)
			if err != nil || len(page) != objects || !strings.Contains(answer, "artifact://art-") {
				t.Errorf("%d are kept, %v; told is %s", len(page), err, answer)
			}
			return answer
		}
		first := told(1)
		if again := told(1); again != first {
			t.Errorf("told first %s and then %s", first, again)
		}
		clock.Advance(8 * 24 * time.Hour)
		if anew := told(2); anew == first {
			t.Errorf("told of what is gone: %s", anew)
		}
	})
}
