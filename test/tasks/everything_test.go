//go:build peers

package tasks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// A task of the TypeScript SDK's server asks its caller while it runs, and gives its result.
func TestTaskOfTheEverythingServer(t *testing.T) {
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "npm", Session: mcptool.SessionPerSession,
		Command: []string{peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/server-everything/dist/index.js")}})
	c := crib.client(t, "a/x", false, true)
	id, _ := c.begin(t, "npm_simulate-research-query", `{"topic":"python","ambiguous":true}`)
	c.awaitStatus(t, id, "input_required")
	resp := c.post(t, bounded(t), "tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
	asked := false
	messages(t, resp, func(m json.RawMessage) bool {
		if text(m, "method") == "elicitation/create" {
			asked = true
			if related := text(m, "params", "_meta", "io.modelcontextprotocol/related-task", "taskId"); related != id {
				t.Errorf("the question is about the task %q: %s", related, m)
			}
			number, _ := rawjson.Get(m, "id")
			answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"interpretation":"snake"}}}`, number)
			resp, err := c.http.Do(c.request(t, bounded(t), http.MethodPost, answer))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return false
		}
		result, ok := rawjson.Get(m, "result")
		if ok && (!strings.Contains(string(result), "python (snake)") || text(result, "_meta", "io.modelcontextprotocol/related-task", "taskId") != id) {
			t.Errorf("the result: %s", result)
		}
		return ok
	})
	if !asked {
		t.Error("it was not asked")
	}
	c.awaitStatus(t, id, "completed")
}
