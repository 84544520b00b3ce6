package provider_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
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

// A call that ran, and whose result waits on a stream for a registry, is not run again
// when it comes again meanwhile, though no registry knows better.
func TestRanAndComesAgain(t *testing.T) {
	c := newCrib(t, nil)
	var claims, runs atomic.Int32
	sub, err := c.connect().Respond(t.Context(), "busy", func(_ context.Context, m stream.Message) stream.Message {
		if m.Name == registry.MessageClaim {
			claims.Add(1)
			return stream.Message{Name: string(registry.VerdictRun)}
		}
		return stream.Message{Name: registry.MessageRetry}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(sub.Close()) })
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		runs.Add(1)
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{})
	c.up("demo", 1)
	payload, err := registry.Encode(&registry.ToolCallMessage{Type: registry.TypeCall, ToolUseID: "one", Tool: "demo.write", Payload: json.RawMessage(`{}`),
		Deadline: time.Now().Add(patience), ReplyTo: "results", Route: &registry.Route{Inbox: "busy", Token: "token", Claim: true, Confirm: true}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Add(t.Context(), registry.TypeCall, payload); err != nil {
			t.Fatal(err)
		}
		await(t, "the call is settled", func() bool {
			size, err := s.Size(t.Context())
			return err == nil && size == stream.Size{}
		})
	}
	if claims.Load() != 1 || runs.Load() != 1 {
		t.Errorf("it was claimed %d times, and ran %d times", claims.Load(), runs.Load())
	}
}

// A harmless call that was sent again runs when its gateway says so, each time, and not
// when it says that the call is over.
func TestSentAgainIsAskedFor(t *testing.T) {
	c := newCrib(t, nil)
	sub, err := c.connect().Respond(t.Context(), "asked", func(_ context.Context, m stream.Message) stream.Message {
		var by registry.Claim
		if err := json.Unmarshal(m.Payload, &by); err != nil {
			t.Error(err)
		}
		if by.ToolUseID == "wanted" {
			return stream.Message{Name: string(registry.VerdictRun)}
		}
		return stream.Message{Name: string(registry.VerdictOver)}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(sub.Close()) })
	ran := make(chan string, 3)
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		ran <- m.ToolUseID
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{})
	c.up("demo", 1)
	s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"over", "wanted", "wanted"} {
		payload, err := registry.Encode(&registry.ToolCallMessage{Type: registry.TypeCall, ToolUseID: id, Tool: "demo.read", Payload: json.RawMessage(`{}`),
			Deadline: time.Now().Add(patience), Route: &registry.Route{Inbox: "asked", Token: "token", Again: true}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(t.Context(), registry.TypeCall, payload); err != nil {
			t.Fatal(err)
		}
		await(t, "the call is settled", func() bool {
			size, err := s.Size(t.Context())
			return err == nil && size == stream.Size{}
		})
	}
	if len(ran) != 2 || <-ran != "wanted" || <-ran != "wanted" {
		t.Error("what ran is not what was wanted")
	}
}
