package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

// task is a node with everything that a node can say, as the tests draw it. Edges
// lead from lower numbers to higher ones.
type task struct {
	from     []int
	odd      bool // edges into it are taken only if what their source gave is odd
	all      bool
	elements int // of a forEach, or -1
	parallel int
	broken   int // how many attempts at each call fail
	attempts int
	backoff  time.Duration
	delay    time.Duration
	timeout  time.Duration
	do       flow.Handling
	cost     float64
}

type job []task

func drawJob(t *rapid.T, most int) job {
	j := make(job, rapid.IntRange(1, most).Draw(t, "nodes"))
	trouble := rapid.IntRange(0, 20).Draw(t, "trouble")
	ms := func(most int, what string) time.Duration {
		return time.Duration(rapid.IntRange(1, most).Draw(t, what)) * time.Millisecond
	}
	for i := range j {
		n := task{elements: -1, attempts: 1, delay: ms(40, "delay"), cost: float64(rapid.IntRange(0, 3).Draw(t, "cost"))}
		if i > 0 {
			n.from = rapid.SliceOfNDistinct(rapid.IntRange(max(0, i-8), i-1), 1, min(i, 3), rapid.ID[int]).Draw(t, "from")
			n.odd = rapid.IntRange(0, 4).Draw(t, "odd") == 0
			n.all = rapid.IntRange(0, 3).Draw(t, "all") == 0
		}
		if rapid.IntRange(0, 4).Draw(t, "each") == 0 {
			n.elements, n.parallel = rapid.IntRange(0, 4).Draw(t, "elements"), rapid.IntRange(1, 3).Draw(t, "parallel")
		}
		if rapid.IntRange(0, 3).Draw(t, "retries") == 0 {
			n.attempts, n.backoff = rapid.IntRange(1, 3).Draw(t, "attempts"), ms(20, "backoff")
			n.broken = rapid.IntRange(0, 2).Draw(t, "broken")
		}
		if rapid.IntRange(0, 99).Draw(t, "fails") < trouble {
			n.broken = 10
		}
		if rapid.IntRange(0, 99).Draw(t, "late") < trouble {
			n.timeout = n.delay - time.Microsecond
		}
		n.do = rapid.SampledFrom([]flow.Handling{flow.Skip, flow.Fallback, flow.Fallback, flow.Fail, flow.Compensate}).Draw(t, "do")
		j[i] = n
	}
	leads := map[int]bool{}
	for _, n := range j {
		for _, from := range n.from {
			leads[from] = true
		}
	}
	exit := task{elements: -1, attempts: 1, do: flow.Fail}
	for i := range j {
		if !leads[i] {
			exit.from = append(exit.from, i)
		}
	}
	return append(j, exit)
}

// fails reports whether the node fails by itself: each call of it does, or takes
// too long.
func (n task) fails() bool {
	return n.elements != 0 && (n.broken >= n.attempts || n.timeout > 0)
}

// tries is how many attempts each call of the node takes.
func (n task) tries() int { return min(n.broken+1, n.attempts) }

const spareValue = 1000

// want is what a naive, sequential run gives: a number for each node that runs, and
// the nodes that would end the flow.
func (j job) want() (values map[int]int, ends map[int]bool) {
	values, ends = map[int]int{}, map[int]bool{}
	for i, n := range j {
		taken, total := 0, 0
		for _, from := range n.from {
			v, ran := values[from]
			if ran && (!n.odd || v%2 == 1) {
				taken++
			}
			total += v
		}
		if i > 0 && (taken == 0 || n.all && taken < len(n.from)) {
			continue
		}
		switch {
		case !n.fails() && n.elements >= 0:
			values[i] = n.elements
		case !n.fails():
			values[i] = total + i + 1
		case n.do == flow.Fallback:
			values[i] = spareValue + i
		case n.do == flow.Skip:
			values[i] = 0
		default:
			values[i], ends[i] = 0, true
		}
	}
	return values, ends
}

// value is what the expressions of the flow see of node i as a number.
func (j job) value(i int) string {
	at := fmt.Sprintf("nodes.n%d", i)
	if j[i].elements >= 0 {
		return fmt.Sprintf("(type(%s) == list ? size(%s) : (%s == null ? 0 : %s))", at, at, at, at)
	}
	return fmt.Sprintf("(%s == null ? 0 : %s)", at, at)
}

