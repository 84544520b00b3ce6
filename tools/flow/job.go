package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/internal/wait"
	"github.com/toolcrib/toolcrib/tools"
)

// outcome is what became of a node.
type outcome struct {
	node, of int // which node ran, and in whose place
	value    any
	err      error
	before   error // that of the node in whose place this one ran
	skipped  bool
	ran      bool
	attempts int
	elapsed  time.Duration
}

// job is a node with all that it is given, so that it runs apart from its run.
type job struct {
	r        *run
	node     *node
	at, of   int
	only     given          // of a node that runs once
	elements []any          // what a node runs for that runs for each
	values   map[string]any // what its expressions see for each
	free     bool           // takes nothing from the budget
	before   error
}

// given is what one call of a node is made with.
type given struct {
	inputs  any
	message string
}

// job fills in what node i is given.
func (r *run) job(i, of int, failure error) (*job, error) {
	n := r.f.nodes[i]
	j := &job{r: r, node: n, at: i, of: of, before: failure}
	values := r.values
	if failure != nil {
		values = map[string]any{"inputs": r.values["inputs"], "nodes": r.results, "error": failure.Error()}
	}
	if n.items == nil {
		var err error
		j.only, err = j.fill(values)
		return j, err
	}
	items, err := n.items.Eval(r.ctx, values)
	if err != nil {
		return nil, err
	}
	list, ok := items.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: expected a list", n.ForEach.Items)
	}
	if limit := orDefault(n.ForEach.Limit, DefaultForEachLimit); len(list) > limit {
		return nil, fmt.Errorf("%s gives %d elements; at most %d are allowed", n.ForEach.Items, len(list), limit)
	}
	j.elements, j.values = list, maps.Clone(values)
	j.values["nodes"] = maps.Clone(r.results)
	return j, j.check()
}

// check fills in every element once, so that none runs where one cannot. What it makes is made again when the element runs:
// all of it at once may be many times as large as the list.
func (j *job) check() error {
	for i := range j.elements {
		if _, err := j.element(i); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

// element returns what a call is given, of the element i where the node runs for each.
func (j *job) element(i int) (given, error) {
	if j.values == nil {
		return j.only, nil
	}
	values := maps.Clone(j.values)
	values["item"], values["index"] = j.elements[i], json.Number(strconv.Itoa(i))
	return j.fill(values)
}

// count is how often the node runs.
func (j *job) count() int {
	if j.values == nil {
		return 1
	}
	return len(j.elements)
}

func orDefault(n, value int) int {
	if n == 0 {
		return value
	}
	return n
}

func (j *job) fill(values map[string]any) (g given, err error) {
	if g.inputs, err = j.node.inputs.Fill(j.r.ctx, values); err != nil || j.node.message == nil {
		return g, err
	}
	message, err := j.node.message.Fill(j.r.ctx, values)
	g.message = fmt.Sprint(message)
	return g, err
}

// do runs the job.
func (j *job) do(ctx context.Context) (o outcome) {
	began := time.Now()
	defer func() { o.elapsed = time.Since(began) }()
	o = outcome{node: j.at, of: j.of, before: j.before, ran: true}
	if err := j.pay(); err != nil {
		o.err = err
		return o
	}
	if err := j.started(); err != nil {
		o.err = err
		return o
	}
	if j.node.items == nil {
		o.value, o.attempts, o.err = j.one(ctx, 0)
		return o
	}
	o.value, o.err = j.each(ctx)
	o.attempts = 1
	return o
}

// pay takes the nodes that run and what they cost from the budget.
func (j *job) pay() error {
	if j.free {
		return nil
	}
	n := j.count()
	return j.r.meter.spend(Budget{HopBudget: n, CostCap: float64(n) * j.node.Cost})
}

func (j *job) started() error {
	if j.r.f.recorder == nil {
		return nil
	}
	of := j.r.f.nodes[j.of]
	return j.r.f.recorder.Node(context.WithoutCancel(j.r.outer), j.r.id, NodeRecord{Node: of.ID, Ran: j.node.ID, Status: Started, At: time.Now()})
}

// each runs the job for each element. The first failure ends the others.
func (j *job) each(ctx context.Context) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]any, len(j.elements))
	failures := make([]error, len(j.elements))
	places := make(chan struct{}, orDefault(j.node.ForEach.Parallel, 1))
	var wg sync.WaitGroup
	for i := range j.elements {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-places }()
			if results[i], _, failures[i] = j.one(ctx, i); failures[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return results, firstFailure(failures, ctx)
}

