package provider_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// A process that hangs is told that a claim which waits there was taken back, when
// another one has said what becomes of the call.
func TestClaimIsTakenBack(t *testing.T) {
	c := newCrib(t, nil)
	said := make(chan registry.Claim, 10)
	respond := func(subject string, answer func(ctx context.Context, by registry.Claim) registry.Verdict) {
		t.Helper()
		sub, err := c.connect().Respond(t.Context(), subject, func(ctx context.Context, m stream.Message) stream.Message {
			var by registry.Claim
			if err := json.Unmarshal(m.Payload, &by); err != nil {
				t.Error(err)
			}
			return stream.Message{Name: string(answer(ctx, by))}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.check(sub.Close()) })
	}
	ended := make(chan struct{})
	respond("hangs", func(_ context.Context, by registry.Claim) registry.Verdict {
		said <- by
		if !by.Release {
			<-ended
		}
		return registry.VerdictOver
	})
	t.Cleanup(func() { close(ended) })
	respond("any", func(context.Context, registry.Claim) registry.Verdict { return registry.VerdictOver })
	c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := registry.Encode(&registry.ToolCallMessage{Type: registry.TypeCall, ToolUseID: "one", Tool: "demo.write", Payload: json.RawMessage(`{}`),
		Deadline: time.Now().Add(patience), Route: &registry.Route{Inbox: "hangs", Shared: "any", Token: "token", Claim: true, Confirm: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add(t.Context(), registry.TypeCall, payload); err != nil {
		t.Fatal(err)
	}
	claim := <-said
	for {
		select {
		case by := <-said:
			if by.Try != claim.Try || by.Try == 0 {
				t.Errorf("the try of the claim is %d, and then %d", claim.Try, by.Try)
			}
			if by.Release {
				return
			}
		case <-time.After(patience):
			t.Fatal("the claim is not taken back")
		}
	}
}
