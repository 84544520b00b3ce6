package registry

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

// A call that another process ends gets its result here too, whoever sent it.
func TestEndedElsewhere(t *testing.T) {
	result := func(w *world, c *call) {
		if err := c.finish(t.Context(), &w.r.ledger, &ToolResultMessage{ToolUseID: c.id, ResultJSON: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]func(w *world, there *call) *call{
		"one that was asked for in both": func(w *world, there *call) *call {
			c := accepted(there.id, "digest")
			c.again, c.waiters = true, 1
			c.keep(t.Context(), &w.r.ledger)
			return c
		},
		"one that was taken up": func(w *world, there *call) *call {
			c, err := w.r.find(t.Context(), "acme", there.id)
			if err != nil {
				t.Fatal(err)
			}
			c.seen.Store(time.Now().Add(-unseen).UnixNano())
			return c
		},
	} {
		w := newWorld(nil, memory(t))
		there := accepted("one", "digest")
		w.runs(t, there, "w1")
		c := test(w, there)
		w.r.calls["one"] = c
		c.sending()
		result(w, there)
		w.r.tend(t.Context())
		if !c.over() || string(c.result.ResultJSON) != `1` {
			t.Errorf("%s: it is over: %v, with %s", name, c.over(), c.result.ResultJSON)
		}
		if known := w.r.known("one") != nil; known != (c.waiters > 0) {
			t.Errorf("%s: it is known: %v", name, known)
		}
	}
}

// Whoever waits no longer gets the result that another process has recorded.
func TestLeavesWithTheResult(t *testing.T) {
	w := newWorld(nil, memory(t))
	w.r.ctx = t.Context()
	c := w.elsewhere(t, "one", func(there *call) {
		w.runs(t, there, "w1")
		if err := there.finish(t.Context(), &w.r.ledger, &ToolResultMessage{ToolUseID: "one", ResultJSON: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if res, err := w.r.await(ctx, c, nil); err != nil || string(res.Structured) != `1` {
		t.Errorf("the caller has %s, %v", res.Structured, err)
	}
}
