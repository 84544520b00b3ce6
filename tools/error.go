package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Sentinels, for callers that branch. Compare with errors.Is.
var (
	// ErrToolNotFound: no tool of this name is visible to the caller. A tool
	// that exists and that the caller may not see gives the same error.
	ErrToolNotFound = errors.New("tools: tool not found")
	// ErrToolInvalidArgs: the arguments do not satisfy the tool's schema. The
	// tool was not called.
	ErrToolInvalidArgs = errors.New("tools: invalid arguments")
	// ErrToolPolicyExhausted: every retry that the policy allows was used.
	// The error wraps the last attempt's failure.
	ErrToolPolicyExhausted = errors.New("tools: policy retries exhausted")
	// ErrToolDuplicateName: the catalog already has a tool of this name.
	ErrToolDuplicateName = errors.New("tools: duplicate tool name")
	// ErrToolExampleInvalid: an example uses an argument that the schema does
	// not declare.
	ErrToolExampleInvalid = errors.New("tools: invalid tool example")
	// ErrToolInvalid: a descriptor cannot be registered: a bad name, a schema
	// that does not compile, no Invoke.
	ErrToolInvalid = errors.New("tools: invalid tool")
	// ErrToolInvalidOutput: the result does not satisfy the tool's output
	// schema. The tool was called; it is not called again.
	ErrToolInvalidOutput = errors.New("tools: invalid output")
	// ErrToolDenied: a safety policy refused the call, or it needs approval
	// and nobody can give it.
	ErrToolDenied = errors.New("tools: call denied")
	// ErrToolRejected: a person refused the call.
	ErrToolRejected = errors.New("tools: call rejected")
	// ErrApprovalExpired: nobody decided about the call in time.
	ErrApprovalExpired = errors.New("tools: approval expired")
	// ErrIdentityRequired: the catalog demands an identity and the context
	// carries none.
	ErrIdentityRequired = errors.New("tools: identity required")
	// ErrOverloaded: the call was refused for lack of capacity: a rate limit,
	// a quota, too many calls at once, or a source whose circuit is open.
	ErrOverloaded = errors.New("tools: overloaded")
	// ErrUnavailable: what runs the tool is not there now: no worker serves its
	// toolset, the server that calls travel over takes none, or there was no
	// connection to the server that has the tool. The call was not sent.
	ErrUnavailable = errors.New("tools: unavailable")
	// ErrIdempotencyConflict: the idempotency key of the call, or its run and
	// call id, was used for another call. The tool was not called.
	ErrIdempotencyConflict = errors.New("tools: idempotency conflict")
	// ErrOutcomeUnknown: the call was sent and no answer came; whether it had
	// its effect is not known.
	ErrOutcomeUnknown = errors.New("tools: outcome unknown")
	// ErrAskUnsupported: the caller cannot be asked what the tool asks.
	ErrAskUnsupported = errors.New("tools: the caller cannot be asked")
	// ErrContextLeak: raw content that is too large for a model was about to
	// reach one whole, instead of being kept as an artifact.
	ErrContextLeak = errors.New("tools: raw content too large for a model")
	// ErrAuthorizationRequired: the service behind the tool wants a token, and a
	// person must agree before there is one. The tool was not called.
	ErrAuthorizationRequired = errors.New("tools: authorization required")
)

// ErrorClass is the kind of a failure, as policies select it.
type ErrorClass string

// The ErrorClass values.
const (
	// ErrClassTransient: an infrastructure failure that may pass.
	ErrClassTransient ErrorClass = "transient"
	// ErrClassTimeout: the attempt's time limit, or the tool's own.
	ErrClassTimeout ErrorClass = "timeout"
	// ErrClass5xx: the other side failed and said so.
	ErrClass5xx ErrorClass = "5xx"
	// ErrClassPermanent: repeating cannot help.
	ErrClassPermanent ErrorClass = "permanent"
)

func (c ErrorClass) known() bool {
	switch c {
	case ErrClassTransient, ErrClassTimeout, ErrClass5xx, ErrClassPermanent:
		return true
	}
	return false
}

// Delivery says how far a failed attempt got.
type Delivery int8

// The Delivery values.
const (
	// DeliveryUnknown: nothing is known; the attempt may have had its effect.
	DeliveryUnknown Delivery = iota
	// NotDelivered: the call certainly did not reach the tool.
	NotDelivered
	// Answered: the tool was reached and said that it failed.
	Answered
)

// String returns "unknown", "not delivered" or "answered".
func (d Delivery) String() string {
	switch d {
	case NotDelivered:
		return "not delivered"
	case Answered:
		return "answered"
	}
	return "unknown"
}

