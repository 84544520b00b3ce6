package auth

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolcrib/toolcrib/internal/netguard"
)

// A challenge is what a service says it misses.
type challenge struct {
	metadata     string   // where the service's metadata are, or empty
	scopes       []string // that it wants, or nil
	insufficient bool     // the token is good and its scopes do not suffice
	proof        bool     // the token is to be sent with a proof
	nonce        bool     // the proof lacks the nonce that the answer brought
}

// challengeOf reads the answer to a request. It reports false for one that no
// token would change.
func challengeOf(resp *http.Response) (challenge, bool) {
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return challenge{}, false
	}
	var c challenge
	list, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		list = nil // what cannot be read says nothing
	}
	bearer := slices.ContainsFunc(list, func(said oauthex.Challenge) bool { return said.Scheme == "bearer" })
	for _, said := range list {
		if said.Scheme != "bearer" && (bearer || said.Scheme != "dpop") {
			continue
		}
		c.metadata = said.Params["resource_metadata"]
		c.scopes = strings.Fields(said.Params["scope"])
		c.insufficient = said.Params["error"] == "insufficient_scope"
		c.proof, c.nonce = !bearer, said.Params["error"] == wantsNonce
	}
	return c, resp.StatusCode == http.StatusUnauthorized || c.insufficient
}

// A discovery is what was found out about who gives tokens for a service.
type discovery struct {
	resource string // the service's identifier, as it was published
	scopes   []string
	server   oauthex.AuthServerMeta
	proof    bool // tokens are bound to a key
}

// serverMetadata is what an authorization server publishes.
type serverMetadata struct {
	oauthex.AuthServerMeta
	ProofAlgorithms []string `json:"dpop_signing_alg_values_supported"`
}

// isFrom reports whether a token is from the server that was found.
func (d *discovery) isFrom(t *Token) bool {
	return t.Server.Issuer == d.server.Issuer || sameIssuer(t.Server.Issuer, d.server.Issuer)
}

// discover finds out who gives tokens for the service.
func (u *Upstream) discover(ctx context.Context, c challenge) (*discovery, error) {
	found, err := u.resourceMetadata(ctx, c.metadata)
	if err != nil {
		return nil, err
	}
	d := &discovery{resource: u.cfg.Resource, proof: c.proof || found != nil && found.DPOPBoundAccessTokensRequired}
	var issuers []string
	if found != nil {
		d.resource, d.scopes, issuers = found.Resource, found.ScopesSupported, found.AuthorizationServers
	}
	if u.cfg.TokenURL != "" {
		d.server = oauthex.AuthServerMeta{Issuer: u.cfg.Issuer, AuthorizationEndpoint: u.cfg.AuthURL, TokenEndpoint: u.cfg.TokenURL}
		if d.server.Issuer == AnyIssuer {
			d.server.Issuer = ""
		}
		return d, u.checkEndpoints(&d.server)
	}
	if found != nil && len(issuers) == 0 {
		return nil, refuse("the metadata of the service name no authorization server; set auth_url and token_url")
	}
	return d, u.findServer(ctx, d, issuers)
}

