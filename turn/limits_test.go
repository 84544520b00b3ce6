package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

func TestSingleCallDispatchesTheHead(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	single := &turn.Options{SingleCall: true}
	tn := c.begin(caller(), single)
	results, err := tn.Execute(caller(), []turn.Call{call("1", "a", `{}`), call("2", "a", `{}`), call("3", "no", `{}`)})
	must(t, err)
	want(t, results, turn.StatusCompleted, turn.StatusNotRun, turn.StatusNotRun)
	if text := results[1].Text(); text != `"a" was not run: only the first call of a turn is made; call again in the next turn.` {
		t.Errorf("%s", text)
	}
	results, err = tn.Execute(caller(), []turn.Call{call("4", "a", `{}`)})
	must(t, err)
	want(t, results, turn.StatusNotRun)
	want(t, c.execute(single, call("1", "no", `{}`), call("2", "a", `{}`)), turn.StatusUnknown, turn.StatusNotRun)
	if got := countTerminal(c.heard()); got != 6 {
		t.Errorf("%d terminal events for 6 calls", got)
	}
}

func TestTurnsAreLimitedByDefault(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	calls := slices.Repeat([]turn.Call{call("", "a", `{}`)}, turn.DefaultTurnCalls+1)
	results := c.execute(nil, calls...)
	if last := results[turn.DefaultTurnCalls]; last.Status != turn.StatusNotRun || results[turn.DefaultTurnCalls-1].Status != turn.StatusCompleted {
		t.Errorf("the last is %s", last.Status)
	}
	results = c.execute(&turn.Options{Turn: turn.Limits{Calls: -1}}, calls...)
	if last := results[turn.DefaultTurnCalls]; last.Status != turn.StatusCompleted {
		t.Errorf("without a limit the last is %s", last.Status)
	}
}

func TestCostLimit(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "dear", CostHint: "$2.50"}, nil).
		add(tools.Tool{Name: "free", CostHint: "free"}, nil).
		add(tools.Tool{Name: "strict", CostHint: "2.5", ArgsSchema: object(`"n":{"type":"integer"}`)}, nil)
	run := turn.New(c.cat, &turn.Options{Run: turn.Limits{Cost: 5}, Concurrency: 1}).NewRun(turn.Usage{})
	tn, err := run.Begin(caller())
	must(t, err)
	// What a call takes that is then refused is given back.
	results, err := tn.Execute(caller(), []turn.Call{call("1", "strict", `{"n":"x"}`)})
	must(t, err)
	want(t, results, turn.StatusInvalid)
	results, err = tn.Execute(caller(), []turn.Call{call("2", "dear", `{}`), call("3", "dear", `{}`), call("4", "dear", `{}`), call("5", "free", `{}`)})
	if !errors.Is(err, turn.ErrBudget) {
		t.Errorf("error %v", err)
	}
	want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusNotRun, turn.StatusCompleted)
	if used := run.Used(); used.Cost != 5 || used.Calls != 4 || tn.Used() != used {
		t.Errorf("used %+v, the turn %+v", used, tn.Used())
	}
}

func TestHintedCost(t *testing.T) {
	for _, test := range []struct {
		hint  string
		spend tools.Flag
		want  float64
	}{
		{"", tools.Unset, 0}, {"", tools.Yes, 1}, {"Cheap", tools.Unset, 1}, {"medium", tools.No, 5}, {"expensive", tools.Unset, 25}, {"free", tools.Yes, 0},
		{"0.02", tools.Yes, 0.02}, {"$3", tools.Yes, 3}, {"about a dollar", tools.Yes, 1}, {"about a dollar", tools.Unset, 0}, {"-3", tools.Unset, 0}, {"NaN", tools.Unset, 0}, {"Inf", tools.Unset, 0},
	} {
		tool := &tools.Tool{CostHint: test.hint, Safety: tools.Safety{Spend: test.spend}}
		if got := turn.HintedCost(tool, nil); got != test.want {
			t.Errorf("%q %s: %v, want %v", test.hint, test.spend, got, test.want)
		}
	}
}

