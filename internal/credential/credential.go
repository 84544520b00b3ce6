// Package credential puts secrets into HTTP requests: how one is presented, at
// which place, and what of it must not be shown.
package credential

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Kind says how a secret is presented.
type Kind string

// The values of Kind.
const (
	// APIKey sends the secret as it is, in a header, a query parameter or a
	// cookie.
	APIKey Kind = "api_key"
	// Bearer sends "Bearer SECRET" in the header Authorization, or in another.
	Bearer Kind = "bearer"
	// Basic sends HTTP basic authentication; the secret is "user:password".
	Basic Kind = "basic"
	// Cookie sends the secret in a cookie.
	Cookie Kind = "cookie"
)

// Credential is a secret and how it is sent. No model sees it, and neither an
// error nor a URL that is shown holds it.
type Credential struct {
	Kind Kind
	// Header, Query and Cookie name the place; at most one is set. APIKey
	// needs one and Cookie needs Cookie, unless the document of an API
	// declares the place.
	Header, Query, Cookie string
	// Secret returns the secret. It is called for every request, so that a
	// rotated secret takes effect; it should be quick. Its error must not
	// quote a secret.
	Secret func(ctx context.Context) (string, error)
}

// Fixed returns a function for Credential.Secret that always returns s.
func Fixed(s string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s, nil }
}

// Check returns what is wrong with c, in the words of its configuration. Nil
// stands for no credential, with which nothing is wrong.
func (c *Credential) Check() error {
	if c == nil {
		return nil
	}
	places := 0
	for _, p := range []string{c.Header, c.Query, c.Cookie} {
		if p != "" {
			places++
		}
	}
	switch {
	case c.Secret == nil:
		return errors.New("auth: no secret")
	case places > 1:
		return errors.New("auth: at most one of header, query and cookie may be set")
	case c.Header != "" && !httpguts.ValidHeaderFieldName(c.Header):
		return fmt.Errorf("auth: %q is not a header name", c.Header)
	case c.Cookie != "" && !httpguts.ValidHeaderFieldName(c.Cookie):
		return fmt.Errorf("auth: %q is not a cookie name", c.Cookie)
	}
	return c.checkKind(places)
}

func (c *Credential) checkKind(places int) error {
	switch c.Kind {
	case APIKey:
		if places == 0 {
			return errors.New("auth: kind api_key needs header, query or cookie")
		}
	case Bearer, Basic:
		if c.Query != "" || c.Cookie != "" {
			return fmt.Errorf("auth: kind %s is sent in a header", c.Kind)
		}
	case Cookie:
		if c.Cookie == "" {
			return errors.New("auth: kind cookie needs cookie, the cookie's name")
		}
	default:
		return fmt.Errorf("auth: unknown kind %.40q: expected api_key, bearer, basic or cookie", c.Kind)
	}
	return nil
}

// Apply puts the credential into a request and returns what must not be shown
// of it. Nil adds nothing.
func (c *Credential) Apply(req *http.Request) (hidden []string, err error) {
	if c == nil {
		return nil, nil
	}
	secret, err := c.Secret(req.Context())
	switch {
	case err != nil:
		return nil, fmt.Errorf("the credential is not available: %w", err)
	case secret == "":
		return nil, errors.New("the credential is empty")
	case c.Query != "":
		setQuery(req.URL, c.Query, secret)
		return []string{secret}, nil
	case !httpguts.ValidHeaderFieldValue(secret):
		return nil, errors.New("the credential holds a line break or another control character")
	case c.Cookie != "":
		addCookie(req.Header, c.Cookie+"="+secret)
		return []string{secret}, nil
	}
	hidden = []string{secret}
	switch c.Kind {
	case Basic:
		_, password, _ := strings.Cut(secret, ":")
		hidden = append(hidden, password)
		req.Header.Set(c.header(), "Basic "+base64.StdEncoding.EncodeToString([]byte(secret)))
	case Bearer:
		req.Header.Set(c.header(), "Bearer "+secret)
	default:
		req.Header.Set(c.header(), secret)
	}
	return hidden, nil
}

func (c *Credential) header() string {
	if c.Header != "" {
		return c.Header
	}
	return "Authorization"
}

// setQuery replaces the parameters of that name, and leaves the bytes of all
// others as they are: a server may have signed them.
func setQuery(u *url.URL, name, value string) {
	var pairs []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); pair != "" && (err != nil || key != name) {
			pairs = append(pairs, pair)
		}
	}
	u.RawQuery = strings.Join(append(pairs, escape(name)+"="+escape(value)), "&")
}

// escape writes a space as %20, which servers read in every part of a URL.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func addCookie(h http.Header, cookie string) {
	if others := h.Get("Cookie"); others != "" {
		cookie = others + "; " + cookie
	}
	h.Set("Cookie", cookie)
}
