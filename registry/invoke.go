package registry

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// invoker returns the innermost step of a toolset's tool: one attempt at one
// call.
func (r *Registry) invoker(ts *toolset, spec ToolSpec) tools.Invoker {
	fp, err := spec.Fingerprint()
	harmless := spec.harmless()
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if err != nil {
			return tools.ToolResult{}, refuse(tools.ErrClassPermanent, err)
		}
		return r.invoke(ctx, ts, &request{tool: spec.Name, fingerprint: fp, harmless: harmless, args: args})
	}
}

// request is what one attempt is made of.
type request struct {
	tool, fingerprint string
	harmless          bool // a second run has no further effect
	args              json.RawMessage
}

// digest is what two calls of one id must agree on: what is called with which
// arguments, but for hidden ones.
func (q *request) digest(toolset string, in *tools.Call) string {
	if in == nil {
		return hashed(toolset, q.tool, hashed(string(q.args)))
	}
	return hashed(toolset, q.tool, in.Digest())
}

func (r *Registry) invoke(ctx context.Context, ts *toolset, q *request) (tools.ToolResult, error) {
	for n := 0; ; {
		c := r.prepare(ctx, ts, q, n)
		res, unrun, err := r.once(ctx, ts, q, c)
		if !unrun {
			return res, err
		}
		if n = r.anew(ctx, c, n); n < 0 {
			return res, err
		}
	}
}

// once makes the call under one id. unrun says that there was a record of it, by
// which it is over and certainly did not run.
func (r *Registry) once(ctx context.Context, ts *toolset, q *request, c *call) (res tools.ToolResult, unrun bool, err error) {
	own, refusal := r.enter(c)
	if refusal != nil {
		return tools.ToolResult{}, false, r.unentered(ctx, c, refusal)
	}
	defer r.exit(own)
	if own == c {
		res, err = r.begun(ctx, ts, q, c)
	} else {
		res, err = r.rejoin(ctx, own, c)
	}
	return res, err != nil && own.foundUnrun(c), err
}

// anew returns which of the ids of a call is the next one under which it may run, from
// the nth on, or -1.
func (r *Registry) anew(ctx context.Context, c *call, n int) int {
	who, _ := identity.QuadrupleFrom(ctx)
	in := tools.CallFrom(ctx)
	latest := time.Now().Add(r.opts.MaxCallTime)
	if c.deadline.After(latest) {
		latest = c.deadline
	}
	return r.ledger.passUnrun(ctx, c.rec.Digest, n, latest, func(n int) store.Key {
		id, _ := callID(&who, c.toolset, c.tool, in, n)
		return callKey(who.TenantID, id)
	})
}

// begun makes a call that nobody in this process waits for yet.
func (r *Registry) begun(ctx context.Context, ts *toolset, q *request, c *call) (tools.ToolResult, error) {
	if err := r.reach(ctx, ts, c, q); err != nil {
		met, fault := r.met(ctx, ts, c)
		if met {
			return r.await(ctx, c, nil)
		}
		if fault != nil {
			err = unread(fault)
		}
		c.giveUp(err)
		return tools.ToolResult{}, err
	}
	return r.await(ctx, c, r.send(ts, c))
}

// reach waits until the call can be sent to a worker that has its tool.
func (r *Registry) reach(ctx context.Context, ts *toolset, c *call, q *request) error {
	if !ts.isReady() {
		if met, _ := r.met(ctx, ts, c); met {
			return errMet
		}
		ctx, cancel := context.WithDeadline(ctx, c.deadline)
		defer cancel()
		if err := ts.ready(ctx, c); err != nil {
			return unready(err)
		}
	}
	return ts.current(q)
}

// errMet says that a call needs not be sent, because it was before.
var errMet = errors.New("registry: the call was sent before")

// met reports whether the call is one that a process has recorded before this one
// could send it. Its answer is then what the record says: also when no worker is
// up any more, and when the tool is another by now. Where no worker has the call
// and none is up, it is ended, unless its caller waits for one. The error says that the
// record cannot be read.
func (r *Registry) met(ctx context.Context, ts *toolset, c *call) (bool, error) {
	if !c.again || !c.recorded {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if err := c.refresh(ctx, &r.ledger); err != nil && !errors.Is(err, errOtherBody) {
		r.log.Error("the record of a call cannot be read", "call", c.id, "error", err)
		return false, err
	}
	if !c.isMet() {
		return false, nil
	}
	c.sending() // so that it is tended like one that was sent here
	if !c.wait {
		r.strand(ts)
	}
	return true, nil
}

// current refuses a call of a tool that is another now.
func (ts *toolset) current(q *request) error {
	ts.mu.Lock()
	fp, ok := ts.prints[q.tool]
	ts.mu.Unlock()
	switch {
	case !ok:
		return &tools.Error{Code: tools.ErrToolNotFound, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
			Message: "the toolset does not have the tool any more"}
	case fp != q.fingerprint:
		return &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Retryable: true,
			Message: "the tool changed while the call waited; call it again"}
	}
	return nil
}

