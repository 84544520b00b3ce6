package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// plan is one call, from what is known of it before anything runs to its result.
// A single goroutine at a time has it.
type plan struct {
	turn  *Turn
	call  Call
	shown func(canonical string) string
	// tool is what the call is meant for, where that is known. It is the
	// catalog's and must not be changed.
	tool *tools.Tool
	keys []string
	cost float64 // what was taken of the limits
	// refusal is why the call is not made.
	refusal error

	waits int   // for how many calls
	next  []int // the calls that wait for this one

	ran       *tools.Tool // what the door was about to run; not ours to change
	callID    string      // under which the door tells of the call
	unwrapped string
	result    *Result
}

// begin finds out what the call is meant for, and takes what it needs of the
// limits.
func (p *plan) begin(ctx context.Context, t *Turn, c Call) {
	p.turn, p.call = t, c
	p.result.ID, p.result.Name = c.ID, c.Name
	if !t.isFor(ctx) {
		p.refusal = errOtherCaller
		return
	}
	args := c.Args
	if t.Has(c.Name) {
		p.tool = t.declared.View().Ref(c.Name)
	}
	if p.tool != nil && p.tool.Kind == tools.KindMeta {
		args = p.aim(ctx)
	}
	cost, err := p.measure(args)
	switch {
	case err != nil:
		p.refusal = err
	case t.run.runner.opts.SingleCall && !t.takeHead():
		p.refusal = errNotHead
	default:
		if full := t.meter().reserve(cost); full != nil {
			p.refusal = full
			return
		}
		p.cost = cost
	}
}

// aim replaces what the call is meant for by the target of a redirect, and
// returns the target's arguments.
func (p *plan) aim(ctx context.Context) json.RawMessage {
	d, ok := p.turn.run.runner.cat.Resolve(p.call.Name)
	if !ok {
		return p.call.Args
	}
	name, args, ok := d.Target(ctx, p.call.Args)
	if !ok {
		return p.call.Args
	}
	p.tool = p.turn.declared.View().Ref(name)
	return args
}

// measure asks the options what the call costs and concerns.
func (p *plan) measure(args json.RawMessage) (cost float64, err error) {
	if p.tool == nil {
		return 0, nil
	}
	defer func() {
		if r := recover(); r != nil {
			cost, err = 0, errUnmeasured
		}
	}()
	o := &p.turn.run.runner.opts
	p.keys = o.Keys(p.tool, args)
	if c := o.Cost(p.tool, args); c > 0 {
		cost = min(c, maxCost)
	}
	return cost, nil
}

// dispatch takes the call through the door.
func (p *plan) dispatch(ctx context.Context, b *batch) {
	returned := false
	defer func() {
		if !returned {
			p.conclude(ctx, tools.ToolResult{}, errEnded)
		}
	}()
	if p.refusal == nil {
		p.refusal = b.stopped(ctx)
	}
	at := ctx
	if p.refusal != nil {
		at = context.WithoutCancel(ctx) // only to be refused
	}
	res, err := tools.Invoke(tools.WithEntrance(at, p.entrance(ctx)), p.turn.run.runner.cat, p.call.Name, p.call.Args)
	p.conclude(ctx, res, err)
	returned = true
}

// entrance is how the call comes to the door: with the peer of whoever executes
// the turn, also where that is a tool.
func (p *plan) entrance(ctx context.Context) tools.Entrance {
	e := tools.EntranceFrom(ctx)
	own := tools.Entrance{CallID: p.turn.run.eventID(p.call.ID), Guard: p.guard, RefuseForged: true}
	own.Sink, _ = p.turn.run.runner.opts.Bounder.(tools.Sink)
	own.Peer, own.Capabilities, own.Client, own.ClientGone, own.LogLevel = e.Peer, e.Capabilities, e.Client, e.ClientGone, e.LogLevel
	if c := tools.CallFrom(ctx); c != nil && e.Peer == nil {
		own.Peer, own.Capabilities, own.Client, own.ClientGone, own.LogLevel = c.Peer(), c.Capabilities, c.Client, c.ClientGone, c.LogLevel
	}
	return own
}

// guard is what the turn demands of the call at the door.
func (p *plan) guard(ctx context.Context, tool *tools.Tool, args json.RawMessage, next tools.Invoker) (tools.ToolResult, error) {
	p.callID = tools.CallFrom(ctx).ID
	if p.refusal != nil {
		return tools.ToolResult{}, refused(p.refusal)
	}
	if !p.turn.permits(ctx, p.call.Name, tool) {
		return tools.ToolResult{}, &tools.Error{Code: tools.ErrToolNotFound, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
			Message: "it is not declared in this turn"}
	}
	p.ran = tool
	if err := p.sameDefinition(tool); err != nil {
		return tools.ToolResult{}, err
	}
	args, err := p.arguments(ctx, tool, args)
	if err != nil {
		return tools.ToolResult{}, err
	}
	if len(p.turn.run.runner.opts.Middleware) == 0 {
		return next(ctx, args)
	}
	inv := &Invocation{ID: p.call.ID, Tool: tool, Args: args, run: p.turn.run, next: next}
	return p.turn.run.runner.handle(ctx, inv)
}

// sameDefinition refuses a tool that is not what the model was told any more.
func (p *plan) sameDefinition(tool *tools.Tool) error {
	told := p.tool
	if told == nil || told.Name != tool.Name {
		if told = p.turn.declared.View().Ref(tool.Name); told == nil {
			return refused(errChanged)
		}
	}
	if told.DefinitionDigest != tool.DefinitionDigest {
		return refused(errChanged)
	}
	return nil
}

