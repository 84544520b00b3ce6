package a2atool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/grpc/codes"

	"github.com/toolcrib/toolcrib/internal/httpfault"
	"github.com/toolcrib/toolcrib/internal/mask"
	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/tools"
)

// message names the agent.
func (p *Peer) message(text string) string {
	return fmt.Sprintf("A2A agent %s: %s", strings.TrimPrefix(string(p.id), "a2a:"), bound(text, 1500))
}

// answerFailure is for an answer that cannot be used.
func (p *Peer) answerFailure(tool string, cause error) *tools.Error {
	return &tools.Error{Tool: tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: p.message(cause.Error())}
}

// A verdict is what a cause says of a failed attempt.
type verdict struct {
	code     error // a sentinel, or nil
	class    tools.ErrorClass
	delivery tools.Delivery
	reason   string
	cause    error // kept in the chain, or nil
}

// failure turns the cause of a failed request into the error of tools. tool is
// the canonical name, or empty; doing says what was tried. Neither the message
// nor the chain holds the request's URL or a credential.
func (p *Peer) failure(ctx context.Context, tool, doing string, cause error, k known) *tools.Error {
	v := judge(ctx, cause, k)
	return &tools.Error{
		Tool: tool, Code: v.code, Class: v.class, Delivery: v.delivery, RetryAfter: k.retryAfter,
		Retryable: v.class != tools.ErrClassPermanent && v.class != "",
		Message:   p.message(mask.New(k.hidden...).Clean(doing + " failed: " + v.reason)),
		Err:       v.cause,
	}
}

// judge says what is known from the cause. Whose time limit it was, where the
// context has ended, is for the caller to judge.
func judge(ctx context.Context, cause error, k known) verdict {
	v := verdict{class: tools.ErrClassTransient, delivery: k.delivery, reason: httpfault.BareText(cause)}
	var own *tools.Error
	switch {
	case errors.As(cause, &own):
		return verdict{nil, own.Class, own.Delivery, own.SafeMessage(), own}
	case ctx.Err() != nil:
		return verdict{nil, "", k.delivery, httpfault.Ended(ctx), ctx.Err()}
	case v.refused(cause), v.tooLong(cause, k), v.protocol(cause, k), v.status(cause, k), v.grpc(k), v.connection(cause):
	case k.bodyErr != nil:
		v.reason = "the answer broke off: " + httpfault.BareText(k.bodyErr)
	case k.status != 0 && errors.Is(cause, errNoEvent):
	case k.status != 0:
		v.garbage(cause)
	}
	if v.delivery == tools.NotDelivered && v.class == tools.ErrClassTransient && k.status == 0 {
		v.code = tools.ErrUnavailable // there was no connection to send it on
	}
	return v
}

// refused judges requests that were not sent.
func (v *verdict) refused(cause error) bool {
	var (
		refused *refusedError
		blocked *netguard.BlockedError
	)
	switch {
	case errors.As(cause, &blocked):
		v.reason = blocked.Error() + ", which is not called unless allow_private is set"
	case errors.As(cause, &refused):
		v.reason = refused.Error()
	default:
		return false
	}
	v.class, v.delivery = tools.ErrClassPermanent, tools.NotDelivered
	return true
}

func (v *verdict) tooLong(cause error, k known) bool {
	if !errors.Is(cause, errTooLong) && !errors.Is(k.bodyErr, errTooLong) {
		return false
	}
	v.class, v.delivery = tools.ErrClassPermanent, tools.Answered
	v.reason = errTooLong.Error()
	if k.bodyErr != nil {
		v.reason = k.bodyErr.Error()
	}
	return true
}

