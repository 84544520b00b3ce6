package flow

import (
	"container/heap"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// NodeError is the failure of a node that ended a run.
type NodeError struct {
	Flow, Node string
	Err        error
}

// Error names the node and its flow.
func (e *NodeError) Error() string {
	return fmt.Sprintf("flow: node %q of %q: %v", e.Node, e.Flow, e.Err)
}

// Unwrap returns what the node failed with.
func (e *NodeError) Unwrap() error { return e.Err }

// Run runs the flow with a JSON object and returns what it gives as decoded
// JSON. Errors are ErrInvalidInputs, *NodeError, *BudgetError,
// ErrExitNotReached, or the cause of ctx.
func (f *Flow) Run(ctx context.Context, inputs json.RawMessage) (any, error) {
	return f.start(ctx, rand.Text(), inputs, nil)
}

// Resume goes on with a run that was recorded and did not end: nodes that had
// finished are not run again. A node that had begun and may have had an effect
// ends the run with tools.ErrOutcomeUnknown. The recorder must be a [Loader].
func (f *Flow) Resume(ctx context.Context, runID string) (any, error) {
	loader, ok := f.recorder.(Loader)
	if !ok {
		return nil, fmt.Errorf("%w: the recorder of %q cannot load runs", ErrRunNotFound, f.name)
	}
	begun, nodes, err := loader.Load(ctx, runID)
	if err != nil {
		return nil, err
	}
	if begun.Flow != f.name {
		return nil, fmt.Errorf("%w: %q is a run of %q", ErrRunNotFound, runID, begun.Flow)
	}
	return f.start(ctx, runID, begun.Inputs, nodes)
}

func (f *Flow) start(ctx context.Context, id string, inputs json.RawMessage, before []NodeRecord) (any, error) {
	if len(inputs) == 0 {
		inputs = json.RawMessage("{}")
	}
	if err := f.inputs.Check(inputs); err != nil {
		return nil, fmt.Errorf("%w of %q: %w", ErrInvalidInputs, f.name, err)
	}
	bound, err := expr.Decode(inputs)
	if err != nil {
		return nil, fmt.Errorf("%w of %q: %w", ErrInvalidInputs, f.name, err)
	}
	m := newMeter(ctx, f)
	limited, stop := timeout(context.WithValue(ctx, meterKey{}, m), f.budget.Deadline, m.deadline())
	defer stop()
	limited, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	r := newRun(f, id, limited, m, bound)
	r.outer, r.cancel = ctx, cancel
	if err := r.remember(before); err != nil {
		return nil, err
	}
	return r.recorded(inputs)
}

// run is one run of a flow. All but its jobs belong to one goroutine.
type run struct {
	f       *Flow
	id      string
	outer   context.Context // the caller's
	ctx     context.Context // ended with the run
	cancel  context.CancelCauseFunc
	meter   *meter
	began   time.Time
	results map[string]any
	values  map[string]any

	pending, taken []int // edges into each node
	ready          byPlace
	running        int
	settled        chan outcome
	completed      []int
	progress       int
	exited         bool
	failed         error
	undo           bool

	before map[string]NodeRecord // of a run that is resumed
}

func newRun(f *Flow, id string, ctx context.Context, m *meter, inputs any) *run {
	r := &run{f: f, id: id, ctx: ctx, meter: m, began: time.Now(), results: map[string]any{},
		pending: make([]int, len(f.nodes)), taken: make([]int, len(f.nodes)), settled: make(chan outcome, f.limit)}
	r.values = map[string]any{"inputs": inputs, "nodes": r.results}
	r.ready.nodes = f.nodes
	for i, n := range f.nodes {
		r.pending[i] = n.sources
	}
	return r
}

// remember takes up what is known of a run that is resumed.
func (r *run) remember(list []NodeRecord) error {
	r.before = map[string]NodeRecord{}
	for _, rec := range list {
		r.before[rec.Node] = rec
	}
	for _, n := range r.f.nodes {
		rec, known := r.before[n.ID]
		harmless := n.known && (n.effects == tools.SideEffectPure || n.effects == tools.SideEffectRead)
		if known && rec.Status == Started && !harmless && n.Ask == nil {
			return &NodeError{r.f.name, n.ID, fmt.Errorf("%w: the run ended while the node ran", tools.ErrOutcomeUnknown)}
		}
	}
	return nil
}

// recorded runs the run between the recorder's Begin and End.
func (r *run) recorded(inputs json.RawMessage) (any, error) {
	rec := r.f.recorder
	if rec == nil {
		return r.all()
	}
	who, _ := identity.QuadrupleFrom(r.outer)
	begun := Run{ID: r.id, Flow: r.f.name, Identity: who, Inputs: inputs, Began: r.began, Cancel: func() { r.cancel(ErrCanceled) }}
	if err := rec.Begin(r.outer, begun); err != nil {
		return nil, fmt.Errorf("flow: recording a run of %q: %w", r.f.name, err)
	}
	value, err := r.all()
	// The end is recorded also for a caller that went away.
	if recErr := rec.End(context.WithoutCancel(r.outer), r.id, err); recErr != nil {
		err = errors.Join(err, fmt.Errorf("flow: recording the end of a run of %q: %w", r.f.name, recErr))
	}
	return value, err
}

// all runs the nodes and gives the flow's result.
func (r *run) all() (any, error) {
	r.push(r.f.graph.index[r.f.def.Entry])
	for {
		for r.failed == nil && r.ready.Len() > 0 && r.running < r.f.limit {
			r.launch(heap.Pop(&r.ready).(int))
		}
		if r.running == 0 {
			break
		}
		r.take(<-r.settled)
	}
	if r.failed == nil && !r.exited {
		r.failed = fmt.Errorf("%w: %q of %q", ErrExitNotReached, r.f.def.Exit, r.f.name)
	}
	if r.failed != nil {
		return nil, r.broken()
	}
	if r.f.output == nil {
		return r.results[r.f.def.Exit], nil
	}
	value, err := r.f.output.Fill(r.ctx, r.values)
	if err != nil {
		return nil, fmt.Errorf("flow: the output of %q: %w", r.f.name, err)
	}
	return value, nil
}

// broken finishes a run that failed.
func (r *run) broken() error {
	if e, ok := errors.AsType[*BudgetError](r.failed); ok {
		publishExceeded(r.outer, r.f, e, time.Since(r.began))
	}
	if !r.undo {
		return r.failed
	}
	return errors.Join(r.failed, r.compensate())
}

// fail ends the run with its first failure, and what runs with it.
func (r *run) fail(err error) {
	if r.failed == nil {
		r.failed = err
		r.cancel(err)
	}
}

func (r *run) push(i int) { heap.Push(&r.ready, i) }

// launch begins a node, unless the run is over. A node that is alone runs here
// and needs no goroutine.
func (r *run) launch(i int) {
	if r.ctx.Err() != nil {
		r.fail(context.Cause(r.ctx))
		return
	}
	n := r.f.nodes[i]
	if rec, ok := r.before[n.ID]; ok && (rec.Status == Done || rec.Status == Skipped) {
		value, err := expr.Decode(rec.Value)
		r.take(outcome{node: i, of: i, value: value, err: err})
		return
	}
	r.begin(i, i, nil)
}

// begin starts node i, in the place of another if of is another.
func (r *run) begin(i, of int, failure error) {
	j, err := r.job(i, of, failure)
	if err != nil {
		r.take(outcome{node: i, of: of, err: err})
		return
	}
	r.running++
	if r.running == 1 && r.ready.Len() == 0 {
		r.take(j.do(r.ctx))
		return
	}
	go func() { r.settled <- j.do(r.ctx) }()
}

// take goes on after what became of a node.
func (r *run) take(o outcome) {
	if o.ran {
		r.running--
	}
	if r.failed != nil {
		r.record(o, Failed)
		return
	}
	if o.err == nil {
		r.complete(o)
		return
	}
	r.handle(o)
}

// handle does what a node says about its failure.
func (r *run) handle(o outcome) {
	n := r.f.nodes[o.of]
	if r.ctx.Err() != nil {
		r.record(o, Failed)
		r.fail(context.Cause(r.ctx))
		return
	}
	if e, ok := errors.AsType[*BudgetError](o.err); ok && (n.nested == nil || e.Flow != n.nested.name) {
		r.record(o, Failed)
		r.fail(e)
		return
	}
	do := n.OnError.Do
	if o.node != o.of {
		do = Fail // what stands in for a node has nobody to stand in for it
	}
	switch do {
	case Skip:
		o.value, o.skipped = nil, true
		r.complete(o)
	case Fallback:
		r.record(o, Failed)
		r.begin(n.spare, o.of, o.err)
	default:
		r.undo = do == Compensate
		r.record(o, Failed)
		r.fail(&NodeError{r.f.name, r.f.nodes[o.node].ID, o.err})
	}
}

// complete notes what a node gave and follows its edges.
func (r *run) complete(o outcome) {
	n := r.f.nodes[o.of]
	r.results[n.ID] = o.value
	r.completed = append(r.completed, o.of)
	status := Done
	if o.skipped {
		status = Skipped
	}
	if !r.record(o, status) {
		return
	}
	r.exited = r.exited || n.ID == r.f.def.Exit
	r.settle(n.ID)
	for _, e := range n.edges {
		holds := true
		if e.when != nil {
			var err error
			if holds, err = e.when.True(r.ctx, r.values); err != nil {
				r.fail(&NodeError{r.f.name, n.ID, fmt.Errorf("the condition of its edge to %q: %w", r.f.nodes[e.to].ID, err)})
				return
			}
		}
		r.resolve(e.to, holds)
	}
}

// resolve settles an edge into a node, and what follows from it.
func (r *run) resolve(to int, holds bool) {
	type settledEdge struct {
		to    int
		holds bool
	}
	for stack := []settledEdge{{to, holds}}; len(stack) > 0; {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := r.f.nodes[e.to]
		r.pending[e.to]--
		if e.holds {
			r.taken[e.to]++
		}
		if r.pending[e.to] > 0 {
			continue
		}
		if r.taken[e.to] == n.sources || n.Join != JoinAll && r.taken[e.to] > 0 {
			r.push(e.to)
			continue
		}
		r.settle(n.ID)
		for _, next := range n.edges {
			stack = append(stack, settledEdge{next.to, false})
		}
	}
}

// settle tells the caller how far the run is.
func (r *run) settle(id string) {
	r.progress++
	// A caller that does not listen misses nothing that it waits for.
	_ = tools.Progress(r.outer, float64(r.progress), float64(len(r.f.graph.order)), id)
}

// record keeps what became of a node, and reports whether the run goes on.
func (r *run) record(o outcome, status Status) bool {
	if r.f.recorder == nil || !o.ran {
		return true
	}
	rec := NodeRecord{Node: r.f.nodes[o.of].ID, Ran: r.f.nodes[o.node].ID, Status: status, Attempts: o.attempts, At: time.Now()}
	if o.err != nil {
		rec.Error = o.err.Error()
	}
	if status == Done {
		enc, err := json.Marshal(o.value)
		if err != nil {
			r.fail(&NodeError{r.f.name, rec.Node, err})
			return false
		}
		rec.Value = rawjson.UnescapeHTML(enc)
	}
	if err := r.f.recorder.Node(context.WithoutCancel(r.outer), r.id, rec); err != nil {
		r.fail(fmt.Errorf("flow: recording node %q of %q: %w", rec.Node, r.f.name, err))
		return false
	}
	return true
}

// undoLimit bounds all compensation of one run.
const undoLimit = time.Minute

// compensate undoes what had completed, the last first. It goes on when the
// caller is gone, for a bounded time.
func (r *run) compensate() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.outer), undoLimit)
	defer cancel()
	var failures []error
	for _, i := range slices.Backward(r.completed) {
		n := r.f.nodes[i]
		if n.undo < 0 {
			continue
		}
		j, err := r.job(n.undo, n.undo, r.failed)
		if err == nil {
			j.free = true
			o := j.do(ctx)
			err = o.err
			o.of = n.undo
			if !r.record(o, map[bool]Status{true: Done, false: Failed}[err == nil]) {
				failures = append(failures, r.failed)
			}
		}
		if err != nil {
			failures = append(failures, &NodeError{r.f.name, r.f.nodes[n.undo].ID, fmt.Errorf("undoing %q: %w", n.ID, err)})
		}
	}
	return errors.Join(failures...)
}

// byPlace orders nodes as the graph does.
type byPlace struct {
	nodes []*node
	list  []int
}

func (h *byPlace) Len() int           { return len(h.list) }
func (h *byPlace) Less(i, j int) bool { return h.nodes[h.list[i]].place < h.nodes[h.list[j]].place }
func (h *byPlace) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *byPlace) Push(x any)         { h.list = append(h.list, x.(int)) }

func (h *byPlace) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
