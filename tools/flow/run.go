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

	"github.com/toolcrib/toolcrib/exec"
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
// ends the run with tools.ErrOutcomeUnknown. The recorder must be a [Loader]. The
// error is ErrRunNotFound for a run that the caller does not have, and
// ErrNotResumable for one that cannot go on.
func (f *Flow) Resume(ctx context.Context, runID string) (any, error) {
	loader, ok := f.recorder.(Loader)
	if !ok {
		return nil, fmt.Errorf("%w: the recorder of %q cannot load runs", ErrNotResumable, f.name)
	}
	begun, nodes, err := loader.Load(ctx, runID)
	if err != nil {
		return nil, err
	}
	if begun.Flow != f.name {
		return nil, fmt.Errorf("%w: %q is a run of %q", ErrRunNotFound, runID, begun.Flow)
	}
	if begun.Digest != f.digest {
		return nil, fmt.Errorf("%w: %q has changed since the run %q began", ErrNotResumable, f.name, runID)
	}
	return f.start(ctx, runID, begun.Inputs, &resumption{begun.Version, nodes})
}

// resumption is what was kept of a run that is resumed.
type resumption struct {
	version int64
	nodes   []NodeRecord
}

// start runs the flow; before is what was kept of the run, or nil.
func (f *Flow) start(ctx context.Context, id string, inputs json.RawMessage, before *resumption) (any, error) {
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
	inner, err := exec.Nested(context.WithValue(ctx, meterKey{}, m))
	if err != nil {
		return nil, err
	}
	parent, _ := ctx.Value(runKey{}).(string)
	limited, stop := timeout(context.WithValue(inner, runKey{}, id), f.budget.Deadline, m.deadline())
	defer stop()
	limited, cancel := context.WithCancelCause(limited)
	defer cancel(nil)
	r := newRun(f, id, limited, m, bound)
	r.outer, r.cancel, r.parent, r.teller = ctx, cancel, parent, newTeller(ctx)
	r.told = exec.NewProgress(ctx, len(f.graph.order))
	if before != nil {
		r.version = before.version
		if err := r.remember(before.nodes); err != nil {
			return nil, err
		}
	}
	return r.recorded(inputs)
}

// runKey is where a context holds the id of the run that its calls belong to.
type runKey struct{}

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
	exited         bool
	failed         error
	undo           bool
	unknown        []error // outcomes that nobody knows, of nodes that the end cut off
	ran            int     // how many nodes
	parent         string  // the run that this one is part of, or empty
	teller         teller
	told           *exec.Progress

	before  map[string]NodeRecord // of a run that is resumed
	version int64
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
		switch {
		case !known:
		case rec.Status == Started && !(n.harmless() && r.f.ran(rec).harmless()):
			return r.unknownNow(n, "the run ended while the node ran")
		case rec.Unknown:
			return r.unknownNow(n, rec.Error)
		}
	}
	return nil
}

// ran returns the node that a record is of, which may have run in the place of
// another.
func (f *Flow) ran(rec NodeRecord) *node {
	if i, ok := f.graph.index[rec.Ran]; ok {
		return f.nodes[i]
	}
	return f.nodes[f.graph.index[rec.Node]]
}

// unknownNow is the failure of a run that cannot go on behind a node of which nobody
// knows whether it had its effect. Whatever that failed with, to ask once more does
// not change it.
func (r *run) unknownNow(n *node, why string) error {
	return &NodeError{r.f.name, n.ID, &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.DeliveryUnknown, OutcomeUnknown: true, Message: why}}
}

// harmless reports whether the node can run twice as well as once. To ask twice is
// no harm.
func (n *node) harmless() bool {
	return n.Ask != nil || n.known && (n.effects == tools.SideEffectPure || n.effects == tools.SideEffectRead)
}