// prepare makes the call's record, which is not kept yet, under the nth id that
// follows that of its attempt.
func (r *Registry) prepare(ctx context.Context, ts *toolset, q *request, n int) *call {
	who, _ := identity.QuadrupleFrom(ctx)
	in := tools.CallFrom(ctx)
	now := time.Now()
	deadline := r.deadline(ctx)
	m := &ToolCallMessage{Type: TypeCall, Tool: q.tool, Payload: q.args, Deadline: deadline, Toolset: ts.name, Contract: q.fingerprint,
		ReplyTo: r.resultsStream(), Asks: asksOf(in), Meta: &ToolCallMeta{RunID: who.RunID, SessionID: who.SessionID, TenantID: who.TenantID, UserID: who.UserID},
		Route: &Route{Inbox: r.inbox, Shared: r.settleSubject(), Token: rand.Text(), Claim: !q.harmless}}
	wait := r.opts.Wait || waits(ctx)
	if in != nil {
		m.Meta.ToolCallID, m.Meta.ParentToolCallID, m.Meta.IdempotencyKey = in.ID, in.Parent, in.IdempotencyKey
		m.Meta.Attempt, m.Meta.Caller = in.Attempt(), in.Meta
		wait = wait || waitsByMeta(in.Meta)
	}
	again := false
	m.ToolUseID, again = callID(&who, ts.name, q.tool, in, n)
	carry(ctx, m)
	c := newCall(m.ToolUseID, record{Version: recordVersion, State: stateAccepted, Toolset: ts.name, Tool: q.tool,
		Token: m.Route.Token, Accepted: now, Deadline: deadline, Message: m}, callKey(who.TenantID, m.ToolUseID))
	c.wait, c.again, c.recorded = wait, again, r.opts.RecordAll || !q.harmless
	if again { // no other call can have an id of its own
		c.rec.Digest = q.digest(ts.name, in)
	}
	m.Route.Confirm = c.recorded
	if m.Asks != nil {
		c.questions = newQuestions()
	}
	return c
}

// waitsByMeta reports whether the caller's _meta asks to wait for a worker.
func waitsByMeta(meta json.RawMessage) bool {
	if len(meta) == 0 {
		return false
	}
	var m map[string]json.RawMessage
	return json.Unmarshal(meta, &m) == nil && string(m[MetaWait]) == "true"
}

// carry puts the trace that ctx belongs to on the message.
func carry(ctx context.Context, m *ToolCallMessage) {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	propagation.Baggage{}.Inject(ctx, headers)
	m.TraceParent, m.TraceState, m.Baggage = headers["traceparent"], headers["tracestate"], headers["baggage"]
}

// enter makes the call known, or returns the one of the same id that is. Each
// enter needs an exit.
func (r *Registry) enter(c *call) (*call, *tools.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, refuse(tools.ErrClassTransient, errClosed)
	}
	other := r.calls[c.id]
	if other == nil {
		if r.outstanding(c.toolset) >= r.opts.MaxOutstanding {
			return nil, &tools.Error{Code: tools.ErrOverloaded, Class: tools.ErrClassTransient, Delivery: tools.NotDelivered, Retryable: true,
				RetryAfter: time.Second, Message: fmt.Sprintf("%d calls of toolset %q have no answer yet", r.opts.MaxOutstanding, c.toolset)}
		}
		r.calls[c.id], other = c, c
	}
	other.waiters++
	r.waiting++
	return other, nil
}

// outstanding counts the calls of a toolset where that matters. The caller holds
// the lock.
func (r *Registry) outstanding(toolset string) int {
	if len(r.calls) < r.opts.MaxOutstanding {
		return 0
	}
	n := 0
	for _, c := range r.calls {
		if c.toolset == toolset {
			n++
		}
	}
	return n
}

// exit says that one who waited for the call does so no longer.
func (r *Registry) exit(c *call) {
	c.waiter.leave() // also when what hears of progress panics
	r.mu.Lock()
	c.waiters--
	r.waiting--
	if r.closed && r.waiting == 0 {
		close(r.idle)
	}
	r.mu.Unlock()
	r.discard(c)
}

// send has the call put on the stream, and its record kept when no worker claims
// it at once. Why the stream has not confirmed the former comes on the channel: a worker
// may have answered before it has.
func (r *Registry) send(ts *toolset, c *call) <-chan error {
	c.sending()
	unsent := make(chan error, 1)
	r.sends.Go(func() {
		if err := r.add(r.ctx, ts, c.message, c); err != nil {
			unsent <- err
		}
	})
	if c.recorded {
		r.keeper.soon(c)
	}
	return unsent
}

