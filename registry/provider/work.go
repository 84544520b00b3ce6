package provider

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// job is a call that this worker has.
type job struct {
	msg    registry.ToolCallMessage
	key    string          // see keyOf
	ctx    context.Context // ends at the deadline and when the caller goes away
	cancel context.CancelFunc
	out    *emitter
	clock  clock // of a call whose caller can be asked; others have their deadline in ctx
	// claimed says that a registry gave the call to this worker.
	claimed bool
	try     int // counts the jobs of the worker

	mu     sync.Mutex
	leases []stream.Event // the event, once more for each time that it was delivered again
}

// add keeps another lease on the same call.
func (j *job) add(e stream.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.leases = append(j.leases, e)
}

// each does something with every lease on the call.
func (j *job) each(f func(e stream.Event) error) error {
	j.mu.Lock()
	leases := append([]stream.Event(nil), j.leases...)
	j.mu.Unlock()
	var last error
	for _, e := range leases {
		if err := f(e); err != nil && !errors.Is(err, stream.ErrSettled) {
			last = err
		}
	}
	return last
}

// busTime bounds what passes between a worker and a backend at once.
const busTime = 5 * time.Second

// brief returns a context for settling something, which goes on while the worker
// drains.
func (w *worker) brief() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.work), busTime)
}

// take sorts what came from the stream. It never waits for a tool.
func (w *worker) take(e stream.Event) {
	m, err := registry.DecodeCall(e.Payload)
	switch {
	case err != nil:
		w.tasks.Go(func() { w.poison(e, m, err) })
	case m.Type == registry.TypePing:
		w.tasks.Go(func() { w.streamPing(e, m.PingID) })
	default:
		w.accept(e, m)
	}
}

// accept queues a call, or answers why not.
func (w *worker) accept(e stream.Event, m registry.ToolCallMessage) {
	j := w.newJob(e, m)
	if w.again(e, j) {
		j.cancel()
		return
	}
	if w.hasRun(j) {
		w.tasks.Go(func() { w.settle(j) })
		return
	}
	if refusal := w.refusal(j); refusal != nil {
		w.tasks.Go(func() { w.refuse(j, refusal) })
		return
	}
	w.mu.Lock()
	w.held[j.key] = j
	w.mu.Unlock()
	select {
	case w.queue <- j:
	default:
		w.log.Warn("the queue is full", "call", m.ToolUseID, "queued", len(w.queue))
		w.tasks.Go(func() {
			w.refuse(j, &registry.ToolError{Code: registry.CodeOverloaded, NotDelivered: true, RetryAfterMS: w.retryAfter().Milliseconds(),
				Message: fmt.Sprintf("the worker's queue of %d calls is full", w.opts.MaxQueuedToolCalls)})
		})
	}
}

// retryAfter estimates when the queue will have been worked off.
func (w *worker) retryAfter() time.Duration {
	rounds := w.opts.MaxQueuedToolCalls/w.opts.MaxConcurrentToolCalls + 1
	return min(max(time.Duration(w.pace.Load())*time.Duration(rounds), 200*time.Millisecond), 30*time.Second)
}

// paced notes how long a call took.
func (w *worker) paced(d time.Duration) {
	old := w.pace.Load()
	w.pace.Store(old + (int64(d)-old)/8)
}

// again reports whether the worker has the call of next already, and keeps the
// new lease with it.
func (w *worker) again(e stream.Event, next *job) bool {
	w.mu.Lock()
	j := w.held[next.key]
	w.mu.Unlock()
	if j == nil {
		return false
	}
	j.add(e)
	return true
}

