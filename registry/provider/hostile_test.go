package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// TestHandlerEndsItsGoroutine: the call is answered, and the worker goes on with
// as many calls at once as before.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		if strings.Contains(string(m.Payload), "end") {
			runtime.Goexit()
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{MaxConcurrentToolCalls: 1})
	c.up("demo", 1)
	for _, tool := range []string{"demo.read", "demo.write"} {
		if _, err := c.call(caller(t), tool, `{"end":true}`); err == nil || !strings.Contains(err.Error(), "without an answer") {
			t.Errorf("%s: %v", tool, err)
		}
		if _, err := c.call(caller(t), tool, `{}`); err != nil {
			t.Errorf("%s after that: %v", tool, err)
		}
	}
	await(t, "nothing runs", func() bool { return c.reg.Toolsets()[0].Workers[0].Running == 0 })
}

// TestCallAgainAfterItsCallerWent: who asks for the same call again is another
// caller, and gets an answer.
func TestCallAgainAfterItsCallerWent(t *testing.T) {
	for name, stubborn := range map[string]bool{"the tool ends with its caller": false, "the tool goes on": true} {
		t.Run(name, func(t *testing.T) {
			c := newCrib(t, nil)
			began, release := make(chan struct{}, 2), make(chan struct{})
			defer close(release)
			c.serve("demo", serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
				if m.Meta.Attempt != 0 && len(began) == 0 {
					began <- struct{}{}
					if stubborn {
						<-release
					} else {
						<-ctx.Done()
					}
					return registry.ToolResultMessage{}, ctx.Err()
				}
				return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
			}), provider.Options{MaxConcurrentToolCalls: 2})
			c.up("demo", 1)
			keyed := func(ctx context.Context) context.Context {
				return tools.WithEntrance(ctx, tools.Entrance{CallID: "c", IdempotencyKey: "k"})
			}
			ctx, cancel := context.WithCancel(caller(t))
			first := make(chan error, 1)
			go func() {
				_, err := c.call(keyed(ctx), "demo.read", `{}`)
				first <- err
			}()
			await(t, "the tool runs", func() bool { return len(began) == 1 })
			cancel()
			if err := <-first; !errors.Is(err, context.Canceled) {
				t.Errorf("the first caller got %v", err)
			}
			if _, err := c.call(keyed(caller(t)), "demo.read", `{}`); err != nil {
				t.Errorf("the second caller got %v", err)
			}
		})
	}
}

// TestToolThatIsOverloaded: what the tool itself says is the call's answer, also
// of one that waits for a worker with room.
func TestToolThatIsOverloaded(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", serving(func(context.Context, registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		return registry.ToolResultMessage{Error: &registry.ToolError{Code: registry.CodeOverloaded, RetryAfterMS: math.MaxInt64}}, nil
	}), provider.Options{})
	c.up("demo", 1)
	for _, tool := range []string{"demo.read", "demo.write"} {
		_, err := c.call(registry.Wait(caller(t)), tool, `{}`)
		var te *tools.Error
		if !errors.Is(err, tools.ErrOverloaded) || !errors.As(err, &te) || te.RetryAfter <= 0 {
			t.Errorf("%s: %v, %+v", tool, err, te)
		}
	}
}

// TestSameIDOtherCall: requests of one id that ask for different things are
// answered each.
func TestSameIDOtherCall(t *testing.T) {
	c := newCrib(t, nil)
	both := make(chan struct{}, 2)
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		both <- struct{}{}
		await(t, "both run", func() bool { return len(both) == 2 })
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{})
	c.up("demo", 1)
	for n := range 2 {
		c.add("demo", "call", fmt.Sprintf(`{"type":"call","tool_use_id":"same","tool":"demo.read","payload":{"n":%d},"reply_to":"answers:%d"}`, n, n))
	}
	for n := range 2 {
		s, err := c.client.Stream(t.Context(), fmt.Sprintf("answers:%d", n), nil)
		if err != nil {
			t.Fatal(err)
		}
		sink, err := s.Sink(t.Context(), "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := sink.Receive(caller(t))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := registry.DecodeResult(e.Payload); err != nil || string(res.ResultJSON) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Errorf("answer %d: %s, %v", n, e.Payload, err)
		}
		c.check(sink.Close())
	}
}

