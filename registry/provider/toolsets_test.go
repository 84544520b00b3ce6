package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/tools"
)

// The calls of a contract end before another takes its place; the workers of the
// old one end, and do not come back while the new one's are up.
func TestContractChanges(t *testing.T) {
	opts := quick()
	bus := events.NewBus(mustRegistry(t))
	opts.Bus = bus
	sub := bus.Subscribe(events.Filter{Types: []events.EventType{registry.EventTypeToolsetChanged}}, nil)
	defer sub.Close()
	c := newCrib(t, opts)
	g := newGate()
	old := c.serve("demo", serving(g.handle), provider.Options{})
	c.up("demo", 1)
	running := c.calls(1, "demo.write")
	<-g.entered
	next := serving(echo)
	next.tools = append(next.tools, spec("demo.more", tools.SideEffectRead))
	c.serve("demo", next, provider.Options{})
	await(t, "the contract changes", func() bool { return c.reg.Toolsets()[0].Changing })
	waiting := c.calls(1, "demo.read")
	if len(running) > 0 {
		t.Error("the call under way did not go on")
	}
	close(g.open)
	for _, out := range []<-chan outcome{running, waiting} {
		if o := <-out; o.err != nil {
			t.Errorf("a call: %v", o.err)
		}
	}
	if e := <-sub.Events(); e.Payload.(registry.ToolsetChangedPayload).Revision != 2 {
		t.Errorf("%+v", e)
	}
	await(t, "the new tool is there", func() bool { _, ok := c.cat.Resolve("demo.more"); return ok })
	if err := old(); !errors.Is(err, provider.ErrSuperseded) {
		t.Errorf("the old worker: %v", err)
	}
	again := c.serve("demo", serving(echo), provider.Options{Version: "old"})
	if res, err := c.call(caller(t), "demo.more", `{}`); err != nil {
		t.Errorf("%+v, %v", res, err)
	}
	await(t, "the worker of the old contract is on standby", func() bool { return len(c.reg.Toolsets()[0].Standby) == 1 })
	s := c.reg.Toolsets()[0]
	if s.Revision != 2 || len(s.Workers) != 1 {
		t.Errorf("a worker of the old contract took over: %+v", s)
	}
	if w := s.Standby[0]; w.Instance == s.Workers[0].Instance || w.Version != "old" || !strings.Contains(w.Reason, "replaced by revision 2") || w.Since.IsZero() {
		t.Errorf("the worker on standby is %+v", w)
	}
	c.check(again())
	if s := c.reg.Toolsets()[0]; len(s.Standby) != 0 {
		t.Errorf("the worker that left is on standby: %+v", s.Standby)
	}
}

// A call that waits while its tool changes goes on when the tool is only described in
// another way, and is not run when it means something else.
func TestCallWaitsForAnotherContract(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*registry.ToolSpec)
		runs   bool
	}{
		"description": {func(s *registry.ToolSpec) { s.Description = "A better description." }, true},
		"listing": {func(s *registry.ToolSpec) {
			s.Title, s.CostHint, s.LatencyMS, s.Loading = "Tool", "cheap", 5, tools.LoadingDeferred
			s.Examples, s.Definition = []registry.ExampleSpec{{Args: json.RawMessage(`{}`)}}, json.RawMessage(`{"name":"x"}`)
		}, true},
		"schema":       {func(s *registry.ToolSpec) { s.ArgsSchema = json.RawMessage(`{"type":"object","required":["a"]}`) }, false},
		"effects":      {func(s *registry.ToolSpec) { s.SideEffects = tools.SideEffectExternal }, false},
		"confirmation": {func(s *registry.ToolSpec) { s.Safety = &registry.SafetySpec{NeedsConfirmation: new(true)} }, false},
		"scopes":       {func(s *registry.ToolSpec) { s.AuthScopes = []string{"admin"} }, false},
	} {
		t.Run(what, func(t *testing.T) {
			c, change, runs := newCrib(t, nil), c.change, c.runs
			g := newGate()
			c.serve("demo", serving(g.handle), provider.Options{})
			c.up("demo", 1)
			running := c.calls(1, "demo.read")
			<-g.entered
			next := serving(echo)
			change(&next.tools[1])
			c.serve("demo", next, provider.Options{})
			await(t, "the contract changes", func() bool { return c.reg.Toolsets()[0].Changing })
			waiting := c.calls(1, "demo.write")
			await(t, "the call waits", func() bool { return c.reg.Toolsets()[0].Outstanding == 2 })
			close(g.open)
			if o := <-running; o.err != nil {
				t.Error(o.err)
			}
			o := <-waiting
			var e *tools.Error
			if (o.err == nil) != runs || !runs && (!errors.As(o.err, &e) || !e.Retryable || e.Delivery != tools.NotDelivered) {
				t.Errorf("the call that waited: %v", o.err)
			}
		})
	}
}

