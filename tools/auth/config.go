package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/netguard"
)

// Grant says how tokens are obtained.
type Grant string

// The values of Grant.
const (
	// AuthorizationCode: a person agrees, in a browser. It is the default.
	AuthorizationCode Grant = "authorization_code"
	// ClientCredentials: the client obtains tokens in its own name.
	ClientCredentials Grant = "client_credentials"
	// JWTBearer: a signed assertion about the client is traded for a token, as
	// a workload does that its platform vouches for.
	JWTBearer Grant = "jwt_bearer"
	// IdentityAssertion: an identity token is traded, at the provider that
	// issued it, for an assertion to the service's authorization server, and
	// that for a token.
	IdentityAssertion Grant = "identity_assertion"
)

// AnyIssuer is the Config.Issuer that lets a client's secret or assertion go to
// whatever authorization server the service names.
const AnyIssuer = "any"

// Client is how this program is known to an authorization server. Printing or
// logging it shows its ID alone.
type Client struct {
	ID string `json:"id"`
	// Secret is empty for a public client, and for one with a Key.
	Secret string `json:"secret,omitempty"`
	// Method is how the client authenticates at the token endpoint:
	// client_secret_basic, client_secret_post, private_key_jwt or none. Empty
	// is found out.
	Method string `json:"method,omitempty"`
	// Key signs the assertions of private_key_jwt.
	Key *SigningKey `json:"-"`
}

// String implements fmt.Stringer.
func (c Client) String() string { return c.ID }

// GoString implements fmt.GoStringer.
func (c Client) GoString() string { return fmt.Sprintf("auth.Client{ID: %q}", c.ID) }

// LogValue implements slog.LogValuer.
func (c Client) LogValue() slog.Value { return slog.StringValue(c.ID) }

// The ways in which a client authenticates at a token endpoint.
const (
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
	methodKey   = "private_key_jwt"
	methodNone  = "none"
)

// Secret returns a secret that may change while the program runs, such as the
// content of a file. Its error must not quote one.
type Secret func(ctx context.Context) (string, error)

// IdentityProvider is where an identity token is exchanged.
type IdentityProvider struct {
	// TokenURL is the provider's token endpoint.
	TokenURL string
	// Client is how this program is known to the provider.
	Client Client
	// Subject returns the identity token.
	Subject Secret
}

// Config describes one protected service and how tokens for it are obtained.
type Config struct {
	// Source names the service in keys and messages.
	Source string
	// Resource is the service's address, such as the URL of an MCP endpoint.
	Resource string
	Binding  Binding
	Grant    Grant
	// Client is the client as it was registered beforehand. Without an ID one
	// is registered, or ClientMetadataURL is used.
	Client Client
	// Issuer is the authorization server that Client is registered with. It is
	// demanded where a secret or an assertion is sent, unless TokenURL is set:
	// a service could name a server of its own otherwise, and be sent them.
	Issuer string
	// ClientMetadataURL is the address of this client's metadata document, by
	// which servers that support it know the client.
	ClientMetadataURL string
	// Scopes are asked for in place of those that the service lists.
	Scopes []string
	// AuthURL and TokenURL are the endpoints of a server that publishes no
	// metadata. TokenURL alone suffices without a person.
	AuthURL, TokenURL string
	// RedirectURL is where a person's browser comes back to, in place of the
	// broker's own.
	RedirectURL string
	// Extra are further parameters of the authorization request or, without a
	// person, of the token request. An empty value leaves out a parameter that
	// is sent otherwise. What protects an exchange, or says who asks, is no
	// further parameter: of those only an empty "resource" is permitted.
	Extra map[string]string
	// Assertion is what JWTBearer trades for a token.
	Assertion Secret
	// Identity is where IdentityAssertion begins.
	Identity *IdentityProvider
	// AllowPrivate permits authorization servers in private networks, and a
	// service there that is reached without TLS. On this machine both are
	// permitted when the service is on it.
	AllowPrivate bool
}

func (c *Config) resolved() (*Config, error) {
	out := *c
	if out.Binding == "" {
		out.Binding = Global
	}
	if out.Grant == "" {
		out.Grant = AuthorizationCode
	}
	return &out, out.check()
}

