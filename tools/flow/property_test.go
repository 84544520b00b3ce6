package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/tools/flow"
)

// plan is a graph as the tests draw it: edges lead from lower numbers to higher
// ones, and node 0 leads to all.
type plan struct {
	nodes []planned
}

type planned struct {
	from  []int        // sources of the edges into the node
	odd   map[int]bool // edges that are taken only if the source's value is odd
	all   bool
	fails bool
	do    flow.Handling
	delay time.Duration
}

func drawPlan(t *rapid.T, most int) plan {
	n := rapid.IntRange(1, most).Draw(t, "nodes")
	p := plan{nodes: make([]planned, n)}
	failing := rapid.IntRange(0, 30).Draw(t, "failing")
	for i := range p.nodes {
		node := planned{odd: map[int]bool{}, delay: time.Duration(rapid.IntRange(0, 50).Draw(t, "delay")) * time.Millisecond}
		if i > 0 {
			sources := rapid.SliceOfNDistinct(rapid.IntRange(max(0, i-20), i-1), 1, min(i, 3), rapid.ID[int]).Draw(t, "from")
			slices.Sort(sources)
			node.from = sources
			for _, from := range sources {
				node.odd[from] = rapid.IntRange(0, 3).Draw(t, "odd") == 0
			}
			node.all = rapid.IntRange(0, 3).Draw(t, "all") == 0
		}
		node.fails = rapid.IntRange(0, 99).Draw(t, "fails") < failing
		node.do = rapid.SampledFrom([]flow.Handling{flow.Skip, flow.Skip, flow.Fail}).Draw(t, "do")
		p.nodes[i] = node
	}
	// Whatever leads nowhere leads to the exit, which comes last.
	leads := map[int]bool{}
	for _, node := range p.nodes {
		for _, from := range node.from {
			leads[from] = true
		}
	}
	exit := planned{odd: map[int]bool{}}
	for i := range p.nodes {
		if !leads[i] {
			exit.from = append(exit.from, i)
		}
	}
	p.nodes = append(p.nodes, exit)
	return p
}

// want is what a naive, sequential run of the plan gives.
func (p plan) want() (values map[int]int, failed map[int]bool) {
	values, failed = map[int]int{}, map[int]bool{}
	ran := map[int]bool{}
	for i, node := range p.nodes {
		taken, total := 0, 0
		for _, from := range node.from {
			if ran[from] && (!node.odd[from] || values[from]%2 == 1) {
				taken++
			}
			if ran[from] {
				total += values[from]
			}
		}
		if i > 0 && (taken == 0 || node.all && taken < len(node.from)) {
			continue
		}
		ran[i] = true
		values[i] = total + i + 1
		if node.fails {
			values[i] = 0
			if node.do == flow.Fail {
				failed[i] = true
			}
		}
	}
	return values, failed
}

// definition is the plan as a flow, whose nodes note that they ran.
func (p plan) definition(note func(i int)) flow.Definition {
	def := flow.Definition{Name: "drawn", Entry: "n0", Exit: fmt.Sprint("n", len(p.nodes)-1)}
	for i, node := range p.nodes {
		sum := "0"
		for _, from := range node.from {
			sum += fmt.Sprintf(" + (has(nodes.n%d) && nodes.n%d != null ? nodes.n%d : 0)", from, from, from)
		}
		n := flow.Node{ID: fmt.Sprint("n", i), Inputs: map[string]any{"a": "${{ " + sum + " }}"}, OnError: flow.OnError{Do: node.do}}
		if node.all {
			n.Join = flow.JoinAll
		}
		n.Func = flow.Func(func(ctx context.Context, in numbers) (int, error) {
			note(i)
			if node.delay > 0 {
				select {
				case <-time.After(node.delay):
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
			}
			if node.fails {
				return 0, errBroken
			}
			return in.A + i + 1, nil
		})
		def.Nodes = append(def.Nodes, n)
	}
	for to, node := range p.nodes {
		for _, from := range node.from {
			edge := flow.Edge{To: fmt.Sprint("n", to)}
			if node.odd[from] {
				edge.When = fmt.Sprintf("nodes.n%d != null && nodes.n%d %% 2 == 1", from, from)
			}
			def.Nodes[from].Next = append(def.Nodes[from].Next, edge)
		}
	}
	return def
}

// outcomeOf runs the plan under fake time.
func (p plan) outcomeOf(t *testing.T, ctx func(context.Context) (context.Context, context.CancelFunc)) (out any, ran map[int]int, err error) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ran = map[int]int{}
		f, composeErr := flow.Compose(p.definition(func(i int) {
			mu.Lock()
			defer mu.Unlock()
			ran[i]++
		}), nil)
		if composeErr != nil {
			err = composeErr
			return
		}
		limited, cancel := ctx(t.Context())
		defer cancel()
		out, err = f.Run(limited, nil)
		mu.Lock()
		defer mu.Unlock()
		ran = maps.Clone(ran)
	})
	return out, ran, err
}

