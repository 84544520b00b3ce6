package tools

import (
	"math"
	"slices"
	"time"
)

// ToolPolicy is the reliability shell of one tool. Each field stands for
// itself: zero means its default, so that a policy which sets one field keeps
// the defaults of the others.
type ToolPolicy struct {
	// TimeoutMS is the time limit of one attempt, in milliseconds. 0 means
	// 30000, and a negative number means no limit. WithPolicy turns the 0 of
	// a policy that sets another field into no limit.
	TimeoutMS int
	// MaxRetries is how many attempts may follow the first one. 0 means 3,
	// and a negative number means none. Setting it is the opt-in that lets a
	// call with effects be repeated after it was delivered.
	MaxRetries int
	// BackoffBase is the pause before the first retry. 0 means 100 ms.
	BackoffBase time.Duration
	// BackoffMult multiplies the pause from one retry to the next. 0 means 2.
	BackoffMult float64
	// BackoffMax bounds each pause. 0 means 30 s.
	BackoffMax time.Duration
	// Jitter spreads each pause evenly between zero and its full length.
	Jitter bool
	// RetryOn lists the classes that may be retried. nil means transient,
	// timeout and 5xx; empty and not nil means one attempt only. Permanent is
	// accepted and has no effect. Setting it is an opt-in as for MaxRetries.
	RetryOn []ErrorClass
	// Validate says which sides of a call are checked against the schemas.
	// Empty means ValidateBoth.
	Validate ValidateMode
}

// ValidateMode says which sides of a call are checked against the schemas.
type ValidateMode string

// The ValidateMode values. ValidateNone is a word of its own, because the zero
// value of a policy means ValidateBoth.
const (
	ValidateNone ValidateMode = "none"
	ValidateBoth ValidateMode = "both"
	ValidateIn   ValidateMode = "in"
	ValidateOut  ValidateMode = "out"
)

func (m ValidateMode) in() bool  { return m == ValidateBoth || m == ValidateIn }
func (m ValidateMode) out() bool { return m == ValidateBoth || m == ValidateOut }

// The defaults of ToolPolicy.
const (
	defaultTimeoutMS   = 30000
	defaultMaxRetries  = 3
	defaultBackoffBase = 100 * time.Millisecond
	defaultBackoffMult = 2.0
	defaultBackoffMax  = 30 * time.Second
)

// DefaultPolicy returns the policy that the zero ToolPolicy stands for: three
// retries after the first attempt, pauses from 100 ms doubling up to 30 s,
// 30 s for each attempt, both sides validated, retry on transient, timeout and
// 5xx.
func DefaultPolicy() ToolPolicy {
	return ToolPolicy{
		TimeoutMS:   defaultTimeoutMS,
		MaxRetries:  defaultMaxRetries,
		BackoffBase: defaultBackoffBase,
		BackoffMult: defaultBackoffMult,
		BackoffMax:  defaultBackoffMax,
		RetryOn:     []ErrorClass{ErrClassTransient, ErrClassTimeout, ErrClass5xx},
		Validate:    ValidateBoth,
	}
}

// Resolved returns the policy with every default filled in. Negative TimeoutMS
// and MaxRetries stay negative: they mean none.
func (p ToolPolicy) Resolved() ToolPolicy {
	d := DefaultPolicy()
	if p.TimeoutMS == 0 {
		p.TimeoutMS = d.TimeoutMS
	}
	if p.MaxRetries == 0 {
		p.MaxRetries = d.MaxRetries
	}
	if p.BackoffBase <= 0 {
		p.BackoffBase = d.BackoffBase
	}
	if p.BackoffMult <= 0 {
		p.BackoffMult = d.BackoffMult
	}
	if p.BackoffMax <= 0 {
		p.BackoffMax = d.BackoffMax
	}
	if p.RetryOn == nil {
		p.RetryOn = d.RetryOn
	} else {
		p.RetryOn = append(make([]ErrorClass, 0, len(p.RetryOn)), p.RetryOn...)
	}
	if p.Validate == "" {
		p.Validate = d.Validate
	}
	return p
}

// isZero reports whether no field is set.
func (p ToolPolicy) isZero() bool {
	return p.TimeoutMS == 0 && p.MaxRetries == 0 && p.BackoffBase == 0 && p.BackoffMult == 0 &&
		p.BackoffMax == 0 && !p.Jitter && p.RetryOn == nil && p.Validate == ""
}

// optsIn reports whether its author decided about retries.
func (p ToolPolicy) optsIn() bool { return p.MaxRetries != 0 || p.RetryOn != nil }

// timeout returns the time limit of one attempt; zero means none.
func (p ToolPolicy) timeout() time.Duration {
	if p.TimeoutMS < 0 {
		return 0
	}
	return time.Duration(p.TimeoutMS) * time.Millisecond
}

// attempts returns how many attempts a resolved policy allows in all.
func (p ToolPolicy) attempts() int {
	if p.MaxRetries < 0 || len(p.RetryOn) == 0 {
		return 1
	}
	return min(p.MaxRetries, math.MaxInt-1) + 1
}

// retries reports whether a resolved policy repeats failures of this class.
func (p ToolPolicy) retries(c ErrorClass) bool {
	return c != ErrClassPermanent && slices.Contains(p.RetryOn, c)
}

// backoff returns the pause after the given attempt, counted from 0.
func (p ToolPolicy) backoff(attempt int) time.Duration {
	pause := float64(p.BackoffBase)
	for range attempt {
		pause *= p.BackoffMult
		if pause >= float64(p.BackoffMax) {
			break
		}
	}
	if pause >= float64(p.BackoffMax) {
		return p.BackoffMax
	}
	return time.Duration(pause)
}
