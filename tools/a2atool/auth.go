package a2atool

import "github.com/toolcrib/toolcrib/internal/credential"

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

// Auth is a credential for an agent: its Kind; at most one of Header, Query and
// Cookie, which name the place, and one of which AuthAPIKey needs; and Secret,
// a function that is called for every request. It is sent to the origin of the
// agent's URL alone. No model sees it, and no error holds it.
type Auth = credential.Credential