func unlimited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Whatever the graph, its failures and its delays, a flow gives what a naive
// sequential run of it gives, and runs the same nodes, each once.
func TestFlowsEqualTheirSpecification(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt, 60)
		p.compare(t, rt)
	})
}

func TestALargeFlowEqualsItsSpecification(t *testing.T) {
	p := rapid.Custom(func(rt *rapid.T) plan { return drawPlan(rt, 1000) })
	for seed := range 3 {
		drawn := p.Example(seed + 1)
		for i := range drawn.nodes {
			drawn.nodes[i].do = flow.Skip
		}
		drawn.compare(t, t)
	}
}

type fataler interface{ Fatalf(string, ...any) }

func (p plan) compare(t *testing.T, rt fataler) {
	values, failed := p.want()
	out, ran, err := p.outcomeOf(t, unlimited)
	for i, times := range ran {
		if times != 1 {
			rt.Fatalf("node %d ran %d times", i, times)
		}
	}
	exit := len(p.nodes) - 1
	_, reached := values[exit]
	switch {
	case len(failed) > 0:
		var node *flow.NodeError
		if !errors.As(err, &node) {
			rt.Fatalf("got %v, %v", out, err)
		}
		if i, _ := strconv.Atoi(node.Node[1:]); !failed[i] {
			rt.Fatalf("%v, which does not fail", err)
		}
		return // which other nodes had begun by then depends on their delays
	case !reached:
		if !errors.Is(err, flow.ErrExitNotReached) {
			rt.Fatalf("got %v, %v", out, err)
		}
	case err != nil:
		rt.Fatalf("%v", err)
	case out != json.Number(fmt.Sprint(values[exit])):
		rt.Fatalf("got %v, want %d", out, values[exit])
	}
	for i := range p.nodes {
		if _, want := values[i]; want != (ran[i] == 1) {
			rt.Fatalf("node %d ran: %v, want %v", i, ran[i] == 1, want)
		}
	}
}

// A budget of hops is kept to the node, and a cancelled flow runs nothing more;
// neither leaves anything behind.
func TestBudgetsHoldForAnyFlow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt, 40)
		hops := rapid.IntRange(1, 40).Draw(rt, "hops")
		values, failed := p.want()
		_, ran, err := p.outcomeOf(t, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return flow.WithBudget(ctx, flow.Budget{HopBudget: hops})
		})
		if len(ran) > hops {
			rt.Fatalf("%d nodes ran with a budget of %d", len(ran), hops)
		}
		if len(failed) == 0 && len(values) > hops != errors.Is(err, flow.ErrFlowBudgetExceeded) {
			rt.Fatalf("%d nodes with a budget of %d: got %v", len(values), hops, err)
		}
		limit := time.Duration(rapid.IntRange(1, 500).Draw(rt, "limit")) * time.Millisecond
		_, _, err = p.outcomeOf(t, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, limit)
		})
		var node *flow.NodeError
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, flow.ErrExitNotReached) && !errors.As(err, &node) {
			rt.Fatalf("got %v", err)
		}
	})
}