// protocol judges the errors that an agent answers with.
// What comes with a status of HTTP or gRPC and is no more than an internal error may be no
// error of the protocol: then the status decides.
func (v *verdict) protocol(cause error, k known) bool {
	var said *a2a.Error
	if !errors.As(cause, &said) {
		return false
	}
	if (failed(k.status) || k.code != codes.OK) && vague(said) {
		return false
	}
	v.class, v.delivery, v.reason = tools.ErrClassPermanent, tools.Answered, said.Error()
	for _, sentinel := range answers {
		if errors.Is(said, sentinel) {
			v.cause = sentinel
		}
	}
	switch {
	case errors.Is(said, a2a.ErrInternalError), errors.Is(said, a2a.ErrServerError):
		v.class = tools.ErrClass5xx
	case errors.Is(said, a2a.ErrUnauthenticated), errors.Is(said, a2a.ErrUnauthorized):
		v.reason = "the agent refused the credentials: " + said.Error()
	}
	return true
}

// vague reports whether an error says no more than that there was one.
func vague(said *a2a.Error) bool {
	for _, sentinel := range [...]error{a2a.ErrInternalError, a2a.ErrServerError, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(said, sentinel) {
			return true
		}
	}
	return false
}

// answers are the errors of the protocol that stay in the chain.
var answers = [...]error{
	a2a.ErrTaskNotFound, a2a.ErrTaskNotCancelable, a2a.ErrUnsupportedOperation, a2a.ErrUnsupportedContentType,
	a2a.ErrInvalidParams, a2a.ErrMethodNotFound, a2a.ErrInvalidRequest, a2a.ErrVersionNotSupported,
	a2a.ErrExtensionSupportRequired, a2a.ErrUnauthenticated, a2a.ErrUnauthorized, a2a.ErrInternalError,
}

func failed(status int) bool { return status != 0 && status != http.StatusOK }

// status judges an HTTP response that carried no answer of the protocol.
func (v *verdict) status(cause error, k known) bool {
	if !failed(k.status) {
		return false
	}
	v.class, v.delivery = tools.ErrClassPermanent, tools.Answered
	v.reason = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", k.status, http.StatusText(k.status)))
	var said *a2a.Error
	if errors.As(cause, &said) && said.Message != "" {
		v.reason += ": " + said.Message
	}
	switch {
	case k.status == http.StatusTooManyRequests:
		v.class, v.delivery = tools.ErrClassTransient, tools.NotDelivered
	case k.status == http.StatusUnauthorized, k.status == http.StatusForbidden:
		v.reason = "the agent refused the credentials: " + v.reason
	case k.status >= 300 && k.status < 400:
		v.reason += ": the agent is elsewhere, and a message is not repeated there"
	case k.status == http.StatusGatewayTimeout:
		v.class, v.delivery = tools.ErrClassTimeout, tools.DeliveryUnknown
	case k.status == http.StatusBadGateway:
		v.class, v.delivery = tools.ErrClass5xx, tools.DeliveryUnknown
	case k.status >= 500:
		v.class = tools.ErrClass5xx
	}
	return true
}

// connection judges connections that were not made.
func (v *verdict) connection(cause error) bool {
	var (
		dns     *net.DNSError
		timeout net.Error
	)
	switch {
	case errors.As(cause, &dns):
		v.reason = "its host cannot be found"
	case errors.Is(cause, syscall.ECONNREFUSED):
		v.reason, v.cause = "it refused the connection", syscall.ECONNREFUSED
	case httpfault.BadCertificate(cause):
		v.class = tools.ErrClassPermanent
	case errors.As(cause, &timeout) && timeout.Timeout() && v.delivery != tools.NotDelivered:
		v.class = tools.ErrClassTimeout
	default:
		return false
	}
	return true
}

// garbage judges an answer that arrived and is not of the protocol.
func (v *verdict) garbage(cause error) {
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
	)
	v.class, v.delivery = tools.ErrClassPermanent, tools.Answered
	v.reason = "the answer is not of the A2A protocol"
	switch {
	case errors.As(cause, &syntax):
		v.reason += ": it is not JSON"
	case errors.As(cause, &kind):
		v.reason += ": a field has the wrong type"
	}
}