// A registry that takes another's place knows its toolsets and its calls.
func TestAnotherRegistry(t *testing.T) {
	c := newCrib(t, nil)
	var ran atomic.Int64
	h := serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		return registry.ToolResultMessage{ResultJSON: json.RawMessage(fmt.Sprintf(`{"run":%d}`, ran.Add(1)))}, nil
	})
	c.serve("demo", h, provider.Options{})
	c.up("demo", 1)
	keyed := func(args string) (tools.ToolResult, error) {
		return c.call(tools.WithEntrance(caller(t), tools.Entrance{IdempotencyKey: "key"}), "demo.write", args)
	}
	first, err := keyed(`{"a":1}`)
	if err != nil {
		t.Fatal(err)
	}
	c.close(c.reg)
	if _, err := keyed(`{"a":1}`); err == nil {
		t.Error("a closed registry runs calls")
	}
	c.open(nil)
	if _, ok := c.cat.Resolve("demo.write"); !ok {
		t.Fatal("the toolset is not known any more")
	}
	c.up("demo", 1)
	again, err := keyed(`{ "a": 1 }`)
	if err != nil || string(again.Structured) != string(first.Structured) || ran.Load() != 1 {
		t.Errorf("the same call: %s, %v after %d runs", again.Structured, err, ran.Load())
	}
	if _, err := keyed(`{"a":2}`); err == nil || !strings.Contains(err.Error(), "used before") {
		t.Errorf("another call with the same key: %v", err)
	}
	if res, err := c.call(caller(t), "demo.write", `{}`); err != nil || ran.Load() != 2 {
		t.Errorf("a new call: %+v, %v", res, err)
	}
}

// A toolset is seen by the tenants that it is granted to, and by nobody else.
func TestGrant(t *testing.T) {
	opts := quick()
	opts.Admit = registry.AdmitKeys(map[string]registry.KeyGrant{
		"demo": {Key: []byte("secret"), Grant: registry.Grant{Tenants: []string{"acme"}, Scopes: []string{"demo"}, Prefix: "acme."}}})
	c := newCrib(t, opts)
	for toolset, key := range map[string]string{"demo": "wrong", "other": "secret"} {
		client := c.connect()
		err := provider.Serve(t.Context(), client, toolset, serving(echo), provider.Options{Pong: provider.Pong(client, ""), Key: []byte(key),
			Serving: func() { t.Errorf("toolset %s is served with the key %s", toolset, key) }})
		if !errors.Is(err, provider.ErrRefused) || strings.Contains(err.Error(), "secret") {
			t.Errorf("toolset %s with the key %s: %v", toolset, key, err)
		}
	}
	serves := make(chan struct{})
	c.serve("demo", serving(echo), provider.Options{Key: []byte("secret"), Serving: func() { close(serves) }})
	c.up("demo", 1)
	<-serves
	for _, who := range []struct {
		tenant string
		scopes []string
		sees   bool
	}{{"acme", []string{"demo"}, true}, {"acme", nil, false}, {"other", []string{"demo"}, false}} {
		ctx := identity.With(caller(t), identity.Identity{TenantID: who.tenant, UserID: "u", SessionID: "s"}, who.scopes...)
		if _, err := c.call(ctx, "acme.demo.read", `{}`); (err == nil) != who.sees || err != nil && !errors.Is(err, tools.ErrToolNotFound) {
			t.Errorf("%s with %v: %v", who.tenant, who.scopes, err)
		}
	}
}

