package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// passage is one call on its way through the door. It holds all that every call
// needs, so that one allocation serves.
type passage struct {
	b      *binding
	call   *Call
	stages *Stages
	em     emitter
	shell  shell
	start  time.Time

	own      Call        // what call points to, once there is a call
	turn     sync.Mutex  // held while middleware goes on
	over     bool        // middleware must not go on any more
	invoked  bool        // the event was published
	release  func(error) // of admission
	refusing string      // the stage that refused
	attempts int
	spent    *Error // set when every retry was used
}

// Invoke is the road of a call. It is what Resolve gives as a descriptor's
// Invoke.
//
// A call that comes from a wrapper which was put around the tool with Replace
// is the same call, and goes straight to the driver below the wrapper.
func (b *binding) Invoke(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	if b.redirect != nil {
		return b.handOver(ctx, args)
	}
	outer := CallFrom(ctx)
	if outer != nil && outer.running.Load() != nil && levelOf(ctx, outer).isAbove(b) {
		return b.driver(&levelContext{Context: ctx, level: b}, args)
	}
	p := new(passage) // filled in place: it is large to copy
	p.b, p.stages, p.start = b, b.cat.stages.Load(), time.Now()
	p.em.begin(ctx, b.cat, b.tool.Name, b.bus)
	return p.pass(ctx, outer, args)
}

// pass walks the road and concludes, also when the tool ends the goroutine that
// it runs on.
func (p *passage) pass(ctx context.Context, outer *Call, args json.RawMessage) (ToolResult, error) {
	returned := false
	defer func() {
		if !returned {
			_, _ = p.conclude(ctx, ToolResult{}, &Error{Class: ErrClassPermanent, Delivery: Answered, Err: errGoexit})
		}
	}()
	res, err := p.walk(ctx, outer, args)
	returned = true
	return p.conclude(ctx, res, err)
}

type levelKey struct{}

// levelContext says how far a call has come down through the wrappers around
// its tool, so that the tool itself, when it calls itself, makes a new call.
type levelContext struct {
	context.Context
	level *binding
}

// Value implements context.Context.
func (c *levelContext) Value(key any) any {
	if key == (levelKey{}) {
		return c.level
	}
	return c.Context.Value(key)
}

// levelOf returns the binding whose driver runs on ctx.
func levelOf(ctx context.Context, c *Call) *binding {
	if b, ok := ctx.Value(levelKey{}).(*binding); ok && b != nil {
		return b
	}
	return c.binding
}

// walk takes the steps before the arguments are looked at.
func (p *passage) walk(ctx context.Context, outer *Call, args json.RawMessage) (res ToolResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			res, err = ToolResult{}, p.b.cat.panicked(ctx, p.b.tool.Name, r)
		}
	}()
	b := p.b
	if err := b.cat.checkCaller(ctx, truncate(b.tool.Name, maxShownName)); err != nil {
		return ToolResult{}, err
	}
	part := partFuncOf(ctx)
	if !b.permitted(ctx, part) {
		return ToolResult{}, notFound(b.tool.Name)
	}
	p.call = &p.own
	p.call.begin(ctx, b, outer, p.em.who.RunID)
	p.call.part = part
	if p.stages.Redactor != nil { // which sees results alone
		p.call.Tasks = false
		p.call.KeepWhole()
	}
	p.em.call = p.call.ID
	if !p.surrounded() {
		return p.checked(ctx, args)
	}
	ctx = &callContext{Context: ctx, call: p.call}
	if p.call.guard != nil {
		p.refusing = "entrance"
		return p.call.guard(ctx, &b.tool, args, p.behindGuard)
	}
	p.refusing = "middleware"
	return chain(p.goOn, b.cat.middleware)(ctx, args)
}

// surrounded reports whether anything may go on with the call more than once.
func (p *passage) surrounded() bool {
	return p.call != nil && (p.call.guard != nil || len(p.b.cat.middleware) > 0)
}

// behindGuard is what the entrance's guard calls to go on.
func (p *passage) behindGuard(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	if len(p.b.cat.middleware) == 0 {
		return p.goOn(ctx, args)
	}
	if !p.turn.TryLock() {
		return ToolResult{}, busy(errBusy)
	}
	over := p.over
	if !over {
		p.refusing = "middleware"
	}
	p.turn.Unlock()
	if over {
		return ToolResult{}, busy(errOver)
	}
	return chain(p.goOn, p.b.cat.middleware)(ctx, args)
}

