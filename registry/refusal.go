package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// refuse is the error of a call that certainly did not reach a worker.
func refuse(class tools.ErrorClass, err error) *tools.Error {
	return &tools.Error{Class: class, Delivery: tools.NotDelivered, Retryable: class != tools.ErrClassPermanent, Err: err}
}

// unentered is the error of a call for which this process has no room. Where it was
// made before, it may have run: then another attempt, which is another call, must not
// follow.
func (r *Registry) unentered(ctx context.Context, c *call, e *tools.Error) error {
	if !c.again || !c.recorded {
		return e
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	rec, _, err := r.ledger.read(ctx, c.key)
	if err != nil || rec != nil && rec.Digest == c.rec.Digest && !rec.unrun(rec.Digest) {
		e.Delivery = tools.DeliveryUnknown
	}
	return e
}

// unready says why a call was not sent.
func unready(err error) error {
	var down *errDown
	e := &tools.Error{Delivery: tools.NotDelivered, Err: err}
	if errors.As(err, &down) {
		e.Message = down.Error()
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			e.Code, e.Class, e.Retryable = tools.ErrUnavailable, tools.ErrClassTransient, true
		}
	}
	return e
}

// unsent is the error of a call that the stream did not take. There is none when the
// backend is away, as the call stays accepted, and is sent when it is back; nor when it
// is over, or a worker has it, by what another process sent.
func (r *Registry) unsent(ctx context.Context, c *call, err error) error {
	if err == nil || errors.Is(err, stream.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	e := r.untaken(c.toolset, err)
	unclaimed, err := c.finishUnclaimed(ctx, &r.ledger, failed(c.id, ErrorOf(e)))
	switch {
	case err != nil && c.homeless.Load():
		return nil // Its caller hears why.
	case err != nil:
		r.log.Error("the end of a call cannot be recorded", "toolset", c.toolset, "call", c.id, "error", err)
		e.Delivery = tools.DeliveryUnknown // It stays accepted, and may be sent again.
	case !unclaimed:
		return nil
	}
	return e
}

// untaken is the error of a call that the stream refused.
func (r *Registry) untaken(toolset string, err error) *tools.Error {
	e := refuse(tools.ErrClassPermanent, err)
	switch {
	case errors.Is(err, stream.ErrNoRoom):
		e.Class, e.Retryable, e.Code, e.RetryAfter = tools.ErrClassTransient, true, tools.ErrUnavailable, time.Second
		e.Message = "the stream server has no room for calls: " + strings.TrimPrefix(err.Error(), stream.ErrNoRoom.Error()+": ")
		r.outOfRoom.warn(r.log, "the stream server has no room and calls are refused", "toolset", toolset, "error", err)
	case errors.Is(err, stream.ErrFull):
		e.Class, e.Retryable, e.Code, e.RetryAfter = tools.ErrClassTransient, true, tools.ErrOverloaded, time.Second
		e.Message = fmt.Sprintf("the queue of toolset %q is full", toolset)
	case errors.Is(err, stream.ErrForbidden):
		e.Code = tools.ErrUnavailable
		e.Message = fmt.Sprintf("the stream server does not let the gateway send calls to toolset %q; the gateway's log says what to permit", toolset)
		r.forbidden.warn(r.log, "calls cannot be sent", "toolset", toolset, "error", err)
	case errors.Is(err, stream.ErrTooLarge):
		e.Message = fmt.Sprintf("the arguments are too large for the stream, which takes %d bytes", r.client.MaxPayload())
	}
	return e
}

// sparing is a line of the log that many calls would write in one moment.
type sparing struct{ last atomic.Int64 }

// sparingly is how long such a line is not written again.
const sparingly = 10 * time.Second

func (s *sparing) warn(to *slog.Logger, msg string, args ...any) {
	last, now := s.last.Load(), time.Now().UnixNano()
	if now-last >= int64(sparingly) && s.last.CompareAndSwap(last, now) {
		to.Warn(msg, args...)
	}
}

// unread is the error of a call of which nobody can say whether it was made before.
func unread(fault error) *tools.Error {
	return &tools.Error{Code: tools.ErrUnavailable, Class: tools.ErrClassTransient, Retryable: true, Err: fault,
		Message: "the record of the call cannot be read"}
}

// unkept is the error of a call whose record could not be made.
func unkept(fault error) error {
	switch {
	case errors.Is(fault, errOtherBody):
		return conflict()
	case errors.Is(fault, errUnread):
		return unread(fault)
	}
	e := refuse(tools.ErrClassTransient, fault)
	e.Code, e.Message = tools.ErrUnavailable, "the call cannot be recorded"
	return e
}

// conflict is the error of a call whose id was used for another.
func conflict() *tools.Error {
	e := refuse(tools.ErrClassPermanent, errOtherBody)
	e.Code = tools.ErrIdempotencyConflict
	return e
}
