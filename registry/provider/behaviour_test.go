package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// A message written by hand, in the documented JSON on the documented stream, is
// served by a handler that knows nothing of a registry.
func TestMessageByHand(t *testing.T) {
	c := newCrib(t, nil)
	seen := make(chan registry.ToolCallMessage, 1)
	c.serve("weather", provider.HandlerFunc(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		seen <- m
		if err := provider.OutputDelta(ctx, "stdout", "looking"); err != nil {
			return registry.ToolResultMessage{}, err
		}
		total := 9
		return registry.ToolResultMessage{ResultJSON: json.RawMessage(`{"temperature":21.5}`), Bounds: &registry.Bounds{Returned: 1, Total: &total, Truncated: true},
			ServerData: []registry.ServerData{{Kind: "chart", Audience: "timeline", Data: json.RawMessage(`{"points":[1]}`)}}}, nil
	}), provider.Options{})
	c.add("weather", "call", `{"type":"call","tool_use_id":"toolu_01","tool":"get_current","payload":{"city":"Zürich","n":9007199254740993},`+
		`"meta":{"run_id":"r","session_id":"s","turn_id":"t","tool_call_id":"c","parent_tool_call_id":"p"}}`)
	if m := <-seen; m.Tool != "get_current" || m.Meta.TurnID != "t" || string(m.Payload) != `{"city":"Zürich","n":9007199254740993}` {
		t.Errorf("the handler got %+v", m)
	}
	s, err := c.client.Stream(t.Context(), "result:toolu_01", &stream.Options{TTL: registry.ResultTTL})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := s.Sink(t.Context(), "me", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	for _, want := range []struct{ name, payload string }{
		{"output_delta", `{"tool_use_id":"toolu_01","stream":"stdout","delta":"looking"}`},
		{"result", `{"tool_use_id":"toolu_01","result_json":{"temperature":21.5},"bounds":{"returned":1,"total":9,"truncated":true},` +
			`"server_data":[{"kind":"chart","audience":"timeline","data":{"points":[1]}}]}`},
	} {
		e, err := sink.Receive(caller(t))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name != want.name || string(e.Payload) != want.payload {
			t.Errorf("got %s %s, want %s %s", e.Name, e.Payload, want.name, want.payload)
		}
		c.check(e.Ack(t.Context()))
	}
}

// What cannot be read is put aside and answered as far as that is possible, and
// the loop lives on.
func TestPoison(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	c.add("demo", "call", `this is no JSON`)
	c.add("demo", "call", `{"type":"call","tool_use_id":"poison","tool":"no name","payload":{}}`)
	if _, res := c.answer("poison"); res.Error == nil || res.Error.Code != registry.CodeInvalidMessage {
		t.Errorf("the answer: %+v", res.Error)
	}
	if _, err := c.call(caller(t), "demo.write", `{}`); err != nil {
		t.Errorf("the call after it: %v", err)
	}
	dead, err := c.client.Stream(t.Context(), registry.DeadStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "both are on the stream of dead letters", func() bool {
		size, err := dead.Size(t.Context())
		return err == nil && size.Waiting == 2
	})
	page, err := c.reg.DeadLetters(t.Context(), registry.DeadLetterQuery{Toolset: "demo"})
	if err != nil || len(page.Letters) != 2 || page.Next != "" {
		t.Fatalf("the dead letters: %+v, %v", page, err)
	}
	unread := map[string]string{} // reasons by ids
	for _, d := range page.Letters {
		unread[d.ToolUseID] = d.Reason
	}
	if !strings.Contains(unread[""], "no JSON object") || !strings.Contains(unread["poison"], "tool: ") {
		t.Errorf("they were not served because %q", unread)
	}
}