// A cost that is no number must not disable the limit for the calls after it.
func TestOddCosts(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	costs := map[string]float64{`1`: math.NaN(), `2`: math.Inf(1), `3`: -5, `4`: 6, `5`: 5}
	opts := &turn.Options{Turn: turn.Limits{Cost: 5}, Concurrency: 1, Cost: func(_ *tools.Tool, args json.RawMessage) float64 {
		if string(args) == "0" {
			panic("no")
		}
		return costs[string(args)]
	}}
	results := c.execute(opts, call("0", "a", `0`), call("1", "a", `1`), call("2", "a", `2`), call("3", "a", `3`), call("4", "a", `4`), call("5", "a", `5`))
	want(t, results, turn.StatusNotRun, turn.StatusCompleted, turn.StatusNotRun, turn.StatusCompleted, turn.StatusNotRun, turn.StatusCompleted)
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrib(t).add(tools.Tool{Name: "wait", Safety: readOnly}, func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			select {
			case <-ctx.Done():
				return tools.ToolResult{}, ctx.Err()
			case <-time.After(time.Duration(args[0]-'0') * time.Second):
				return tools.ToolResult{}, nil
			}
		})
		run := turn.New(c.cat, &turn.Options{Concurrency: 2, Turn: turn.Limits{Time: 3 * time.Second}, Run: turn.Limits{Time: 5 * time.Second}}).NewRun(turn.Usage{})
		began := time.Now()
		tn, err := run.Begin(caller())
		must(t, err)
		time.Sleep(time.Minute) // the model thinks
		results, err := tn.Execute(caller(), []turn.Call{call("1", "wait", "1"), call("2", "wait", "2"), call("3", "wait", "9"), call("4", "wait", "2"), call("5", "wait", "0")})
		must(t, err)
		want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusCancelled, turn.StatusCancelled, turn.StatusNotRun)
		if r := results[2]; !errors.Is(r.Err, turn.ErrBudget) || !errors.Is(r.Err, context.DeadlineExceeded) || !strings.Contains(r.Text(), "the turn's limit of 3s for calls is used up") {
			t.Errorf("%v: %s", r.Err, r.Text())
		}
		if took := time.Since(began); took != time.Minute+3*time.Second {
			t.Errorf("took %v", took)
		}
		tn, err = run.Begin(caller())
		must(t, err)
		results, err = tn.Execute(caller(), []turn.Call{call("6", "wait", "9")})
		if !errors.Is(err, turn.ErrBudget) || run.Used().Time != 5*time.Second {
			t.Errorf("%v, used %v", err, run.Used().Time)
		}
		want(t, results, turn.StatusCancelled)
		results, err = tn.Execute(caller(), []turn.Call{call("7", "wait", "0")})
		if !errors.Is(err, turn.ErrBudget) {
			t.Error(err)
		}
		want(t, results, turn.StatusNotRun)
		if got := countTerminal(c.heard()); got != 7 {
			t.Errorf("%d terminal events for 7 calls", got)
		}
	})
}

// Stop with what there is: the results so far are whole, and nothing is begun.
func TestResultBytesLimit(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	sixty := `"` + strings.Repeat("x", 58) + `"`
	results := c.execute(&turn.Options{Concurrency: 1, Turn: turn.Limits{ResultBytes: 100}}, call("1", "a", sixty), call("2", "a", sixty), call("3", "a", sixty))
	want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusNotRun)
	if string(results[1].Structured) != sixty {
		t.Errorf("a result was cut: %s", results[1].Structured)
	}
}

func TestUsageOfAnotherProcess(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	run := turn.New(c.cat, &turn.Options{Run: turn.Limits{Calls: 5}}).NewRun(turn.Usage{Calls: 4})
	tn, err := run.Begin(caller())
	must(t, err)
	results, err := tn.Execute(caller(), []turn.Call{call("1", "a", `{}`), call("2", "a", `{}`)})
	if !errors.Is(err, turn.ErrBudget) {
		t.Error(err)
	}
	want(t, results, turn.StatusCompleted, turn.StatusNotRun)
}

func TestNoCalls(t *testing.T) {
	if results := newCrib(t).execute(nil); results != nil {
		t.Errorf("%v", results)
	}
}

// A tool that ends its goroutine takes no other call with it.
func TestToolThatEndsItsGoroutine(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil).
		add(tools.Tool{Name: "gone", Exclusive: true}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			runtime.Goexit()
			return tools.ToolResult{}, nil
		}, tools.WithInline())
	results := c.execute(&turn.Options{Concurrency: 1}, call("1", "gone", `{}`), call("2", "a", `{}`), call("3", "gone", `{}`), call("4", "a", `{}`))
	want(t, results, turn.StatusFailed, turn.StatusCompleted, turn.StatusFailed, turn.StatusCompleted)
	if got := countTerminal(c.heard()); got != 4 {
		t.Errorf("%d terminal events for 4 calls", got)
	}
}

