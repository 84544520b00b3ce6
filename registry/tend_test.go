package registry

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// A call that the store could not take, and whose caller was told so, is forgotten:
// otherwise it would be sent, and its claims and results refused, until its time is
// over.
func TestCallThatCouldNotBeRecorded(t *testing.T) {
	r := &Registry{ledger: ledger{records: memory(t), retention: time.Hour}, log: slog.New(slog.DiscardHandler),
		calls: map[string]*call{}, toolsets: map[string]*toolset{}, absent: map[string]time.Time{}}
	now := time.Now()
	for _, id := range []string{"told", "waits"} {
		c := newCall(id, record{Version: recordVersion, State: stateAccepted, Accepted: now, Deadline: now.Add(time.Hour),
			Message: &ToolCallMessage{}}, callKey("", id))
		c.recorded = true
		c.sending()
		c.mu.Lock()
		c.refuse(context.DeadlineExceeded)
		c.mu.Unlock()
		r.calls[id] = c
	}
	r.calls["waits"].waiters = 1
	r.tend(t.Context())
	if r.known("told") != nil || r.known("waits") == nil {
		t.Errorf("the calls that are known: %v", r.calls)
	}
}