// Workers that do not announce themselves are known by the pings that they
// acknowledge on the request stream.
func TestUnnamedWorkers(t *testing.T) {
	opts := quick()
	opts.StaleAfter = 4 * time.Second
	c := newCrib(t, opts)
	c.check(c.reg.Register(t.Context(), registry.Contract{Toolset: "plain", Tools: []registry.ToolSpec{spec("plain.read", tools.SideEffectRead)}}, registry.Grant{}))
	s, err := c.client.Stream(t.Context(), registry.RequestStream("plain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	sink, err := s.Sink(t.Context(), "provider", nil)
	if err != nil {
		t.Fatal(err)
	}
	pong := provider.Pong(c.client, "")
	var ended sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	ended.Go(func() {
		for {
			e, err := sink.Receive(ctx)
			if err != nil {
				return
			}
			ctx := context.WithoutCancel(ctx)
			m, err := registry.DecodeCall(e.Payload)
			c.check(err)
			if m.Type == registry.TypePing {
				c.check(pong(ctx, m.PingID))
			} else if replies, err := c.client.Stream(ctx, m.ReplyTo, nil); err == nil {
				payload, _ := registry.Encode(registry.ToolResultMessage{ToolUseID: m.ToolUseID, ResultJSON: m.Payload, Receipt: &registry.Receipt{Token: m.Route.Token}})
				_, err = replies.Add(ctx, "result", payload)
				c.check(err)
			}
			c.check(e.Ack(ctx))
		}
	})
	c.up("plain", 1)
	if res, err := c.call(caller(t), "plain.read", `{"a":1}`); err != nil || string(res.Structured) != `{"a":1}` {
		t.Errorf("%+v, %v", res, err)
	}
	cancel()
	ended.Wait()
	c.check(sink.Close())
	c.up("plain", 0)
}

// A gateway that begins anew knows no worker yet, and takes that for no reason to let
// one of a replaced contract serve again, however soon it asks.
func TestReplacedContractAfterARestart(t *testing.T) {
	c := newCrib(t, nil)
	old := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	next := serving(echo)
	next.tools = append(next.tools, spec("demo.more", tools.SideEffectRead))
	stop := c.serve("demo", next, provider.Options{})
	if err := old(); err != nil && !errors.Is(err, provider.ErrSuperseded) {
		t.Error(err)
	}
	await(t, "the contract changes", func() bool { return c.reg.Toolsets()[0].Revision == 2 })
	contract, err := serving(echo).Contract("demo")
	c.check(err)
	for range 3 {
		c.close(c.reg)
		c.open(nil)
		answer := c.forge(true, registry.AnnounceSubject(""), registry.MessageAnnounce,
			registry.Announcement{Toolset: "demo", Instance: "old", Contract: &contract})
		var said registry.Admission
		if err := json.Unmarshal(answer.Payload, &said); err != nil || said.Status != registry.StatusStandby {
			t.Errorf("a worker of the old contract is told %+v, %v", said, err)
		}
		c.up("demo", 1)
		if s := c.reg.Toolsets()[0]; s.Revision != 2 || s.Changing {
			t.Errorf("the toolset is %+v", s)
		}
	}
	c.check(stop())
}

// A worker that lacks some of its tools does not take the place of one that has
// them, joins it once it has them too, and serves what it has when it is alone.
func TestIncomplete(t *testing.T) {
	c := newCrib(t, nil)
	whole := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	var lacks atomic.Bool
	lacks.Store(true)
	asked := make(chan struct{}, 100)
	served := make(chan struct{})
	part := serving(echo)
	part.tools = part.tools[:1]
	stop := c.serve("demo", part, provider.Options{Serving: func() { close(served) }, Incomplete: func() bool {
		asked <- struct{}{}
		return lacks.Load()
	}})
	for range 3 {
		<-asked
	}
	if s := c.reg.Toolsets()[0]; s.Revision != 1 || s.Changing || len(s.Workers) != 1 || len(s.Standby) != 1 {
		t.Errorf("the worker that lacks tools takes over: %+v", s)
	}
	c.check(whole())
	<-served
	if s := c.reg.Toolsets()[0]; s.Revision != 2 || len(s.Tools) != 1 || len(s.Standby) != 0 {
		t.Errorf("alone it serves %+v", s)
	}
	c.check(stop())
}

// A worker that was refused has nothing to say goodbye for.
func TestRefusedWithoutGoodbye(t *testing.T) {
	opts := quick()
	opts.Admit = registry.AdmitKeys(map[string]registry.KeyGrant{"demo": {Key: []byte("secret")}})
	var log peertest.Log
	opts.Logger = log.Logger(slog.LevelInfo)
	c := newCrib(t, opts)
	client := c.connect()
	if err := provider.Serve(t.Context(), client, "demo", serving(echo), provider.Options{Pong: provider.Pong(client, "")}); !errors.Is(err, provider.ErrRefused) {
		t.Errorf("%v", err)
	}
	if said := log.String(); !strings.Contains(said, "a worker was refused") || strings.Contains(said, "goodbye") {
		t.Errorf("the gateway logs %s", said)
	}
}
