package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/tools"
)

// Code says what kind of failure an Error is. Programs branch on it.
type Code string

// The Code values. The comment gives the HTTP status.
const (
	CodeToolNotFound     Code = "tool_not_found"         // 404; also for a tool that the caller may not see
	CodeToolsetNotFound  Code = "toolset_not_found"      // 404; also for a toolset that the caller may not know of
	CodeRunNotFound      Code = "run_not_found"          // 404; no run of a flow of the caller's
	CodeNotResumable     Code = "not_resumable"          // 409; the run cannot go on
	CodeInvalidArguments Code = "invalid_arguments"      // 400; the tool was not called
	CodeDenied           Code = "denied"                 // 403
	CodeRejected         Code = "rejected"               // 403; a person said no
	CodeApprovalExpired  Code = "approval_expired"       // 403; nobody decided in time
	CodeUnauthenticated  Code = "unauthenticated"        // 401
	CodeOverloaded       Code = "overloaded"             // 429
	CodeUnavailable      Code = "unavailable"            // 503; what runs the tool is not there now
	CodeConflict         Code = "idempotency_conflict"   // 422; the key was used for another call
	CodeTimeout          Code = "timeout"                // 504
	CodeCanceled         Code = "canceled"               // 499; the caller went away
	CodeToolFailed       Code = "tool_failed"            // 502
	CodeInvalidOutput    Code = "invalid_output"         // 502
	CodeAskUnsupported   Code = "ask_unsupported"        // 502; the tool asked what this protocol cannot pass on
	CodeAuthorization    Code = "authorization_required" // 403; a person must authorize the service behind the tool
	CodeInvalidRequest   Code = "invalid_request"        // 400; the request itself is wrong
	CodeTooLarge         Code = "request_too_large"      // 413
	CodeMediaType        Code = "unsupported_media_type" // 415
	CodeMethodNotAllowed Code = "method_not_allowed"     // 405
	CodeUnknownMethod    Code = "unknown_method"         // 404
	CodeInternal         Code = "internal"               // 500
	CodeArtifactNotFound Code = "artifact_not_found"     // 404; no artifact of the caller's
	CodeQuota            Code = "quota_exceeded"         // 507; the tenant or the user keeps too much
	CodeStorageFull      Code = "storage_full"           // 507; the disk has no room for an artifact
)

// statusCanceled is what proxies log for a caller that went away.
const statusCanceled = 499

// statuses is the one table from codes to HTTP statuses.
var statuses = map[Code]int{
	CodeToolNotFound:     http.StatusNotFound,
	CodeToolsetNotFound:  http.StatusNotFound,
	CodeRunNotFound:      http.StatusNotFound,
	CodeNotResumable:     http.StatusConflict,
	CodeInvalidArguments: http.StatusBadRequest,
	CodeDenied:           http.StatusForbidden,
	CodeRejected:         http.StatusForbidden,
	CodeApprovalExpired:  http.StatusForbidden,
	CodeUnauthenticated:  http.StatusUnauthorized,
	CodeOverloaded:       http.StatusTooManyRequests,
	CodeUnavailable:      http.StatusServiceUnavailable,
	CodeConflict:         http.StatusUnprocessableEntity,
	CodeTimeout:          http.StatusGatewayTimeout,
	CodeCanceled:         statusCanceled,
	CodeToolFailed:       http.StatusBadGateway,
	CodeInvalidOutput:    http.StatusBadGateway,
	CodeAskUnsupported:   http.StatusBadGateway,
	CodeAuthorization:    http.StatusForbidden,
	CodeInvalidRequest:   http.StatusBadRequest,
	CodeTooLarge:         http.StatusRequestEntityTooLarge,
	CodeMediaType:        http.StatusUnsupportedMediaType,
	CodeMethodNotAllowed: http.StatusMethodNotAllowed,
	CodeUnknownMethod:    http.StatusNotFound,
	CodeInternal:         http.StatusInternalServerError,
	CodeArtifactNotFound: http.StatusNotFound,
	CodeQuota:            http.StatusInsufficientStorage,
	CodeStorageFull:      http.StatusInsufficientStorage,
}

