package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/toolcrib/toolcrib/internal/mask"
	"github.com/toolcrib/toolcrib/tools"
)

// RequiredError is the failure of a request for which a person has to agree
// first. A *tools.Error stands in its chain, with the code
// tools.ErrAuthorizationRequired.
type RequiredError struct {
	pending *pending
	err     *tools.Error
}

// Error says what is needed, without the address, which is not everybody's.
func (e *RequiredError) Error() string { return e.err.Message }

// Unwrap returns the *tools.Error.
func (e *RequiredError) Unwrap() error { return e.err }

// AuthorizationID names the authorization that is waited for.
func (e *RequiredError) AuthorizationID() string { return e.pending.id }

// AuthorizationURL is where the caller on ctx can agree, in a browser. It is
// empty when the caller may not, or when no browser would find its way back.
func (e *RequiredError) AuthorizationURL(ctx context.Context) string {
	return e.pending.upstream.broker.startURL(ctx, e.pending)
}

// Await waits until somebody has agreed, and returns nil then. It returns why an
// attempt to agree failed, or the error of ctx.
func (e *RequiredError) Await(ctx context.Context) error { return e.pending.await(ctx) }

func (u *Upstream) required(p *pending) error {
	return &RequiredError{pending: p, err: &tools.Error{Code: tools.ErrAuthorizationRequired, Class: tools.ErrClassPermanent,
		Delivery: tools.NotDelivered, Retryable: true, Message: "a person must authorize it first"}}
}

// fail is the failure of a request that was not sent, or that the service
// refused unseen, for want of a token.
func fail(class tools.ErrorClass, cause error, format string, args ...any) *tools.Error {
	return &tools.Error{Class: class, Delivery: tools.NotDelivered, Retryable: class != tools.ErrClassPermanent,
		Message: "authorization failed: " + fmt.Sprintf(format, args...), Err: cause}
}

// refuse is fail for what will not pass by itself.
func refuse(format string, args ...any) *tools.Error {
	return fail(tools.ErrClassPermanent, nil, format, args...)
}

// unreachable is the failure of an exchange that brought no answer. The address
// in a url.Error is told apart from its reason.
func unreachable(what, address string, err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if given, ok := errors.AsType[*tools.Error](err); ok {
		return given
	}
	return fail(tools.ErrClassTransient, nil, "%s at %s cannot be reached: %v", what, origin(address), err)
}

// origin is what is shown of an address.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is not well formed"
	}
	return u.Scheme + "://" + u.Host
}

// A refusedError is the answer of a token endpoint that gave no token.
type refusedError struct {
	err  *tools.Error
	code string // of RFC 6749, or empty
}

func (e *refusedError) Error() string { return e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

// tokenFailure tells of a failed token request, without the secrets that it
// held, which an answer may repeat. The answer itself stays out of the chain.
func tokenFailure(endpoint string, err error, secrets ...string) error {
	var answer *oauth2.RetrieveError
	var ue *url.Error
	switch {
	case errors.As(err, &ue):
		return unreachable("the token endpoint", endpoint, err)
	case !errors.As(err, &answer):
		return refuse("the token endpoint at %s answered with no token", origin(endpoint))
	}
	status := answer.Response.StatusCode
	class := tools.ErrClassPermanent
	switch {
	case status == http.StatusTooManyRequests:
		class = tools.ErrClassTransient
	case status >= 500:
		class = tools.ErrClass5xx
	}
	text := fmt.Sprintf("HTTP %d", status)
	if answer.ErrorCode != "" {
		text = answer.ErrorCode
	}
	if answer.ErrorDescription != "" {
		text += ": " + answer.ErrorDescription
	}
	text = bounded(mask.New(secrets...).Clean(text))
	return &refusedError{err: fail(class, nil, "the token endpoint at %s refused: %s", origin(endpoint), text), code: answer.ErrorCode}
}

// refusedWith reports whether a token endpoint answered with one of the codes.
func refusedWith(err error, codes ...string) bool {
	refused, ok := errors.AsType[*refusedError](err)
	if !ok {
		return false
	}
	for _, code := range codes {
		if refused.code == code {
			return true
		}
	}
	return false
}

// bounded cuts foreign text.
func bounded(s string) string {
	const limit = 300
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}
