package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/tools"
)

// badStage panics wherever it is asked to.
type badStage struct{ at string }

func (b badStage) Admit(context.Context, *tools.Tool) (func(error), error) {
	return func(error) { b.panic("admission") }, nil
}
func (b badStage) Record(context.Context, tools.CallRecord) { b.panic("recorder") }
func (b badStage) Publish(context.Context, events.Event) error {
	b.panic("bus")
	return nil
}
func (badStage) Subscribe(events.Filter, *events.SubscribeOptions) *events.Subscription { return nil }
func (b badStage) panic(at string) {
	if b.at == at {
		panic(at)
	}
}

func TestPartsThatPanicAfterTheCall(t *testing.T) {
	for _, at := range []string{"admission", "recorder"} {
		b := badStage{at}
		w := watch(t, []tools.CatalogOption{tools.WithStages(tools.Stages{Admission: b, Recorder: b})}, descriptor("t"))
		if res, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"text":"x"}`)); err != nil || string(res.Structured) != `{"text":"x"}` {
			t.Errorf("%s: %s, %v", at, res.Structured, err)
		}
		if got := strings.Join(w.drain(), " "); got != "tool.invoked tool.completed:1" {
			t.Errorf("%s: events %q", at, got)
		}
	}
	quiet := tools.WithLogger(slog.New(slog.DiscardHandler))
	for name, cat := range map[string]tools.ToolCatalog{
		"the tool's bus":    newCatalog(t, []tools.CatalogOption{quiet}, descriptor("t", tools.WithBus(badStage{"bus"}))),
		"the catalog's bus": newCatalog(t, []tools.CatalogOption{quiet, tools.WithEvents(badStage{"bus"})}, descriptor("t")),
	} {
		if res, err := tools.Invoke(adaCtx(), cat, "t", json.RawMessage(`{"text":"x"}`)); err != nil || string(res.Structured) != `{"text":"x"}` {
			t.Errorf("%s: %s, %v", name, res.Structured, err)
		}
	}
}

func TestAmendmentThatPanics(t *testing.T) {
	cat := newCatalog(t, nil, descriptor("t"))
	if err := cat.Amend(func(*tools.Tool) { panic("no") }); !errors.Is(err, tools.ErrToolInvalid) {
		t.Errorf("Amend: %v", err)
	}
	if err := cat.Register(descriptor("u")); err != nil {
		t.Errorf("the amendment stayed: %v", err)
	}
}

func TestMiddlewareThatGoesOnAsideOrLate(t *testing.T) {
	var late tools.Invoker
	aside := func(next tools.Invoker) tools.Invoker {
		return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			late = next
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { _, _ = next(ctx, args) })
			}
			wg.Wait()
			return next(ctx, args)
		}
	}
	var in, out atomic.Int32
	s := counting{&in, &out}
	w := watch(t, []tools.CatalogOption{tools.WithMiddleware(aside), tools.WithStages(tools.Stages{Admission: s})}, descriptor("t"))
	for range 50 {
		if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"text":"x"}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := late(adaCtx(), json.RawMessage(`{"text":"x"}`)); err == nil {
			t.Error("a call went on after it had ended")
		}
	}
	if in.Load() != out.Load() || in.Load() < 100 {
		t.Errorf("admitted %d, released %d", in.Load(), out.Load())
	}
	terminal := 0
	for _, e := range w.drain() {
		if strings.HasPrefix(e, "tool.completed") {
			terminal++
		}
	}
	if terminal != 50 {
		t.Errorf("%d terminal events for 50 calls", terminal)
	}
}

// counting counts how many calls it let in and how many it saw end.
type counting struct{ in, out *atomic.Int32 }

func (c counting) Admit(context.Context, *tools.Tool) (func(error), error) {
	c.in.Add(1)
	return func(error) { c.out.Add(1) }, nil
}

func TestGoexitOfAnInlineTool(t *testing.T) {
	s := &stage{verdict: tools.Allow}
	w := watch(t, []tools.CatalogOption{tools.WithStages(tools.Stages{Admission: s, Recorder: s})}, plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		runtime.Goexit()
		return tools.ToolResult{}, nil
	}, tools.WithInline()))
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = tools.Invoke(adaCtx(), w, "t", nil) })
	wg.Wait()
	if got := strings.Join(w.drain(), " "); !strings.HasPrefix(got, "tool.invoked tool.failed:permanent") || s.released != 1 || len(s.records) != 1 {
		t.Errorf("events %q, released %d, recorded %d", got, s.released, len(s.records))
	}
}

func TestResultsThatAreNotJSON(t *testing.T) {
	for name, res := range map[string]tools.ToolResult{
		"structured": {Structured: json.RawMessage(`{"a":1} junk`)},
		"block":      {Content: []tools.Content{{Type: "text", JSON: json.RawMessage(`not json`)}}},
		"empty":      {Content: []tools.Content{{}}},
		"wire":       {Wire: json.RawMessage(`{"content":[]}}, {"x":1`)},
		"error":      {IsError: true, Structured: json.RawMessage(`{`)},
	} {
		w := watch(t, nil, plain("t", returning(res, nil)))
		if _, err := tools.Invoke(adaCtx(), w, "t", nil); !errors.Is(err, tools.ErrToolInvalidOutput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAToolThatKeepsItsOldDescriptor(t *testing.T) {
	var self tools.ToolDescriptor
	d := descriptor("t")
	d.Invoke = func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if string(args) == `{"text":"again"}` {
			return self.Invoke(ctx, json.RawMessage(`{"evil":true}`))
		}
		return tools.ToolResult{Value: args}, nil
	}
	w := watch(t, nil, d)
	self, _ = w.Resolve("t")
	wrap := func() {
		d, _ := w.Resolve("t")
		next := d.Invoke
		d.Invoke = func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) { return next(ctx, args) }
		if err := w.Replace([]tools.ToolDescriptor{d}); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(){"as it was": func() {}, "amended": func() { _ = w.Amend(nil) }, "wrapped": wrap, "wrapped twice": wrap} {
		change()
		w.drain()
		if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"text":"again"}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(w.drain(), " "); !strings.HasPrefix(got, "tool.invoked tool.invalid_args tool.failed") {
			t.Errorf("%s: events %q", name, got)
		}
	}
}

func TestInvokeOfAnotherTool(t *testing.T) {
	w := watch(t, nil, plain("a", returning(tools.ToolResult{Value: "a"}, nil)), plain("b", returning(tools.ToolResult{Value: "b"}, nil)))
	a, _ := w.Resolve("a")
	b, _ := w.Resolve("b")
	a.Invoke = b.Invoke
	if err := w.Replace([]tools.ToolDescriptor{a}); err != nil {
		t.Fatal(err)
	}
	if res, err := tools.Invoke(adaCtx(), w, "a", nil); err != nil || res.Value != "b" {
		t.Errorf("%v, %v", res.Value, err)
	}
}

func TestAdmissionOfACallThatGoesOnTwice(t *testing.T) {
	twice := func(next tools.Invoker) tools.Invoker {
		return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			_, _ = next(ctx, args)
			return next(ctx, args)
		}
	}
	s := &stage{verdict: tools.Allow}
	w := watch(t, []tools.CatalogOption{tools.WithMiddleware(twice, nil), tools.WithStages(tools.Stages{Admission: s})}, descriptor("t"))
	if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(`{"text":"x"}`)); err != nil || s.released != 2 {
		t.Errorf("released %d times, %v", s.released, err)
	}
}

func TestRegisterRefusesWhatWouldBreakTheCatalog(t *testing.T) {
	loop := map[string]any{}
	loop["text"] = loop
	cat := newCatalog(t, nil)
	if err := cat.Register(descriptor("t", tools.WithExamples(tools.ToolExample{Args: loop}))); !errors.Is(err, tools.ErrToolExampleInvalid) {
		t.Errorf("an example that contains itself: %v", err)
	}
	for _, mult := range []float64{math.NaN(), math.Inf(1)} {
		if err := cat.Register(descriptor("t", tools.WithPolicy(tools.ToolPolicy{BackoffMult: mult}))); !errors.Is(err, tools.ErrToolInvalid) {
			t.Errorf("multiplier %v: %v", mult, err)
		}
	}
}

func TestExtremePolicies(t *testing.T) {
	ctx, cancel := context.WithCancel(adaCtx())
	n := 0
	w := watch(t, nil, plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		if n++; n == 3 {
			cancel()
		}
		return tools.ToolResult{}, errors.New("EOF")
	}, tools.WithPolicy(tools.ToolPolicy{MaxRetries: math.MaxInt, BackoffBase: 1, BackoffMax: math.MaxInt64, Jitter: true}), tools.WithInline()))
	if _, err := tools.Invoke(ctx, w, "t", nil); !errors.Is(err, context.Canceled) || errors.Is(err, tools.ErrToolPolicyExhausted) || n != 3 {
		t.Errorf("after %d attempts: %v", n, err)
	}
	w = watch(t, nil, plain("t", returning(tools.ToolResult{}, errors.New("EOF")),
		tools.WithPolicy(tools.ToolPolicy{MaxRetries: 1, BackoffBase: math.MaxInt64, BackoffMax: math.MaxInt64, Jitter: true})))
	soon, stop := context.WithTimeout(adaCtx(), time.Nanosecond)
	defer stop()
	if _, err := tools.Invoke(soon, w, "t", nil); err == nil {
		t.Error("no error")
	}
}

func TestHiddenArgumentsNeedAnObject(t *testing.T) {
	w := watch(t, nil, plain("t", echo, tools.WithInjected(tools.Injected{Arg: "tenant", From: tools.InjectTenant})))
	for _, args := range []string{`[1]`, `"x"`, `7`} {
		if _, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(args)); !errors.Is(err, tools.ErrToolInvalidArgs) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if res, err := tools.Invoke(adaCtx(), w, "t", json.RawMessage(strings.Repeat(" ", 40)+"null")); err != nil || string(res.Structured) != `{"tenant":"acme"}` {
		t.Errorf("null: %s, %v", res.Structured, err)
	}
}

func TestNilCallsAndCatalogs(t *testing.T) {
	var c *tools.Call
	if c.Attempt() != 0 || c.Digest() != "" {
		t.Error("a nil call has attempts or a digest")
	}
	if _, err := tools.Invoke(context.Background(), nil, "t", nil); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("a nil catalog: %v", err)
	}
}

func TestUnknownClassesAreClassified(t *testing.T) {
	w := watch(t, nil, plain("t", returning(tools.ToolResult{}, &tools.Error{Class: "odd", Message: "status 503"}), noWait))
	_, err := tools.Invoke(adaCtx(), w, "t", nil)
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClass5xx {
		t.Errorf("%v", err)
	}
}