// An agent that is a tool of another passes on its peer.
func TestTurnInsideATool(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "inner"}, func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{}, tools.Progress(ctx, 1, 2, "half")
	})
	c.add(tools.Tool{Name: "agent"}, func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		results, err := c.begin(ctx, nil).Execute(ctx, []turn.Call{call("", "inner", `{}`)})
		want(t, results, turn.StatusCompleted)
		return tools.ToolResult{}, err
	})
	p := new(peer)
	ctx := tools.WithEntrance(caller(), tools.Entrance{Peer: p})
	results, err := c.begin(ctx, nil).Execute(ctx, []turn.Call{call("1", "agent", `{}`), call("2", "inner", `{}`)})
	must(t, err)
	want(t, results, turn.StatusCompleted, turn.StatusCompleted)
	if len(p.notes) != 2 {
		t.Errorf("%d notes reached the peer, want 2", len(p.notes))
	}
}

type peer struct {
	mu    sync.Mutex
	notes []string
}

func (p *peer) Progress(_ context.Context, n tools.ProgressNote) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, n.Message)
	return nil
}
func (*peer) Log(context.Context, tools.LogNote) error { return nil }
func (*peer) Ask(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{}, tools.ErrAskUnsupported
}

// slowShelf stores a result only if it is given a second.
type slowShelf struct{}

func (slowShelf) Bound(ctx context.Context, _ *tools.Tool, res tools.ToolResult) (tools.ToolResult, error) {
	if !pause(ctx, time.Second) {
		return tools.ToolResult{}, ctx.Err()
	}
	return res, nil
}

// A call that was made keeps its result when the turn ends while that is stored.
func TestResultsOutlastTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
		ctx, cancel := context.WithTimeout(caller(), time.Millisecond)
		defer cancel()
		results, err := c.begin(ctx, &turn.Options{Bounder: slowShelf{}}).Execute(ctx, []turn.Call{call("1", "a", `{}`)})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		want(t, results, turn.StatusCompleted)
	})
}

// A tool may fail with any error, such as that of a turn which it ran itself.
func TestErrorsOfToolsAreFailures(t *testing.T) {
	for _, err := range []error{turn.ErrNotRun, turn.ErrBudget, tools.ErrToolNotFound, tools.ErrToolInvalidArgs, tools.ErrToolDenied, context.Canceled,
		&tools.Error{Code: tools.ErrToolNotFound}, &tools.Error{Code: turn.ErrNotRun}} {
		c := newCrib(t).add(tools.Tool{Name: "a"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, err })
		results := c.execute(nil, call("", "a", `{}`))
		want(t, results, turn.StatusFailed)
		if heard := c.heard(); results[0].CallID == "" || heard[len(heard)-1].CallID != results[0].CallID || results[0].Attempts != 1 {
			t.Errorf("%v: %+v", err, results[0])
		}
	}
}

// Calls of a turn may come in several batches at once, as when they are streamed:
// the limits hold for all of them together.
func TestExecuteFromManyGoroutines(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	run := turn.New(c.cat, &turn.Options{Turn: turn.Limits{Calls: 30}, Run: turn.Limits{Calls: 50}, Middleware: []turn.Middleware{turn.StopLoops(100)}}).NewRun(turn.Usage{})
	var all sync.WaitGroup
	var completed, notRun atomic.Int32
	for range 2 {
		tn, err := run.Begin(caller())
		must(t, err)
		for range 8 {
			all.Go(func() {
				results, err := tn.Execute(caller(), slices.Repeat([]turn.Call{call("same", "a", `{}`)}, 5))
				if err != nil && !errors.Is(err, turn.ErrBudget) {
					t.Error(err)
				}
				for _, r := range results {
					switch r.Status {
					case turn.StatusCompleted:
						completed.Add(1)
					case turn.StatusNotRun:
						notRun.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	if completed.Load() != 50 || notRun.Load() != 30 || run.Used().Calls != 50 {
		t.Errorf("%d completed, %d not run, used %+v", completed.Load(), notRun.Load(), run.Used())
	}
	if got := countTerminal(c.heard()); got != 80 {
		t.Errorf("%d terminal events for 80 calls", got)
	}
}
