package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/tools"
)

// step is what a tool does in one attempt.
type step struct {
	Kind       string
	Takes      time.Duration
	Delivery   tools.Delivery
	RetryAfter time.Duration
}

var stepKinds = []string{"ok", "transient", "timeout", "5xx", "permanent", "panic", "wait", "ignore", "foreign"}

func drawStep(t *rapid.T) step {
	ms := func(label string, limit int) time.Duration {
		return time.Duration(rapid.IntRange(0, limit).Draw(t, label)) * time.Millisecond
	}
	s := step{Kind: rapid.SampledFrom(stepKinds).Draw(t, "kind"), Takes: ms("takes", 400) + 7*time.Microsecond}
	s.Delivery = tools.Delivery(rapid.IntRange(0, 2).Draw(t, "delivery"))
	if rapid.IntRange(0, 4).Draw(t, "asks to wait") == 0 {
		s.RetryAfter = ms("retry after", 2000)
	}
	return s
}

// class is the class that the step's own error carries.
func (s step) class() tools.ErrorClass {
	if s.Kind == "foreign" {
		return tools.ErrClassTransient
	}
	return tools.ErrorClass(s.Kind)
}

func (s step) do(ctx context.Context) (tools.ToolResult, error) {
	switch s.Kind {
	case "wait":
		<-ctx.Done()
		return tools.ToolResult{}, ctx.Err()
	case "ignore":
		sleep(time.Hour)
		return tools.ToolResult{Value: "late"}, nil
	}
	if !sleepUntil(ctx, s.Takes) {
		return tools.ToolResult{}, ctx.Err()
	}
	switch s.Kind {
	case "ok":
		return tools.ToolResult{Value: "ok"}, nil
	case "panic":
		panic("boom")
	case "foreign":
		return tools.ToolResult{}, errors.New("connection reset by peer")
	}
	return tools.ToolResult{}, &tools.Error{Class: s.class(), Delivery: s.Delivery, RetryAfter: s.RetryAfter, Message: s.Kind}
}

// sleep waits in the fake time of a synctest bubble.
func sleep(d time.Duration) { <-time.After(d) }

