package registry

import (
	"errors"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// codeMeaning says what the codes that the registry knows mean for a caller.
func codeMeaning(code string) (class tools.ErrorClass, sentinel error) {
	switch code {
	case CodeInvalidArguments:
		return tools.ErrClassPermanent, tools.ErrToolInvalidArgs
	case CodeInvalidOutput:
		return tools.ErrClassPermanent, tools.ErrToolInvalidOutput
	case CodeToolNotFound:
		return tools.ErrClassPermanent, tools.ErrToolNotFound
	case CodeAskUnsupported:
		return tools.ErrClassPermanent, tools.ErrAskUnsupported
	case CodeOverloaded:
		return tools.ErrClassTransient, tools.ErrOverloaded
	case CodeConflict:
		return tools.ErrClassPermanent, tools.ErrIdempotencyConflict
	case CodeUnavailable:
		return tools.ErrClassTransient, tools.ErrUnavailable
	case CodeTimeout, CodeExpired:
		return tools.ErrClassTimeout, nil
	case CodeOutcomeUnknown:
		return tools.ErrClassTransient, nil
	}
	return tools.ErrClassPermanent, nil
}

// failure is the error of a call that a worker, or the registry for it, answered
// with an error.
func (e *ToolError) failure() *tools.Error {
	class, code := codeMeaning(e.Code)
	if knownClass(e.Class) {
		class = e.Class
	}
	out := &tools.Error{Code: code, Class: class, Delivery: tools.Answered, OutcomeUnknown: e.OutcomeUnknown,
		RetryAfter: max(milliseconds(e.RetryAfterMS), 0), Message: e.message()}
	out.Retryable = class != tools.ErrClassPermanent || e.Code == CodeStaleContract
	switch {
	case e.NotDelivered:
		out.Delivery = tools.NotDelivered
	case e.OutcomeUnknown, e.Code == CodeUnavailable:
		out.Delivery = tools.DeliveryUnknown
	}
	return out
}

// milliseconds returns a time that a worker gives, as far as it is not beyond all
// measure.
func milliseconds(ms int64) time.Duration {
	const most = 365 * 24 * time.Hour
	return time.Duration(min(max(ms, -most.Milliseconds()), most.Milliseconds())) * time.Millisecond
}

func knownClass(c tools.ErrorClass) bool {
	switch c {
	case tools.ErrClassTransient, tools.ErrClassTimeout, tools.ErrClass5xx, tools.ErrClassPermanent:
		return true
	}
	return false
}

// message is the explanation with what is wrong in which argument.
func (e *ToolError) message() string {
	if len(e.Issues) == 0 {
		if e.Message == "" {
			return e.Code
		}
		return e.Message
	}
	var b strings.Builder
	b.WriteString(e.Message)
	for _, i := range e.Issues {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(i.Field)
		b.WriteString(": ")
		if i.Message != "" {
			b.WriteString(i.Message)
		} else {
			b.WriteString(i.Constraint)
		}
		if len(i.Allowed) > 0 {
			b.WriteString(" (allowed: " + strings.Join(i.Allowed, ", ") + ")")
		}
	}
	return b.String()
}

// ErrorOf makes the error of an answer from that of a tool.
func ErrorOf(err error) *ToolError {
	out := &ToolError{Code: CodeExecutionFailed, Message: err.Error()}
	var te *tools.Error
	if !errors.As(err, &te) {
		out.Class = tools.ClassifyError(err, false)
		return out
	}
	out.Message, out.Class, out.OutcomeUnknown, out.RetryAfterMS = te.SafeMessage(), te.Class, te.OutcomeUnknown, te.RetryAfter.Milliseconds()
	out.NotDelivered = te.Delivery == tools.NotDelivered
	for _, known := range []struct {
		err  error
		code string
	}{{tools.ErrToolInvalidArgs, CodeInvalidArguments}, {tools.ErrToolInvalidOutput, CodeInvalidOutput}, {tools.ErrToolNotFound, CodeToolNotFound},
		{tools.ErrOverloaded, CodeOverloaded}, {tools.ErrAskUnsupported, CodeAskUnsupported},
		{tools.ErrUnavailable, CodeUnavailable}, {tools.ErrIdempotencyConflict, CodeConflict}} {
		if errors.Is(err, known.err) {
			out.Code = known.code
			if out.Message == "" {
				out.Message = known.err.Error()
			}
			break
		}
	}
	if out.Code == CodeExecutionFailed && te.Class == tools.ErrClassTimeout {
		out.Code = CodeTimeout
	}
	return out
}