// firstFailure prefers a failure of its own to one that another caused.
func firstFailure(failures []error, ctx context.Context) error {
	var caused error
	for i, err := range failures {
		if err == nil {
			continue
		}
		err = fmt.Errorf("element %d: %w", i, err)
		if !errors.Is(err, context.Canceled) {
			return err
		}
		caused = err
	}
	if caused == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return caused
}

// maxBackoff bounds the wait between two attempts.
const maxBackoff = time.Minute

// one runs one element as often as it may be tried.
func (j *job) one(ctx context.Context, i int) (value any, attempts int, err error) {
	backoff := j.node.Retry.Backoff
	for attempts = 1; ; attempts++ {
		value, err = j.attempt(ctx, i)
		if err == nil || attempts >= j.node.Retry.Attempts || ctx.Err() != nil || !j.repeatable(err) {
			return value, attempts, err
		}
		if !wait.For(ctx, backoff) {
			return nil, attempts, err
		}
		backoff = min(backoff*2, maxBackoff)
	}
}

// repeatable reports whether the failed attempt may be made again.
func (j *job) repeatable(err error) bool {
	if errors.Is(err, ErrFlowBudgetExceeded) || j.node.Ask != nil {
		return false
	}
	if errors.Is(err, tools.ErrOutcomeUnknown) {
		return false
	}
	if te, ok := errors.AsType[*tools.Error](err); ok {
		return te.Retryable && !te.OutcomeUnknown
	}
	return j.node.Func != nil || j.node.harmless()
}

// errNodeTimeout is why an attempt ended that took longer than its node allows.
var errNodeTimeout = fmt.Errorf("the node's time limit passed: %w", context.DeadlineExceeded)

func (j *job) attempt(ctx context.Context, i int) (any, error) {
	if j.node.Timeout > 0 {
		limited, cancel := timeout(ctx, j.node.Timeout, errNodeTimeout)
		defer cancel()
		ctx = limited
	}
	g, err := j.element(i)
	if err != nil {
		return nil, err
	}
	switch {
	case j.node.Func != nil:
		return j.function(ctx, g.inputs)
	case j.node.nested != nil:
		enc, err := encode(g.inputs)
		if err != nil {
			return nil, err
		}
		return j.node.nested.Run(ctx, enc)
	case j.node.Ask != nil:
		return ask(ctx, g.message, j.node.Ask.Schema)
	}
	return j.call(ctx, g.inputs)
}

func (j *job) call(ctx context.Context, inputs any) (any, error) {
	given, ok := inputs.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a tool is given an object; the inputs are something else")
	}
	if !j.free {
		if err := j.r.meter.spend(Budget{Calls: 1}); err != nil {
			return nil, err
		}
	}
	value, err := j.r.f.runner.Run(j.r.told.Within(ctx, j.of, j.r.f.nodes[j.of].ID), j.node.Tool, given)
	if err != nil {
		return nil, err
	}
	return exec.Own(j.r.f.runner, value)
}

func encode(v any) (json.RawMessage, error) {
	enc, err := json.Marshal(v)
	return rawjson.UnescapeHTML(enc), err
}

// function runs a Go function. One that ignores its context is left behind when
// that ends, and what it gives is dropped.
func (j *job) function(ctx context.Context, inputs any) (any, error) {
	args, err := encode(inputs)
	if err != nil {
		return nil, err
	}
	type answer struct {
		value any
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the function ended its goroutine")}
		defer func() {
			if r := recover(); r != nil {
				a = answer{err: &tools.Error{Class: tools.ErrClassPermanent, Message: "the function panicked"}}
			}
			answers <- a
		}()
		a.value, a.err = j.node.Func.run(ctx, args)
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return nil, a.err
		}
		return expr.ValueOf(a.value)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
