package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// Execute makes the calls and returns one result for each, in their order,
// whatever happens and also when it returns an error. It waits until all have
// ended. It may be called again for calls of the same turn that come later.
//
// The error is the context's when the caller ended it, ErrBadCall under the
// policy Fail, and ErrBudget when a limit of the run kept a call from being made,
// so that further turns can make none.
func (t *Turn) Execute(ctx context.Context, calls []Call) ([]Result, error) {
	return t.execute(ctx, calls, func(canonical string) string { return canonical })
}

// execute is Execute for a model that knows tools by other names.
func (t *Turn) execute(ctx context.Context, calls []Call, shown func(canonical string) string) ([]Result, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	b := &batch{turn: t, plans: make([]plan, len(calls)), results: make([]Result, len(calls)), shown: shown}
	inner, cancel := b.limit(ctx)
	defer cancel()
	b.plan(inner, calls)
	began := time.Now()
	b.run(inner)
	t.meter().addTime(time.Since(began))
	return b.results, b.verdict(ctx, inner)
}

// batch is the calls of one Execute.
type batch struct {
	turn    *Turn
	plans   []plan
	results []Result
	shown   func(canonical string) string // the name by which the model knows a tool
	workers sync.WaitGroup

	mu     sync.Mutex // guards the fields below, and plan.waits
	ready  []int      // calls that wait for no other, in call order
	active int        // workers
	coming bool       // one of them has not begun yet
	failed bool       // nothing is begun any more
}

// limit puts on the context what calls need and what ends them.
func (b *batch) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = b.turn.run.withMemory(ctx)
	left, by := b.turn.meter().timeLeft()
	if by == nil {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, left, by)
}

// plan finds out what each call is meant for, whether there is room for it, and
// which others it waits for.
func (b *batch) plan(ctx context.Context, calls []Call) {
	var o order
	b.ready = make([]int, 0, len(calls))
	for i := range b.plans {
		p := &b.plans[i]
		p.shown, p.result = b.shown, &b.results[i]
		p.begin(ctx, b.turn, calls[i])
		if p.tool != nil && p.refusal == nil {
			for _, before := range o.place(i, p.tool, p.keys) {
				b.plans[before].next = append(b.plans[before].next, i)
				p.waits++
			}
		}
		if p.waits == 0 {
			b.ready = append(b.ready, i)
		}
	}
}

// run makes all calls and returns when they have ended.
func (b *batch) run(ctx context.Context) {
	b.mu.Lock()
	b.hire(ctx)
	b.mu.Unlock()
	b.workers.Wait()
}

// hire starts a worker when there is something to do, and room for one. Workers
// come one after the other, each hired by the one before, so that calls which are
// over before the next worker is there need no more of them. The caller holds the
// lock.
func (b *batch) hire(ctx context.Context) {
	if len(b.ready) == 0 || b.coming || b.active >= b.turn.run.runner.opts.Concurrency {
		return
	}
	b.active++
	b.coming = true
	b.workers.Go(func() { b.work(ctx) })
}

// work makes calls until none is ready. A tool that ends the goroutine ends its
// call alone: another worker goes on.
func (b *batch) work(ctx context.Context) {
	growStack(0)
	b.mu.Lock()
	b.coming = false
	b.mu.Unlock()
	at := -1
	defer func() {
		if at >= 0 {
			b.finish(ctx, at, true)
		}
	}()
	for {
		i := b.take(ctx)
		if i < 0 {
			return
		}
		at = i
		b.plans[i].dispatch(ctx, b)
		at = -1
		b.finish(ctx, i, false)
	}
}

// growStack makes the stack of a new worker as large as the road of most calls
// needs. It would get there anyway, but step by step, and at each step every frame
// in use is moved; here there are only a few.
//
//go:noinline
func growStack(use int) byte {
	if use == 0 {
		return 0
	}
	var room [stackRoom]byte
	room[use] = 1
	return room[use/2]
}

// stackRoom makes the runtime choose a stack of 16 KiB.
const stackRoom = 10 << 10

// take returns a call that is ready, or -1 when there is none, and the worker
// leaves.
func (b *batch) take(ctx context.Context) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		b.active--
		return -1
	}
	i := b.ready[0]
	b.ready = b.ready[1:]
	b.hire(ctx)
	return i
}

// finish tells the calls that waited for this one. The worker leaves when the tool
// took its goroutine.
func (b *batch) finish(ctx context.Context, i int, leaves bool) {
	p := &b.plans[i]
	b.mu.Lock()
	defer b.mu.Unlock()
	if leaves {
		b.active--
	}
	if b.turn.run.runner.opts.BadCalls == Fail && p.result.Status.bad() {
		b.failed = true
	}
	for _, next := range p.next {
		if b.plans[next].waits--; b.plans[next].waits == 0 {
			at, _ := slices.BinarySearch(b.ready, next)
			b.ready = slices.Insert(b.ready, at, next)
		}
	}
	if leaves {
		b.hire(ctx)
	}
}

// stopped returns why no call may begin any more, or nil.
func (b *batch) stopped(ctx context.Context) error {
	b.mu.Lock()
	failed := b.failed
	b.mu.Unlock()
	if failed {
		return errBadOther
	}
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	if full := b.turn.meter().full(); full != nil {
		return full
	}
	return nil
}

// causeOf returns why a context ended. Whoever ended it gave the error, which may
// be one that panics when it is asked what it is.
func causeOf(ctx context.Context) (err error) {
	defer func() {
		if recover() != nil {
			err = ctx.Err()
		}
	}()
	err = context.Cause(ctx)
	_ = err.Error()
	return err
}

// verdict returns what Execute returns beside the results.
func (b *batch) verdict(ctx, inner context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("turn: %w", errors.Join(ctx.Err(), causeOf(ctx)))
	}
	fails := b.turn.run.runner.opts.BadCalls == Fail
	spent := ofRun(context.Cause(inner))
	for i := range b.plans {
		p := &b.plans[i]
		if fails && p.result.Status.bad() {
			return fmt.Errorf("%w: call %d of %d: %w", ErrBadCall, i+1, len(b.plans), p.result.Err)
		}
		if spent == nil {
			spent = ofRun(p.refusal)
		}
	}
	return spent
}

// ofRun returns the error of a limit of the run, and nil for any other reason.
func ofRun(why error) error {
	if e, ok := why.(*exceeded); ok && e.of == "run" {
		return fmt.Errorf("%w: %w", ErrBudget, e)
	}
	return nil
}

// size is how many bytes of a result a model would read.
func size(r *tools.ToolResult) int64 {
	n := len(r.Structured)
	for _, c := range r.Content {
		n += len(c.JSON)
	}
	return int64(n)
}
