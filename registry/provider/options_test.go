package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// add puts an event on a toolset's request stream, as any client can.
func (c *crib) add(toolset, event, payload string) {
	c.t.Helper()
	s, err := c.client.Stream(c.t.Context(), registry.RequestStream(toolset), nil)
	if err == nil {
		_, err = s.Add(c.t.Context(), event, []byte(payload))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// answer waits for what comes first on the stream that answers a request.
func (c *crib) answer(id string) (stream.Event, registry.ToolResultMessage) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	s, err := c.client.Stream(ctx, registry.ResultStream(id), &stream.Options{TTL: registry.ResultTTL})
	if err != nil {
		c.t.Fatal(err)
	}
	sink, err := s.Sink(ctx, "test", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer sink.Close()
	e, err := sink.Receive(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	c.check(e.Ack(ctx))
	res, err := registry.DecodeResult(e.Payload)
	if err != nil {
		c.t.Fatalf("%s: %v", e.Payload, err)
	}
	return e, res
}

// echo answers a call with its arguments.
var echo = provider.HandlerFunc(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
	return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
})

// handler describes a toolset of tools that one function serves.
type handler struct {
	provider.HandlerFunc
	tools []registry.ToolSpec
}

func (h handler) Contract(toolset string) (registry.Contract, error) {
	return registry.Contract{Toolset: toolset, Tools: h.tools}, nil
}

func spec(name string, effect tools.SideEffect) registry.ToolSpec {
	return registry.ToolSpec{Name: name, Description: "A tool.", ArgsSchema: json.RawMessage(`{"type":"object"}`), ResultSchema: json.RawMessage(`{}`),
		SideEffects: effect, Policy: &registry.PolicySpec{TimeoutMS: 60_000, MaxRetries: -1}}
}

// serving is a toolset of a harmless tool and one with effects.
func serving(f provider.HandlerFunc) handler {
	return handler{HandlerFunc: f, tools: []registry.ToolSpec{spec("demo.read", tools.SideEffectRead), spec("demo.write", tools.SideEffectWrite)}}
}

func sinkOf(c *crib, toolset, name string) error {
	s, err := c.client.Stream(c.t.Context(), registry.RequestStream(toolset), nil)
	if err != nil {
		return err
	}
	sink, err := s.Sink(c.t.Context(), name, nil)
	if err != nil {
		return err
	}
	return sink.Close()
}

func TestSinkName(t *testing.T) {
	c := newCrib(t, nil)
	for toolset, given := range map[string]string{"usual": "", "named": "mine"} {
		stop := c.serve(toolset, serving(echo), provider.Options{SinkName: given})
		c.up(toolset, 1)
		want := given
		if want == "" {
			want = "provider"
		}
		c.add(toolset, "call", `{"type":"call","tool_use_id":"id-`+toolset+`","tool":"demo.read","payload":{}}`)
		c.answer("id-" + toolset) // now the sink is open
		if err := sinkOf(c, toolset, "another"); !errors.Is(err, stream.ErrConflict) {
			t.Errorf("%s: a sink of another name: %v", toolset, err)
		}
		if err := sinkOf(c, toolset, want); err != nil {
			t.Errorf("%s: the sink %s: %v", toolset, want, err)
		}
		c.check(stop())
	}
}

func TestResultEventType(t *testing.T) {
	c := newCrib(t, nil)
	for toolset, given := range map[string]string{"usual": "", "named": "outcome"} {
		c.serve(toolset, serving(echo), provider.Options{ResultEventType: given})
		c.up(toolset, 1)
		c.add(toolset, "call", `{"type":"call","tool_use_id":"id-`+toolset+`","tool":"demo.read","payload":{"a":1}}`)
		want := given
		if want == "" {
			want = registry.ResultEventKey
		}
		if e, res := c.answer("id-" + toolset); e.Name != want || string(res.ResultJSON) != `{"a":1}` {
			t.Errorf("%s: the event is called %q: %s", toolset, e.Name, e.Payload)
		}
	}
	if res, err := c.call(caller(t), "demo.read", `{"b":2}`); err != nil || string(res.Structured) != `{"b":2}` {
		t.Errorf("through the registry: %+v, %v", res, err)
	}
}

// A tool that is slower than the grace period runs once, whatever its effects.
func TestSinkAckGracePeriod(t *testing.T) {
	c := newCrib(t, nil)
	const grace = 200 * time.Millisecond
	var runs atomic.Int64
	slow := serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		runs.Add(1)
		select {
		case <-time.After(6 * grace):
		case <-ctx.Done():
			return registry.ToolResultMessage{}, ctx.Err()
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	})
	for range 2 {
		c.serve("demo", slow, provider.Options{SinkAckGracePeriod: grace})
	}
	c.up("demo", 2)
	for _, tool := range []string{"demo.read", "demo.write"} {
		runs.Store(0)
		if _, err := c.call(caller(t), tool, `{}`); err != nil || runs.Load() != 1 {
			t.Errorf("%s: %v after %d runs", tool, err, runs.Load())
		}
	}
	client := c.connect()
	err := provider.Serve(t.Context(), client, "demo", slow, provider.Options{SinkAckGracePeriod: 2 * grace, Pong: provider.Pong(client, "")})
	if !errors.Is(err, stream.ErrConflict) {
		t.Errorf("a worker with another grace period: %v", err)
	}
}

func TestPong(t *testing.T) {
	c := newCrib(t, nil)
	if err := provider.Serve(t.Context(), c.client, "demo", echo, provider.Options{}); !errors.Is(err, provider.ErrNoPong) {
		t.Errorf("without Pong: %v", err)
	}
	pinged := make(chan string, 100)
	var broken atomic.Bool
	c.serve("demo", serving(echo), provider.Options{Pong: func(_ context.Context, id string) error {
		pinged <- id
		if broken.Load() {
			return errors.New("the registry is not reachable")
		}
		return nil
	}})
	c.up("demo", 1)
	if id := <-pinged; id == "" {
		t.Error("a ping without an id")
	}
	c.add("demo", "ping", `{"type":"ping","ping_id":"by-hand"}`)
	for id := <-pinged; id != "by-hand"; id = <-pinged {
	}
	broken.Store(true)
	c.up("demo", 0)
	c.add("demo", "call", `{"type":"call","tool_use_id":"meanwhile","tool":"demo.read","payload":{}}`)
	if _, res := c.answer("meanwhile"); res.Error != nil {
		t.Errorf("while Pong fails: %+v", res)
	}
	broken.Store(false)
	c.up("demo", 1)
}

func TestPongTimeout(t *testing.T) {
	c := newCrib(t, nil)
	stuck := make(chan struct{})
	defer close(stuck)
	for toolset, given := range map[string]time.Duration{"usual": 0, "named": 5 * time.Second} {
		left := make(chan time.Duration, 10)
		pong := func(ctx context.Context, _ string) error {
			end, _ := ctx.Deadline()
			select {
			case left <- time.Until(end):
			default:
			}
			<-stuck // whatever the context says
			return nil
		}
		c.serve(toolset, serving(echo), provider.Options{Pong: pong, PongTimeout: given})
		want := given
		if want == 0 {
			want = 2 * time.Second
		}
		c.add(toolset, "ping", `{"type":"ping","ping_id":"x"}`)
		if d := <-left; d > want || d < want-time.Second {
			t.Errorf("%s: Pong has %s", toolset, d)
		}
		c.add(toolset, "call", `{"type":"call","tool_use_id":"id-`+toolset+`","tool":"demo.read","payload":{}}`)
		c.answer("id-" + toolset)
	}
}

// A Pong that never returns does not pile up, and is called again once it does.
func TestPongThatIsStuck(t *testing.T) {
	c := newCrib(t, nil)
	stuck := make(chan struct{})
	var inside, acknowledged atomic.Int64
	pong := func(context.Context, string) error {
		inside.Add(1)
		defer inside.Add(-1)
		<-stuck // whatever the context says
		acknowledged.Add(1)
		return nil
	}
	c.serve("demo", serving(echo), provider.Options{Pong: pong, PongTimeout: 20 * time.Millisecond})
	c.up("demo", 1)
	subject := registry.InstanceSubject("demo", c.reg.Toolsets()[0].Workers[0].Instance)
	ping := stream.Message{Name: registry.MessagePing, Payload: []byte(`{"type":"ping","ping_id":"x"}`)}
	const most = 16
	for range 2 * most {
		if m, err := c.client.Request(caller(t), subject, ping); err != nil || m.Name != registry.MessageRetry {
			t.Fatalf("%s, %v", m.Name, err)
		}
	}
	if n := inside.Load(); n != most {
		t.Errorf("%d calls of Pong have not returned, want %d", n, most)
	}
	close(stuck)
	await(t, "those that were stuck have returned", func() bool { return acknowledged.Load() >= most })
	await(t, "a ping is acknowledged", func() bool {
		m, err := c.client.Request(caller(t), subject, ping)
		return err == nil && m.Name == registry.MessagePong
	})
}

// gate counts the calls that run, and holds them until it is opened.
type gate struct {
	running, most atomic.Int64
	entered       chan string
	open          chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan string, 10_000), open: make(chan struct{})} }