func (j job) definition() flow.Definition {
	def := flow.Definition{Name: "drawn", Entry: "n0", Exit: fmt.Sprint("n", len(j)-1)}
	for i, n := range j {
		sum := "0"
		for _, from := range n.from {
			sum += fmt.Sprintf(" + (has(nodes.n%d) ? %s : 0)", from, j.value(from))
		}
		node := flow.Node{ID: fmt.Sprint("n", i), Tool: fmt.Sprint("n", i), Inputs: map[string]any{"a": "${{ " + sum + " }}"}, Timeout: n.timeout,
			Retry: flow.Retry{Attempts: n.attempts, Backoff: n.backoff}, OnError: flow.OnError{Do: n.do}, Cost: n.cost, Undo: fmt.Sprint("u", i)}
		if n.all {
			node.Join = flow.JoinAll
		}
		if n.elements >= 0 {
			list, _ := json.Marshal(make([]int, n.elements))
			node.ForEach = &flow.ForEach{Items: string(list), Parallel: n.parallel}
			node.Inputs = map[string]any{"a": 0, "e": "${{ index }}"}
		}
		if n.do == flow.Fallback {
			node.OnError.Node = fmt.Sprint("s", i)
			def.Nodes = append(def.Nodes, flow.Node{ID: fmt.Sprint("s", i), Tool: fmt.Sprint("s", i)})
		}
		def.Nodes = append(def.Nodes, node, flow.Node{ID: fmt.Sprint("u", i), Tool: fmt.Sprint("u", i)})
	}
	for to, n := range j {
		for _, from := range n.from {
			edge := flow.Edge{To: fmt.Sprint("n", to)}
			if n.odd {
				edge.When = j.value(from) + " % 2 == 1"
			}
			at := slices.IndexFunc(def.Nodes, func(node flow.Node) bool { return node.ID == fmt.Sprint("n", from) })
			def.Nodes[at].Next = append(def.Nodes[at].Next, edge)
		}
	}
	return def
}

// shop runs the calls of a job and counts them.
type shop struct {
	job job
	mu  sync.Mutex
	// calls counts the attempts by tool and element, and last is when one began.
	calls map[string]int
	last  time.Time
}

func (s *shop) Describe(_ context.Context, name string) (tools.Tool, bool) {
	return tools.Tool{Name: name, SideEffects: tools.SideEffectPure}, true
}

func (s *shop) Run(ctx context.Context, name string, inputs map[string]any) (any, error) {
	call := name + " " + fmt.Sprint(inputs["e"])
	s.mu.Lock()
	s.calls[call]++
	attempt := s.calls[call]
	s.last = time.Now()
	s.mu.Unlock()
	i, err := strconv.Atoi(name[1:])
	if err != nil {
		return nil, err
	}
	switch name[0] {
	case 'u':
		return "undone", nil
	case 's':
		return spareValue + i, nil
	}
	n := s.job[i]
	select {
	case <-time.After(n.delay):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if attempt <= n.broken {
		return nil, errBroken
	}
	a, err := strconv.Atoi(fmt.Sprint(inputs["a"]))
	return a + i + 1, err
}

// ending is how a run of a job ended.
type ending struct {
	out     any
	err     error
	calls   map[string]int
	state   flow.RunState
	elapsed time.Duration
	last    time.Duration // when the last call began
}

// run runs the job under fake time, with a budget of its own and a context.
func (j job) run(t *testing.T, budget flow.Budget, limit func(context.Context) (context.Context, context.CancelFunc)) (e ending) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &shop{job: j, calls: map[string]int{}}, flow.NewLog(nil)
		def := j.definition()
		def.Budget = budget
		f, err := flow.Compose(def, &flow.Options{Runner: s, Recorder: log})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := limit(t.Context())
		defer cancel()
		began := time.Now()
		s.last = began
		e.out, e.err = f.Run(ctx, nil)
		e.elapsed = time.Since(began)
		list, err := log.List(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("got %d runs, %v", len(list), err)
		}
		e.state, _ = log.Get(ctx, list[0].ID)
		e.calls, e.last = s.calls, s.last.Sub(began)
	})
	return e
}

// With retries, time limits, loops, fallbacks and compensation too, a flow gives
// what a naive sequential run gives, and makes the same calls.
func TestPoliciesEqualTheirSpecification(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := drawJob(rt, 15)
		values, ends := j.want()
		got := j.run(t, flow.Budget{}, unlimited)
		if len(ends) > 0 {
			j.checkFailure(rt, got, ends)
			return
		}
		exit := len(j) - 1
		if _, reached := values[exit]; !reached {
			if !errors.Is(got.err, flow.ErrExitNotReached) {
				rt.Fatalf("got %v, %v", got.out, got.err)
			}
		} else if got.err != nil || got.out != json.Number(fmt.Sprint(values[exit])) {
			rt.Fatalf("got %v, %v, want %d", got.out, got.err, values[exit])
		}
		if diff := j.callsDiffer(values, got.calls); diff != "" {
			rt.Fatal(diff)
		}
		j.checkBudgets(t, rt, got, values)
	})
}

