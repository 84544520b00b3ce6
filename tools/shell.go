package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// shell runs attempts until one gives a result or none may follow. It serves
// one call.
type shell struct {
	policy *ToolPolicy // resolved
	call   *Call
	// mayRepeat: an attempt that was delivered may be followed by another.
	mayRepeat bool
	// harmless: a lost answer leaves no doubt about effects.
	harmless bool
	// answers: an error that does not say how far it got came from the tool.
	answers bool
	inline  bool
	// attempts are those that are over.
	attempts int32
	late     *lateness
	cat      *catalog // nil outside a catalog
	hooks    []InvokeHooks

	first attempt
}

// InvokeHooks observe the attempts of a call.
type InvokeHooks struct {
	// OnAttempt is called after each attempt with its number, counted from 0,
	// and its error, nil on success.
	OnAttempt func(attempt int, err error)
}

// RunWithPolicy runs invoke in the reliability shell of policy. validateIn,
// which may be nil, runs once before the first attempt, and validateOut, which
// may be nil, on the result; both as policy.Validate says.
//
// A driver that calls it for the very call that a catalog's door is already
// running gets one attempt: the door is the shell.
func RunWithPolicy(ctx context.Context, args json.RawMessage, invoke func(ctx context.Context, args json.RawMessage) (ToolResult, error),
	validateIn func(args json.RawMessage) error, validateOut func(result ToolResult) error, policy ToolPolicy) (ToolResult, error) {
	return RunWithPolicyHooked(ctx, args, invoke, validateIn, validateOut, policy)
}