// keyOf tells calls apart: those of registries by their tokens, which are new for
// each caller that asks, and others by all that they say. An id alone may be that
// of another call, or of the same one whose first caller went away.
func keyOf(m *registry.ToolCallMessage) string {
	if m.Route != nil && m.Route.Token != "" {
		return tokenKey(m.ToolUseID, m.Route.Token)
	}
	h := sha256.New()
	for _, part := range []string{m.Tool, m.ReplyTo, string(m.Payload)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return tokenKey(m.ToolUseID, "\x00"+string(h.Sum(nil)))
}

func tokenKey(id, token string) string { return id + "\x00" + token }

func (w *worker) newJob(e stream.Event, m registry.ToolCallMessage) *job {
	j := &job{msg: m, key: keyOf(&m), try: int(w.jobs.Add(1)), leases: []stream.Event{e}}
	ctx := w.work
	switch {
	case m.Deadline.IsZero():
		j.ctx, j.cancel = context.WithCancel(ctx)
	case m.Asks != nil:
		j.limit(ctx)
	default:
		j.ctx, j.cancel = context.WithDeadline(ctx, m.Deadline)
	}
	j.out = &emitter{worker: w, job: j, msg: &j.msg}
	j.ctx = context.WithValue(j.ctx, emitterKey{}, j.out)
	return j
}

// limit gives a job a context whose deadline moves with the time that its caller
// takes to answer.
func (j *job) limit(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	j.ctx = ctx
	j.cancel = func() {
		j.clock.over()
		end(nil)
	}
	j.clock.set(j.msg.Deadline, func() { end(context.DeadlineExceeded) })
}

// late reports whether the job's deadline is past.
func (j *job) late() bool { return errors.Is(context.Cause(j.ctx), context.DeadlineExceeded) }

// doubtful is how late a call is of which a clock that is wrong is the likely reason.
const doubtful = 5 * time.Second

// doubt says of a call that is very late that clocks may differ.
func doubt(late time.Duration) string {
	if late < doubtful {
		return ""
	}
	return fmt.Sprintf(", %s ago by the clock of the worker, which may differ from the gateway's", late.Round(time.Second))
}

// refusal says why a call is not run at all.
func (w *worker) refusal(j *job) *registry.ToolError {
	m := &j.msg
	if m.Toolset != "" && m.Toolset != w.toolset {
		return &registry.ToolError{Code: registry.CodeToolNotFound, NotDelivered: true, Message: "the call came to a worker of another toolset"}
	}
	if late := time.Since(m.Deadline); !m.Deadline.IsZero() && late >= 0 {
		return &registry.ToolError{Code: registry.CodeExpired, NotDelivered: true, Message: "its time was over before a worker ran it" + doubt(late)}
	}
	if w.wasCancelled(j) {
		return &registry.ToolError{Code: registry.CodeCancelled, NotDelivered: true, Message: "its caller went away before a worker ran it"}
	}
	if m.Contract == "" || w.prints == nil {
		return nil
	}
	switch w.prints[m.Tool] {
	case m.Contract:
		return nil
	case "":
		return &registry.ToolError{Code: registry.CodeToolNotFound, NotDelivered: true, Message: "the worker does not have the tool"}
	}
	return &registry.ToolError{Code: registry.CodeStaleContract, NotDelivered: true, Message: "the tool changed while the call waited; call it again"}
}

// refuse answers a call that is not run.
func (w *worker) refuse(j *job, e *registry.ToolError) {
	w.answer(j, registry.ToolResultMessage{Error: e})
}

// runQueue runs one call after the other. When a handler ends its goroutine
// (runtime.Goexit), another takes its place.
func (w *worker) runQueue() {
	whole := false
	defer func() {
		if !whole {
			w.log.Error("a tool ended the goroutine that it ran on")
			w.pool.Go(w.runQueue)
		}
	}()
	for j := w.next(); j != nil; j = w.next() {
		w.runCounted(j)
	}
	whole = true
}

// next waits for a call that may have a place, and returns nil when none will come.
// Those that had one before come first.
func (w *worker) next() *job {
	for !w.draining.Load() {
		select {
		case j := <-w.aside.ready:
			return j
		default:
		}
		select {
		case j := <-w.aside.ready:
			return j
		case j, more := <-w.queue:
			if !more {
				return nil
			}
			return j
		}
	}
	return nil
}

func (w *worker) runCounted(j *job) {
	w.running.Add(1)
	defer w.running.Add(-1)
	w.run(j)
}

// giveBack empties the queue, which is closed, for other workers.
func (w *worker) giveBack() {
	for j := range w.queue {
		w.release(j, 0)
	}
}

// release gives a call back to the stream.
func (w *worker) release(j *job, delay time.Duration) {
	j.cancel()
	w.forget(j)
	ctx, cancel := w.brief()
	defer cancel()
	if err := j.each(func(e stream.Event) error { return e.Nack(ctx, delay) }); err != nil {
		w.log.Warn("a call cannot be given back; it goes back when its lease ends", "call", j.msg.ToolUseID, "error", err)
	}
}

func (w *worker) forget(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[j.key] == j {
		delete(w.held, j.key)
	}
}

// run runs a call, if it is this worker's to run, and has the answer sent, for
// which the next call does not wait.
func (w *worker) run(j *job) {
	if refusal := w.refusal(j); refusal != nil {
		w.tasks.Go(func() { w.refuse(j, refusal) })
		return
	}
	if !w.isClaimed(j) {
		return
	}
	began := time.Now()
	// This stands when the handler ends its goroutine.
	res := registry.ToolResultMessage{Error: &registry.ToolError{Code: registry.CodeExecutionFailed, Class: "permanent",
		Message: "the tool ended without an answer"}}
	defer func() {
		w.paced(time.Since(began))
		w.answer(j, res)
	}()
	res = w.handle(j)
}

// handle has the handler run the call.
func (w *worker) handle(j *job) (res registry.ToolResultMessage) {
	m := &j.msg
	ctx := propagation.TraceContext{}.Extract(j.ctx, propagation.MapCarrier{"traceparent": m.TraceParent, "tracestate": m.TraceState})
	ctx = propagation.Baggage{}.Extract(ctx, propagation.MapCarrier{"baggage": m.Baggage})
	ctx, span := w.opts.Tracer.Start(ctx, "toolcrib.worker.call", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("toolcrib.toolset", w.toolset), attribute.String("toolcrib.tool", m.Tool), attribute.String("toolcrib.tool_use_id", m.ToolUseID)))
	defer span.End()
	defer func() {
		if r := recover(); r != nil {
			w.log.Error("a tool panicked", "tool", m.Tool, "call", m.ToolUseID, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			res = registry.ToolResultMessage{Error: &registry.ToolError{Code: registry.CodeExecutionFailed, Class: "permanent", Message: "the tool panicked"}}
		}
		if res.Error != nil {
			span.SetStatus(codes.Error, res.Error.Code)
		}
	}()
	res, err := w.handler.HandleToolCall(ctx, *m)
	if err != nil {
		return registry.ToolResultMessage{Error: w.fault(j, err)}
	}
	return res
}

// fault says why the handler gave no result. Of a call that was stopped on its
// way nobody knows how far it came.
func (w *worker) fault(j *job, err error) *registry.ToolError {
	e := registry.ErrorOf(err)
	effects := j.msg.Route == nil || j.msg.Route.Claim
	switch {
	case j.ctx.Err() == nil:
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled) && j.late():
		e.Code, e.Class, e.OutcomeUnknown = registry.CodeTimeout, "timeout", e.OutcomeUnknown || effects && !e.NotDelivered
	case errors.Is(err, context.Canceled):
		e.Code, e.OutcomeUnknown = registry.CodeCancelled, e.OutcomeUnknown || effects && !e.NotDelivered
	}
	return e
}