func busy(err error) *Error {
	return &Error{Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
}

// goOn is what middleware calls to go on. It may do so more than once, one
// after the other, and before it returns.
func (p *passage) goOn(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	if !p.turn.TryLock() {
		return ToolResult{}, busy(errBusy)
	}
	defer p.turn.Unlock()
	if p.over {
		return ToolResult{}, busy(errOver)
	}
	return p.checked(ctx, args)
}

var (
	errBusy = errors.New("tools: middleware already goes on with this call")
	errOver = errors.New("tools: middleware went on with a call that it had ended")
)

// close keeps middleware from going on, once what it began has ended.
func (p *passage) close() {
	if !p.surrounded() {
		return
	}
	p.turn.Lock()
	p.over = true
	p.turn.Unlock()
}

// checked is the road behind the middleware, in the order in which it is
// always walked.
func (p *passage) checked(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	p.refusing = ""
	args, err := p.settle(ctx, args)
	if err != nil {
		return ToolResult{}, err
	}
	p.call.args = args
	if err := p.admit(ctx); err != nil {
		return ToolResult{}, err
	}
	p.announce(ctx)
	res, err := p.run(ctx, args)
	if err != nil {
		return ToolResult{}, err
	}
	if err := p.b.checkOutput(&res); err != nil {
		return ToolResult{}, err
	}
	if r := p.stages.Redactor; r != nil {
		return p.redacted(ctx, r, res)
	}
	return res, nil
}

// redacted has a copy of the result, as what a stage is given a pointer to is
// allocated, and most calls have no redactor.
func (p *passage) redacted(ctx context.Context, r Redactor, res ToolResult) (ToolResult, error) {
	if err := r.Redact(ctx, &p.b.tool, &res); err != nil {
		return ToolResult{}, &Error{Class: ErrClassPermanent, Delivery: Answered, Message: "the result could not be redacted", Err: err}
	}
	return res, nil
}

// settle strips hidden arguments, validates, and asks the safety policy and,
// where that asks for it, a person. Edited arguments are settled again.
func (p *passage) settle(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	approved := false
	for {
		var err error
		if args, err = p.strip(ctx, args); err != nil {
			return nil, err
		}
		if err := p.b.checkArgs(args); err != nil {
			return nil, err
		}
		verdict, reason, err := p.decide(ctx, args)
		switch {
		case err != nil:
			p.refusing = "policy"
			return nil, &Error{Code: ErrToolDenied, Class: ErrClassPermanent, Delivery: NotDelivered, Message: "the safety policy failed", Err: err}
		case verdict == Allow, verdict == Ask && approved:
			return args, nil
		case verdict != Ask:
			p.refusing = "policy"
			return nil, refusal(ErrToolDenied, reason)
		}
		edited, err := p.approve(ctx, args, reason)
		if err != nil {
			return nil, err
		}
		if edited == nil {
			return args, nil
		}
		args, approved = edited, true
	}
}

func refusal(code error, reason string) *Error {
	return &Error{Code: code, Class: ErrClassPermanent, Delivery: NotDelivered, Message: reason}
}

var emptyObject = json.RawMessage("{}")

// orEmptyObject takes absent arguments and null for an object without members.
func orEmptyObject(args json.RawMessage) json.RawMessage {
	if len(args) > 0 && args[0] != 'n' && args[0] > ' ' {
		return args
	}
	if t := rawjson.Trim(args); len(t) == 0 || string(t) == "null" {
		return emptyObject
	}
	return args
}

func (b *binding) checkArgs(args json.RawMessage) error {
	var err error
	if b.in != nil && b.policy.Validate.in() {
		err = b.in.Check(args)
	} else {
		err = rawjson.Check(args, rawjson.Options{})
	}
	if err == nil && len(b.tool.Injected) > 0 && rawjson.KindOf(args) != rawjson.KindObject {
		err = errors.New("expected an object")
	}
	if err == nil && b.validate != nil {
		err = b.validate(args)
	}
	if err == nil {
		return nil
	}
	return &Error{Code: ErrToolInvalidArgs, Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
}

func (p *passage) decide(ctx context.Context, args json.RawMessage) (Verdict, string, error) {
	if s := p.stages.Safety; s != nil {
		return s.Decide(ctx, &p.b.tool, args)
	}
	if p.b.tool.Safety.NeedsConfirmation == Yes {
		return Ask, "the tool needs confirmation", nil
	}
	return Allow, "", nil
}

func (p *passage) approve(ctx context.Context, args json.RawMessage, reason string) (json.RawMessage, error) {
	p.refusing = "approval"
	a := p.stages.Approver
	if a == nil {
		return nil, refusal(ErrToolDenied, "the call needs approval and no approver is configured")
	}
	edited, err := a.Approve(ctx, ApprovalRequest{CallID: p.call.ID, Identity: p.em.who, Tool: &p.b.tool,
		Args: args, ArgsDigest: digestArgs(args), Reason: reason})
	if err == nil {
		p.refusing = ""
		return edited, nil
	}
	err = finite(err)
	for _, code := range []error{ErrToolRejected, ErrApprovalExpired} {
		if errors.Is(err, code) {
			return nil, &Error{Code: code, Class: ErrClassPermanent, Delivery: NotDelivered, Message: causeText(err, code), Err: err}
		}
	}
	return nil, &Error{Code: ErrToolDenied, Class: ErrClassPermanent, Delivery: NotDelivered, Message: "approval failed", Err: err}
}

// causeText returns what err says beyond the sentinel.
func causeText(err, code error) string {
	if err == code {
		return ""
	}
	return err.Error()
}

func (p *passage) admit(ctx context.Context) error {
	a := p.stages.Admission
	if a == nil {
		return nil
	}
	if p.release != nil {
		p.leave(ctx, nil) // middleware goes on a second time
	}
	done, err := a.Admit(ctx, &p.b.tool)
	if err == nil {
		p.release = done
		return nil
	}
	p.refusing = "admission"
	err = finite(err)
	e := &Error{Code: ErrOverloaded, Class: ErrClassTransient, Delivery: NotDelivered, Retryable: true, Err: err, Message: causeText(err, ErrOverloaded)}
	var given *Error
	if errors.As(err, &given) {
		e.RetryAfter, e.Message = given.RetryAfter, given.SafeMessage()
	}
	return e
}

func (p *passage) announce(ctx context.Context) {
	if p.invoked {
		return
	}
	p.invoked = true
	if !p.em.silent() {
		p.em.emit(ctx, EventTypeToolInvoked, ToolInvokedPayload{Identity: p.em.who, ToolName: p.b.tool.Name,
			Transport: p.b.tool.Transport, StartedAt: p.start}, p.start)
	}
}

// run is the policy shell around the driver.
func (p *passage) run(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	b := p.b
	s := &p.shell
	if s.policy != nil {
		s = new(shell) // middleware goes on a second time, and a tool may still hold the first
	}
	s.policy, s.call, s.cat, s.late = &b.policy, p.call, b.cat, &b.cat.late
	s.mayRepeat, s.harmless, s.answers, s.inline = b.mayRepeat(p.call), b.harmless(), b.answers(), b.inline
	invoke := b.driver
	if len(b.tool.Injected) > 0 {
		invoke = p.inject
	}
	res, err := s.run(ctx, args, invoke)
	p.attempts += int(s.attempts)
	return res, err
}

// harmless reports whether a second call would have no further effect.
func (b *binding) harmless() bool {
	return b.tool.SideEffects.harmless() || b.tool.Safety.Idempotent == Yes
}

// answers reports whether an error of the driver that does not say how far it
// got came from the tool itself.
func (b *binding) answers() bool { return b.tool.Transport == TransportInProcess }

// mayRepeat reports whether a call may be made again after it was delivered. The
// key of a call to a worker names the call in the registry's record, which gives
// the same answer again; another attempt would be another call there.
func (b *binding) mayRepeat(c *Call) bool {
	return b.optsIn || b.harmless() || c.IdempotencyKey != "" && b.tool.Transport != TransportWorker ||
		b.tool.Transport == TransportInProcess && b.tool.SideEffects == ""
}

// begin fills in the call that tools find on their context. outer is the call
// whose tool makes this one, or nil, and run is the run of the caller.
func (c *Call) begin(ctx context.Context, b *binding, outer *Call, run string) {
	c.binding, c.RunID = b, run
	if outer != nil {
		c.Parent, c.peer, c.Capabilities = outer.ID, outer.peer, outer.Capabilities
		c.Client, c.ClientGone, c.LogLevel = outer.Client, outer.ClientGone, outer.LogLevel
	}
	if e, ok := ctx.Value(entranceKey{}).(*Entrance); ok && e != nil {
		c.ID, c.peer, c.IdempotencyKey, c.Meta, c.Capabilities = e.CallID, e.Peer, e.IdempotencyKey, e.Meta, e.Capabilities
		c.Client, c.ClientGone, c.LogLevel = e.Client, e.ClientGone, e.LogLevel
		c.Extra, c.Tasks, c.guard, c.strict = e.Extra, e.Tasks, e.Guard, e.RefuseForged
		c.sink = e.Sink
	}
	if c.ID == "" {
		c.ID = newCallID()
	}
}

// callContext carries a call to middleware and stages. It hides the entrance and
// the part, which belong to this call alone.
type callContext struct {
	context.Context
	call *Call
}

func (c *callContext) Value(key any) any {
	switch key {
	case callKey{}:
		return c.call
	case entranceKey{}:
		return (*Entrance)(nil)
	case partKey{}:
		return c.call.partBehind(c.Context)
	}
	return c.Context.Value(key)
}

// panicked logs a panic with its stack and returns what the caller is told.
func (c *catalog) panicked(ctx context.Context, tool string, r any) *Error {
	c.logger.ErrorContext(ctx, "tool panicked", "tool", tool, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	return &Error{Class: ErrClassPermanent, Delivery: Answered, Message: "the tool panicked", Err: errPanic}
}

var errPanic = errors.New("tools: panic in a tool")
