package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

var ada = identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"}

// watched is a catalog whose events can be read after the fact.
type watched struct {
	tools.LiveCatalog
	bus *events.Bus
	sub *events.Subscription
}

func watch(t testing.TB, opts []tools.CatalogOption, list ...tools.ToolDescriptor) *watched {
	t.Helper()
	reg, err := events.NewRegistry(tools.EventDefinitions()...)
	if err != nil {
		t.Fatal(err)
	}
	bus := events.NewBus(reg)
	opts = append(opts, tools.WithEvents(bus), tools.WithLogger(slog.New(slog.DiscardHandler)))
	w := &watched{LiveCatalog: newCatalog(t, opts, list...), bus: bus}
	w.sub = bus.Subscribe(events.Filter{TenantID: ada.TenantID}, &events.SubscribeOptions{Buffer: 1 << 14})
	return w
}

// drain returns the events so far, as "type" or "type:detail".
func (w *watched) drain() []string {
	var out []string
	for {
		select {
		case e := <-w.sub.Events():
			out = append(out, describeEvent(e))
		default:
			return out
		}
	}
}

func describeEvent(e events.Event) string {
	switch p := e.Payload.(type) {
	case tools.ToolCompletedPayload:
		return fmt.Sprintf("%s:%d", e.Type, p.Attempts)
	case tools.ToolFailedPayload:
		return fmt.Sprintf("%s:%s:%d", e.Type, p.ErrorClass, p.Attempts)
	case tools.ToolPolicyExhaustedPayload:
		return fmt.Sprintf("%s:%s:%d", e.Type, p.LastClass, p.Attempts)
	case tools.ToolDeniedPayload:
		return fmt.Sprintf("%s:%s", e.Type, p.Stage)
	case tools.ToolForgedArgsPayload:
		return fmt.Sprintf("%s:%s", e.Type, strings.Join(p.Args, ","))
	}
	return string(e.Type)
}

func adaCtx(scopes ...string) context.Context {
	return identity.WithRun(identity.With(context.Background(), ada, scopes...), "run1")
}

func returning(res tools.ToolResult, err error) tools.Invoker {
	return func(context.Context, json.RawMessage) (tools.ToolResult, error) { return res, err }
}

func plain(name string, invoke tools.Invoker, opts ...tools.DescriptorOption) tools.ToolDescriptor {
	return tools.ResolveOptions(opts...).Descriptor(tools.Tool{Name: name}, invoke)
}

// noWait retries without pauses worth mentioning.
var noWait = tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 60000, MaxRetries: 2, BackoffBase: 1, BackoffMax: 1})

func TestEventsOfEachOutcome(t *testing.T) {
	flaky := func(failures int32) tools.Invoker {
		var n atomic.Int32
		return func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			if n.Add(1) <= failures {
				return tools.ToolResult{}, errors.New("connection reset")
			}
			return tools.ToolResult{Value: "ok"}, nil
		}
	}
	out := tools.Tool{Name: "t", OutSchema: json.RawMessage(`{"type":"string"}`)}
	cases := map[string]struct {
		d       tools.ToolDescriptor
		args    string
		want    string
		wantErr error
	}{
		"completed":      {descriptor("t"), `{"text":"x"}`, "tool.invoked tool.completed:1", nil},
		"is error":       {plain("t", returning(tools.ToolResult{IsError: true, Content: []tools.Content{tools.TextContent("no")}}, nil)), ``, "tool.invoked tool.completed:1", nil},
		"after a retry":  {plain("t", flaky(1), noWait), ``, "tool.invoked tool.completed:2", nil},
		"exhausted":      {plain("t", flaky(9), noWait), ``, "tool.invoked tool.policy_exhausted:transient:3 tool.failed:transient:3", tools.ErrToolPolicyExhausted},
		"permanent":      {plain("t", returning(tools.ToolResult{}, &tools.Error{Class: tools.ErrClassPermanent}), noWait), ``, "tool.invoked tool.failed:permanent:1", nil},
		"invalid":        {descriptor("t"), `{"text":1}`, "tool.invalid_args", tools.ErrToolInvalidArgs},
		"malformed":      {descriptor("t"), `{"text":`, "tool.invalid_args", tools.ErrToolInvalidArgs},
		"duplicate key":  {descriptor("t"), `{"text":"a","text":"b"}`, "tool.invalid_args", tools.ErrToolInvalidArgs},
		"invalid output": {tools.ToolDescriptor{Tool: out, Invoke: returning(tools.ToolResult{Value: 7}, nil)}, ``, "tool.invoked tool.failed:permanent:1", tools.ErrToolInvalidOutput},
		"no output":      {tools.ToolDescriptor{Tool: out, Invoke: returning(tools.ToolResult{}, nil)}, ``, "tool.invoked tool.failed:permanent:1", tools.ErrToolInvalidOutput},
		"panic":          {plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) { panic("secret") }, noWait), ``, "tool.invoked tool.failed:permanent:1", nil},
		"inline panic":   {plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) { panic("secret") }, noWait, tools.WithInline()), ``, "tool.invoked tool.failed:permanent:1", nil},
		"confirmation":   {plain("t", echo, tools.WithSafety(tools.Safety{NeedsConfirmation: tools.Yes})), ``, "tool.denied:policy tool", tools.ErrToolDenied},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := watch(t, nil, c.d)
			res, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(c.args))
			got := strings.Join(w.drain(), " ")
			if name == "confirmation" {
				c.want = "tool.denied:approval"
			}
			if got != c.want {
				t.Errorf("events: %s\nwant:   %s", got, c.want)
			}
			if strings.Contains(c.want, "completed") != (err == nil) || c.wantErr != nil && !errors.Is(err, c.wantErr) {
				t.Errorf("error: %v", err)
			}
			var te *tools.Error
			if err != nil && (!errors.As(err, &te) || te.Tool != "t" || te.Class == "") {
				t.Errorf("not the one error type, or incomplete: %#v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the panic's value reached the caller: %v", err)
			}
			if err == nil && (res.CallID == "" || res.Attempts == 0) {
				t.Errorf("incomplete result: %+v", res)
			}
		})
	}
}

