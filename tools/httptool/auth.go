package httptool

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/credential"
)

// AuthKind says how a secret is presented.
type AuthKind = credential.Kind

// The AuthKind values.
const (
	// AuthAPIKey sends the secret as it is, in a header, a query parameter or
	// a cookie.
	AuthAPIKey = credential.APIKey
	// AuthBearer sends "Bearer SECRET" in the header Authorization, or in
	// another.
	AuthBearer = credential.Bearer
	// AuthBasic sends HTTP basic authentication; the secret is
	// "user:password".
	AuthBasic = credential.Basic
	// AuthCookie sends the secret in a cookie.
	AuthCookie = credential.Cookie
)

// Auth is a credential for an API: its Kind; at most one of Header, Query and
// Cookie, which name the place; and Secret, a function that is called for every
// request, so that a rotated secret takes effect. AuthAPIKey needs a place,
// unless an OpenAPI document declares it. No model sees a credential, and
// neither an error nor a URL that is shown holds it.
type Auth = credential.Credential

// FixedSecret returns a function for Auth.Secret that always returns s.
func FixedSecret(s string) func(context.Context) (string, error) { return credential.Fixed(s) }

// unplaced reports whether the document must say where the key goes.
func unplaced(a *Auth) bool {
	return a.Kind == AuthAPIKey && a.Header == "" && a.Query == "" && a.Cookie == ""
}

// completed returns a with the kind and place of a scheme where it has none.
func completed(a *Auth, scheme Auth) *Auth {
	out := *a
	if out.Kind == "" {
		out.Kind = scheme.Kind
	}
	if unplaced(&out) {
		out.Header, out.Query, out.Cookie = scheme.Header, scheme.Query, scheme.Cookie
	}
	return &out
}

// fills reports whether a parameter of that name and place is filled by the
// credential.
func fills(a *Auth, in, name string) bool {
	if a == nil {
		return false
	}
	switch in {
	case "query":
		return a.Query == name
	case "cookie":
		return a.Cookie == name
	case "header":
		return strings.EqualFold(a.Header, name)
	}
	return false
}

// credentials are all that a request carries.
type credentials []*Auth

// hide reports whether one of them fills in a parameter.
func (c credentials) hide(in, name string) bool {
	return slices.ContainsFunc(c, func(a *Auth) bool { return fills(a, in, name) })
}

// apply puts all of them into a request and returns what must not be shown.
func (c credentials) apply(req *http.Request) ([]string, error) {
	var hidden []string
	for _, a := range c {
		more, err := a.Apply(req)
		if err != nil {
			return nil, err
		}
		hidden = append(hidden, more...)
	}
	return hidden, nil
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
