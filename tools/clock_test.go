package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools"
)

// person is a caller who takes a while to answer.
type person struct {
	thinks time.Duration
	notes  []string
}

func (p *person) Progress(_ context.Context, n tools.ProgressNote) error {
	p.notes = append(p.notes, fmt.Sprint(n.Progress, "/", n.Total, n.Message))
	return nil
}
func (p *person) Log(_ context.Context, l tools.LogNote) error {
	p.notes = append(p.notes, l.Level+string(l.Data))
	return nil
}
func (p *person) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	if !sleepUntil(ctx, p.thinks) {
		return tools.Answer{}, ctx.Err()
	}
	return tools.Answer{Result: json.RawMessage(`{"action":"accept"}`)}, nil
}

func asking(before, after time.Duration) tools.Invoker {
	return func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		if !sleepUntil(ctx, before) {
			return tools.ToolResult{}, ctx.Err()
		}
		if _, err := tools.CallFrom(ctx).Ask(ctx, tools.Question{Method: "elicitation/create"}); err != nil {
			return tools.ToolResult{}, err
		}
		if !sleepUntil(ctx, after) {
			return tools.ToolResult{}, ctx.Err()
		}
		return tools.ToolResult{Value: "done"}, nil
	}
}

func TestClockStandsStillWhileAPersonThinks(t *testing.T) {
	once := tools.ToolPolicy{TimeoutMS: 1000, MaxRetries: -1}
	for _, inline := range []bool{false, true} {
		opts := []tools.DescriptorOption{tools.WithPolicy(once)}
		if inline {
			opts = append(opts, tools.WithInline())
		}
		for name, c := range map[string]struct {
			before, after time.Duration
			ok            bool
			elapsed       time.Duration
		}{
			"in time":  {600 * time.Millisecond, 300 * time.Millisecond, true, time.Hour + 900*time.Millisecond},
			"too slow": {600 * time.Millisecond, 500 * time.Millisecond, false, time.Hour + time.Second},
		} {
			t.Run(fmt.Sprintf("%s inline=%v", name, inline), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cat := newCatalog(t, nil, plain("t", asking(c.before, c.after), opts...))
					start := time.Now()
					ctx := tools.WithEntrance(context.Background(), tools.Entrance{Peer: &person{thinks: time.Hour}})
					_, err := tools.Invoke(ctx, cat, "t", nil)
					if (err == nil) != c.ok || time.Since(start) != c.elapsed {
						t.Errorf("%v after %v, want ok=%v after %v", err, time.Since(start), c.ok, c.elapsed)
					}
					if !c.ok && (tools.ClassifyError(err, false) != tools.ErrClassTimeout || !errors.Is(err, tools.ErrOutcomeUnknown)) {
						t.Errorf("error %v", err)
					}
				})
			})
		}
	}
}

func TestAskWithoutACaller(t *testing.T) {
	cat := newCatalog(t, nil, plain("t", asking(0, 0)))
	_, err := tools.Invoke(context.Background(), cat, "t", nil)
	if !errors.Is(err, tools.ErrAskUnsupported) || tools.ClassifyError(err, false) != tools.ErrClassPermanent {
		t.Errorf("error %v", err)
	}
	if err := tools.Progress(context.Background(), 1, 2, ""); err != nil {
		t.Errorf("progress outside a call: %v", err)
	}
}

func TestProgressAndLogReachTheCaller(t *testing.T) {
	p := &person{}
	cat := newCatalog(t, nil, plain("t", func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		if err := tools.Progress(ctx, 1, 2, "half"); err != nil {
			return tools.ToolResult{}, err
		}
		return tools.ToolResult{}, tools.CallFrom(ctx).Log(ctx, tools.LogNote{Level: "info", Data: json.RawMessage(`"x"`)})
	}))
	ctx := tools.WithEntrance(context.Background(), tools.Entrance{Peer: p})
	if _, err := tools.Invoke(ctx, cat, "t", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1/2half", `info"x"`}, p.notes); diff != "" {
		t.Error(diff)
	}
}

func TestLateResultIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cat := newCatalog(t, nil, plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			sleep(time.Minute)
			return tools.ToolResult{Value: "late"}, nil
		}, tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 100, MaxRetries: -1})))
		start := time.Now()
		_, err := tools.Invoke(context.Background(), cat, "t", nil)
		if time.Since(start) != 100*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 100ms") {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		late := cat.(interface{ Lateness() tools.Lateness })
		if got := late.Lateness(); got != (tools.Lateness{Lingering: 1}) {
			t.Errorf("while it runs: %+v", got)
		}
		sleep(2 * time.Minute)
		if got := late.Lateness(); got != (tools.Lateness{Dropped: 1}) {
			t.Errorf("afterwards: %+v", got)
		}
	})
}

func TestMiddlewareThatGoesOnTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := func(next tools.Invoker) tools.Invoker {
			return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
				if res, err := next(ctx, args); err == nil {
					return res, nil
				}
				return next(ctx, args)
			}
		}
		var n atomic.Int32
		w := watch(t, []tools.CatalogOption{tools.WithMiddleware(again)}, plain("t", func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			if n.Add(1) == 1 {
				sleep(time.Minute)
				return tools.ToolResult{}, ctx.Err()
			}
			return tools.ToolResult{Value: "second"}, nil
		}, tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 100, MaxRetries: -1})))
		res, err := tools.Invoke(adaCtx(), w, "t", nil)
		if err != nil || res.Value != "second" || res.Attempts != 2 {
			t.Errorf("%+v, %v", res, err)
		}
		if got := strings.Join(w.drain(), " "); got != "tool.invoked tool.completed:2" {
			t.Errorf("events %q", got)
		}
		sleep(2 * time.Minute)
	})
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		cat := newCatalog(t, nil, plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			if n++; n == 1 {
				return tools.ToolResult{}, &tools.Error{Class: tools.ErrClass5xx, RetryAfter: 7 * time.Second}
			}
			return tools.ToolResult{}, &tools.Error{Class: tools.ErrClass5xx, RetryAfter: time.Hour, Delivery: tools.Answered}
		}, tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 1000, MaxRetries: 5})))
		start := time.Now()
		_, err := tools.Invoke(context.Background(), cat, "t", nil)
		var te *tools.Error
		if !errors.As(err, &te) || n != 2 || time.Since(start) != 7*time.Second || te.RetryAfter != time.Hour || !te.Retryable {
			t.Errorf("%d attempts in %v: %+v", n, time.Since(start), te)
		}
	})
}

func TestGoexitInATool(t *testing.T) {
	cat := newCatalog(t, nil, plain("t", func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		runtime.Goexit()
		return tools.ToolResult{}, nil
	}))
	if _, err := tools.Invoke(context.Background(), cat, "t", nil); tools.ClassifyError(err, false) != tools.ErrClassPermanent {
		t.Errorf("error %v", err)
	}
}

func TestContextOfAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithCancelCause(context.Background())
		why := errors.New("why")
		var after context.Context
		cat := newCatalog(t, nil, plain("t", func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			if d, ok := ctx.Deadline(); !ok || time.Until(d) != time.Second {
				t.Errorf("deadline in %v, %v", time.Until(d), ok)
			}
			child, stop := context.WithCancel(ctx)
			defer stop()
			after = ctx
			cancel(why)
			<-child.Done()
			if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), why) {
				t.Errorf("err %v, cause %v", ctx.Err(), context.Cause(ctx))
			}
			return tools.ToolResult{}, ctx.Err()
		}, tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 1000, MaxRetries: 3}), tools.WithInline()))
		if _, err := tools.Invoke(outer, cat, "t", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if after.Err() == nil {
			t.Error("the attempt's context outlived it")
		}
	})
}

func TestPolicyDefaults(t *testing.T) {
	d := tools.DefaultPolicy()
	if diff := cmp.Diff(d, tools.ToolPolicy{}.Resolved()); diff != "" {
		t.Errorf("the zero policy is not the default:\n%s", diff)
	}
	want := tools.DefaultPolicy()
	want.TimeoutMS = 5000
	if diff := cmp.Diff(want, tools.ToolPolicy{TimeoutMS: 5000}.Resolved()); diff != "" {
		t.Errorf("a partial policy lost defaults:\n%s", diff)
	}
	if p := (tools.ToolPolicy{RetryOn: []tools.ErrorClass{}}).Resolved(); p.RetryOn == nil || len(p.RetryOn) != 0 {
		t.Error("an empty RetryOn became the default")
	}
	if got := tools.ResolveOptions(tools.WithPolicy(tools.ToolPolicy{MaxRetries: 1})).Policy.TimeoutMS; got != -1 {
		t.Errorf("WithPolicy left TimeoutMS at %d", got)
	}
	if got := tools.ResolveOptions(tools.WithPolicy(tools.ToolPolicy{})).Policy; !cmp.Equal(got, tools.ToolPolicy{}) {
		t.Errorf("WithPolicy of the zero policy: %+v", got)
	}
}

