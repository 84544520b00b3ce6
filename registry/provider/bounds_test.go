package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/tools"
)

// What is too large for the stream is refused with its bound: arguments before
// the tool runs, and a result after it ran.
func TestTooLarge(t *testing.T) {
	c := newCribOn(t, nil, &natsserver.Options{MaxPayload: 64 << 10})
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		if strings.Contains(string(m.Payload), "big") {
			return registry.ToolResultMessage{ResultJSON: json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`)}, nil
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{})
	c.up("demo", 1)
	for _, tool := range []string{"demo.read", "demo.write"} {
		for args, delivery := range map[string]tools.Delivery{`{"n":"` + strings.Repeat("x", 100<<10) + `"}`: tools.NotDelivered, `{"n":"big"}`: tools.Answered} {
			_, err := c.call(caller(t), tool, args)
			var te *tools.Error
			if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || te.Delivery != delivery || te.OutcomeUnknown || !strings.Contains(te.Message, "bytes") {
				t.Errorf("%s with %d bytes: %#v", tool, len(args), err)
			}
		}
		if _, err := c.call(caller(t), tool, `{}`); err != nil {
			t.Error(err)
		}
	}
}

// A stream that is full, and too many calls without an answer, are overload.
func TestOverload(t *testing.T) {
	opts := quick()
	opts.Requests = &stream.Options{MaxEvents: 2}
	opts.MaxOutstanding = 5
	c := newCrib(t, opts)
	stop := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	c.check(stop())
	c.announce("demo") // and take nothing
	ctx, hangUp := context.WithTimeout(registry.Wait(caller(t)), time.Minute)
	defer hangUp()
	out := c.callsFor(ctx, 8, "demo.write")
	for range 6 {
		o := <-out
		var te *tools.Error
		if !errors.Is(o.err, tools.ErrOverloaded) || !errors.As(o.err, &te) || te.RetryAfter <= 0 || te.Delivery != tools.NotDelivered {
			t.Errorf("one call too many: %#v", o.err)
		}
	}
	hangUp()
	for range 2 {
		if o := <-out; !errors.Is(o.err, context.Canceled) {
			t.Errorf("a call that was taken: %v", o.err)
		}
	}
}

// A registry that ends does not leave its callers waiting.
func TestCloseAnswersCallers(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	c.serve("demo", serving(g.handle), provider.Options{})
	c.up("demo", 1)
	running := c.calls(1, "demo.write")
	<-g.entered
	c.check(c.reg.Register(t.Context(), registry.Contract{Toolset: "idle", Tools: []registry.ToolSpec{spec("idle.read", tools.SideEffectRead)}}, registry.Grant{}))
	waiting := c.callsFor(registry.Wait(caller(t)), 1, "idle.read")
	await(t, "both calls wait", func() bool {
		n := 0
		for _, s := range c.reg.Toolsets() {
			n += s.Outstanding
		}
		return n == 2
	})
	c.crash()
	if o := <-running; !errors.Is(o.err, tools.ErrOutcomeUnknown) {
		t.Errorf("a call that runs: %v", o.err)
	}
	var te *tools.Error
	if o := <-waiting; !errors.As(o.err, &te) || te.Delivery != tools.NotDelivered {
		t.Errorf("a call that waits: %v", o.err)
	}
	close(g.open)
}