// Status returns the HTTP status of the code.
func (c Code) Status() int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// sentinels is the one table from the errors of the door to codes.
var sentinels = []struct {
	err  error
	code Code
}{
	{tools.ErrToolNotFound, CodeToolNotFound},
	{tools.ErrToolInvalidArgs, CodeInvalidArguments},
	{tools.ErrToolDenied, CodeDenied},
	{tools.ErrToolRejected, CodeRejected},
	{tools.ErrApprovalExpired, CodeApprovalExpired},
	{tools.ErrIdentityRequired, CodeUnauthenticated},
	{tools.ErrOverloaded, CodeOverloaded},
	{tools.ErrUnavailable, CodeUnavailable},
	{tools.ErrIdempotencyConflict, CodeConflict},
	{tools.ErrToolInvalidOutput, CodeInvalidOutput},
	{tools.ErrAskUnsupported, CodeAskUnsupported},
	{artifacts.ErrNotFound, CodeArtifactNotFound},
	{artifacts.ErrQuota, CodeQuota},
	{artifacts.ErrNoRoom, CodeStorageFull},
	{artifacts.ErrTooLarge, CodeTooLarge},
	{artifacts.ErrDenied, CodeDenied},
	{artifacts.ErrRange, CodeInvalidRequest},
	{tools.ErrAuthorizationRequired, CodeAuthorization},
}

// Error is a failure as the protocol states it. It is the error type of every
// method of Server, and of Client when the server answered.
type Error struct {
	Code Code `json:"code"`
	// Message is safe to show to whoever called, a model included.
	Message string `json:"message"`
	// Class is that of the tool's failure: transient, timeout, 5xx or permanent.
	Class tools.ErrorClass `json:"class"`
	// Retryable says that the same call may succeed later.
	Retryable bool `json:"retryable"`
	// RetryAfterMS is how long to wait before that, in milliseconds, or 0.
	RetryAfterMS int64 `json:"retry_after_ms"`
	// OutcomeUnknown says that the call was sent and may have had its effect.
	OutcomeUnknown bool `json:"outcome_unknown"`
	// Attempts is how many attempts were made, or 0.
	Attempts int `json:"attempts"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// errorBody is the JSON that carries an Error.
type errorBody struct {
	Error *Error `json:"error"`
}

func newError(code Code, message string) *Error {
	return &Error{Code: code, Message: message, Class: tools.ErrClassPermanent}
}

// ErrorFrom states the failure of a call. It returns nil for nil, and an *Error
// in err's chain as it is.
func ErrorFrom(err error) *Error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	e := &Error{
		Code:           codeOf(err),
		Message:        strings.TrimPrefix(err.Error(), "tools: "),
		Class:          tools.ClassifyError(err, false),
		OutcomeUnknown: errors.Is(err, tools.ErrOutcomeUnknown),
	}
	if te, ok := errors.AsType[*tools.Error](err); ok {
		e.Retryable, e.Attempts = te.Retryable, te.Attempts
		e.RetryAfterMS = te.RetryAfter.Milliseconds()
	}
	return e
}

// codeOf looks at the outermost error of the door first: what a tool's own
// call ran into, further inside, is a failure of that tool.
func codeOf(err error) Code {
	said := err
	te, typed := errors.AsType[*tools.Error](err)
	if typed && te.Code != nil {
		said = te.Code
	}
	if !typed || te.Code != nil {
		for _, s := range sentinels {
			if errors.Is(said, s.err) {
				return s.code
			}
		}
	}
	switch {
	case errors.Is(err, tools.ErrOverloaded):
		return CodeOverloaded
	case errors.Is(err, tools.ErrUnavailable):
		return CodeUnavailable
	case errors.Is(err, tools.ErrAskUnsupported):
		return CodeAskUnsupported
	case errors.Is(err, context.Canceled):
		return CodeCanceled
	case errors.Is(err, context.DeadlineExceeded), tools.ClassifyError(err, false) == tools.ErrClassTimeout:
		return CodeTimeout
	}
	return CodeToolFailed
}