// announce says that a worker is up which does nothing.
func (c *crib) announce(toolset string) {
	c.t.Helper()
	payload, err := registry.Encode(registry.Announcement{Toolset: toolset, Instance: "idle"})
	if err == nil {
		_, err = c.client.Request(caller(c.t), registry.AnnounceSubject(""), stream.Message{Name: registry.MessageAnnounce, Payload: payload})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// takeAndDie takes events as workers do that die with each.
func (c *crib) takeAndDie(toolset string, lease time.Duration, times int) {
	c.t.Helper()
	s, err := c.client.Stream(c.t.Context(), registry.RequestStream(toolset), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	sink, err := s.Sink(c.t.Context(), "provider", &stream.SinkOptions{Lease: lease})
	if err != nil {
		c.t.Fatal(err)
	}
	defer sink.Close()
	for range times {
		if _, err := sink.Receive(caller(c.t)); err != nil {
			c.t.Fatal(err)
		}
	}
}

func mustRegistry(t *testing.T) *events.Registry {
	t.Helper()
	r, err := events.NewRegistry(append(registry.EventDefinitions(), tools.EventDefinitions()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A cancellation reaches the handler, also of a call that has no effects, and the
// worker goes on.
func TestCancellation(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	ended := make(chan error, 1)
	c.serve("demo", serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		res, err := g.handle(ctx, m)
		ended <- err
		return res, err
	}), provider.Options{})
	c.up("demo", 1)
	for _, tool := range []string{"demo.read", "demo.write"} {
		ctx, cancel := context.WithCancel(caller(t))
		done := make(chan error, 1)
		go func() {
			_, err := c.call(ctx, tool, `{}`)
			done <- err
		}()
		<-g.entered
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, tools.ErrOutcomeUnknown) != (tool == "demo.write") {
			t.Errorf("%s: the caller gets %v", tool, err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: the handler ended with %v", tool, err)
		}
	}
}

// A call that is cancelled before a worker has it is known not to have run.
func TestCancelledWhileQueued(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	c.serve("demo", serving(g.handle), provider.Options{MaxConcurrentToolCalls: 1})
	c.up("demo", 1)
	first := c.calls(1, "demo.write")
	<-g.entered
	ctx, cancel := context.WithTimeout(caller(t), 100*time.Millisecond)
	defer cancel()
	_, err := c.call(ctx, "demo.write", `{"late":true}`)
	var te *tools.Error
	if !errors.As(err, &te) || te.Delivery != tools.NotDelivered || te.OutcomeUnknown {
		t.Errorf("a call that no worker had: %#v", err)
	}
	close(g.open)
	if o := <-first; o.err != nil {
		t.Error(o.err)
	}
	if _, err := c.call(caller(t), "demo.write", `{}`); err != nil {
		t.Error(err)
	}
	if n := len(g.entered); n != 1 {
		t.Errorf("%d calls ran after the first, want the last alone", n)
	}
}

// notes is a caller that keeps what it is told before the result.
type notes struct {
	mu       sync.Mutex
	progress []tools.ProgressNote
	log      []tools.LogNote
}

func (n *notes) Progress(_ context.Context, p tools.ProgressNote) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.progress = append(n.progress, p)
	return nil
}

func (n *notes) Log(_ context.Context, l tools.LogNote) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.log = append(n.log, l)
	return nil
}

func (n *notes) Ask(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{}, errors.New("nobody is asked")
}

// Deltas, progress and log lines reach the caller ahead of the result.
func TestNotes(t *testing.T) {
	c := newCrib(t, nil)
	c.serve("demo", serving(func(ctx context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		for i := range 5 {
			if err := provider.OutputDelta(ctx, "stdout", fmt.Sprint("part ", i)); err != nil {
				return registry.ToolResultMessage{}, err
			}
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{})
	cat := tools.NewCatalog()
	err := inproc.RegisterFunc(cat, "told.steps", func(ctx context.Context, in addArgs) (sum, error) {
		call := tools.CallFrom(ctx)
		if who, _ := identity.QuadrupleFrom(ctx); who.TenantID != "acme" || who.RunID != "r1" || call.ID == "" || string(call.Meta) != `{"k":1}` {
			return sum{}, fmt.Errorf("called by %+v with %s", who, call.Meta)
		}
		if _, err := call.Ask(ctx, tools.Question{Method: "roots/list"}); !errors.Is(err, tools.ErrAskUnsupported) {
			return sum{}, fmt.Errorf("a question: %v", err)
		}
		return sum{in.A}, errors.Join(tools.Progress(ctx, 1, 2, "half"), call.Log(ctx, tools.LogNote{Level: "info", Data: json.RawMessage(`"line"`)}))
	})
	if err != nil {
		t.Fatal(err)
	}
	c.serve("told", provider.FromCatalog(cat), provider.Options{})
	c.up("demo", 1)
	c.up("told", 1)
	var heard notes
	ctx := tools.WithEntrance(caller(t), tools.Entrance{Peer: &heard, Meta: json.RawMessage(`{"k":1}`)})
	if _, err := c.call(ctx, "demo.read", `{}`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.call(ctx, "told.steps", `{"a":1,"b":1}`); err != nil {
		t.Fatal(err)
	}
	if len(heard.progress) != 6 || heard.progress[4].Message != "part 4" || heard.progress[4].Progress <= heard.progress[3].Progress ||
		heard.progress[5].Total != 2 || len(heard.log) != 1 || string(heard.log[0].Data) != `"line"` {
		t.Errorf("heard %+v and %+v", heard.progress, heard.log)
	}
	if err := provider.OutputDelta(t.Context(), "stdout", "x"); !errors.Is(err, provider.ErrNoCall) {
		t.Errorf("a delta of no call: %v", err)
	}
}

// Without a worker a call fails at once and says for how long there was none; it
// waits when its caller says so.
func TestNoWorker(t *testing.T) {
	c := newCrib(t, nil)
	stop := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	c.check(stop())
	c.up("demo", 0)
	d, _ := c.cat.Resolve("demo.write")
	if d.Tool.Name == "" {
		t.Fatal("the tools went with the worker")
	}
	began := time.Now()
	_, err := c.call(caller(t), "demo.write", `{}`)
	var te *tools.Error
	if !errors.As(err, &te) || te.Delivery != tools.NotDelivered || !strings.Contains(te.Message, `"demo"`) || !strings.Contains(te.Message, "ago") {
		t.Errorf("without a worker: %#v", err)
	}
	if spent := time.Since(began); spent > 5*time.Second {
		t.Errorf("it took %s", spent)
	}
	if err := c.reg.Health(); err == nil || !strings.Contains(err.Error(), `"demo"`) {
		t.Errorf("Health: %v", err)
	}
	done := make(chan error, 2)
	for _, ctx := range []context.Context{registry.Wait(caller(t)),
		tools.WithEntrance(caller(t), tools.Entrance{Meta: json.RawMessage(`{"` + registry.MetaWait + `":true}`)})} {
		go func() {
			_, err := c.call(ctx, "demo.write", `{}`)
			done <- err
		}()
	}
	await(t, "both calls wait", func() bool { return c.reg.Toolsets()[0].Outstanding == 2 })
	c.serve("demo", serving(echo), provider.Options{})
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("a call that waited: %v", err)
		}
	}
	c.check(c.reg.Health())
}

// Calls of both kinds that wait for a worker are each answered.
func TestQueuedWhileNoWorker(t *testing.T) {
	c := newCrib(t, nil)
	stop := c.serve("demo", serving(echo), provider.Options{})
	c.up("demo", 1)
	c.check(stop())
	const n = 3000
	var ran atomic.Int64
	var reads sync.Map
	type outcome struct {
		short bool // whose caller does not wait
		err   error
	}
	out := make(chan outcome, n)
	ctx := registry.Wait(caller(t))
	for i := range n {
		tool := []string{"demo.read", "demo.write"}[i%2]
		limit, short := ctx, i%10 == 0
		if short {
			var cancel context.CancelFunc
			limit, cancel = context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
		}
		go func() {
			_, err := c.call(limit, tool, fmt.Sprintf(`{"n":%d}`, i))
			out <- outcome{short, err}
		}()
	}
	expired, refused, answered := 0, 0, 0
	for expired < n/10 {
		switch o := <-out; {
		case o.err == nil:
			t.Fatal("a call ran without a worker")
		case o.short:
			expired++
		case errors.Is(o.err, tools.ErrOverloaded):
			refused++
		default:
			t.Fatal(o.err)
		}
	}
	c.serve("demo", serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		// A call that only reads may be sent again while it runs; its caller gets one answer.
		if _, again := reads.LoadOrStore(m.ToolUseID, true); !again || m.Tool != "demo.read" {
			ran.Add(1)
		}
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	}), provider.Options{})
	for expired+refused+answered < n {
		switch o := <-out; {
		case o.err == nil:
			answered++
		case errors.Is(o.err, tools.ErrOverloaded):
			refused++
		default:
			t.Fatal(o.err)
		}
	}
	if int(ran.Load()) != answered || answered == 0 {
		t.Errorf("%d calls were answered, and %d ran", answered, ran.Load())
	}
	t.Logf("%d ran, %d were refused as overloaded, %d expired", answered, refused, expired)
}

// Workers that come and go during a burst lose nothing.
func TestDrainInABurst(t *testing.T) {
	c := newCrib(t, nil)
	var mu sync.Mutex
	ran := map[string]int{}
	book := serving(func(_ context.Context, m registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		mu.Lock()
		ran[string(m.Payload)]++
		mu.Unlock()
		return registry.ToolResultMessage{ResultJSON: m.Payload}, nil
	})
	c.serve("demo", book, provider.Options{})
	leaving := c.serve("demo", book, provider.Options{})
	c.up("demo", 2)
	const n = 400
	out := c.callsFor(registry.Wait(caller(t)), n, "demo.write")
	for i := range n {
		if i == n/8 {
			c.check(leaving())
		}
		if o := <-out; o.err != nil {
			t.Fatal(o.err)
		}
	}
	if len(ran) != n {
		t.Errorf("%d of %d calls ran", len(ran), n)
	}
	for payload, times := range ran {
		if times != 1 {
			t.Errorf("%s ran %d times", payload, times)
		}
	}
}

// A drain that takes too long ends its calls and says so.
func TestDrainIsBounded(t *testing.T) {
	c := newCrib(t, nil)
	g := newGate()
	stop := c.serve("demo", serving(g.handle), provider.Options{DrainTimeout: 100 * time.Millisecond})
	c.up("demo", 1)
	out := c.calls(1, "demo.write")
	<-g.entered
	if err := stop(); !errors.Is(err, provider.ErrDrain) {
		t.Errorf("Serve: %v", err)
	}
	if o := <-out; !errors.Is(o.err, tools.ErrOutcomeUnknown) {
		t.Errorf("the call: %v", o.err)
	}
}
