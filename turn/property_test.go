package turn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

// deed is what a tool of the property does, as its arguments say.
type deed struct {
	N     int    `json:"n"`
	For   int    `json:"for"`
	How   string `json:"how"`
	Key   string `json:"key,omitempty"`
	Large int    `json:"large,omitempty"`
}

// actors are tools that do what they are told, and watch that limits hold.
type actors struct {
	now, most atomic.Int32

	mu   sync.Mutex
	acts map[int]*act // by the place of the call, from 1
}

// act is when a tool ran for one call.
type act struct {
	tool       string
	key        string
	begin, end time.Time
}

// begin notes that a tool runs for a call; a call without a place is not watched.
func (a *actors) begin(tool string, d *deed) (end func()) {
	if d.N == 0 {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.acts[d.N]
	if one == nil {
		one = &act{tool: tool, key: d.Key, begin: time.Now()}
		a.acts[d.N] = one
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		one.end = time.Now()
	}
}

// disorder says which calls that concern the same thing did not run in call order.
func (a *actors) disorder() string {
	for i, one := range a.acts {
		for j, other := range a.acts {
			same := one.tool == "once" && other.tool == "once" || one.key != "" && one.key == other.key
			if i < j && same && (one.tool != "read" || other.tool != "read") && other.begin.Before(one.end) {
				return fmt.Sprintf("call %d of %s began before call %d of %s ended", j, other.tool, i, one.tool)
			}
		}
	}
	return ""
}

func (a *actors) act(tool string) tools.Invoker {
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if tool != "retry" { // the door gives up on it at its own limit, before it returns
			n := a.now.Add(1)
			defer a.now.Add(-1)
			for m := a.most.Load(); n > m && !a.most.CompareAndSwap(m, n); m = a.most.Load() {
			}
		}
		var d deed
		if err := json.Unmarshal(args, &d); err != nil {
			return tools.ToolResult{}, err
		}
		defer a.begin(tool, &d)()
		if !pause(ctx, time.Duration(d.For)*time.Millisecond) {
			return tools.ToolResult{}, ctx.Err()
		}
		return d.end()
	}
}

// pause reports false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (d *deed) end() (tools.ToolResult, error) {
	switch d.How {
	case "error":
		return tools.ToolResult{}, errors.New("no")
	case "permanent":
		return tools.ToolResult{}, &tools.Error{Class: tools.ErrClassPermanent, Message: "no"}
	case "is error":
		return tools.ToolResult{IsError: true, Content: []tools.Content{tools.TextContent("no")}}, nil
	case "panic":
		panic("no")
	case "goexit":
		runtime.Goexit()
	}
	return tools.ToolResult{Value: map[string]any{"n": d.N, "pad": strings.Repeat("x", d.Large)}}, nil
}

// world is a catalog of actors.
func world(t *testing.T, a *actors) *crib {
	c := newCrib(t)
	schema := object(`"n":{"type":"integer"},"for":{"type":"integer"},"how":{"type":"string"},"key":{"type":"string"},"large":{"type":"integer"}`)
	for name, tool := range map[string]tools.Tool{
		"act":    {},
		"once":   {Exclusive: true},
		"read":   {Safety: readOnly},
		"denied": {Tags: []string{"denied"}},
		"hidden": {AuthScopes: []string{"admin"}},
		"cut":    {Tags: []string{"cut"}},
		"forged": {Injected: []tools.Injected{{Arg: "how", From: tools.InjectTenant}}},
		"dear":   {CostHint: "3"},
		"retry":  {Policy: tools.ToolPolicy{MaxRetries: 2, TimeoutMS: 50}},
	} {
		tool.Name, tool.ArgsSchema = name, schema
		c.add(tool, a.act(name))
	}
	c.add(tools.Tool{Name: "inline", ArgsSchema: schema}, a.act("inline"), tools.WithInline())
	return c
}

