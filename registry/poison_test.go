package registry

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// A harmless call that workers take and have no more is sent again a few times, as one
// that is claimed, and then kept as a dead letter, of which its caller is told. No worker
// is let run what is left of it.
func TestHarmlessCallThatEndsWorkers(t *testing.T) {
	client := natsClient(t)
	r := &Registry{client: client, ledger: ledger{records: memory(t), retention: time.Hour}, log: slog.New(slog.DiscardHandler),
		calls: map[string]*call{}, toolsets: map[string]*toolset{}, absent: map[string]time.Time{}, inbox: "inbox"}
	r.toolsets["math"] = r.newToolset("math", agreement{})
	c := accepted("one", "")
	c.recorded, c.waiters = false, 1
	c.message.Route = &Route{Inbox: "inbox", Token: "token"}
	r.calls["one"] = c
	requests, err := r.toolsets["math"].stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sink, err := requests.Sink(t.Context(), "provider", &stream.SinkOptions{InFlight: 16})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	taken := func() *ToolCallMessage { // by a worker that ends with it
		t.Helper()
		e, err := sink.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := DecodeCall(e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		return &m
	}
	claims := func(want Verdict) {
		t.Helper()
		for _, by := range []string{"w1", "w2"} {
			if got := r.claimed(t.Context(), &Claim{ToolUseID: "one", Toolset: "math", Instance: by, Token: "token", TenantID: "acme"}); got != want {
				t.Errorf("a claim of %s gets %s, want %s", by, got, want)
			}
		}
		if got := r.claimed(t.Context(), &Claim{ToolUseID: "one", Toolset: "math", Instance: "w1", Token: "guess", TenantID: "acme"}); got != VerdictOver {
			t.Errorf("a claim with another token gets %s", got)
		}
	}
	if err := r.add(t.Context(), r.toolsets["math"], c.message, c); err != nil {
		t.Fatal(err)
	}
	if m := taken(); m.Route.Again {
		t.Error("a call that is sent first says that it was sent before")
	}
	for range mostLost {
		c.probed.Store(true) // none of the workers that were asked has it
		r.mend(t.Context(), "math", []*call{c})
		if m := taken(); !m.Route.Again || m.Route.Claim {
			t.Errorf("a call that is sent again has the route %+v", m.Route)
		}
		claims(VerdictRun)
	}
	c.probed.Store(true)
	r.mend(t.Context(), "math", []*call{c})
	if !c.over() || c.result.Error == nil || c.result.Error.Code != CodeDeadLetter {
		t.Fatalf("its caller hears %+v", c.result)
	}
	claims(VerdictOver)
	page, err := r.DeadLetters(t.Context(), DeadLetterQuery{Toolset: "math"})
	letters := page.Letters
	if err != nil || len(letters) != 1 || letters[0].ToolUseID != "one" || letters[0].Deliveries != mostLost+1 || !strings.Contains(letters[0].Reason, "none answered") {
		t.Errorf("the dead letters are %+v, %v", letters, err)
	}
	if size, err := requests.Size(context.Background()); err != nil || size.Waiting != 0 {
		t.Errorf("the stream holds %+v, %v", size, err)
	}
}
