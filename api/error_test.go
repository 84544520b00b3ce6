package api

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

func TestErrorFrom(t *testing.T) {
	inner := &tools.Error{Code: tools.ErrToolNotFound, Tool: "inner", Class: tools.ErrClassPermanent}
	for _, c := range []struct {
		name   string
		err    error
		code   Code
		status int
	}{
		{"not found", inner, CodeToolNotFound, 404},
		{"invalid arguments", &tools.Error{Code: tools.ErrToolInvalidArgs}, CodeInvalidArguments, 400},
		{"denied", &tools.Error{Code: tools.ErrToolDenied}, CodeDenied, 403},
		{"rejected", &tools.Error{Code: tools.ErrToolRejected}, CodeRejected, 403},
		{"expired", &tools.Error{Code: tools.ErrApprovalExpired}, CodeApprovalExpired, 403},
		{"no identity", tools.ErrIdentityRequired, CodeUnauthenticated, 401},
		{"overloaded", &tools.Error{Code: tools.ErrOverloaded}, CodeOverloaded, 429},
		{"overloaded to the last attempt", &tools.Error{Code: tools.ErrToolPolicyExhausted, Err: &tools.Error{Code: tools.ErrOverloaded}}, CodeOverloaded, 429},
		{"unavailable", &tools.Error{Code: tools.ErrUnavailable}, CodeUnavailable, 503},
		{"unavailable to the last attempt", &tools.Error{Code: tools.ErrToolPolicyExhausted, Err: &tools.Error{Code: tools.ErrUnavailable}}, CodeUnavailable, 503},
		{"a key of another call", &tools.Error{Code: tools.ErrIdempotencyConflict}, CodeConflict, 422},
		{"invalid output", &tools.Error{Code: tools.ErrToolInvalidOutput}, CodeInvalidOutput, 502},
		{"cannot ask", &tools.Error{Err: tools.ErrAskUnsupported}, CodeAskUnsupported, 502},
		{"unauthorized", &tools.Error{Code: tools.ErrAuthorizationRequired}, CodeAuthorization, 403},
		{"timed out", &tools.Error{Code: tools.ErrOutcomeUnknown, Class: tools.ErrClassTimeout}, CodeTimeout, 504},
		{"the caller's deadline", &tools.Error{Class: tools.ErrClassPermanent, Err: context.DeadlineExceeded}, CodeTimeout, 504},
		{"the caller went away", fmt.Errorf("x: %w", context.Canceled), CodeCanceled, 499},
		{"failed", &tools.Error{Class: tools.ErrClass5xx}, CodeToolFailed, 502},
		{"foreign", errors.New("boom"), CodeToolFailed, 502},
		{"a tool's own call", &tools.Error{Tool: "outer", Class: tools.ErrClassPermanent, Err: inner}, CodeToolFailed, 502},
		{"own", fmt.Errorf("x: %w", newError(CodeTooLarge, "big")), CodeTooLarge, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := ErrorFrom(c.err)
			if e.Code != c.code || e.Code.Status() != c.status {
				t.Errorf("got %s and %d, want %s and %d", e.Code, e.Code.Status(), c.code, c.status)
			}
		})
	}
	if ErrorFrom(nil) != nil {
		t.Error("nil is no failure")
	}
}

func TestErrorKeepsWhatTheDoorKnows(t *testing.T) {
	cause := &tools.Error{
		Tool: "t", Code: tools.ErrOutcomeUnknown, Class: tools.ErrClassTransient, Retryable: true,
		RetryAfter: 1500 * time.Millisecond, Attempts: 2, Message: "the line broke",
	}
	got := *ErrorFrom(fmt.Errorf("around: %w", cause))
	want := Error{
		Code: CodeToolFailed, Message: `around: tools: outcome unknown: "t": the line broke`, Class: tools.ErrClassTransient,
		Retryable: true, RetryAfterMS: 1500, OutcomeUnknown: true, Attempts: 2,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
