package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// crash ends the registry while its callers wait.
func (c *crib) crash() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.reg.Close(ctx) // calls were under way, which is the point
}

// keyed calls with an idempotency key, by which the call is known again.
func (c *crib) keyed(ctx context.Context, key string) (tools.ToolResult, error) {
	return c.call(tools.WithEntrance(ctx, tools.Entrance{IdempotencyKey: key}), "demo.write", `{"a":1}`)
}

// A call that runs while its gateway dies is recorded by the next one, and is
// not run again.
func TestGatewayDiesWhileACallRuns(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	var ran atomic.Int64
	c.serve("demo", serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		n := ran.Add(1)
		res, err := g.handle(ctx, m)
		res.ResultJSON = json.RawMessage(fmt.Sprint(n))
		return res, err
	}), provider.Options{})
	c.up("demo", 1)
	ctx, hangUp := context.WithCancel(caller(t))
	gone := make(chan error, 1)
	go func() {
		_, err := c.keyed(ctx, "key")
		gone <- err
	}()
	<-g.entered
	c.crash()
	c.open(nil)
	close(g.open)
	c.up("demo", 1)
	res, err := c.keyed(caller(t), "key")
	if err != nil || string(res.Structured) != "1" || ran.Load() != 1 {
		t.Errorf("the same call: %s, %v after %d runs", res.Structured, err, ran.Load())
	}
	hangUp()
	<-gone
}

// A call that no worker has when its gateway dies is run once, for the next one.
func TestGatewayDiesWhileACallWaits(t *testing.T) {
	c := newCrib(t, nil)
	stop := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	c.check(stop())
	c.announce("demo") // and take nothing
	ctx, hangUp := context.WithCancel(registry.Wait(caller(t)))
	gone := make(chan error, 1)
	go func() {
		_, err := c.keyed(ctx, "key")
		gone <- err
	}()
	s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the stream has the call", func() bool {
		size, err := s.Size(t.Context())
		return err == nil && size.Waiting == 1
	})
	c.crash()
	c.open(nil)
	var ran atomic.Int64
	c.serve("demo", serving(func(context.Context, registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		return registry.ToolResultMessage{ResultJSON: json.RawMessage(fmt.Sprint(ran.Add(1)))}, nil
	}), provider.Options{})
	res, err := c.keyed(registry.Wait(caller(t)), "key")
	if err != nil || string(res.Structured) != "1" || ran.Load() != 1 {
		t.Errorf("the same call: %s, %v after %d runs", res.Structured, err, ran.Load())
	}
	hangUp()
	<-gone
}

// Two gateways on one store share toolsets and workers, and know of each other's
// calls.
func TestTwoGateways(t *testing.T) {
	c := newCrib(t, nil)
	other := &crib{t: t, server: c.server, store: c.store}
	other.client = other.connect()
	other.open(nil)
	var ran atomic.Int64
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		return registry.ToolResultMessage{ResultJSON: json.RawMessage(fmt.Sprint(ran.Add(1)))}, nil
	}), provider.Options{})
	c.up("demo", 1)
	other.up("demo", 1)
	for i, at := range []*crib{c, other, c} {
		res, err := at.keyed(caller(t), "key")
		if err != nil || string(res.Structured) != "1" {
			t.Errorf("call %d: %s, %v", i, res.Structured, err)
		}
	}
	if n := ran.Load(); n != 1 {
		t.Errorf("one call ran %d times", n)
	}
	if _, err := other.call(caller(t), "demo.read", `{}`); err != nil {
		t.Errorf("through the other gateway: %v", err)
	}
}

// A worker without a contract joins a toolset that was described for it.
func TestJoinWithoutAContract(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", echo, provider.Options{Version: "7"})
	c.check(c.reg.Register(t.Context(), registry.Contract{Toolset: "demo", Tools: []registry.ToolSpec{spec("demo.read", tools.SideEffectRead)}}, registry.Grant{}))
	await(t, "the worker is known by name", func() bool {
		for _, w := range c.reg.Toolsets()[0].Workers {
			if w.Up && w.Version == "7" {
				return true
			}
		}
		return false
	})
	if res, err := c.call(caller(t), "demo.read", `{"a":1}`); err != nil || string(res.Structured) != `{"a":1}` {
		t.Errorf("%+v, %v", res, err)
	}
}

// A worker that starts before any gateway is known to the first one.
func TestWorkerBeforeTheGateway(t *testing.T) {
	c := newCrib(t, nil)
	c.close(c.reg)
	c.serve("demo", serving(echo), provider.Options{})
	c.add("demo", "call", `{"type":"call","tool_use_id":"early","tool":"demo.read","payload":{}}`)
	c.answer("early")
	c.open(nil)
	c.up("demo", 1)
	if _, err := c.call(caller(t), "demo.write", `{}`); err != nil {
		t.Error(err)
	}
}

// A claim or a result that does not carry the token of its message is nobody's.
func TestForeignAnswers(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	var seen atomic.Pointer[registry.ToolCallMessage]
	c.serve("demo", serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		seen.Store(&m)
		return g.handle(ctx, m)
	}), provider.Options{})
	c.up("demo", 1)
	out := c.calls(1, "demo.write")
	<-g.entered
	m := seen.Load()
	for _, receipt := range []*registry.Receipt{nil, {Token: "guess", TenantID: "acme"}, {Token: m.Route.Token, TenantID: "acme", Instance: "another"}} {
		payload, err := registry.Encode(registry.ToolResultMessage{ToolUseID: m.ToolUseID, ResultJSON: json.RawMessage(`"forged"`), Receipt: receipt})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.client.Request(caller(t), m.Route.Inbox, stream.Message{Name: registry.ResultEventKey, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	close(g.open)
	if o := <-out; o.err != nil || string(o.res.Structured) != `{"n":0}` {
		t.Errorf("the answer: %s, %v", o.res.Structured, o.err)
	}
}
