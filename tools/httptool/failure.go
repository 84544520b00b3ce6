package httptool

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/toolcrib/toolcrib/internal/httpfault"
	"github.com/toolcrib/toolcrib/tools"
)

// refuse is the error of a call that was not sent.
func refuse(label string, err error) error {
	var known *tools.Error
	if errors.As(err, &known) {
		return err
	}
	return &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Message: label + ": " + err.Error()}
}

// invalid is the error of a call whose arguments fit the schema and still
// cannot be sent.
func invalid(err error) error {
	return &tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent,
		Delivery: tools.NotDelivered, Message: err.Error()}
}

// rejected is the error of an answer that is not accepted.
func rejected(out *outgoing, status int, why string) error {
	return &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered,
		Message: fmt.Sprintf("%s: HTTP %d: %s", out.label, status, out.clean(why))}
}

// failure describes a request that got no answer. Neither the message nor the
// cause holds the request's URL, which may carry a credential.
func failure(req *http.Request, out *outgoing, err error, t *trip) error {
	var known *tools.Error
	if errors.As(err, &known) {
		return out.sinceActed(known)
	}
	e := &tools.Error{Class: tools.ErrClassTransient, Delivery: t.delivery(out), Retryable: true}
	host := req.URL.Host
	var (
		blocked *blockedError
		dns     *net.DNSError
	)
	switch {
	case errors.As(err, &blocked):
		e.Class, e.Retryable = tools.ErrClassPermanent, false
		e.Message = host + ": " + blocked.Error()
	case req.Context().Err() != nil:
		e.Class, e.Retryable, e.Err = "", false, req.Context().Err()
		e.Message = host + ": " + httpfault.Ended(req.Context())
	case errors.As(err, &dns):
		e.Message = fmt.Sprintf("the host %s cannot be found", req.URL.Hostname())
		e.Err = dns
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message, e.Err = host+" refused the connection", syscall.ECONNREFUSED
	case httpfault.BadCertificate(err):
		e.Class, e.Retryable = tools.ErrClassPermanent, false
		e.Message = host + ": " + httpfault.BareText(err)
	default:
		e.Class = timeoutOr(err, e)
		e.Message = host + ": " + httpfault.BareText(err)
	}
	if e.Delivery == tools.NotDelivered && e.Class == tools.ErrClassTransient {
		e.Code = tools.ErrUnavailable // there was no connection to send it on
	}
	e.Message = out.label + ": " + out.clean(e.Message)
	return e
}

// sinceActed returns the error of a request that was not made as that of its call,
// whose first request may have had its effect.
func (o *outgoing) sinceActed(e *tools.Error) *tools.Error {
	if !o.acted || e.Delivery != tools.NotDelivered {
		return e
	}
	acted := *e
	acted.Delivery = tools.DeliveryUnknown
	return &acted
}

// timeoutOr is the class of a failure that is nothing more special: a time
// limit of the transport counts as one only once the request was sent.
func timeoutOr(err error, e *tools.Error) tools.ErrorClass {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() && e.Delivery != tools.NotDelivered {
		return tools.ErrClassTimeout
	}
	return tools.ErrClassTransient
}