// unreadable is the error of a call that could not be read.
func unreadable(err error) error {
	if e, ok := err.(*tools.Error); ok {
		return e
	}
	return &tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Err: err}
}

// refused is the error of a call that is not made.
func refused(why error) *tools.Error {
	return &tools.Error{Code: ErrNotRun, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Err: why}
}

// Why calls are not made, beside limits and the end of the context.
var (
	errOtherCaller = errors.New("the turn was begun by another caller")
	errNotHead     = errors.New("only the first call of a turn is made; call again in the next turn")
	errBadOther    = errors.New("another call of the turn should not have been made")
	errChanged     = errors.New("the tool has changed since it was declared; its new declaration comes with the next turn")
	errEnded       = errors.New("what ran for it ended its goroutine")
	errUnmeasured  = errors.New("what it costs or concerns could not be told")
)

// conclude makes the result of the call.
func (p *plan) conclude(ctx context.Context, res tools.ToolResult, err error) {
	r := p.result
	r.Unwrapped = p.unwrapped
	if p.ran != nil {
		r.Tool = p.ran.Name
	}
	if err == nil {
		res, err = p.bounded(ctx, res)
	}
	if err == nil && len(p.turn.run.runner.opts.Middleware) > 0 && wellFormed(&res) != nil {
		err = &tools.Error{Code: tools.ErrToolInvalidOutput, Tool: r.Tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
			Attempts: res.Attempts, Message: "the call was answered with what is not JSON"}
	}
	if err == nil {
		r.Status, r.ToolResult = StatusCompleted, res
		p.turn.meter().addBytes(size(&res))
		return
	}
	if p.refusal != nil {
		err = refused(p.refusal)
	}
	if r.Status = statusOf(ctx, err); r.Status == StatusNotRun && !errors.Is(err, ErrNotRun) {
		err = refused(causeOf(ctx))
	}
	if by, ok := context.Cause(ctx).(*exceeded); ok && r.Status == StatusCancelled {
		err = fmt.Errorf("%w: %w", by, err)
	}
	r.Err = err
	if p.cost > 0 && (attempts(err) == 0 || r.Status == StatusNotRun) {
		p.turn.meter().refund(p.cost)
	}
	r.ToolResult = tools.ToolResult{IsError: true, CallID: p.callID, Attempts: attempts(err), Content: []tools.Content{tools.TextContent(p.explain(ctx))}}
	p.turn.meter().addBytes(size(&r.ToolResult))
}

// bounded makes a result small.
func (p *plan) bounded(ctx context.Context, res tools.ToolResult) (out tools.ToolResult, err error) {
	b := p.turn.run.runner.opts.Bounder
	if b == nil || p.ran == nil {
		return res, nil
	}
	defer func() {
		if r := recover(); r != nil {
			out, err = res, unkept(p.ran.Name, fmt.Errorf("panic: %v", r), res.Attempts)
		}
	}()
	ctx, cancel := outlast(ctx, storeGrace)
	defer cancel()
	small, err := b.Bound(ctx, p.ran, res)
	if err == nil {
		err = wellFormed(&small)
	}
	if err != nil {
		return res, unkept(p.ran.Name, err, res.Attempts)
	}
	return small, nil
}

// wellFormed returns an error when something of a result is not the JSON that it
// has to be.
func wellFormed(res *tools.ToolResult) error {
	for _, c := range res.Content {
		if !rawjson.Valid(c.JSON) {
			return errNotJSON
		}
	}
	if res.Structured != nil && !rawjson.Valid(res.Structured) || res.Wire != nil && !rawjson.Valid(res.Wire) {
		return errNotJSON
	}
	return nil
}

var errNotJSON = errors.New("what was made of it is not JSON")

// storeGrace is how long a result may still be stored when the turn has ended: the
// call was made, and its result should not be lost to the end of the turn.
const storeGrace = 5 * time.Second

// outlast returns a context that ends a while after ctx does.
func outlast(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// unkept says that a result could not be made small, and is withheld.
func unkept(tool string, err error, attempts int) *tools.Error {
	return &tools.Error{Tool: tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Attempts: attempts,
		Message: "the call was made, but its result could not be stored", Err: err}
}

// attempts returns how often the tool was reached.
func attempts(err error) int {
	var e *tools.Error
	if errors.As(err, &e) {
		return e.Attempts
	}
	return 1
}

// undelivered reports whether a call certainly did not reach its tool, although
// an attempt was begun.
func undelivered(err error) bool {
	var e *tools.Error
	return errors.As(err, &e) && e.Delivery == tools.NotDelivered
}

// statusOf tells the status of a call that gave no result.
func statusOf(ctx context.Context, err error) Status {
	reached := attempts(err) > 0
	switch ended := ctx.Err() != nil && errors.Is(err, ctx.Err()); {
	case !reached && errors.Is(err, ErrNotRun):
		return StatusNotRun
	case ended && reached && !undelivered(err):
		return StatusCancelled
	case ended:
		return StatusNotRun
	case reached:
		return StatusFailed
	case errors.Is(err, tools.ErrToolNotFound):
		return StatusUnknown
	case errors.Is(err, tools.ErrToolInvalidArgs):
		return StatusInvalid
	case errors.Is(err, tools.ErrToolDenied), errors.Is(err, tools.ErrToolRejected), errors.Is(err, tools.ErrApprovalExpired),
		errors.Is(err, tools.ErrIdentityRequired):
		return StatusDenied
	}
	return StatusFailed
}
