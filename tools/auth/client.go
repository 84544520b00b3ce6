package auth

import (
	"context"
	"crypto"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/toolcrib/toolcrib/internal/netguard"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// assertionLife is how long the assertion of one request holds.
	assertionLife = 5 * time.Minute
)

// SigningKey signs the assertions by which a client authenticates. Printing or
// logging it shows nothing.
type SigningKey struct {
	key    crypto.PrivateKey
	method jwt.SigningMethod
	id     string
}

// ParseSigningKey reads a private key in PEM. algorithm is a JWS name such as
// ES256; empty is the usual one for the key. id, if not empty, tells the server
// which of the client's keys it is.
func ParseSigningKey(pemText, algorithm, id string) (*SigningKey, error) {
	if block, _ := pem.Decode([]byte(pemText)); block == nil {
		return nil, errors.New("the private key is not in PEM")
	}
	text := []byte(pemText)
	if key, err := jwt.ParseECPrivateKeyFromPEM(text); err == nil {
		return newSigningKey(key, algorithm, fmt.Sprintf("ES%d", map[int]int{256: 256, 384: 384, 521: 512}[key.Params().BitSize]), id)
	}
	if key, err := jwt.ParseRSAPrivateKeyFromPEM(text); err == nil {
		return newSigningKey(key, algorithm, "RS256", id)
	}
	if key, err := jwt.ParseEdPrivateKeyFromPEM(text); err == nil {
		return newSigningKey(key, algorithm, "EdDSA", id)
	}
	return nil, errors.New("the private key is none of RSA, ECDSA and Ed25519")
}

// newSigningKey tries the key out, as not every algorithm suits it.
func newSigningKey(key crypto.PrivateKey, algorithm, usual, id string) (*SigningKey, error) {
	if algorithm == "" {
		algorithm = usual
	}
	method := jwt.GetSigningMethod(algorithm)
	if method == nil || algorithm == "none" {
		return nil, fmt.Errorf("signing_algorithm %.20q is unknown", algorithm)
	}
	if _, err := method.Sign("x", key); err != nil {
		return nil, fmt.Errorf("signing_algorithm %s does not suit the private key", algorithm)
	}
	return &SigningKey{key: key, method: method, id: id}, nil
}

// String implements fmt.Stringer.
func (*SigningKey) String() string { return hidden }

// GoString implements fmt.GoStringer.
func (*SigningKey) GoString() string { return hidden }

// LogValue implements slog.LogValuer.
func (*SigningKey) LogValue() slog.Value { return slog.StringValue(hidden) }

// assertion says that the client is who it says, to one audience, once.
func (k *SigningKey) assertion(clientID, audience string) (string, error) {
	now := time.Now()
	token := jwt.NewWithClaims(k.method, jwt.RegisteredClaims{
		Issuer: clientID, Subject: clientID, Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(assertionLife)),
	})
	if k.id != "" {
		token.Header["kid"] = k.id
	}
	return token.SignedString(k.key)
}

// authenticate adds to the parameters of a token request what proves who the
// client is, and returns the secret that goes with them and how it is sent.
func (c *Client) authenticate(params url.Values, server Server) (secret string, style oauth2.AuthStyle, err error) {
	switch c.Method {
	case methodBasic:
		return c.Secret, oauth2.AuthStyleInHeader, nil
	case methodPost:
		return c.Secret, oauth2.AuthStyleInParams, nil
	case methodKey:
		if c.Key == nil {
			return "", 0, refuse("the private key of the client is not configured")
		}
		audience := server.Issuer
		if audience == "" {
			audience = server.TokenEndpoint
		}
		assertion, err := c.Key.assertion(c.ID, audience)
		if err != nil {
			return "", 0, refuse("the client's assertion cannot be signed")
		}
		params.Set("client_assertion_type", assertionType)
		params.Set("client_assertion", assertion)
	}
	return "", oauth2.AuthStyleInParams, nil
}

// settled returns the client with the way in which it authenticates at a server
// that supports some. Without a list a server takes a secret in the header.
func (c Client) settled(supported []string) Client {
	switch {
	case c.Method != "":
	case c.Key != nil:
		c.Method = methodKey
	case c.Secret == "" || slices.Equal(supported, []string{methodNone}):
		c.Method = methodNone
	case slices.Contains(supported, methodPost) && !slices.Contains(supported, methodBasic):
		c.Method = methodPost
	default:
		c.Method = methodBasic
	}
	return c
}

