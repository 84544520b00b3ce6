package a2atool

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
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

// Auth is a credential for an agent. It is sent to the origin of the agent's
// URL alone. No model sees it, and no error holds it.
type Auth struct {
	Kind AuthKind
	// Header, Query and Cookie name the place; at most one is set. AuthAPIKey
	// needs one and AuthCookie needs Cookie.
	Header, Query, Cookie string
	// Secret returns the secret. It is called for every request, so that a
	// rotated secret takes effect; it should be quick. Its error must not
	// quote a secret.
	Secret func(ctx context.Context) (string, error)
}

// check returns what is wrong with a, in the words of its configuration.
func (a *Auth) check() error {
	if a == nil {
		return nil
	}
	places := 0
	for _, p := range []string{a.Header, a.Query, a.Cookie} {
		if p != "" {
			places++
		}
	}
	switch {
	case a.Secret == nil:
		return errors.New("a2atool: auth: no secret")
	case places > 1:
		return errors.New("a2atool: auth: at most one of header, query and cookie says where the secret goes")
	case a.Kind == AuthAPIKey && places == 0:
		return errors.New("a2atool: auth: api_key needs header, query or cookie")
	case a.Kind == AuthCookie && a.Cookie == "":
		return errors.New("a2atool: auth: cookie needs the cookie's name")
	case (a.Kind == AuthBearer || a.Kind == AuthBasic) && (a.Query != "" || a.Cookie != ""):
		return fmt.Errorf("a2atool: auth: %s goes in a header", a.Kind)
	}
	switch a.Kind {
	case AuthAPIKey, AuthBearer, AuthBasic, AuthCookie:
		return nil
	}
	return fmt.Errorf("a2atool: auth: kind %q: expected api_key, bearer, basic or cookie", bound(string(a.Kind), 40))
}

// value is the secret and what is sent of it.
func (a *Auth) value(ctx context.Context) (secret, sent string, err error) {
	secret, err = a.Secret(ctx)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("the credential cannot be had: %w", err)
	case secret == "" || strings.ContainsAny(secret, "\r\n\x00"):
		return "", "", errors.New("the credential is empty or holds control characters")
	case a.Kind == AuthBearer:
		return secret, "Bearer " + secret, nil
	case a.Kind == AuthBasic:
		return secret, "Basic " + base64.StdEncoding.EncodeToString([]byte(secret)), nil
	}
	return secret, secret, nil
}

// apply adds the credential to req and returns the texts that no error may
// show.
func (a *Auth) apply(req *http.Request) ([]string, error) {
	secret, sent, err := a.value(req.Context())
	if err != nil {
		return nil, err
	}
	switch {
	case a.Query != "":
		q := req.URL.Query()
		q.Set(a.Query, sent)
		req.URL.RawQuery = q.Encode()
	case a.Cookie != "":
		req.AddCookie(&http.Cookie{Name: a.Cookie, Value: sent})
	default:
		req.Header.Set(a.header(), sent)
	}
	return []string{sent, secret}, nil
}

func (a *Auth) header() string {
	if a.Header != "" {
		return a.Header
	}
	return "Authorization"
}

// minHidden is the length, in bytes, below which a value is too common to be
// recognised as a secret in a text.
const minHidden = 6

// scrub hides secrets in a text. Longer ones come first in hidden, as one may
// hold another.
func scrub(text string, hidden []string) string {
	for _, h := range hidden {
		if len(h) >= minHidden {
			text = strings.ReplaceAll(text, h, "[hidden]")
		}
	}
	return text
}