func (g *gate) handle(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
	n := g.running.Add(1)
	defer g.running.Add(-1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	g.entered <- m.ToolUseID
	select {
	case <-g.open:
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	case <-ctx.Done():
		return registry.ToolResultMessage{}, ctx.Err()
	}
}

// outcome is what came of a call.
type outcome struct {
	res tools.ToolResult
	err error
}

// calls makes n calls at once and returns where their outcomes come.
func (c *crib) calls(n int, tool string) <-chan outcome { return c.callsFor(caller(c.t), n, tool) }

func (c *crib) callsFor(ctx context.Context, n int, tool string) <-chan outcome {
	out := make(chan outcome, n)
	for i := range n {
		go func() {
			res, err := c.call(ctx, tool, fmt.Sprintf(`{"n":%d}`, i))
			out <- outcome{res, err}
		}()
	}
	return out
}

func TestMaxConcurrentToolCalls(t *testing.T) {
	c := newCrib(t, nil)
	for toolset, given := range map[string]int{"usual": 0, "named": 3} {
		g := newGate()
		stop := c.serve(toolset, serving(g.handle), provider.Options{MaxConcurrentToolCalls: given})
		c.up(toolset, 1)
		want := given
		if want == 0 {
			want = 4
		}
		out := c.calls(2*want+3, "demo.read")
		for range want {
			<-g.entered
		}
		if w := c.reg.Toolsets()[0]; len(g.entered) != 0 {
			t.Errorf("%s: more than %d calls run: %+v", toolset, want, w)
		}
		close(g.open)
		for range 2*want + 3 {
			if o := <-out; o.err != nil {
				t.Error(o.err)
			}
		}
		if most := g.most.Load(); most != int64(want) {
			t.Errorf("%s: %d calls ran at once, want %d", toolset, most, want)
		}
		c.check(stop())
		c.check(c.reg.Forget(t.Context(), toolset))
	}
}

// A call that finds the queue full is told so, with the time after which to try
// again.
func TestMaxQueuedToolCalls(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	c.serve("demo", serving(g.handle), provider.Options{MaxConcurrentToolCalls: 1, MaxQueuedToolCalls: 2})
	c.up("demo", 1)
	out := c.calls(1, "demo.write")
	<-g.entered
	more := c.calls(7, "demo.write")
	for range 5 {
		o := <-more
		var te *tools.Error
		if !errors.Is(o.err, tools.ErrOverloaded) || !errors.As(o.err, &te) || te.RetryAfter <= 0 || te.Delivery != tools.NotDelivered {
			t.Fatalf("a call that finds no room: %#v", o.err)
		}
	}
	close(g.open)
	for range 2 {
		if o := <-more; o.err != nil {
			t.Errorf("a call that was queued: %v", o.err)
		}
	}
	if o := <-out; o.err != nil {
		t.Errorf("the call that ran: %v", o.err)
	}
	c.serve("usual", handler{HandlerFunc: echo, tools: []registry.ToolSpec{spec("usual.read", tools.SideEffectRead)}}, provider.Options{MaxConcurrentToolCalls: 2})
	c.up("usual", 1)
	for _, s := range c.reg.Toolsets() {
		if s.Name == "usual" && s.Workers[0].Queue != 128 {
			t.Errorf("the usual queue for two calls at once has %d places", s.Workers[0].Queue)
		}
	}
}

// A panic of a tool is answered without its words, and logged with its stack.
func TestLogger(t *testing.T) {
	c := newCrib(t, nil)
	var log peertest.Log
	boom := serving(func(context.Context, registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		panic("boom: 4711")
	})
	for _, logger := range []*slog.Logger{nil, log.Logger(slog.LevelInfo)} {
		stop := c.serve("demo", boom, provider.Options{Logger: logger})
		c.up("demo", 1)
		_, err := c.call(caller(t), "demo.write", `{}`)
		var te *tools.Error
		if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || te.Delivery != tools.Answered || strings.Contains(err.Error(), "4711") {
			t.Errorf("a panic: %#v", err)
		}
		c.check(stop())
	}
	if got := log.String(); !strings.Contains(got, "boom: 4711") || !strings.Contains(got, "goroutine") {
		t.Errorf("the log: %s", got)
	}
}

// The span of a call belongs to the trace of its caller.
func TestTracer(t *testing.T) {
	c := newCrib(t, nil)
	spans := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	stop := c.serve("demo", serving(echo), provider.Options{Tracer: traces.Tracer("test")})
	c.up("demo", 1)
	ctx, outer := traces.Tracer("caller").Start(caller(t), "outer")
	if _, err := c.call(ctx, "demo.read", `{}`); err != nil {
		t.Fatal(err)
	}
	outer.End()
	c.check(stop())
	for _, s := range spans.Ended() {
		if s.Name() == "toolcrib.worker.call" && s.SpanContext().TraceID() == outer.SpanContext().TraceID() && s.Parent().SpanID() == outer.SpanContext().SpanID() {
			return
		}
	}
	t.Errorf("there is no span of the call in the caller's trace: %v", spans.Ended())
}