func TestHiddenIsUnknown(t *testing.T) {
	w := watch(t, []tools.CatalogOption{tools.WithRequiredIdentity()}, descriptor("scoped", tools.WithAuthScopes("s")), descriptor("theirs", tools.WithTenants("else")))
	cancelled, cancel := context.WithCancel(adaCtx())
	cancel()
	half := identity.With(context.Background(), identity.Identity{TenantID: "acme"})
	for name, ctx := range map[string]context.Context{"plain": adaCtx(), "dead": cancelled, "half": half, "bare": context.Background()} {
		t.Run(name, func(t *testing.T) {
			outcome := func(tool string) (string, []string) {
				_, err := tools.Invoke(ctx, w, tool, json.RawMessage(`{"text":"x"}`))
				if err == nil {
					t.Fatalf("%s was called", tool)
				}
				var seen []string
				for _, e := range collect(w) {
					e.Seq, e.Time = 0, e.Time.UTC().Truncate(1<<62)
					seen = append(seen, strings.ReplaceAll(fmt.Sprintf("%+v", e), tool, "NAME"))
				}
				return strings.ReplaceAll(err.Error(), tool, "NAME"), seen
			}
			wantErr, wantEvents := outcome("missing")
			for _, tool := range []string{"scoped", "theirs"} {
				gotErr, gotEvents := outcome(tool)
				if gotErr != wantErr || !slices.Equal(gotEvents, wantEvents) {
					t.Errorf("%s:\n%s %v\nmissing:\n%s %v", tool, gotErr, gotEvents, wantErr, wantEvents)
				}
			}
			if name == "plain" && len(wantEvents) != 1 {
				t.Errorf("events: %v", wantEvents)
			}
		})
	}
	if _, err := tools.Invoke(adaCtx("s"), w, "scoped", json.RawMessage(`{"text":"x"}`)); err != nil {
		t.Errorf("with the scope: %v", err)
	}
}

func collect(w *watched) []events.Event {
	var out []events.Event
	for {
		select {
		case e := <-w.sub.Events():
			out = append(out, e)
		default:
			return out
		}
	}
}

func TestIdentityRequired(t *testing.T) {
	w := watch(t, []tools.CatalogOption{tools.WithRequiredIdentity()}, descriptor("t"))
	if _, err := tools.Invoke(context.Background(), w, "t", json.RawMessage(`{"text":"x"}`)); !errors.Is(err, tools.ErrIdentityRequired) {
		t.Errorf("bare context: %v", err)
	}
	open := newCatalog(t, nil, descriptor("t"))
	if _, err := tools.Invoke(context.Background(), open, "t", json.RawMessage(`{"text":"x"}`)); err != nil {
		t.Errorf("a library catalog demands identity: %v", err)
	}
}