// check returns what is wrong, in the words of a configuration file.
func (c *Config) check() error {
	u, err := url.Parse(c.Resource)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("oauth needs the url of an HTTP server")
	case u.Scheme == "http" && netguard.HostKind(u.Hostname()) != "loopback" && !c.AllowPrivate:
		return errors.New("the server's url is not HTTPS, so that its tokens could be read on the way; allow_private permits that in a private network")
	case !slices.Contains([]Binding{Global, PerTenant, PerUser, PerSession}, c.Binding):
		return fmt.Errorf("binding_scope %q: expected global, tenant, user or session", c.Binding)
	case c.Client.Secret != "" && c.Client.ID == "":
		return errors.New("a client secret needs a client id")
	case c.Client.Key != nil && c.Client.ID == "":
		return errors.New("a private key needs a client id")
	case c.AuthURL != "" && c.TokenURL == "":
		return errors.New("auth_url needs token_url")
	case c.sendsSecrets() && c.Issuer == "" && c.TokenURL == "":
		return fmt.Errorf("issuer is missing: it names the authorization server that the credentials are for; %q sends them to whichever the service names", AnyIssuer)
	}
	return errors.Join(c.checkAddresses(), c.checkExtra(), c.checkMethod(), c.checkGrant())
}

// A FieldError says which part of a configuration is wrong, in the words of a
// configuration file, such as "token_url".
type FieldError struct {
	Field, Problem string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// checkAddresses holds what is configured to the rule for what services name.
func (c *Config) checkAddresses() error {
	type field struct{ name, address string }
	fields := []field{{"auth_url", c.AuthURL}, {"token_url", c.TokenURL}}
	if c.Issuer != AnyIssuer {
		fields = append(fields, field{"issuer", c.Issuer})
	}
	if c.Identity != nil {
		fields = append(fields, field{"identity_provider.token_url", c.Identity.TokenURL})
	}
	plain := permitsPlain(policyFor(c))
	for _, f := range fields {
		if f.address == "" {
			continue
		}
		if err := checkAddress(f.address, plain); err != nil {
			return &FieldError{f.name, err.Error()}
		}
	}
	return nil
}

// checkExtra refuses parameters that would take the place of what protects an
// exchange, says who asks, or is configured elsewhere.
func (c *Config) checkExtra() error {
	for _, name := range slices.Sorted(maps.Keys(c.Extra)) {
		if isReserved(name) && !(name == "resource" && c.Extra[name] == "") {
			return &FieldError{"extra." + name, "the parameter is not for extra, as what is sent there protects the exchange or says who asks"}
		}
	}
	return nil
}

// isReserved reports whether a parameter is this package's alone. Servers that do
// not tell upper case from lower are thought of too.
func isReserved(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "state", "redirect_uri", "response_type", "grant_type", "refresh_token", "resource", "request", "request_uri":
		return true
	}
	for _, prefix := range []string{"code", "client_", "subject_token"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.Contains(name, "assertion")
}

func (c *Config) sendsSecrets() bool {
	return c.Client.Secret != "" || c.Client.Key != nil || c.Grant == JWTBearer || c.Grant == IdentityAssertion
}

func (c *Config) checkMethod() error {
	switch c.Client.Method {
	case "", methodNone:
		return nil
	case methodBasic, methodPost:
		if c.Client.Secret == "" {
			return fmt.Errorf("%s needs a client secret", c.Client.Method)
		}
	case methodKey:
		if c.Client.Key == nil {
			return fmt.Errorf("%s needs a private key", methodKey)
		}
	default:
		return fmt.Errorf("token_endpoint_auth_method %.40q: expected %s, %s, %s or %s", c.Client.Method, methodBasic, methodPost, methodKey, methodNone)
	}
	return nil
}

func (c *Config) checkGrant() error {
	switch c.Grant {
	case AuthorizationCode:
		if c.TokenURL != "" && c.AuthURL == "" {
			return errors.New("token_url needs auth_url where a person agrees")
		}
		return nil
	case ClientCredentials:
		if c.Client.ID == "" || c.Client.Secret == "" && c.Client.Key == nil {
			return errors.New("grant client_credentials needs a client id, and a client secret or a private key")
		}
	case JWTBearer:
		if c.Assertion == nil {
			return errors.New("grant jwt_bearer needs an assertion")
		}
	case IdentityAssertion:
		if c.Identity == nil || c.Identity.TokenURL == "" || c.Identity.Subject == nil || c.Client.ID == "" {
			return errors.New("grant identity_assertion needs a client id, and an identity provider with its token_url and an identity token")
		}
	default:
		return fmt.Errorf("grant %.40q: expected authorization_code, client_credentials, jwt_bearer or identity_assertion", c.Grant)
	}
	if c.Binding != Global {
		return fmt.Errorf("grant %s obtains one token for everybody: binding_scope must be global", c.Grant)
	}
	return nil
}