// TestAnswerWithoutAWay: requests whose answers find no room, or no stream, are put
// aside, and the worker goes on.
func TestAnswerWithoutAWay(t *testing.T) {
	c := newCrib(t, nil)
	opts := provider.Options{MaxConcurrentToolCalls: 1, MaxQueuedToolCalls: 1}
	c.serve("demo", serving(echo), opts)
	c.up("demo", 1)
	if _, err := c.client.Stream(t.Context(), "unread", &stream.Options{MaxEvents: 1}); err != nil {
		t.Fatal(err)
	}
	const requests = 80 // more than the worker takes at once
	for i := range requests {
		c.add("demo", "call", fmt.Sprintf(`{"type":"call","tool_use_id":"full%d","tool":"demo.read","payload":{},"reply_to":"unread"}`, i))
		c.add("demo", "call", fmt.Sprintf(`{"type":"call","tool_use_id":"long%d","tool":"demo.read","payload":{},"reply_to":%q}`, i, strings.Repeat("x", 300)))
	}
	if _, err := c.call(registry.Wait(caller(t)), "demo.read", `{}`); err != nil {
		t.Error(err)
	}
	dead, err := c.client.Stream(t.Context(), registry.DeadStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the others are put aside", func() bool {
		size, err := dead.Size(t.Context())
		return err == nil && size.Waiting == 2*requests-1
	})
}

// TestToolsOfTheOlderToolset: a later toolset takes no tool from it.
func TestToolsOfTheOlderToolset(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("mine", serving(echo), provider.Options{})
	c.up("mine", 1)
	thief := serving(func(context.Context, registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		return registry.ToolResultMessage{ResultJSON: json.RawMessage(`{"stolen":true}`)}, nil
	})
	c.serve("a-thief", thief, provider.Options{})
	c.up("a-thief", 1)
	check := func(when string) {
		t.Helper()
		if res, err := c.call(caller(t), "demo.read", `{}`); err != nil || string(res.Structured) != "{}" {
			t.Errorf("%s: %s, %v", when, res.Structured, err)
		}
	}
	check("another toolset has its names")
	c.check(c.reg.Register(t.Context(), registry.Contract{Toolset: "mine", Tools: thief.tools, Description: "changed"}, registry.Grant{}))
	check("its contract changed")
}

// TestOptionsBeyondMeasure: they are refused, and nothing is allocated for them.
func TestOptionsBeyondMeasure(t *testing.T) {
	c := newCrib(t, nil)
	unreadable := serving(echo)
	unreadable.tools[0].Description = "\xff"
	for name, o := range map[string]struct {
		handler provider.Handler
		opts    provider.Options
	}{
		"calls at once":   {echo, provider.Options{MaxConcurrentToolCalls: math.MaxInt}},
		"waiting calls":   {echo, provider.Options{MaxQueuedToolCalls: math.MaxInt}},
		"namespace":       {echo, provider.Options{Namespace: strings.Repeat("n", 190)}},
		"not text":        {echo, provider.Options{Namespace: "\xff"}},
		"result":          {echo, provider.Options{ResultEventType: strings.Repeat("r", 1000)}},
		"result as claim": {echo, provider.Options{ResultEventType: registry.MessageClaim}},
		"contract":        {unreadable, provider.Options{}},
	} {
		o.opts.Pong = provider.Pong(c.client, "")
		if err := provider.Serve(t.Context(), c.client, "demo", o.handler, o.opts); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]*registry.Options{
		"pings all the time":     {PingInterval: 1},
		"pings never":            {PingInterval: math.MaxInt64},
		"stale before it pinged": {PingInterval: time.Minute, StaleAfter: time.Second},
		"requests":               {Requests: &stream.Options{MaxEvents: -1}},
		"namespace":              {Namespace: strings.Repeat("n", 190)},
	} {
		if _, err := registry.New(t.Context(), c.client, c.store, o); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGatewayThatHangs: its calls keep no place in a worker while nobody answers
// their claims, so that those of other gateways are run.
func TestGatewayThatHangs(t *testing.T) {
	c := newCrib(t, nil)
	woken := make(chan struct{})
	sub, err := c.client.Respond(t.Context(), "hangs", func(context.Context, stream.Message) stream.Message {
		<-woken
		return stream.Message{Name: string(registry.VerdictRetry)}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		close(woken)
		c.check(sub.Close())
	}()
	var ran atomic.Int64
	shared := make(chan string, 2)
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		ran.Add(1)
		shared <- m.Route.Shared
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{MaxConcurrentToolCalls: 1})
	c.up("demo", 1)
	if _, err := c.call(caller(t), "demo.write", `{}`); err != nil {
		t.Fatal(err)
	}
	settle := <-shared
	for i := range 20 {
		c.add("demo", "call", fmt.Sprintf(`{"type":"call","tool_use_id":"hung%d","tool":"demo.write","payload":{},`+
			`"route":{"inbox":"hangs","shared":%q,"token":"t","claim":true,"confirm":true}}`, i, settle))
	}
	ctx, cancel := context.WithTimeout(caller(t), patience/4)
	defer cancel()
	if _, err := c.call(ctx, "demo.write", `{}`); err != nil {
		t.Error(err)
	}
	if ran.Load() != 2 {
		t.Errorf("%d calls ran, and two were recorded", ran.Load())
	}
}