// addTime bounds how long the stream has to take a call before it is left to be
// sent again.
const addTime = 5 * time.Second

func (r *Registry) add(ctx context.Context, ts *toolset, m *ToolCallMessage, c *call) error {
	payload, err := Encode(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, addTime)
	defer cancel()
	s, err := ts.stream(ctx)
	if err != nil {
		return err
	}
	_, err = s.Add(ctx, TypeCall, payload)
	c.sending()
	return err
}

// rejoin waits for the call of the same id that is under way.
func (r *Registry) rejoin(ctx context.Context, running, c *call) (tools.ToolResult, error) {
	running.mu.Lock()
	same := running.rec.Digest == c.rec.Digest
	running.mu.Unlock()
	if !same {
		return tools.ToolResult{}, conflict()
	}
	return r.await(ctx, running, nil)
}

// await passes on what the worker says, until there is a result.
func (r *Registry) await(ctx context.Context, c *call, unsent <-chan error) (tools.ToolResult, error) {
	in := tools.CallFrom(ctx)
	for {
		select {
		case err := <-unsent:
			if err := r.unsent(ctx, c, err); err != nil && c.waiter.leave() {
				return tools.ToolResult{}, err
			}
		case <-c.notes.come:
			c.notes.pass(ctx, in)
		case a := <-c.questions.next():
			go r.put(ctx, c, in, a)
		case <-c.refused:
			return tools.ToolResult{}, unkept(c.fault)
		case <-c.done:
			c.notes.pass(ctx, in)
			return resultOf(&c.result)
		case <-ctx.Done():
			if c.over() || !c.waiter.leave() {
				<-c.done
				return resultOf(&c.result)
			}
			return r.abandon(ctx, c)
		case <-r.ctx.Done():
			if !c.waiter.leave() {
				<-c.done
				return resultOf(&c.result)
			}
			return tools.ToolResult{}, &tools.Error{Class: tools.ErrClassTransient, Message: "the gateway ended while the call was under way"}
		}
	}
}

// abandon ends a call whose caller waits no longer. If no worker has it, none
// will run it, which the caller is told; otherwise the worker is told, unless the call
// has its result by now.
func (r *Registry) abandon(ctx context.Context, c *call) (tools.ToolResult, error) {
	e := &tools.Error{Err: ctx.Err()}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Message = "no answer in time; " + r.lastAnswer(c.toolset)
	}
	r.mu.Lock()
	shared := c.waiters > 1
	r.mu.Unlock()
	if shared {
		return tools.ToolResult{}, e
	}
	if c.recorded {
		code, why := CodeCancelled, "its caller went away before a worker had it"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			code, why = CodeExpired, "its time was over before a worker had it"
		}
		unclaimed, err := c.finishUnclaimed(ctx, &r.ledger, failed(c.id, &ToolError{Code: code, NotDelivered: true, Message: why}))
		switch {
		case err != nil:
			r.log.Error("the end of a call cannot be recorded", "toolset", c.toolset, "call", c.id, "error", err)
		case unclaimed:
			e.Delivery = tools.NotDelivered
			if e.Message != "" {
				e.Message = "no worker took the call in time; " + r.lastAnswer(c.toolset)
			}
		case c.over():
			return resultOf(&c.result)
		}
	}
	r.cancel(ctx, c)
	return tools.ToolResult{}, e
}

// lastAnswer says when a toolset's workers were last heard of.
func (r *Registry) lastAnswer(toolset string) string {
	r.mu.Lock()
	ts := r.toolsets[toolset]
	r.mu.Unlock()
	if ts == nil {
		return fmt.Sprintf("the toolset %q is gone", toolset)
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.lastPong.IsZero() {
		return fmt.Sprintf("the workers of toolset %q have answered no ping yet", toolset)
	}
	said := fmt.Sprintf("the last of the workers of toolset %q to answer a ping did so %s ago", toolset, age(time.Since(ts.lastPong)))
	for _, i := range ts.instances {
		if i.up && i.status.Hindered != "" {
			return said + ", and one says that it is kept from serving calls; the gateway's log says by what"
		}
	}
	return said
}

// cancel tells the toolset's workers that nobody waits for the call.
func (r *Registry) cancel(ctx context.Context, c *call) {
	payload, err := json.Marshal(Cancel{ToolUseID: c.id, Token: c.token()})
	if err == nil {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		err = r.client.Publish(ctx, CancelSubject(c.toolset), stream.Message{Name: MessageCancel, Payload: payload})
	}
	if err != nil {
		r.log.Warn("the workers cannot be told that a call was cancelled", "toolset", c.toolset, "call", c.id, "error", err)
	}
}
