package mcpwire

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Delivery says how far a request got before it failed.
type Delivery uint8

const (
	// NotDelivered: the peer certainly did not process the request, so that
	// sending it again cannot repeat an effect.
	NotDelivered Delivery = iota
	// MaybeDelivered: the request left and no answer came; its outcome is
	// unknown.
	MaybeDelivered
	// Answered: the peer answered, with a result or with an error.
	Answered
)

// String returns "not delivered", "maybe delivered" or "answered".
func (d Delivery) String() string {
	switch d {
	case NotDelivered:
		return "not delivered"
	case MaybeDelivered:
		return "maybe delivered"
	}
	return "answered"
}

var (
	// ErrClosed: the connection was closed, by either side.
	ErrClosed = errors.New("mcpwire: connection closed")
	// ErrSessionLost: the server no longer knows the session (it answered 404
	// to its id). The client is of no more use; connect again.
	ErrSessionLost = errors.New("mcpwire: the server forgot the session")
	// ErrTooLarge: a message exceeds the limit of the connection.
	ErrTooLarge = errors.New("mcpwire: message exceeds the size limit")
	// ErrUnsupported: the era or the transport has no way to do this, such as
	// a request from server to client in the stateless era.
	ErrUnsupported = errors.New("mcpwire: not possible on this connection")
	// ErrNoAnswer: the stream of a request ended without its answer.
	ErrNoAnswer = errors.New("mcpwire: the stream ended without an answer")
)

// CallError is a request that got no answer. Unwrap gives the cause: a context
// error, one of the sentinels of this package, an [*HTTPError], or an error of
// the network.
type CallError struct {
	Method   string
	Delivery Delivery
	Err      error
}

// Error names the method, the cause, and whether the request was delivered.
func (e *CallError) Error() string {
	return fmt.Sprintf("%s: %v (%s)", e.Method, e.Err, e.Delivery)
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// DeliveryOf says what err tells about the request that returned it. Errors
// that did not come from a call count as [NotDelivered].
func DeliveryOf(err error) Delivery {
	if err == nil {
		return Answered
	}
	var ce *CallError
	if errors.As(err, &ce) {
		return ce.Delivery
	}
	var je *Error
	if errors.As(err, &je) {
		return Answered
	}
	return NotDelivered
}

// HTTPError is an HTTP response that carried no JSON-RPC answer.
type HTTPError struct {
	Status int
	Header http.Header
	// Body is the beginning of the response body, up to 4 KiB.
	Body []byte
	// RetryAfter is what the Retry-After header asks for, zero without one.
	RetryAfter time.Duration
}

// Error returns the status line. The body stays out, as it may be anything.
func (e *HTTPError) Error() string {
	return fmt.Sprintf("HTTP %d %s", e.Status, http.StatusText(e.Status))
}

// delivery: a server that refuses with one of these statuses did so before it
// looked at the request; any other may come from behind the method.
func (e *HTTPError) delivery() Delivery {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusTooManyRequests:
		return NotDelivered
	}
	return MaybeDelivered
}