func drawCalls(t *rapid.T) []turn.Call {
	names := []string{"act", "once", "read", "denied", "hidden", "cut", "forged", "dear", "retry", "inline", "nothing", ""}
	how := []string{"", "", "", "error", "permanent", "is error", "panic", "goexit"}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) turn.Call {
		c := turn.Call{ID: rapid.SampledFrom([]string{"", "a", "a", "b", "c"}).Draw(t, "id"), Name: rapid.SampledFrom(names).Draw(t, "name")}
		switch rapid.IntRange(0, 9).Draw(t, "form") {
		case 0:
			c.Args = json.RawMessage(rapid.SampledFrom([]string{"", "null", "{", `{"n":"x"}`, `"{}"`, `[]`, `{"n":1,"n":2}`}).Draw(t, "args"))
		case 1:
			c.Err = errors.New("cut off")
		default:
			d := deed{For: rapid.IntRange(0, 100).Draw(t, "for"), How: rapid.SampledFrom(how).Draw(t, "how"),
				Key: rapid.SampledFrom([]string{"", "k", "l"}).Draw(t, "key"), Large: rapid.IntRange(0, 50).Draw(t, "large")}
			c.Args, _ = json.Marshal(d)
		}
		return c
	}), 0, 24).Draw(t, "calls")
}

func drawLimits(t *rapid.T) turn.Limits {
	l := turn.Limits{Calls: rapid.SampledFrom([]int{0, 0, 5, 20}).Draw(t, "limit of calls"), Cost: float64(rapid.SampledFrom([]int{0, 0, 4}).Draw(t, "limit of cost"))}
	l.Time = time.Duration(rapid.SampledFrom([]int{0, 0, 90}).Draw(t, "limit of time")) * time.Millisecond
	l.ResultBytes = int64(rapid.SampledFrom([]int{0, 0, 100}).Draw(t, "limit of bytes"))
	return l
}

func drawOptions(t *rapid.T) *turn.Options {
	return &turn.Options{
		Concurrency: rapid.IntRange(0, 5).Draw(t, "concurrency"),
		BadCalls:    rapid.SampledFrom([]turn.BadCalls{turn.ReturnError, turn.Fail, turn.Normalize}).Draw(t, "bad calls"),
		SingleCall:  rapid.IntRange(0, 5).Draw(t, "single") == 0,
		Turn:        drawLimits(t), Run: drawLimits(t),
		Select:     turn.Only(turn.Not(turn.Tagged("cut"))),
		Middleware: []turn.Middleware{turn.StopLoops(3), turn.Deny(turn.Tagged("denied"))},
	}
}

// Whatever a model calls, however tools behave, and whenever the turn ends, there
// is one result for each call, in order, within the limits; each call has one
// terminal event; and no goroutine is left behind.
func TestAnyTurn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opts, batches := drawOptions(rt), rapid.SliceOfN(rapid.Custom(drawCalls), 1, 3).Draw(rt, "batches")
		// Half a millisecond beside everything else that happens.
		cancelAfter := time.Duration(rapid.SampledFrom([]int{-1, -1, 0, 40_500, 120_500}).Draw(rt, "cancel after")) * time.Microsecond
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = anyTurn(t, opts, batches, cancelAfter) })
		if problem != "" {
			rt.Fatal(problem)
		}
	})
}

func anyTurn(t *testing.T, opts *turn.Options, batches [][]turn.Call, cancelAfter time.Duration) string {
	a := new(actors)
	c := world(t, a)
	run := turn.New(c.cat, opts).NewRun(turn.Usage{})
	ctx, cancel := context.WithCancel(caller())
	defer cancel()
	if cancelAfter == 0 {
		cancel()
	} else if cancelAfter > 0 {
		defer time.AfterFunc(cancelAfter, cancel).Stop()
	}
	for _, calls := range batches {
		number(calls)
		a.acts = map[int]*act{}
		tn, err := run.Begin(ctx)
		if err != nil {
			return err.Error()
		}
		began := time.Now()
		results, err := tn.Execute(ctx, calls)
		took := time.Since(began)
		synctest.Wait()
		for _, problem := range []string{
			judgeResults(calls, results, opts), judgeEvents(c.heard(), results), judgeLimits(a, opts, tn, took), judgeError(ctx, err, results, opts),
		} {
			if problem != "" {
				return problem + texts(results)
			}
		}
	}
	if n := a.now.Load(); n != 0 {
		return fmt.Sprintf("%d tools still run", n)
	}
	return ""
}

// number gives each call its place, from 1, by which its result is known.
func number(calls []turn.Call) {
	for i := range calls {
		var d deed
		if calls[i].Err == nil && json.Unmarshal(calls[i].Args, &d) == nil && bytes.Contains(calls[i].Args, []byte(`"for"`)) {
			d.N = i + 1
			calls[i].Args, _ = json.Marshal(d)
		}
	}
}

