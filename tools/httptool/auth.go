package httptool

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// AuthKind says how a secret is presented.
type AuthKind string

// The AuthKind values.
const (
	// AuthAPIKey sends the secret as it is, in a header, a query parameter or
	// a cookie.
	AuthAPIKey AuthKind = "api_key"
	// AuthBearer sends "Bearer SECRET" in the header Authorization, or in
	// another.
	AuthBearer AuthKind = "bearer"
	// AuthBasic sends HTTP basic authentication; the secret is
	// "user:password".
	AuthBasic AuthKind = "basic"
	// AuthCookie sends the secret in a cookie.
	AuthCookie AuthKind = "cookie"
)

// Auth is a credential for an API. No model sees it, and neither an error nor
// a URL that is shown holds it.
type Auth struct {
	Kind AuthKind
	// Header, Query and Cookie name the place; at most one is set. AuthAPIKey
	// needs one, unless an OpenAPI document declares the place.
	Header, Query, Cookie string
	// Secret returns the secret. It is called for every request, so that a
	// rotated secret takes effect; it should be quick. Its error must not
	// quote a secret.
	Secret func(ctx context.Context) (string, error)
}

// FixedSecret returns a function for Auth.Secret that always returns s.
func FixedSecret(s string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s, nil }
}

// check returns what is wrong with a, in the words of its configuration.
func (a *Auth) check() error {
	places := 0
	for _, p := range []string{a.Header, a.Query, a.Cookie} {
		if p != "" {
			places++
		}
	}
	switch {
	case a.Secret == nil:
		return errors.New("auth: no secret")
	case places > 1:
		return errors.New("auth: at most one of header, query and cookie may be set")
	case a.Header != "" && !validHeaderName(a.Header):
		return fmt.Errorf("auth: %q is not a header name", a.Header)
	case a.Cookie != "" && !validHeaderName(a.Cookie):
		return fmt.Errorf("auth: %q is not a cookie name", a.Cookie)
	}
	return a.checkKind(places)
}

func (a *Auth) checkKind(places int) error {
	switch a.Kind {
	case AuthAPIKey:
		if places == 0 {
			return errors.New("auth: kind api_key needs header, query or cookie")
		}
	case AuthBearer, AuthBasic:
		if a.Query != "" || a.Cookie != "" {
			return fmt.Errorf("auth: kind %s is sent in a header", a.Kind)
		}
	case AuthCookie:
		if a.Cookie == "" {
			return errors.New("auth: kind cookie needs cookie, the cookie's name")
		}
	default:
		return fmt.Errorf("auth: unknown kind %q: expected api_key, bearer, basic or cookie", a.Kind)
	}
	return nil
}

// hides reports whether a parameter of that name and place is filled by the
// credential.
func (a *Auth) hides(in, name string) bool {
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

// apply puts the credential into a request and returns what must not be shown
// of it.
func (a *Auth) apply(req *http.Request) ([]string, error) {
	if a == nil {
		return nil, nil
	}
	secret, err := a.Secret(req.Context())
	if err != nil {
		return nil, fmt.Errorf("the credential is not available: %w", err)
	}
	if secret == "" {
		return nil, errors.New("the credential is empty")
	}
	shown := []string{secret}
	if a.Query != "" {
		addQuery(req.URL, percent(a.Query, false)+"="+percent(secret, false))
		return shown, nil
	}
	if !validHeaderValue(secret) {
		return nil, errors.New("the credential holds a line break or another control character")
	}
	switch {
	case a.Cookie != "":
		cookie := a.Cookie + "=" + secret
		if others := req.Header.Get("Cookie"); others != "" {
			cookie = others + "; " + cookie
		}
		req.Header.Set("Cookie", cookie)
	case a.Kind == AuthBasic:
		req.Header.Set(or(a.Header, "Authorization"), "Basic "+base64.StdEncoding.EncodeToString([]byte(secret)))
		_, password, _ := strings.Cut(secret, ":")
		shown = append(shown, password)
	case a.Kind == AuthBearer:
		req.Header.Set(or(a.Header, "Authorization"), "Bearer "+secret)
	default:
		req.Header.Set(a.Header, secret)
	}
	return shown, nil
}

// credentials are all that a request carries.
type credentials []*Auth

// hide reports whether one of them fills in a parameter.
func (c credentials) hide(in, name string) bool {
	return slices.ContainsFunc(c, func(a *Auth) bool { return a.hides(in, name) })
}

// apply puts all of them into a request and returns what must not be shown.
func (c credentials) apply(req *http.Request) ([]string, error) {
	var hidden []string
	for _, a := range c {
		more, err := a.apply(req)
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

func addQuery(u *url.URL, pair string) {
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += pair
}

// validHeaderName reports whether s is a token of RFC 9110.
func validHeaderName(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// validHeaderValue refuses control characters, line breaks above all.
func validHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
