package gateway

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools/auth"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// ServerOAuth says that a server wants OAuth tokens, and whose they are.
type ServerOAuth struct {
	Provider     string `yaml:"provider" doc:"Name of one of tools.oauth_providers; without it, everything is found out from the server."`
	BindingScope string `yaml:"binding_scope" rule:"enum=global|tenant|user|session" doc:"Whom a token belongs to; global when absent."`
}

// OAuthProvider says how tokens for services are obtained.
type OAuthProvider struct {
	Name             string            `yaml:"name" rule:"required,name" doc:"Name that servers and entries refer to."`
	Driver           string            `yaml:"driver" rule:"enum=oauth2" doc:"The protocol."`
	Grant            string            `yaml:"grant" rule:"enum=authorization_code|client_credentials|jwt_bearer|identity_assertion" doc:"How tokens are obtained; a person agrees when absent."`
	Issuer           string            `yaml:"issuer" doc:"Authorization server that the credentials are for, or any."`
	ClientIDEnv      string            `yaml:"client_id_env" doc:"Environment variable that holds the client id."`
	ClientSecretEnv  string            `yaml:"client_secret_env" doc:"Environment variable that holds the client secret."`
	PrivateKey       string            `yaml:"private_key" rule:"secret" doc:"Reference to the client's private key in PEM: file:PATH or ${NAME}."`
	KeyID            string            `yaml:"key_id" doc:"Which of the client's keys it is."`
	SigningAlgorithm string            `yaml:"signing_algorithm" doc:"JWS algorithm of the private key, such as ES256."`
	AuthMethod       string            `yaml:"token_endpoint_auth_method" rule:"enum=client_secret_basic|client_secret_post|private_key_jwt|none" doc:"How the client authenticates; found out when absent."`
	MetadataURL      string            `yaml:"client_metadata_url" rule:"url" doc:"Address of the client's metadata document, which stands for its id."`
	Assertion        string            `yaml:"assertion" rule:"secret" doc:"Reference to the signed assertion of grant jwt_bearer."`
	IdentityProvider *IdentityProvider `yaml:"identity_provider" doc:"Where grant identity_assertion begins."`
	Scopes           []string          `yaml:"scopes" doc:"Scopes to ask for."`
	AuthURL          string            `yaml:"auth_url" rule:"url" doc:"Where a person agrees."`
	TokenURL         string            `yaml:"token_url" rule:"url" doc:"Where a code becomes a token."`
	RedirectURL      string            `yaml:"redirect_url" rule:"url" doc:"Where the person comes back to."`
	Extra            map[string]string `yaml:"extra" doc:"Further parameters of the request; an empty one leaves out what is sent otherwise."`
	AllowPrivate     bool              `yaml:"allow_private" doc:"Permits authorization servers in private networks."`
}

// IdentityProvider is where an identity token is exchanged for an assertion.
type IdentityProvider struct {
	TokenURL        string `yaml:"token_url" rule:"required,url" doc:"Token endpoint of the identity provider."`
	ClientIDEnv     string `yaml:"client_id_env" doc:"Environment variable that holds the client id."`
	ClientSecretEnv string `yaml:"client_secret_env" doc:"Environment variable that holds the client secret."`
	IdentityToken   string `yaml:"identity_token" rule:"required,secret" doc:"Reference to the identity token: file:PATH or ${NAME}."`
}

// oauthProvider returns the provider of a name; the empty name is one that leaves
// everything open.
func (t *Tools) oauthProvider(name string) *OAuthProvider {
	if name == "" {
		return &OAuthProvider{}
	}
	for i := range t.OAuthProviders {
		if t.OAuthProviders[i].Name == name {
			return &t.OAuthProviders[i]
		}
	}
	return nil
}

func (c *checker) oauth(t *Tools) {
	for i := range t.OAuthProviders {
		c.oauthProvider(&t.OAuthProviders[i], fmt.Sprintf("tools.oauth_providers[%d]", i))
	}
	for i := range t.MCPServers {
		if t.MCPServers[i].OAuth != nil {
			c.serverOAuth(t, &t.MCPServers[i], fmt.Sprintf("tools.mcp_servers[%d]", i))
		}
	}
}

func (c *checker) oauthProvider(p *OAuthProvider, at string) {
	secrets := map[string]string{"private_key": p.PrivateKey, "assertion": p.Assertion}
	if p.IdentityProvider != nil {
		secrets["identity_provider.identity_token"] = p.IdentityProvider.IdentityToken
	}
	for key, text := range secrets {
		if text != "" && !isReference(text) {
			c.fault(at+"."+key, "is not a reference to a secret", "${NAME} of an environment variable, or file:PATH")
		}
	}
	if p.Issuer != "" && p.Issuer != auth.AnyIssuer {
		c.url(p.Issuer, at+".issuer")
	}
	if u, err := url.Parse(p.RedirectURL); p.RedirectURL != "" && err == nil && !strings.HasSuffix(u.Path, auth.CallbackPath) {
		c.fault(at+".redirect_url", "leads to no page of this program", "an address whose path ends in "+auth.CallbackPath)
	}
}

func (c *checker) serverOAuth(t *Tools, s *MCPServer, at string) {
	if s.mode() == "stdio" {
		c.fault(at+".oauth", "does not belong to a stdio server", "env")
	}
	if t.oauthProvider(s.OAuth.Provider) == nil {
		c.fault(at+".oauth.provider", fmt.Sprintf("%q is not a provider", clip(s.OAuth.Provider)), "a name of tools.oauth_providers")
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			c.fault(join(at+".headers", name), "stands against oauth", "one of them")
		}
	}
	if allowed := s.sessions(); s.Session != "" && !slices.Contains(allowed, s.Session) {
		c.fault(at+".session", fmt.Sprintf("%s shares a connection between callers whose tokens differ", s.Session), oneOf(allowed))
	}
}

// sessions lists which connections suit the tokens, the usual one first: what a
// server gives to the holder of one token must not reach that of another.
func (s *MCPServer) sessions() []string {
	shared, user, session := string(mcptool.SessionShared), string(mcptool.SessionPerUser), string(mcptool.SessionPerSession)
	if s.OAuth == nil {
		return []string{shared, user, session}
	}
	switch auth.Binding(s.OAuth.BindingScope) {
	case auth.PerTenant, auth.PerUser:
		return []string{user, session}
	case auth.PerSession:
		return []string{session}
	}
	return []string{shared, user, session}
}

// session is the configured word, or what suits the tokens.
func (s *MCPServer) session() mcptool.Session {
	if s.Session == "" {
		return mcptool.Session(s.sessions()[0])
	}
	return mcptool.Session(s.Session)
}