func TestAbsentArguments(t *testing.T) {
	w := watch(t, nil, tools.ToolDescriptor{Tool: tools.Tool{Name: "none", ArgsSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`)}, Invoke: echo})
	for _, args := range []string{"", "null", " null ", "{}", " "} {
		if res, err := tools.Invoke(adaCtx(), w, "none", json.RawMessage(args)); err != nil || string(res.Structured) != "{}" {
			t.Errorf("%q: %s, %v", args, res.Structured, err)
		}
	}
}

func TestReplacedWrapperIsOneCall(t *testing.T) {
	var outer, inner atomic.Int32
	w := watch(t, nil, plain("t", func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if inner.Add(1) < 3 {
			return tools.ToolResult{}, errors.New("EOF")
		}
		return tools.ToolResult{Value: "ok"}, nil
	}, noWait))
	for range 2 {
		d, _ := w.Resolve("t")
		next := d.Invoke
		d.Invoke = func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			outer.Add(1)
			return next(ctx, args)
		}
		if err := w.Replace([]tools.ToolDescriptor{d}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tools.Invoke(adaCtx(), w, "t", nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.drain(), " "); got != "tool.invoked tool.completed:3" || inner.Load() != 3 || outer.Load() != 6 {
		t.Errorf("events %q, driver ran %d times, wrappers %d times", got, inner.Load(), outer.Load())
	}
}

func TestWrap(t *testing.T) {
	w := watch(t, nil, plain("t", echo))
	mark := func(s string, order *[]string) tools.Middleware {
		return func(next tools.Invoker) tools.Invoker {
			return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
				*order = append(*order, s)
				return next(ctx, args)
			}
		}
	}
	var order []string
	d, _ := w.Resolve("t")
	d = tools.Wrap(d, mark("a", &order), mark("b", &order))
	if err := w.Replace([]tools.ToolDescriptor{d}); err != nil {
		t.Fatal(err)
	}
	d, _ = w.Resolve("t")
	if err := w.Replace([]tools.ToolDescriptor{tools.Wrap(d, mark("c", &order))}); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Invoke(adaCtx(), w, "t", nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.drain(), " "); got != "tool.invoked tool.completed:1" || !slices.Equal(order, []string{"c", "a", "b"}) {
		t.Errorf("events %q, order %v", got, order)
	}
}

func TestDriverWithItsOwnShell(t *testing.T) {
	var calls, hooks atomic.Int32
	published := func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		return tools.RunWithPolicyHooked(ctx, args, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			calls.Add(1)
			return tools.ToolResult{}, errors.New("EOF")
		}, nil, nil, tools.ToolPolicy{MaxRetries: 5, BackoffBase: 1}, tools.InvokeHooks{OnAttempt: func(int, error) { hooks.Add(1) }})
	}
	w := watch(t, nil, plain("t", published, noWait))
	_, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"a":1}`))
	if calls.Load() != 3 || hooks.Load() != 3 {
		t.Errorf("the shells multiplied: %d attempts, %d hooks, %v", calls.Load(), hooks.Load(), err)
	}
	if got := strings.Join(w.drain(), " "); got != "tool.invoked tool.policy_exhausted:transient:3 tool.failed:transient:3" {
		t.Errorf("events %q", got)
	}
}

func TestToolCallsTool(t *testing.T) {
	var ids []*tools.Call
	inner := plain("inner", func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		ids = append(ids, tools.CallFrom(ctx))
		return tools.ToolResult{Value: "in"}, nil
	}, tools.WithAuthScopes("s"))
	outer := plain("outer", func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		ids = append(ids, tools.CallFrom(ctx))
		return tools.Invoke(ctx, tools.MustCatalog(ctx), "inner", nil)
	})
	w := watch(t, nil, outer, inner)
	ctx := tools.WithEntrance(adaCtx("s"), tools.Entrance{CallID: "c1", IdempotencyKey: "k", Meta: json.RawMessage(`{"m":1}`), Capabilities: tools.Capabilities{Roots: true}})
	if _, err := tools.Invoke(ctx, w, "outer", nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.drain(), " "); got != "tool.invoked tool.invoked tool.completed:1 tool.completed:1" {
		t.Errorf("events %q", got)
	}
	o, i := ids[0], ids[1]
	if o.ID != "c1" || o.IdempotencyKey != "k" || string(o.Meta) != `{"m":1}` || o.RunID != "run1" || o.Parent != "" {
		t.Errorf("outer call: %+v", o)
	}
	if i.Parent != "c1" || i.ID == "c1" || i.ID == "" || i.IdempotencyKey != "" || i.Meta != nil || !i.Capabilities.Roots || i.RunID != "run1" {
		t.Errorf("inner call: %+v", i)
	}
}