// leaves reports whether a failure of the node leaves effects that nobody knows
// of: those of a call without an answer, and, of a node that makes several calls,
// those of the calls before the one that failed.
func (n *node) leaves(err error) bool {
	return errors.Is(err, tools.ErrOutcomeUnknown) || !n.harmless() && (n.items != nil || n.nested != nil || n.composed)
}

// recorded runs the run between the recorder's Begin and End.
func (r *run) recorded(inputs json.RawMessage) (any, error) {
	rec := r.f.recorder
	if rec == nil {
		return r.announced()
	}
	who, _ := identity.QuadrupleFrom(r.outer)
	begun := Run{ID: r.id, Flow: r.f.name, Digest: r.f.digest, Parent: r.parent, Identity: who, Inputs: inputs, Began: r.began, Version: r.version,
		Cancel: func() { r.cancel(ErrCanceled) }}
	if err := rec.Begin(r.outer, begun); err != nil {
		return nil, fmt.Errorf("flow: recording a run of %q: %w", r.f.name, err)
	}
	value, err := r.announced()
	// The end is recorded also for a caller that went away.
	if recErr := rec.End(context.WithoutCancel(r.outer), r.id, err); recErr != nil {
		err = errors.Join(err, fmt.Errorf("flow: recording the end of a run of %q: %w", r.f.name, recErr))
	}
	return value, err
}

// announced runs the run between the events of its start and its end.
func (r *run) announced() (any, error) {
	r.tellStarted()
	value, err := r.all()
	r.tellEnd(err)
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
	err := r.failed
	if len(r.unknown) > 0 && !errors.Is(err, tools.ErrOutcomeUnknown) {
		err = errors.Join(append([]error{err}, r.unknown...)...)
	}
	if !r.undo {
		return err
	}
	return errors.Join(err, r.compensate())
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
		r.ran++
	}
	if errors.Is(o.err, tools.ErrOutcomeUnknown) && (r.failed != nil || r.ctx.Err() != nil) {
		r.unknown = append(r.unknown, &NodeError{r.f.name, r.f.nodes[o.node].ID, o.err})
	}
	if r.failed != nil {
		r.cutOff(o)
		return
	}
	if o.err == nil {
		r.complete(o)
		return
	}
	r.handle(o)
}

// cutOff records a node that was over after the run had failed. One that came to
// its end nevertheless is done, and is undone with the others.
func (r *run) cutOff(o outcome) {
	if o.err != nil || !o.ran {
		r.record(o, Failed)
		return
	}
	r.results[r.f.nodes[o.of].ID] = o.value
	r.completed = append(r.completed, o.of)
	r.record(o, Done)
}

// handle does what a node says about its failure.
func (r *run) handle(o outcome) {
	n := r.f.nodes[o.of]
	if r.ctx.Err() != nil {
		r.record(o, Failed)
		r.fail(context.Cause(r.ctx))
		return
	}
	if e, ok := errors.AsType[*BudgetError](o.err); ok && r.meter.holds(e) {
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
	r.told.Settle(o.of, n.ID)
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
		r.told.Settle(e.to, n.ID)
		for _, next := range n.edges {
			stack = append(stack, settledEdge{next.to, false})
		}
	}
}

// record keeps what became of a node, and reports whether the run goes on.
func (r *run) record(o outcome, status Status) bool {
	if !o.ran {
		return true
	}
	r.tellNode(&o, status)
	if r.f.recorder == nil {
		return true
	}
	rec := NodeRecord{Node: r.f.nodes[o.of].ID, Ran: r.f.nodes[o.node].ID, Status: status, Attempts: o.attempts, At: time.Now()}
	if o.err != nil {
		rec.Error, rec.Unknown = o.err.Error(), r.f.nodes[o.node].leaves(o.err) || o.node != o.of && r.f.nodes[o.of].leaves(o.before)
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
			if err = o.err; err == nil {
				// While what undid it still says that it began, nobody goes on from here.
				r.record(outcome{node: i, of: i, ran: true}, Undone)
			}
			r.record(o, map[bool]Status{true: Done, false: Failed}[err == nil])
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
