package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/tools"
)

// ErrTooDeep: composed tools call one another without end.
var ErrTooDeep = errors.New("exec: composed tools call one another too deeply")

// MaxDepth is how many composed tools may stand in one another.
const MaxDepth = 32

type depthKey struct{}

// Nested returns the context of what a composed tool calls, or ErrTooDeep when
// MaxDepth of them stand in one another.
func Nested(ctx context.Context) (context.Context, error) {
	depth, _ := ctx.Value(depthKey{}).(int)
	if depth >= MaxDepth {
		return nil, &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Err: fmt.Errorf("%w: %d of them", ErrTooDeep, depth)}
	}
	return context.WithValue(ctx, depthKey{}, depth+1), nil
}

// Failure states the failure of a part as that of the tool that is composed of
// it. It says what happened to the part, and keeps the kind of failure. That a
// part does not exist, or was given wrong arguments, is no such thing of the whole.
func Failure(err error) *tools.Error {
	whole := &tools.Error{Class: tools.ClassifyError(err, false), Delivery: tools.Answered, Message: err.Error(), Err: err}
	if part, ok := errors.AsType[*tools.Error](err); ok {
		whole.Class, whole.RetryAfter = part.Class, part.RetryAfter
	}
	if errors.Is(err, tools.ErrOutcomeUnknown) {
		whole.Delivery, whole.OutcomeUnknown = tools.DeliveryUnknown, true
	}
	if errors.Is(err, tools.ErrToolNotFound) || errors.Is(err, tools.ErrToolInvalidArgs) {
		whole.Class, whole.Err = tools.ErrClassPermanent, errors.New(whole.Message)
	}
	return whole
}
