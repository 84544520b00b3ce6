package mcptool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/toolcrib/toolcrib/internal/httpfault"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// RPCError is a JSON-RPC error that a server answered with. It stands in the
// chain of the error of a failed call, with the code, message and data as sent.
type RPCError = mcpwire.Error

// A verdict is what a cause says of a failed attempt.
type verdict struct {
	class      tools.ErrorClass
	delivery   tools.Delivery
	retryAfter time.Duration
	reason     string
}

// failure turns the cause of a failed attempt into the error of tools. tool is
// the canonical name, or empty; doing says what was tried.
func (s *Server) failure(ctx context.Context, tool, doing string, cause error) *tools.Error {
	var rpc *RPCError
	if errors.As(cause, &rpc) {
		return s.rpcFailure(tool, rpc)
	}
	var lost *unkept
	if errors.As(cause, &lost) {
		return s.unkeptFailure(ctx, tool, lost)
	}
	if errors.Is(cause, errCrowded) {
		return &tools.Error{Tool: tool, Code: tools.ErrOverloaded, Class: tools.ErrClassTransient, Delivery: tools.NotDelivered,
			Retryable: true, RetryAfter: crowdedPause, Message: s.message(errCrowded.Error()), Err: errCrowded}
	}
	if e := s.credentialFailure(ctx, tool, cause); e != nil {
		return e
	}
	v := judge(ctx, cause)
	if errors.Is(cause, mcpwire.ErrTooLarge) {
		most := s.cfg.MaxMessageBytes
		if other := (*mcpwire.LimitError)(nil); errors.As(cause, &other) {
			most = other.Limit
		}
		v.reason = fmt.Sprintf("its answer is larger than %d bytes", most)
	}
	return &tools.Error{
		Tool: tool, Code: v.code(cause), Class: v.class, Delivery: v.delivery, RetryAfter: v.retryAfter,
		Retryable: v.class != tools.ErrClassPermanent && v.class != "",
		Message:   s.message(fmt.Sprintf("%s failed: %s", doing, v.reason)),
		Err:       cause,
	}
}

// message names the server and hides secrets.
func (s *Server) message(text string) string {
	return fmt.Sprintf("MCP server %q: %s", s.cfg.Name, bound(s.secrets.clean(text), 1024))
}

// rpcFailure: an error is an answer. Only an internal error says that the
// server, and not the call, was at fault.
func (s *Server) rpcFailure(tool string, rpc *RPCError) *tools.Error {
	rpc = s.secrets.cleanRPC(rpc)
	e := &tools.Error{Tool: tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Err: rpc}
	if rpc.Code == mcpwire.CodeInternalError {
		e.Class, e.Retryable = tools.ErrClass5xx, true
	}
	e.Message = s.message(fmt.Sprintf("%s (JSON-RPC error %d)", rpc.Message, rpc.Code))
	return e
}

// answerFailure is for an answer that is no usable result.
func (s *Server) answerFailure(tool string, cause error) *tools.Error {
	return &tools.Error{
		Tool: tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
		Message: s.message(cause.Error()), Err: cause,
	}
}

// judge says what is known from the cause of a failure that is no answer.
func judge(ctx context.Context, cause error) verdict {
	v := verdict{class: tools.ErrClassTransient, delivery: deliveryOf(cause), reason: reasonOf(cause)}
	var paused *pausedError
	if errors.As(cause, &paused) {
		v.retryAfter = paused.wait
	}
	var he *mcpwire.HTTPError
	switch {
	case ctx.Err() != nil && errors.Is(cause, ctx.Err()):
		v.class = "" // whose limit it was is for the caller to judge
	case errors.As(cause, &he):
		v.status(he)
	case errors.Is(cause, mcpwire.ErrTooLarge):
		v.class, v.delivery = tools.ErrClassPermanent, tools.Answered
	case errors.Is(cause, mcpwire.ErrNoRoom):
		v.delivery, v.reason = tools.Answered, "there is no room on the disk for its answer"
	case errors.Is(cause, exec.ErrNotFound), errors.Is(cause, fs.ErrNotExist), errors.Is(cause, fs.ErrPermission),
		errors.Is(cause, errClosed):
		v.class = tools.ErrClassPermanent
	case errors.Is(cause, context.DeadlineExceeded):
		v.class = tools.ErrClassTimeout
	}
	return v
}

// status judges an HTTP response that carried no JSON-RPC answer.
func (v *verdict) status(he *mcpwire.HTTPError) {
	v.retryAfter = max(v.retryAfter, he.RetryAfter)
	switch {
	case he.Status == http.StatusUnauthorized || he.Status == http.StatusForbidden:
		v.class = tools.ErrClassPermanent
		v.reason = fmt.Sprintf("the server refused the credentials (%v)", he)
	case he.Status == http.StatusTooManyRequests:
		v.delivery = tools.NotDelivered
	case he.Status == http.StatusGatewayTimeout:
		v.class = tools.ErrClassTimeout
	case he.Status == http.StatusBadGateway:
		v.class = tools.ErrClass5xx
	case he.Status >= 500:
		v.class = tools.ErrClass5xx
		v.answered()
	case he.Status == http.StatusNotFound || he.Status == http.StatusMethodNotAllowed:
		v.class = tools.ErrClassPermanent
		v.reason = fmt.Sprintf("%v: the URL does not lead to an MCP endpoint", he)
	default:
		v.class = tools.ErrClassPermanent
		v.answered()
	}
}

// answered: a status that says the request failed is an answer to it, unless
// the request is known not to have got through.
func (v *verdict) answered() {
	if v.delivery == tools.DeliveryUnknown {
		v.delivery = tools.Answered
	}
}

// code is ErrUnavailable for what there was no connection to send on, because the
// server is not there, and nil otherwise. One that refuses the handshake is there.
func (v *verdict) code(cause error) error {
	var (
		dial    *dialError
		status  *mcpwire.HTTPError
		refusal *RPCError
	)
	dialled := errors.As(cause, &dial)
	if v.class != tools.ErrClassTransient || v.delivery != tools.NotDelivered || errors.As(cause, &status) ||
		dialled && errors.As(dial.err, &refusal) || httpfault.BadCertificate(cause) {
		return nil
	}
	if dialled || mcpwire.NeverConnected(cause) {
		return tools.ErrUnavailable
	}
	return nil
}

// deliveryOf is what the wire knows. What failed before there was a connection
// was not delivered.
func deliveryOf(cause error) tools.Delivery {
	var paused *pausedError
	var dial *dialError
	if errors.As(cause, &paused) || errors.As(cause, &dial) {
		return tools.NotDelivered
	}
	switch mcpwire.DeliveryOf(cause) {
	case mcpwire.NotDelivered:
		return tools.NotDelivered
	case mcpwire.Answered:
		return tools.Answered
	}
	return tools.DeliveryUnknown
}

// reasonOf is the cause in words, without the method, which the caller knows,
// and without the URL, which may hold a secret.
func reasonOf(cause error) string {
	var dial *dialError
	if errors.As(cause, &dial) {
		cause = dial.err
	}
	var ce *mcpwire.CallError
	if errors.As(cause, &ce) {
		cause = ce.Err
	}
	var ue *url.Error
	if errors.As(cause, &ue) {
		cause = ue.Err
	}
	if errors.Is(cause, syscall.EPIPE) {
		return "the server reads no longer"
	}
	return strings.ReplaceAll(cause.Error(), "mcpwire: ", "")
}
