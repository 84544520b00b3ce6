package provider_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/tools"
)

// TestCallThatDidNotRun: a call that certainly did not run runs when it is asked for
// again under its key, and once it ran it does not, whichever attempt that was.
func TestCallThatDidNotRun(t *testing.T) {
	var asked, refusals atomic.Int32
	class := tools.ErrClassPermanent
	c := newCrib(t, nil)
	h := serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		asked.Add(1)
		if refusals.Add(-1) >= 0 {
			return registry.ToolResultMessage{}, &tools.Error{Class: class, Delivery: tools.NotDelivered, Message: "not now"}
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	})
	for i := range h.tools {
		h.tools[i].Policy = &registry.PolicySpec{MaxRetries: 3, BackoffBaseMS: 1}
	}
	c.serve("demo", h, provider.Options{})
	c.up("demo", 1)
	expect := func(key string, runs int32, fails bool) {
		t.Helper()
		before := asked.Load()
		_, err := c.call(keyed(caller(t), key), "demo.write", `{"n":1}`)
		if got := asked.Load() - before; got != runs || (err != nil) != fails {
			t.Errorf("key %s: the worker was asked %d times, and not %d: %v", key, got, runs, err)
		}
	}
	for range 3 {
		refusals.Store(1)
		expect("refused", 1, true)
	}
	expect("refused", 1, false)
	expect("refused", 0, false)
	if _, err := c.call(keyed(caller(t), "refused"), "demo.write", `{"n":2}`); !errors.Is(err, tools.ErrIdempotencyConflict) {
		t.Errorf("another body under the same key: %v", err)
	}

	class = tools.ErrClassTransient
	refusals.Store(2)
	expect("later attempt", 3, false)
	expect("later attempt", 0, false)
	refusals.Store(4)
	expect("all attempts", 4, true)
	expect("all attempts", 1, false)
	expect("all attempts", 0, false)
}

// TestCancelledBeforeItRan: who asks for a call again that was given up before a worker
// had it gets an answer.
func TestCancelledBeforeItRan(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	c.serve("demo", serving(g.handle), provider.Options{MaxConcurrentToolCalls: 1})
	c.up("demo", 1)
	busy := make(chan error, 1)
	go func() {
		_, err := c.call(keyed(caller(t), "busy"), "demo.write", `{}`)
		busy <- err
	}()
	<-g.entered
	ctx, cancel := context.WithCancel(caller(t))
	left := make(chan error, 1)
	go func() {
		_, err := c.call(keyed(ctx, "k"), "demo.write", `{}`)
		left <- err
	}()
	await(t, "the call waits in the worker", func() bool {
		s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
		if err != nil {
			return false
		}
		size, err := s.Size(t.Context())
		return err == nil && size.Held == 2
	})
	cancel()
	var e *tools.Error
	if err := <-left; !errors.As(err, &e) || e.Delivery != tools.NotDelivered {
		t.Fatalf("the call that was given up: %v", err)
	}
	close(g.open)
	c.check(<-busy)
	for range 2 {
		if res, err := c.call(keyed(caller(t), "k"), "demo.write", `{}`); err != nil {
			t.Errorf("again: %s, %v", res.Structured, err)
		}
	}
	if n := len(g.entered); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}