// Error is the one error type of tool calls. Drivers return it to say what
// they know; the door returns it to callers.
type Error struct {
	// Tool is the canonical name of the tool.
	Tool string
	// Code is the sentinel that a caller may branch on, or nil.
	Code error
	// Class is the kind of failure. Empty means that ClassifyError decides.
	Class ErrorClass
	// Delivery says how far the attempt got.
	Delivery Delivery
	// Retryable says that the same call may succeed later.
	Retryable bool
	// OutcomeUnknown says that the call was sent, no answer came, and it may
	// have had its effect. errors.Is finds ErrOutcomeUnknown then.
	OutcomeUnknown bool
	// RetryAfter is how long the other side asked to wait, or zero.
	RetryAfter time.Duration
	// Attempts is how many attempts were made.
	Attempts int
	// Message is the explanation, safe to show to a model. Empty means that
	// of the cause.
	Message string
	// Err is the cause, or nil.
	Err error
}

// Error returns the sentinel's text, the tool and the message.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Code != nil {
		b.WriteString(e.Code.Error())
	} else {
		b.WriteString("tools: call failed")
	}
	if e.Tool != "" {
		fmt.Fprintf(&b, ": %q", e.Tool)
	}
	if m := e.SafeMessage(); m != "" {
		b.WriteString(": ")
		b.WriteString(m)
	}
	if e.OutcomeUnknown {
		b.WriteString(" (outcome unknown: the call may have had its effect)")
	}
	return b.String()
}

// SafeMessage returns the explanation without sentinel and tool name, cut to
// 2 KiB.
func (e *Error) SafeMessage() string {
	m := e.Message
	if m == "" && e.Err != nil {
		m = e.Err.Error()
	}
	return truncate(m, maxMessage)
}

// maxMessage bounds what an error shows, in bytes.
const maxMessage = 2048

// truncate cuts s to at most n bytes at a rune boundary.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Is makes errors.Is find ErrOutcomeUnknown.
func (e *Error) Is(target error) bool { return target == ErrOutcomeUnknown && e.OutcomeUnknown }

// Unwrap gives errors.Is and errors.As both the sentinel and the cause.
func (e *Error) Unwrap() []error {
	out := make([]error, 0, 2)
	if e.Code != nil {
		out = append(out, e.Code)
	}
	if e.Err != nil {
		out = append(out, e.Err)
	}
	return out
}

// ClassifyError returns the class of a failed attempt. perAttemptTimeout says
// that the attempt's own time limit fired, as opposed to the caller's.
//
// A class that an *Error carries is final. Otherwise cancellation and the
// caller's deadline are permanent, as are the sentinels of refused calls; then
// the text decides, as a last resort: an HTTP 5xx status, a timeout. What
// remains is transient, so that a tool opts out of retries and not in.
func ClassifyError(err error, perAttemptTimeout bool) ErrorClass {
	if err == nil {
		return ""
	}
	var te *Error
	if errors.As(err, &te) && te.Class.known() {
		return te.Class
	}
	switch {
	case errors.Is(err, context.Canceled):
		return ErrClassPermanent
	case errors.Is(err, context.DeadlineExceeded):
		if perAttemptTimeout {
			return ErrClassTimeout
		}
		return ErrClassPermanent
	case isRefusal(err):
		return ErrClassPermanent
	}
	return classifyText(err.Error())
}

func isRefusal(err error) bool {
	for _, s := range []error{ErrToolInvalidArgs, ErrToolNotFound, ErrToolInvalidOutput, ErrToolDenied,
		ErrToolRejected, ErrApprovalExpired, ErrIdentityRequired, ErrAskUnsupported, ErrAuthorizationRequired,
		ErrIdempotencyConflict} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// status5xx finds an HTTP server error in foreign text: "status 503", "HTTP
// 500", "status code: 502", or a bare code that stands for itself.
var status5xx = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(status|http|code)\D{0,12}5(\d\d|xx)\b|^\D{0,3}5\d\d\b|\b(500 internal|502 bad|503 service|504 gateway)|\b(500|502|503|504)\b`)
})

func classifyText(text string) ErrorClass {
	low := strings.ToLower(text)
	switch {
	case status5xx().MatchString(text):
		return ErrClass5xx
	case strings.Contains(low, "timeout"), strings.Contains(low, "timed out"),
		strings.Contains(low, "deadline exceeded"), strings.Contains(low, "context canceled"):
		return ErrClassTimeout
	}
	return ErrClassTransient
}