// findServer chooses the authorization server and reads its metadata. A service
// without metadata is its own server, as in revision 2025-03-26 of MCP.
func (u *Upstream) findServer(ctx context.Context, d *discovery, issuers []string) error {
	legacy := len(issuers) == 0
	if legacy {
		issuers = []string{origin(u.cfg.Resource)}
	}
	issuer := issuers[0]
	if want := u.cfg.Issuer; want != "" && want != AnyIssuer {
		i := slices.IndexFunc(issuers, func(have string) bool { return sameIssuer(have, want) })
		if i < 0 {
			return refuse("the service names the authorization server %s; the client is registered with %s", bounded(issuers[0]), want)
		}
		issuer = issuers[i]
	}
	meta, err := u.serverMetadata(ctx, issuer)
	switch {
	case err != nil:
		return err
	case meta != nil && d.proof && len(meta.ProofAlgorithms) > 0 && !slices.Contains(meta.ProofAlgorithms, proofAlgorithm):
		return refuse("the authorization server %s takes no proofs signed with %s", bounded(issuer), proofAlgorithm)
	case meta != nil:
		d.server = meta.AuthServerMeta
	case legacy:
		d.server = oauthex.AuthServerMeta{Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize",
			TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register", CodeChallengeMethodsSupported: []string{"S256"}}
	default:
		return refuse("the authorization server %s publishes no metadata; set auth_url and token_url", bounded(issuer))
	}
	return u.checkServer(&d.server)
}

// resourceMetadata returns what the service publishes about itself (RFC 9728),
// or nil.
func (u *Upstream) resourceMetadata(ctx context.Context, named string) (*oauthex.ProtectedResourceMetadata, error) {
	var meta oauthex.ProtectedResourceMetadata
	found, err := u.net.firstJSON(ctx, resourceMetadataURLs(named, u.cfg.Resource), &meta)
	switch {
	case err != nil || !found:
		return nil, err
	case !covers(meta.Resource, u.cfg.Resource):
		return nil, refuse("the metadata of the service are those of another one, %s", bounded(meta.Resource))
	}
	return &meta, nil
}

// resourceMetadataURLs lists where the metadata of a service can be: where it
// says, at its path, at its root.
func resourceMetadataURLs(named, resource string) []string {
	const wellKnown = "/.well-known/oauth-protected-resource"
	var out []string
	if named != "" {
		out = append(out, named)
	}
	u, err := url.Parse(resource)
	if err != nil {
		return out
	}
	base := u.Scheme + "://" + u.Host
	if path := strings.TrimRight(u.EscapedPath(), "/"); path != "" {
		out = append(out, base+wellKnown+path)
	}
	return append(out, base+wellKnown)
}

// covers reports whether a published identifier is that of the service at
// address: the same origin, and the same path or one above it. A token for a
// service elsewhere would be good there.
func covers(published, address string) bool {
	p, err := url.Parse(published)
	if err != nil || p.Host == "" || p.Fragment != "" || p.User != nil {
		return false
	}
	a, err := url.Parse(address)
	if err != nil || netguard.Origin(p) != netguard.Origin(a) {
		return false
	}
	above := strings.TrimRight(p.EscapedPath(), "/")
	return above == strings.TrimRight(a.EscapedPath(), "/") || strings.HasPrefix(a.EscapedPath(), above+"/")
}

// serverMetadata returns what an authorization server publishes (RFC 8414 or
// OpenID Connect Discovery), or nil.
func (u *Upstream) serverMetadata(ctx context.Context, issuer string) (*serverMetadata, error) {
	var meta serverMetadata
	found, err := u.net.firstJSON(ctx, serverMetadataURLs(issuer), &meta)
	switch {
	case err != nil || !found:
		return nil, err
	case !sameIssuer(meta.Issuer, issuer):
		return nil, refuse("the metadata of the authorization server %s are those of another one, %s", bounded(issuer), bounded(meta.Issuer))
	}
	return &meta, nil
}

// serverMetadataURLs lists where the metadata of an issuer can be, in the order
// that MCP prescribes.
func serverMetadataURLs(issuer string) []string {
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" {
		return nil
	}
	base, path := u.Scheme+"://"+u.Host, strings.TrimRight(u.EscapedPath(), "/")
	if path == "" {
		return []string{base + oauth, base + openid}
	}
	return []string{base + oauth + path, base + openid + path, base + path + openid}
}

// sameIssuer ignores a slash at the end, which many metadata have on one side.
func sameIssuer(a, b string) bool {
	return a != "" && strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// checkServer refuses a server that the grant cannot be used with in safety.
func (u *Upstream) checkServer(s *oauthex.AuthServerMeta) error {
	if u.cfg.Grant == AuthorizationCode && !slices.Contains(s.CodeChallengeMethodsSupported, "S256") {
		return refuse("the authorization server %s does not protect its codes (PKCE with S256)", bounded(s.Issuer))
	}
	return u.checkEndpoints(s)
}

// checkEndpoints refuses a server whose endpoints are no address of one.
func (u *Upstream) checkEndpoints(s *oauthex.AuthServerMeta) error {
	endpoints := []string{s.TokenEndpoint}
	if u.cfg.Grant == AuthorizationCode {
		endpoints = append(endpoints, s.AuthorizationEndpoint)
	}
	for _, e := range endpoints {
		if err := u.net.check(e); err != nil {
			return refuse("an endpoint of the authorization server %s: %v", bounded(s.Issuer), err)
		}
	}
	return nil
}