// RunWithPolicyHooked is RunWithPolicy with hooks that observe the attempts.
func RunWithPolicyHooked(ctx context.Context, args json.RawMessage, invoke func(ctx context.Context, args json.RawMessage) (ToolResult, error),
	validateIn func(args json.RawMessage) error, validateOut func(result ToolResult) error, policy ToolPolicy, hooks ...InvokeHooks) (ToolResult, error) {
	p := policy.Resolved()
	if c := CallFrom(ctx); c != nil && c.isRunning(args) {
		return runNested(ctx, c, args, invoke, validateOut, &p, hooks)
	}
	if validateIn != nil && p.Validate.in() {
		if err := validateIn(args); err != nil {
			return ToolResult{}, &Error{Code: ErrToolInvalidArgs, Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
		}
	}
	if err := ctx.Err(); err != nil {
		return ToolResult{}, &Error{Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
	}
	s := shell{policy: &p, call: CallFrom(ctx), mayRepeat: true, answers: true, late: new(lateness), hooks: hooks}
	res, err := s.run(ctx, args, invoke)
	if err != nil {
		e := asError(err)
		e.Attempts = int(s.attempts)
		return ToolResult{}, e
	}
	return checkedBy(validateOut, &p, res)
}

// isRunning reports whether args are those of the attempt that runs now.
func (c *Call) isRunning(args json.RawMessage) bool {
	a := c.running.Load()
	if a == nil || len(args) != len(a.args) {
		return false
	}
	return len(args) == 0 || &args[0] == &a.args[0] || string(args) == string(a.args)
}

// runNested is the shell inside the shell of the same call: one attempt.
func runNested(ctx context.Context, c *Call, args json.RawMessage, invoke Invoker, validateOut func(ToolResult) error, p *ToolPolicy, hooks []InvokeHooks) (ToolResult, error) {
	res, err := invoke(ctx, args)
	for _, h := range hooks {
		if h.OnAttempt != nil {
			h.OnAttempt(c.Attempt()-1, err)
		}
	}
	if err != nil {
		return ToolResult{}, err
	}
	return checkedBy(validateOut, p, res)
}

func checkedBy(validate func(ToolResult) error, p *ToolPolicy, res ToolResult) (ToolResult, error) {
	if validate == nil || res.IsError || !p.Validate.out() {
		return res, nil
	}
	if err := validate(res); err != nil {
		return ToolResult{}, invalidOutput(err)
	}
	return res, nil
}

// run makes attempts. The error is an *Error with its class.
func (s *shell) run(ctx context.Context, args json.RawMessage, invoke Invoker) (ToolResult, error) {
	total := s.policy.attempts()
	for n := 0; ; n++ {
		res, err := s.attempt(ctx, args, invoke)
		s.attempts = int32(n + 1)
		for _, h := range s.hooks {
			if h.OnAttempt != nil {
				h.OnAttempt(n, err)
			}
		}
		if err == nil {
			return res, nil
		}
		e := err.(*Error)
		if !s.retries(e) {
			return ToolResult{}, e
		}
		if n+1 >= total {
			return ToolResult{}, exhausted(e, total)
		}
		if stop := s.wait(ctx, n, e); stop != nil {
			return ToolResult{}, stop
		}
	}
}

// exhausted says that every retry was used, if there were any.
func exhausted(last *Error, total int) *Error {
	if total == 1 {
		return last
	}
	e := *last
	e.Code, e.Err, e.Message = ErrToolPolicyExhausted, last, last.SafeMessage()
	return &e
}

// retries reports whether a failure may be followed by another attempt.
func (s *shell) retries(e *Error) bool {
	return s.policy.retries(e.Class) && (e.Delivery == NotDelivered || s.mayRepeat)
}

// wait pauses before the next attempt. It returns the error to end with when
// there will be none: the context ends first, or the other side asks for more
// patience than the policy has.
func (s *shell) wait(ctx context.Context, n int, e *Error) *Error {
	pause := s.policy.backoff(n)
	if s.policy.Jitter {
		pause = rand.N(max(pause, 1))
	}
	if e.RetryAfter > pause {
		pause = e.RetryAfter
	}
	if pause > s.policy.BackoffMax {
		return e
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause {
		return e
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		last := *e
		last.Class, last.Err, last.Message = ErrClassPermanent, errors.Join(ctx.Err(), e), ctx.Err().Error()+" while waiting to retry: "+e.SafeMessage()
		return &last
	}
}

// attempt makes one attempt. The error is an *Error with its class.
func (s *shell) attempt(ctx context.Context, args json.RawMessage, invoke Invoker) (ToolResult, error) {
	if err := ctx.Err(); err != nil {
		return ToolResult{}, &Error{Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
	}
	a := &s.first
	if s.attempts > 0 {
		a = new(attempt) // a tool may still hold the one before
	}
	a.begin(ctx, s.call, s.cat, s.policy.timeout())
	a.args = args
	if s.call != nil && s.cat != nil {
		s.call.number.Add(1)
		s.call.running.Store(a)
		defer s.call.running.Store(nil)
	}
	var res ToolResult
	var err error
	if s.inline {
		res, err = s.here(a, args, invoke)
	} else {
		res, err = s.elsewhere(a, args, invoke)
	}
	if err != nil {
		err = s.explain(a, finite(err))
	}
	a.finish()
	return res, err
}

// here runs the tool on this goroutine.
func (s *shell) here(a *attempt, args json.RawMessage, invoke Invoker) (res ToolResult, err error) {
	defer func() {
		if r := recover(); r != nil {
			res, err = ToolResult{}, s.panicked(a, r)
		}
	}()
	return invoke(a, args)
}

// errAbandoned says that the tool did not return when its context ended.
var errAbandoned = errors.New("the tool did not return in time")

// elsewhere runs the tool on another goroutine and returns when it does, when
// the time limit is used up, or when the caller goes away.
func (s *shell) elsewhere(a *attempt, args json.RawMessage, invoke Invoker) (ToolResult, error) {
	j := &job{shell: s, attempt: a, args: args, invoke: invoke, began: a.since, done: make(chan bool, 2)}
	go j.run()
	if j.await() {
		return j.res, j.err
	}
	err := a.Err()
	if !j.abandon() {
		return j.res, j.err // it came at the last moment
	}
	return ToolResult{}, fmt.Errorf("%w: %w", errAbandoned, err)
}

// panicked returns what the caller is told of a panic.
func (s *shell) panicked(ctx context.Context, r any) *Error {
	if s.cat != nil {
		return s.cat.panicked(ctx, s.call.binding.tool.Name, r)
	}
	return &Error{Class: ErrClassPermanent, Delivery: Answered, Message: "the tool panicked", Err: errPanic}
}

// explain makes an attempt's error an *Error with class, delivery and outcome.
func (s *shell) explain(a *attempt, err error) *Error {
	timedOut := a.timedOut()
	// The attempt ended and its tool, if it said anything, repeats that.
	silent := a.Err() != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
	e := asError(err)
	var given *Error
	if errors.As(err, &given) {
		e.Delivery, e.RetryAfter, e.OutcomeUnknown = given.Delivery, given.RetryAfter, given.OutcomeUnknown
	}
	if given == nil || !given.Class.known() {
		e.Class = ClassifyError(err, timedOut)
	}
	if silent && timedOut && given == nil {
		e.Message = fmt.Sprintf("no answer within %v", s.policy.timeout())
	}
	if e.Delivery == DeliveryUnknown && s.answers && !silent {
		e.Delivery = Answered
	}
	e.Retryable = e.Retryable || e.Class != ErrClassPermanent
	e.OutcomeUnknown = e.OutcomeUnknown || e.Delivery == DeliveryUnknown && !s.harmless
	return e
}
