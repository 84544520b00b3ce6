package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

// timeline keeps when calls ran, each for a second.
type timeline struct {
	mu    sync.Mutex
	began time.Time
	spans map[string][2]time.Duration
}

func (l *timeline) invoke(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
	from := time.Since(l.began)
	pause(ctx, time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans[tools.CallFrom(ctx).ID] = [2]time.Duration{from, time.Since(l.began)}
	return tools.ToolResult{}, nil
}

// seconds returns in which second each of the calls ran.
func (l *timeline) seconds(ids ...string) []int {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(l.spans[id][0] / time.Second)
	}
	return out
}

func TestOrderRules(t *testing.T) {
	write, read, stateful := tools.SideEffectWrite, tools.SideEffectRead, tools.SideEffectStateful
	for _, test := range []struct {
		name  string
		tools []tools.Tool
		calls []turn.Call
		// in which second each call runs
		want []int
	}{
		{"nothing in common", []tools.Tool{{Name: "w", SideEffects: write}},
			[]turn.Call{call("0", "w", `{"path":"a"}`), call("1", "w", `{"path":"b"}`), call("2", "w", `{"text":"a"}`)}, []int{0, 0, 0}},
		{"exclusive", []tools.Tool{{Name: "x", Exclusive: true}, {Name: "y"}},
			[]turn.Call{call("0", "x", `{}`), call("1", "y", `{}`), call("2", "x", `{}`), call("3", "x", `{}`)}, []int{0, 0, 1, 2}},
		{"exclusive and read-only", []tools.Tool{{Name: "x", Exclusive: true, SideEffects: read}},
			[]turn.Call{call("0", "x", `{}`), call("1", "x", `{}`)}, []int{0, 1}},
		{"effects on the same key", []tools.Tool{{Name: "w", SideEffects: write}, {Name: "d", SideEffects: write}},
			[]turn.Call{call("0", "w", `{"path":"a"}`), call("1", "d", `{"file":"a"}`), call("2", "w", `{"path":"a"}`)}, []int{0, 1, 2}},
		{"readers between writers", []tools.Tool{{Name: "w", SideEffects: write}, {Name: "r", SideEffects: read}},
			[]turn.Call{call("0", "r", `{"id":1}`), call("1", "r", `{"id":1}`), call("2", "w", `{"id":1}`), call("3", "r", `{"id":1}`), call("4", "r", `{"id":1}`), call("5", "w", `{"id":1}`)},
			[]int{0, 0, 1, 2, 2, 3}},
		{"not classified counts as an effect", []tools.Tool{{Name: "u"}},
			[]turn.Call{call("0", "u", `{"url":"a"}`), call("1", "u", `{"url":"a"}`)}, []int{0, 1}},
		{"other namespaces have other keys", []tools.Tool{{Name: "a.w", SideEffects: write}, {Name: "b.w", SideEffects: write}},
			[]turn.Call{call("0", "a.w", `{"id":"1"}`), call("1", "b.w", `{"id":"1"}`)}, []int{0, 0}},
		{"stateful", []tools.Tool{{Name: "s.a", SideEffects: stateful}, {Name: "s.b", SideEffects: stateful}},
			[]turn.Call{call("0", "s.a", `{}`), call("1", "s.b", `{}`)}, []int{0, 1}},
		{"two keys in common are one wait", []tools.Tool{{Name: "w", SideEffects: write}},
			[]turn.Call{call("0", "w", `{"path":"a","name":"b"}`), call("1", "w", `{"path":"b","name":"a","id":"a"}`)}, []int{0, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &timeline{began: time.Now(), spans: map[string][2]time.Duration{}}
				c := newCrib(t)
				for _, tool := range test.tools {
					c.add(tool, l.invoke)
				}
				c.execute(nil, test.calls...)
				ids := make([]string, len(test.calls))
				for i, call := range test.calls {
					ids[i] = call.ID
				}
				if got := l.seconds(ids...); !slices.Equal(got, test.want) {
					t.Errorf("ran in seconds %v, want %v", got, test.want)
				}
			})
		})
	}
}

// A call that waits for its turn holds no place that another could use, and one
// whose predecessor fails runs all the same.
func TestWaitingCallsHoldNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &timeline{began: time.Now(), spans: map[string][2]time.Duration{}}
		c := newCrib(t).add(tools.Tool{Name: "x", Exclusive: true}, func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			_, _ = l.invoke(ctx, args)
			return tools.ToolResult{}, fmt.Errorf("no")
		}).add(tools.Tool{Name: "y"}, l.invoke)
		results := c.execute(&turn.Options{Concurrency: 2}, call("0", "x", `{}`), call("1", "x", `{}`), call("2", "y", `{}`), call("3", "y", `{}`))
		want(t, results, turn.StatusFailed, turn.StatusFailed, turn.StatusCompleted, turn.StatusCompleted)
		if got := l.seconds("0", "1", "2", "3"); !slices.Equal(got, []int{0, 1, 0, 1}) {
			t.Errorf("ran in seconds %v", got)
		}
	})
}

func TestKeysOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &timeline{began: time.Now(), spans: map[string][2]time.Duration{}}
		c := newCrib(t).add(tools.Tool{Name: "w"}, l.invoke)
		keys := func(_ *tools.Tool, args json.RawMessage) []string {
			if string(args) == `{"panic":1}` {
				panic("no")
			}
			return []string{"all"}
		}
		results := c.execute(&turn.Options{Keys: keys}, call("0", "w", `{}`), call("1", "w", `{"panic":1}`), call("2", "w", `{}`))
		want(t, results, turn.StatusCompleted, turn.StatusNotRun, turn.StatusCompleted)
		if got := l.seconds("0", "2"); !slices.Equal(got, []int{0, 1}) {
			t.Errorf("ran in seconds %v", got)
		}
	})
}

// Whatever is ready is begun in call order.
func TestCallOrderAmongWhatIsReady(t *testing.T) {
	c := newCrib(t)
	var order []string
	c.add(tools.Tool{Name: "w", SideEffects: tools.SideEffectWrite}, func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
		order = append(order, tools.CallFrom(ctx).ID)
		return tools.ToolResult{}, nil
	})
	c.execute(&turn.Options{Concurrency: 1}, call("0", "w", `{"id":1}`), call("1", "w", `{"id":1}`), call("2", "w", `{"id":2}`), call("3", "w", `{"id":1}`))
	if !slices.Equal(order, []string{"0", "1", "2", "3"}) {
		t.Errorf("order %q", order)
	}
}
