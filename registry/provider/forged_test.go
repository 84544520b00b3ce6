package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// forge sends what a program with credentials for the backend alone could send.
func (c *crib) forge(ask bool, subject, name string, body any) stream.Message {
	c.t.Helper()
	payload, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	m := stream.Message{Name: name, Payload: payload}
	var answer stream.Message
	if ask {
		answer, err = c.client.Request(caller(c.t), subject, m)
	} else {
		err = c.client.Publish(caller(c.t), subject, m)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// peer takes what a call says before its result.
type peer struct{ said chan string }

func (p peer) Progress(_ context.Context, n tools.ProgressNote) error {
	p.said <- n.Message
	return nil
}

func (p peer) next() string {
	select {
	case text := <-p.said:
		return text
	case <-time.After(patience / 4):
		return "nothing"
	}
}

func (p peer) Log(context.Context, tools.LogNote) error { return nil }

func (p peer) Ask(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{}, tools.ErrAskUnsupported
}

// TestForgedMessages: who has credentials for the backend, and neither the key of a
// toolset nor the message of a call, ends no worker, takes none out of the list, and
// speaks for no call.
func TestForgedMessages(t *testing.T) {
	key := []byte("open sesame")
	opts := quick()
	opts.Admit = registry.AdmitKeys(map[string]registry.KeyGrant{"demo": {Key: key}})
	c := newCrib(t, opts)
	g := newGate()
	var seen atomic.Pointer[registry.ToolCallMessage]
	stop := c.serve("demo", serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		seen.Store(&m)
		res, err := g.handle(ctx, m)
		if err == nil {
			err = provider.OutputDelta(ctx, "stdout", "true")
		}
		return res, err
	}), provider.Options{Key: key})
	c.up("demo", 1)
	instance := c.reg.Toolsets()[0].Workers[0].Instance
	said := peer{make(chan string, 10)}
	done := make(chan error, 1)
	go func() {
		_, err := c.call(tools.WithEntrance(caller(t), tools.Entrance{Peer: said}), "demo.write", `{}`)
		done <- err
	}()
	<-g.entered
	m := seen.Load()

	worker := registry.Announcement{Toolset: "demo", Instance: instance}
	replayed := worker
	c.check(replayed.Sign(key)) // an announcement without a contract is no goodbye
	for what, body := range map[string]any{"nothing": worker, "an announcement's proof": replayed} {
		if answer := c.forge(true, registry.AnnounceSubject(""), registry.MessageLeave, body); answer.Name == registry.MessageOK {
			t.Errorf("a goodbye with %s is heeded", what)
		}
	}
	news := map[string]any{"process": "p", "at": time.Now(), "toolset": "demo", "instance": instance}
	c.forge(false, "registry:default:news", registry.MessageLeave, news)
	c.forge(false, "registry:default:news", registry.MessageLeave, map[string]any{"news": news, "mac": "00"})
	news["instance"] = "nobody"
	c.forge(false, "registry:default:news", registry.MessageAnnounce, map[string]any{"news": news, "mac": ""})
	for _, body := range []any{nil, registry.Retire{}, registry.Retire{Token: m.Route.Token}} {
		if answer := c.forge(true, registry.InstanceSubject("demo", instance), registry.MessageRetire, body); answer.Name == registry.MessageOK {
			t.Error("the worker ends for somebody")
		}
	}
	c.forge(false, registry.CancelSubject("demo"), registry.MessageCancel, registry.Cancel{ToolUseID: m.ToolUseID})
	for _, name := range []string{registry.OutputDeltaEventKey, registry.ProgressEventKey} {
		c.forge(false, registry.NotesSubject(m.Route.Inbox), name, map[string]any{"tool_use_id": m.ToolUseID, "delta": "false", "message": "false", "token": "guess"})
	}
	c.forge(false, registry.NotesSubject(m.Route.Inbox), registry.OutputDeltaEventKey, map[string]any{"tool_use_id": m.ToolUseID, "delta": "with the token", "token": m.Route.Token})
	if got := said.next(); got != "with the token" {
		t.Errorf("the caller heard %q", got)
	}
	close(g.open)
	if err := <-done; err != nil {
		t.Errorf("the call: %v", err)
	}
	if got := said.next(); got != "true" || len(said.said) > 0 {
		t.Errorf("the caller heard %q, and %d more", got, len(said.said))
	}
	if s := c.reg.Toolsets()[0].Workers; len(s) != 1 || !s[0].Up || s[0].Instance != instance {
		t.Errorf("the workers: %+v", s)
	}
	c.check(stop())
	if s := c.reg.Toolsets()[0].Workers; len(s) != 0 {
		t.Errorf("after its own goodbye: %+v", s)
	}
}

// TestNewsOfAWorker: gateways of one store believe each other.
func TestNewsOfAWorker(t *testing.T) {
	key := []byte("open sesame")
	opts := quick()
	opts.Admit = registry.AdmitKeys(map[string]registry.KeyGrant{"demo": {Key: key}})
	opts.PingInterval = time.Minute // so that nothing else tells of workers
	opts.StaleAfter = time.Hour
	c := newCrib(t, opts)
	other := &crib{t: t, server: c.server, store: c.store}
	other.client = other.connect()
	other.open(opts)
	for i := range 3 {
		stop := c.serve("demo", serving(echo), provider.Options{Key: key})
		c.up("demo", 1)
		other.up("demo", 1)
		if _, err := other.call(caller(t), "demo.write", fmt.Sprintf(`{"i":%d}`, i)); err != nil {
			t.Error(err)
		}
		c.check(stop())
		c.up("demo", 0)
		other.up("demo", 0)
	}
}
