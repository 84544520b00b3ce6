package httptool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// securitySchemes returns the object with a document's security schemes.
func (l *library) securitySchemes() node {
	if l.root.swagger() {
		return l.root.top("securityDefinitions")
	}
	return l.root.top("components").child("securitySchemes")
}

// security reads the places of the document's API keys, which no model fills
// in, and completes the configured credentials with what the document says.
func (r *reader) security() error {
	schemes := map[string]Auth{}
	for name, n := range r.lib.securitySchemes().members {
		n, err := r.lib.deref(n)
		if err != nil {
			r.problems = append(r.problems, err)
			continue
		}
		scheme := schemeAuth(n)
		schemes[name] = scheme
		if scheme.Kind == AuthAPIKey {
			r.keys = append(r.keys, scheme)
		}
	}
	if err := r.fallback(); err != nil {
		return err
	}
	r.bound = map[string]*Auth{}
	for _, name := range slices.Sorted(maps.Keys(r.cfg.Auths)) {
		scheme, ok := schemes[name]
		if !ok {
			return r.faultf("auths: the document has no security scheme %q: it has %s", name,
				or(strings.Join(slices.Sorted(maps.Keys(schemes)), ", "), "none"))
		}
		auth := completed(r.cfg.Auths[name], scheme)
		if err := auth.Check(); err != nil {
			return r.faultf("auths: %s: %v", name, err)
		}
		r.bound[name] = auth
	}
	return nil
}

func (r *reader) faultf(format string, args ...any) error {
	return &DocumentError{Document: r.lib.root.name, Message: fmt.Sprintf(format, args...)}
}

// fallback finds the place of a key whose place is not configured: that of the
// document's first API key.
func (r *reader) fallback() error {
	r.auth = r.cfg.Auth
	if r.auth == nil || !unplaced(r.auth) {
		return nil
	}
	if len(r.keys) == 0 {
		return r.faultf("the document does not say where its API key goes: set header, query or cookie under auth")
	}
	r.auth = completed(r.auth, r.keys[0])
	return r.auth.Check()
}

// schemeAuth returns how a security scheme is presented, without a secret; an
// empty kind when the document does not say it in a way that is known.
func schemeAuth(n node) Auth {
	switch n.text("type") {
	case "apiKey":
		a := Auth{Kind: AuthAPIKey}
		switch n.text("in") {
		case "header":
			a.Header = n.text("name")
		case "query":
			a.Query = n.text("name")
		case "cookie":
			a.Cookie = n.text("name")
		}
		return a
	case "basic":
		return Auth{Kind: AuthBasic}
	case "oauth2", "openIdConnect":
		return Auth{Kind: AuthBearer}
	case "http":
		switch strings.ToLower(n.text("scheme")) {
		case "bearer":
			return Auth{Kind: AuthBearer}
		case "basic":
			return Auth{Kind: AuthBasic}
		}
	}
	return Auth{}
}

// credentials returns what an operation's requests carry: the credentials of
// the first of its security requirements for which all are configured, else
// the one for the whole source.
func (r *reader) credentials(o *operation) credentials {
	requirements := o.node.child("security")
	if requirements.kind() != rawjson.KindArray {
		requirements = r.lib.root.top("security")
	}
	for _, alternative := range requirements.elements {
		if list, ok := r.satisfies(alternative); ok {
			return list
		}
	}
	if r.auth == nil {
		return nil
	}
	return credentials{r.auth}
}

// satisfies returns the credentials for one requirement; ok is false when one
// is not configured or none is asked for.
func (r *reader) satisfies(requirement node) (list credentials, ok bool) {
	for name := range requirement.members {
		auth := r.bound[name]
		if auth == nil {
			return nil, false
		}
		list = append(list, auth)
	}
	return list, len(list) > 0
}

// hides reports whether a parameter is filled in by a credential or by a
// configured header.
func (r *reader) hides(list credentials) func(in, name string) bool {
	return func(in, name string) bool {
		if list.hide(in, name) {
			return true
		}
		for i := range r.keys {
			if fills(&r.keys[i], in, name) {
				return true
			}
		}
		if in != "header" {
			return false
		}
		for fixed := range r.cfg.Headers {
			if strings.EqualFold(fixed, name) {
				return true
			}
		}
		return false
	}
}