// wasCancelled reports whether the call's caller is known to have gone away.
func (w *worker) wasCancelled(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, gone := w.cancelled[j.cancelKey()]
	return gone
}

// cancelKey is what a Cancel of the call names.
func (j *job) cancelKey() string {
	if j.msg.Route == nil {
		return tokenKey(j.msg.ToolUseID, "")
	}
	return tokenKey(j.msg.ToolUseID, j.msg.Route.Token)
}

// ran remembers a call that was claimed and run here, and whose result may wait on a
// stream. Until a registry has that, it would let this worker run the call again when it
// is delivered once more.
func (w *worker) ran(j *job) {
	if !j.claimed || !j.msg.Route.Claim {
		return // A harmless call that comes again was sent again, as its answer was lost.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	remember(w.finished, j.key)
}

// hasRun reports whether the call was run here by a job before.
func (w *worker) hasRun(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, has := w.finished[j.key]
	return has
}

// remember adds a key to those that are remembered for a while.
func remember(keys map[string]int64, key string) {
	now := time.Now().Unix()
	if len(keys) >= mostRemembered {
		for old, until := range keys {
			if until < now || len(keys) >= mostRemembered {
				delete(keys, old)
			}
		}
	}
	keys[key] = now + int64(rememberedFor/time.Second)
}

const (
	// mostRemembered bounds how many calls are remembered whose callers went away, and
	// as many that ran.
	mostRemembered = 4096
	// rememberedFor is how long they are, which is longer than they wait here.
	rememberedFor = 10 * time.Minute
)

// drop ends a call whose caller went away, or remembers not to begin it. Another
// caller that asks for the call of the same id is not meant.
func (w *worker) drop(c *registry.Cancel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := tokenKey(c.ToolUseID, c.Token)
	remember(w.cancelled, key)
	for _, j := range w.held {
		if j.cancelKey() == key {
			j.cancel()
		}
	}
}

// keepLeases extends the leases of the calls that the worker has, until it has
// none left.
func (w *worker) keepLeases(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-w.drained:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		list := make([]*job, 0, len(w.held))
		for _, j := range w.held {
			list = append(list, j)
		}
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.work), every)
		for _, j := range list {
			err := j.each(func(e stream.Event) error { return e.Extend(ctx) })
			if err != nil && !errors.Is(err, stream.ErrLost) {
				w.log.Warn("the lease of a call cannot be extended", "call", j.msg.ToolUseID, "error", err)
			}
		}
		cancel()
	}
}