func judgeResults(calls []turn.Call, results []turn.Result, opts *turn.Options) string {
	if len(results) != len(calls) {
		return fmt.Sprintf("%d results for %d calls", len(results), len(calls))
	}
	ran := 0
	for i, r := range results {
		c := calls[i]
		if r.ID != c.ID || r.Name != c.Name {
			return fmt.Sprintf("result %d is of another call", i)
		}
		if (r.Err == nil) != (r.Status == turn.StatusCompleted) || r.Err != nil && (!r.IsError || r.Text() == "") {
			return fmt.Sprintf("result %d does not say how it ended: %s %v", i, r.Status, r.Err)
		}
		if slices.Contains([]string{"denied", "hidden", "cut", "nothing", ""}, c.Name) && (r.Status == turn.StatusCompleted || r.Status == turn.StatusFailed) {
			return fmt.Sprintf("result %d: %q ran", i, c.Name)
		}
		if c.Err != nil && (r.Status == turn.StatusCompleted || r.Status == turn.StatusFailed || r.Status == turn.StatusCancelled) {
			return fmt.Sprintf("result %d: a call that could not be read ran", i)
		}
		if r.Status == turn.StatusCompleted && !r.IsError && !answers(c, r) {
			return fmt.Sprintf("result %d is %s of the call %s", i, r.Structured, c.Args)
		}
		if r.Status != turn.StatusNotRun {
			ran++
		}
	}
	if opts.SingleCall && ran > 1 {
		return fmt.Sprintf("%d calls were made of which one should be", ran)
	}
	return ""
}

// answers reports whether a result is that of the call.
func answers(c turn.Call, r turn.Result) bool {
	var d deed
	_ = json.Unmarshal(c.Args, &d)
	return strings.HasPrefix(string(r.Structured), `{"n":`+strconv.Itoa(d.N)+`,`)
}

func judgeEvents(heard []events.Event, results []turn.Result) string {
	byCall := map[string]int{}
	for _, e := range heard {
		if slices.Contains(terminals, e.Type) && e.CallID != "" {
			byCall[e.CallID]++
		}
	}
	for id, n := range byCall {
		if n != 1 {
			return fmt.Sprintf("the call %s has %d terminal events", id, n)
		}
	}
	if n := countTerminal(heard); n != len(results) {
		return fmt.Sprintf("%d terminal events for %d calls: %v", n, len(results), story(heard))
	}
	return ""
}

func judgeLimits(a *actors, opts *turn.Options, tn *turn.Turn, took time.Duration) string {
	concurrency := opts.Concurrency
	if concurrency == 0 {
		concurrency = turn.DefaultConcurrency
	}
	if int(a.most.Load()) > concurrency {
		return fmt.Sprintf("%d calls ran at once, %d may", a.most.Load(), concurrency)
	}
	if problem := a.disorder(); problem != "" {
		return problem
	}
	for _, b := range []struct {
		limits turn.Limits
		used   turn.Usage
	}{{opts.Turn, tn.Used()}, {opts.Run, tn.Run().Used()}} {
		if b.limits.Calls > 0 && b.used.Calls > b.limits.Calls || b.limits.Cost > 0 && b.used.Cost > b.limits.Cost || b.used.Cost < 0 {
			return fmt.Sprintf("used %+v of %+v", b.used, b.limits)
		}
		if b.limits.Time > 0 && (b.used.Time > b.limits.Time || took > b.limits.Time) {
			return fmt.Sprintf("took %v, used %+v of %+v", took, b.used, b.limits)
		}
	}
	return ""
}

func judgeError(ctx context.Context, err error, results []turn.Result, opts *turn.Options) string {
	bad := slices.ContainsFunc(results, func(r turn.Result) bool {
		return r.Status == turn.StatusUnknown || r.Status == turn.StatusInvalid || r.Status == turn.StatusDenied
	})
	switch {
	case len(results) == 0:
	case ctx.Err() != nil:
		if !errors.Is(err, context.Canceled) {
			return fmt.Sprintf("the caller ended the turn and the error is %v", err)
		}
	case opts.BadCalls == turn.Fail && bad:
		if !errors.Is(err, turn.ErrBadCall) {
			return fmt.Sprintf("a call was bad and the error is %v", err)
		}
	case err != nil && !errors.Is(err, turn.ErrBudget):
		return fmt.Sprintf("the error is %v", err)
	}
	return ""
}