// checkFailure looks at a run that a node ended: one that had to, and where it
// compensates, everything that had been done is undone.
func (j job) checkFailure(rt *rapid.T, got ending, ends map[int]bool) {
	var node *flow.NodeError
	if !errors.As(got.err, &node) {
		rt.Fatalf("got %v, %v", got.out, got.err)
	}
	i, _ := strconv.Atoi(node.Node[1:])
	if !ends[i] {
		rt.Fatalf("%v, which does not end the flow", got.err)
	}
	for _, n := range got.state.Nodes {
		at, _ := strconv.Atoi(n.Node[1:])
		undone := got.calls[fmt.Sprintf("u%d <nil>", at)]
		want := 0
		if n.Status == flow.Undone {
			want = 1
		}
		if n.Node[0] == 'n' && (undone != want || j[i].do != flow.Compensate && undone > 0 || j[i].do == flow.Compensate && n.Status == flow.Done) {
			rt.Fatalf("node %s is %s and was undone %d times, after %v", n.Node, n.Status, undone, got.err)
		}
	}
}

// callsDiffer compares the calls with those of the specification.
func (j job) callsDiffer(values map[int]int, calls map[string]int) string {
	want := map[string]int{}
	for i := range values {
		n := j[i]
		if n.elements < 0 {
			want[fmt.Sprintf("n%d <nil>", i)] = n.tries()
		}
		for e := range n.elements {
			want[fmt.Sprintf("n%d %d", i, e)] = n.tries()
		}
		if n.timeout > 0 && n.elements != 0 || n.fails() && n.elements > 0 {
			// How far a loop gets before its failure, and what is tried again after a
			// time limit, is compared as far as it is certain: something ran.
			delete(want, fmt.Sprintf("n%d <nil>", i))
			for e := range max(n.elements, 0) {
				delete(want, fmt.Sprintf("n%d %d", i, e))
			}
		}
		if n.fails() && n.do == flow.Fallback {
			want[fmt.Sprintf("s%d <nil>", i)] = 1
		}
	}
	for call, times := range want {
		if calls[call] != times {
			return fmt.Sprintf("%s was called %d times, want %d", call, calls[call], times)
		}
	}
	for call := range calls {
		i, _ := strconv.Atoi(strings.Fields(call)[0][1:])
		if _, ran := values[i]; !ran {
			return call + " was called"
		}
	}
	return ""
}

// checkBudgets runs the job again with less of one thing than it took, and with just
// enough.
func (j job) checkBudgets(t *testing.T, rt *rapid.T, free ending, values map[int]int) {
	hops, cost, calls := 0, 0.0, 0
	for i := range values {
		n := j[i]
		count := max(n.elements, 0)
		if n.elements < 0 {
			count = 1
		}
		hops, cost = hops+count, cost+float64(count)*n.cost
		if n.fails() && n.do == flow.Fallback {
			hops++
		}
	}
	for _, times := range free.calls {
		calls += times
	}
	same := func(b flow.Budget) {
		if got := j.run(t, b, unlimited); got.out != free.out || (got.err == nil) != (free.err == nil) {
			rt.Fatalf("with %+v: got %v, %v, want %v, %v", b, got.out, got.err, free.out, free.err)
		}
	}
	less := func(b flow.Budget, axis flow.Axis) {
		got := j.run(t, b, unlimited)
		var exceeded *flow.BudgetError
		if !errors.As(got.err, &exceeded) || exceeded.Axis != axis {
			rt.Fatalf("with %+v: got %v, %v", b, got.out, got.err)
		}
		if axis == flow.AxisDeadline && got.elapsed != b.Deadline {
			rt.Fatalf("it ended after %v, not %v", got.elapsed, b.Deadline)
		}
	}
	same(flow.Budget{HopBudget: hops, CostCap: cost, Calls: calls, Deadline: free.elapsed + time.Nanosecond})
	if hops > 1 {
		less(flow.Budget{HopBudget: rapid.IntRange(1, hops-1).Draw(rt, "hops")}, flow.AxisHops)
	}
	if calls > 1 {
		less(flow.Budget{Calls: rapid.IntRange(1, calls-1).Draw(rt, "calls")}, flow.AxisCalls)
	}
	if cost > 1 {
		less(flow.Budget{CostCap: cost - 0.5}, flow.AxisCost)
	}
	if free.elapsed > 1 {
		less(flow.Budget{Deadline: time.Duration(rapid.Int64Range(1, int64(free.elapsed)-1).Draw(rt, "deadline"))}, flow.AxisDeadline)
		j.checkCancel(t, rt, time.Duration(rapid.Int64Range(1, int64(free.elapsed)-1).Draw(rt, "cancel")))
	}
}

// checkCancel ends a run at a moment: nothing begins after it.
func (j job) checkCancel(t *testing.T, rt *rapid.T, at time.Duration) {
	why := errors.New("enough")
	got := j.run(t, flow.Budget{}, func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(at, func() { cancel(why) })
		return ctx, func() { timer.Stop(); cancel(nil) }
	})
	if !errors.Is(got.err, why) || got.elapsed != at || got.last > at {
		rt.Fatalf("cancelled after %v: got %v, %v after %v, the last call after %v", at, got.out, got.err, got.elapsed, got.last)
	}
}