func TestRecursionIsANewCall(t *testing.T) {
	w := watch(t, nil, plain("t", func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if string(args) == `{"n":0}` {
			return tools.ToolResult{Value: "end"}, nil
		}
		return tools.Invoke(ctx, tools.MustCatalog(ctx), "t", json.RawMessage(`{"n":0}`))
	}))
	d, _ := w.Resolve("t")
	next := d.Invoke
	d.Invoke = func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) { return next(ctx, args) }
	if err := w.Replace([]tools.ToolDescriptor{d}); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.drain(), " "); got != "tool.invoked tool.invoked tool.completed:1 tool.completed:1" {
		t.Errorf("events %q", got)
	}
}

func TestMiddleware(t *testing.T) {
	errNo := errors.New("no")
	cases := map[string]struct {
		m       tools.Middleware
		want    string
		wantErr error
	}{
		"changes what is checked": {func(next tools.Invoker) tools.Invoker {
			return func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
				return next(ctx, json.RawMessage(`{"text":7}`))
			}
		}, "tool.invalid_args", tools.ErrToolInvalidArgs},
		"answers": {func(tools.Invoker) tools.Invoker { return returning(tools.ToolResult{Value: 1}, nil) }, "tool.completed:0", nil},
		"refuses": {func(tools.Invoker) tools.Invoker { return returning(tools.ToolResult{}, errNo) }, "tool.denied:middleware", errNo},
		"panics":  {func(tools.Invoker) tools.Invoker { panic("x") }, "tool.denied:middleware", nil},
		"spoils the result": {func(next tools.Invoker) tools.Invoker {
			return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
				_, _ = next(ctx, args)
				return tools.ToolResult{}, errNo
			}
		}, "tool.invoked tool.failed:transient:1", errNo},
		"sees the call": {func(next tools.Invoker) tools.Invoker {
			return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
				if tools.CallFrom(ctx) == nil {
					return tools.ToolResult{}, errNo
				}
				return next(ctx, args)
			}
		}, "tool.invoked tool.completed:1", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := watch(t, []tools.CatalogOption{tools.WithMiddleware(c.m)}, descriptor("t"))
			_, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"text":"x"}`))
			if got := strings.Join(w.drain(), " "); got != c.want {
				t.Errorf("events %q, want %q", got, c.want)
			}
			if c.wantErr != nil && !errors.Is(err, c.wantErr) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestInjected(t *testing.T) {
	raw := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"tenant":{"type":"string"},"key":{"type":"string"},"n":{"type":"integer"}},"required":["q","tenant","key","n"],"additionalProperties":false}`)
	var got string
	var n atomic.Int32
	d := tools.ResolveOptions(noWait, tools.WithInjected(tools.Injected{Arg: "tenant", From: tools.InjectTenant}, tools.Injected{Arg: "key", From: "secret:API"},
		tools.Injected{Arg: "n", Value: func(ctx context.Context) (any, error) { return n.Add(1), nil }})).
		Descriptor(tools.Tool{Name: "t", ArgsSchema: raw}, func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
			got = string(args)
			if n.Load() < 2 {
				return tools.ToolResult{}, errors.New("EOF")
			}
			return tools.ToolResult{}, nil
		})
	w := watch(t, []tools.CatalogOption{tools.WithStages(tools.Stages{Secrets: secrets{"API": "s3cret"}})}, d)
	seen := w.List(tools.CatalogFilter{})[0]
	if strings.Contains(string(seen.ArgsSchema), "tenant") || strings.Contains(string(seen.ArgsSchema), "key") {
		t.Errorf("hidden arguments are visible: %s", seen.ArgsSchema)
	}
	if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"tenant":"evil","q":"x"}`)); err != nil {
		t.Fatal(err)
	}
	if got != `{"q":"x","tenant":"acme","key":"s3cret","n":2}` {
		t.Errorf("the driver got %s", got)
	}
	if ev := strings.Join(w.drain(), " "); ev != "tool.forged_args:tenant tool.invoked tool.completed:2" {
		t.Errorf("events %q", ev)
	}
	w.SwapStages(tools.Stages{})
	if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"q":"x"}`)); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("without a source of secrets: %v", err)
	}
}

type secrets map[string]string

func (s secrets) Secret(_ context.Context, name string) (string, error) {
	if v, ok := s[name]; ok {
		return v, nil
	}
	return "", errors.New("no such secret")
}

func TestDigestIgnoresWhiteSpaceAlone(t *testing.T) {
	var digests []string
	w := watch(t, nil, plain("t", func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		digests = append(digests, tools.CallFrom(ctx).Digest())
		return tools.ToolResult{}, nil
	}))
	for _, args := range []string{`{"a":1,"b":2}`, ` { "a" : 1 , "b" : 2 } `, `{"b":2,"a":1}`} {
		if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(args)); err != nil {
			t.Fatal(err)
		}
	}
	if digests[0] != digests[1] || digests[0] == digests[2] {
		t.Errorf("digests %v", digests)
	}
}