// clientFor returns as whom the server is asked: by its metadata document, as
// registered beforehand, or as registered now.
func (u *Upstream) clientFor(ctx context.Context, d *discovery, redirect string) (Client, error) {
	methods := d.server.TokenEndpointAuthMethodsSupported
	switch {
	case u.cfg.Client.ID != "":
		return u.cfg.Client.settled(methods), nil
	case u.cfg.ClientMetadataURL != "" && d.server.ClientIDMetadataDocumentSupported:
		return Client{ID: u.cfg.ClientMetadataURL, Method: methodNone}, nil
	case u.cfg.Grant != AuthorizationCode:
		return Client{Method: methodNone}, nil
	case d.server.RegistrationEndpoint == "":
		return Client{}, refuse("the authorization server %s registers no clients by itself; set client_id_env", bounded(d.server.Issuer))
	}
	return u.registered(ctx, d, redirect)
}

// A registration is a client that a server made for this program.
type registration struct {
	client  Client
	expires time.Time // zero is never
}

// registered returns the client that the server made, and lets it make one when
// there is none. Each server and each address to come back to has its own.
func (u *Upstream) registered(ctx context.Context, d *discovery, redirect string) (Client, error) {
	key := d.server.Issuer + " " + redirect
	u.mu.Lock()
	defer u.mu.Unlock() // one registration at a time
	if r, ok := u.registrations[key]; ok && (r.expires.IsZero() || time.Now().Before(r.expires)) {
		return r.client, nil
	}
	if err := u.net.check(d.server.RegistrationEndpoint); err != nil {
		return Client{}, refuse("the registration endpoint: %v", err)
	}
	answer, err := oauthex.RegisterClient(ctx, d.server.RegistrationEndpoint, registrationOf(d, redirect), u.net.post)
	if err != nil {
		return Client{}, registrationFailure(d.server.RegistrationEndpoint, err)
	}
	client := Client{ID: answer.ClientID, Secret: answer.ClientSecret}
	if client.Secret != "" {
		client.Method = answer.TokenEndpointAuthMethod
	}
	client = client.settled(d.server.TokenEndpointAuthMethodsSupported)
	u.registrations[key] = registration{client, answer.ClientSecretExpiresAt}
	return client, nil
}

// forget drops a registration that its server no longer knows.
func (u *Upstream) forget(client Client) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, r := range u.registrations {
		if r.client.ID == client.ID {
			delete(u.registrations, key)
		}
	}
}

func registrationFailure(endpoint string, err error) error {
	var answer *oauthex.ClientRegistrationError
	if errors.As(err, &answer) {
		return refuse("%s registers no client: %s", origin(endpoint), bounded(answer.ErrorCode+" "+answer.ErrorDescription))
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		return unreachable("the registration endpoint", endpoint, err)
	}
	return refuse("%s registers no client", origin(endpoint))
}

// registrationOf is what a server is told of this program.
func registrationOf(d *discovery, redirect string) *oauthex.ClientRegistrationMetadata {
	return &oauthex.ClientRegistrationMetadata{
		ClientName:              clientName,
		RedirectURIs:            []string{redirect},
		GrantTypes:              []string{"authorization_code", "refresh_token"},
		ResponseTypes:           []string{"code"},
		TokenEndpointAuthMethod: registrationMethod(d.server.TokenEndpointAuthMethodsSupported),
		ApplicationType:         applicationType(redirect),
	}
}

// clientName is how people are told of this program.
const clientName = "Toolcrib"

// registrationMethod asks for no secret where that is possible: PKCE protects
// the code, and what is not given cannot be lost.
func registrationMethod(supported []string) string {
	for _, method := range []string{methodNone, methodBasic, methodPost} {
		if slices.Contains(supported, method) {
			return method
		}
	}
	return methodBasic // what a server supports that does not say
}

// applicationType: a browser that comes back to this machine belongs to a native
// application.
func applicationType(redirect string) string {
	u, err := url.Parse(redirect)
	if err == nil && netguard.HostKind(u.Hostname()) == "loopback" {
		return "native"
	}
	return "web"
}