func TestClassifyError(t *testing.T) {
	for _, c := range []struct {
		err     error
		attempt bool
		want    tools.ErrorClass
	}{
		{nil, false, ""},
		{context.DeadlineExceeded, true, tools.ErrClassTimeout},
		{context.DeadlineExceeded, false, tools.ErrClassPermanent},
		{fmt.Errorf("x: %w", context.Canceled), true, tools.ErrClassPermanent},
		{fmt.Errorf("x: %w", tools.ErrToolInvalidArgs), false, tools.ErrClassPermanent},
		{fmt.Errorf("x: %w", tools.ErrToolNotFound), false, tools.ErrClassPermanent},
		{errors.New("status 503"), false, tools.ErrClass5xx},
		{errors.New("HTTP/1.1 500 Internal Server Error"), false, tools.ErrClass5xx},
		{errors.New("upstream gave 502"), false, tools.ErrClass5xx},
		{errors.New("status code: 5xx"), false, tools.ErrClass5xx},
		{errors.New("i/o timeout"), false, tools.ErrClassTimeout},
		{errors.New("rpc: deadline exceeded"), false, tools.ErrClassTimeout},
		{errors.New("remote: context canceled"), false, tools.ErrClassTimeout},
		{errors.New("connection reset by peer"), false, tools.ErrClassTransient},
		{errors.New("the 5000 rows do not fit"), false, tools.ErrClassTransient},
		{&tools.Error{Class: tools.ErrClassPermanent, Err: errors.New("status 503")}, false, tools.ErrClassPermanent},
		{&tools.Error{Err: errors.New("status 503")}, false, tools.ErrClass5xx},
	} {
		if got := tools.ClassifyError(c.err, c.attempt); got != c.want {
			t.Errorf("ClassifyError(%v, %v) = %q, want %q", c.err, c.attempt, got, c.want)
		}
	}
}

func TestStandaloneShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, hooks := 0, 0
		start := time.Now()
		res, err := tools.RunWithPolicyHooked(context.Background(), json.RawMessage(`{}`), func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			if n++; n < 4 {
				return tools.ToolResult{}, errors.New("EOF")
			}
			return tools.ToolResult{Value: n}, nil
		}, func(json.RawMessage) error { return nil }, nil, tools.ToolPolicy{}, tools.InvokeHooks{OnAttempt: func(i int, err error) { hooks++ }})
		if err != nil || res.Value != 4 || hooks != 4 || time.Since(start) != 700*time.Millisecond {
			t.Errorf("%v %v after %v, %d hooks", res.Value, err, time.Since(start), hooks)
		}
	})
	no := errors.New("no")
	for name, c := range map[string]struct {
		in, out bool
		mode    tools.ValidateMode
		want    error
		ran     bool
	}{
		"in":        {true, false, "", tools.ErrToolInvalidArgs, false},
		"out":       {false, true, "", tools.ErrToolInvalidOutput, true},
		"out alone": {true, true, tools.ValidateOut, tools.ErrToolInvalidOutput, true},
		"none":      {true, true, tools.ValidateNone, nil, true},
	} {
		ran := false
		in := func(json.RawMessage) error { return errorIf(c.in, no) }
		out := func(tools.ToolResult) error { return errorIf(c.out, no) }
		_, err := tools.RunWithPolicy(context.Background(), nil, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			ran = true
			return tools.ToolResult{}, nil
		}, in, out, tools.ToolPolicy{Validate: c.mode})
		if c.want == nil != (err == nil) || c.want != nil && !errors.Is(err, c.want) || ran != c.ran {
			t.Errorf("%s: %v, ran %v", name, err, ran)
		}
	}
}

func errorIf(is bool, err error) error {
	if is {
		return err
	}
	return nil
}