func sleepUntil(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// plan is one call of the model.
type plan struct {
	Policy     tools.ToolPolicy
	Steps      []step
	Cancel     time.Duration // when the caller goes away; 0: never
	Deadline   bool          // by deadline instead of cancellation
	SideEffect tools.SideEffect
	Transport  tools.TransportKind
	Key        bool
	Inline     bool
}

func drawPlan(t *rapid.T) plan {
	p := plan{
		Policy: tools.ToolPolicy{
			TimeoutMS:   rapid.SampledFrom([]int{0, -1, 50, 150, 1000}).Draw(t, "timeout"),
			MaxRetries:  rapid.SampledFrom([]int{0, -1, 1, 2, 5}).Draw(t, "retries"),
			BackoffBase: time.Duration(rapid.IntRange(0, 300).Draw(t, "base")) * time.Millisecond,
			BackoffMult: rapid.SampledFrom([]float64{0, 1, 1.5, 3}).Draw(t, "mult"),
			BackoffMax:  time.Duration(rapid.IntRange(0, 1000).Draw(t, "max")) * time.Millisecond,
		},
		Steps:      rapid.SliceOfN(rapid.Custom(drawStep), 6, 6).Draw(t, "steps"),
		SideEffect: rapid.SampledFrom([]tools.SideEffect{"", tools.SideEffectPure, tools.SideEffectRead, tools.SideEffectWrite, tools.SideEffectExternal}).Draw(t, "effect"),
		Transport:  rapid.SampledFrom([]tools.TransportKind{tools.TransportInProcess, tools.TransportHTTP}).Draw(t, "transport"),
		Key:        rapid.Bool().Draw(t, "key"),
	}
	if rapid.Bool().Draw(t, "choose classes") {
		all := []tools.ErrorClass{tools.ErrClassTransient, tools.ErrClassTimeout, tools.ErrClass5xx, tools.ErrClassPermanent}
		p.Policy.RetryOn = rapid.SliceOfNDistinct(rapid.SampledFrom(all), 0, 4, rapid.ID).Draw(t, "classes")
	}
	if rapid.IntRange(0, 2).Draw(t, "goes away") == 0 {
		// Odd microseconds: never at the very moment of a step or a pause.
		p.Cancel = time.Duration(rapid.IntRange(1, 3000).Draw(t, "cancel"))*time.Millisecond + 137*time.Microsecond
		p.Deadline = rapid.Bool().Draw(t, "deadline")
	}
	if p.Policy.TimeoutMS < 0 && p.Cancel == 0 {
		for i := range p.Steps {
			if p.Steps[i].Kind == "wait" {
				p.Steps[i].Kind = "ok" // nothing would ever end it
			}
		}
	}
	return p
}

// outcome is what a call came to.
type outcome struct {
	Starts         []time.Duration
	Elapsed        time.Duration
	OK             bool
	Class          tools.ErrorClass
	Exhausted      bool
	OutcomeUnknown bool
}

// model predicts the outcome of a plan from the written rules alone.
func (p plan) model() outcome {
	limit := orDefault(p.Policy.TimeoutMS, 30000)
	attempts := orDefault(p.Policy.MaxRetries, 3) + 1
	if p.Policy.MaxRetries < 0 || p.Policy.RetryOn != nil && len(p.Policy.RetryOn) == 0 {
		attempts = 1
	}
	retryOn := p.Policy.RetryOn
	if retryOn == nil {
		retryOn = []tools.ErrorClass{tools.ErrClassTransient, tools.ErrClassTimeout, tools.ErrClass5xx}
	}
	harmless := p.SideEffect == tools.SideEffectPure || p.SideEffect == tools.SideEffectRead
	mayRepeat := harmless || p.Key || p.Policy.MaxRetries != 0 || p.Policy.RetryOn != nil ||
		p.Transport == tools.TransportInProcess && p.SideEffect == ""
	var out outcome
	now := time.Duration(0)
	for n := 0; n < attempts; n++ {
		out.Starts = append(out.Starts, now)
		s := p.Steps[min(n, len(p.Steps)-1)]
		took, class, delivery := p.attempt(s, now, time.Duration(limit)*time.Millisecond)
		now += took
		out.Class, out.Exhausted = class, false
		out.OutcomeUnknown = class != "" && delivery == tools.DeliveryUnknown && !harmless
		if class == "" {
			out.OK = true
			break
		}
		if class == tools.ErrClassPermanent || !slices.Contains(retryOn, class) || delivery != tools.NotDelivered && !mayRepeat {
			break
		}
		out.Exhausted = n == attempts-1 && attempts > 1
		if n == attempts-1 {
			break
		}
		if took != s.Takes {
			s.RetryAfter = 0 // its error was never heard
		}
		pause, give := p.pause(n, s)
		if give || p.Deadline && p.Cancel > 0 && now+pause >= p.Cancel {
			break
		}
		if p.Cancel > 0 && now+pause > p.Cancel {
			now, out.Class = p.Cancel, tools.ErrClassPermanent
			break
		}
		now += pause
	}
	out.Elapsed = now
	return out
}

// attempt predicts how long a step takes and how it ends.
func (p plan) attempt(s step, now, limit time.Duration) (time.Duration, tools.ErrorClass, tools.Delivery) {
	takes := s.Takes
	switch s.Kind {
	case "wait":
		takes = math.MaxInt64 / 4
	case "ignore":
		takes = time.Hour
	}
	delivery := tools.DeliveryUnknown // a tool that its context cut short has not answered
	if limit > 0 && limit < takes && (p.Cancel == 0 || now+limit < p.Cancel) {
		return limit, tools.ErrClassTimeout, delivery
	}
	if p.Cancel > 0 && p.Cancel < now+takes {
		return p.Cancel - now, tools.ErrClassPermanent, delivery
	}
	switch s.Kind {
	case "ok", "ignore":
		return takes, "", tools.Answered
	case "panic":
		return takes, tools.ErrClassPermanent, tools.Answered
	case "foreign":
		if p.Transport == tools.TransportInProcess {
			return takes, tools.ErrClassTransient, tools.Answered
		}
		return takes, tools.ErrClassTransient, tools.DeliveryUnknown
	}
	if s.Delivery == tools.DeliveryUnknown && p.Transport == tools.TransportInProcess {
		return takes, s.class(), tools.Answered
	}
	return takes, s.class(), s.Delivery
}

// pause predicts the wait after attempt n, and whether the call gives up.
func (p plan) pause(n int, s step) (time.Duration, bool) {
	base, mult, limit := p.Policy.BackoffBase, p.Policy.BackoffMult, p.Policy.BackoffMax
	if base == 0 {
		base = 100 * time.Millisecond
	}
	if mult == 0 {
		mult = 2
	}
	if limit == 0 {
		limit = 30 * time.Second
	}
	pause := time.Duration(math.Min(float64(base)*math.Pow(mult, float64(n)), float64(limit)))
	if !slices.Contains([]string{"transient", "timeout", "5xx"}, s.Kind) {
		return pause, false
	}
	return max(pause, s.RetryAfter), max(pause, s.RetryAfter) > limit
}

func orDefault(v, d int) int {
	if v == 0 {
		return d
	}
	return max(v, 0)
}

// run makes the call in fake time.
func (p plan) run(t *testing.T) (out outcome) {
	synctest.Test(t, func(*testing.T) {
		start := time.Now()
		var n atomic.Int32
		var mu sync.Mutex
		cat := tools.NewCatalog(tools.WithLogger(slog.New(slog.DiscardHandler)))
		d := tools.ToolDescriptor{Tool: tools.Tool{Name: "t", Policy: p.Policy, SideEffects: p.SideEffect, Transport: p.Transport},
			Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
				i := int(n.Add(1)) - 1
				mu.Lock()
				out.Starts = append(out.Starts, time.Since(start))
				mu.Unlock()
				return p.Steps[min(i, len(p.Steps)-1)].do(ctx)
			}}
		if err := cat.Register(d); err != nil {
			t.Error(err)
			return
		}
		ctx, cancel := p.context()
		defer cancel()
		if p.Key {
			ctx = tools.WithEntrance(ctx, tools.Entrance{IdempotencyKey: "k"})
		}
		_, err := tools.Invoke(ctx, cat, "t", nil)
		out.Elapsed, out.OK = time.Since(start), err == nil
		sleep(2 * time.Hour) // until every late tool has returned
		mu.Lock()
		defer mu.Unlock()
		var te *tools.Error
		if errors.As(err, &te) {
			out.Class, out.Exhausted, out.OutcomeUnknown = te.Class, errors.Is(err, tools.ErrToolPolicyExhausted), te.OutcomeUnknown
			if te.Attempts != len(out.Starts) {
				t.Errorf("the error counts %d attempts, there were %d", te.Attempts, len(out.Starts))
			}
		}
	})
	return out
}

func (p plan) context() (context.Context, context.CancelFunc) {
	switch {
	case p.Cancel == 0:
		return context.Background(), func() {}
	case p.Deadline:
		return context.WithTimeout(context.Background(), p.Cancel)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop := time.AfterFunc(p.Cancel, cancel)
	return ctx, func() { stop.Stop(); cancel() }
}

func TestShellFollowsItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		want, got := p.model(), p.run(t)
		if fmt.Sprintf("%+v", want) != fmt.Sprintf("%+v", got) {
			rt.Fatalf("plan %+v\nmodel  %+v\nactual %+v", p, want, got)
		}
	})
}
