package auth

import (
	"context"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	grantRefresh   = "refresh_token"
	grantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// ask sends one request to a token endpoint. params holds everything but what
// says who the client is; secrets are those of its values that must not be
// shown.
func (u *Upstream) ask(ctx context.Context, server Server, client Client, params url.Values, secrets ...string) (*oauth2.Token, error) {
	secret, style, err := client.authenticate(params, server)
	if err != nil {
		return nil, err
	}
	request := clientcredentials.Config{ClientID: client.ID, ClientSecret: secret, TokenURL: server.TokenEndpoint,
		AuthStyle: style, EndpointParams: params}
	if ctx, err = u.net.client(ctx, server.ProofKey); err != nil {
		return nil, err
	}
	token, err := request.Token(ctx)
	if err != nil {
		return nil, tokenFailure(server.TokenEndpoint, err, append(secrets, secret, params.Get("client_assertion"))...)
	}
	if !isVisible(token.AccessToken) {
		return nil, refuse("the token endpoint at %s gave a token that no header can hold", origin(server.TokenEndpoint))
	}
	switch kind := strings.ToLower(token.TokenType); {
	case kind == "", kind == "bearer", kind == "n_a", kind == "dpop" && len(server.ProofKey) > 0:
	default:
		return nil, refuse("the token endpoint at %s gave a token of type %s, which is not understood", origin(server.TokenEndpoint), bounded(token.TokenType))
	}
	return token, nil
}

// isVisible reports whether a token consists of visible ASCII, as RFC 6749 has it.
func isVisible(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// parameters are those of a token request for the service.
func (s Server) parameters(grant string, scopes []string) url.Values {
	v := url.Values{"grant_type": {grant}}
	if s.Resource != "" {
		v.Set("resource", s.Resource)
	}
	if len(scopes) > 0 {
		v.Set("scope", strings.Join(scopes, " "))
	}
	return v
}

// apply lays the operator's own parameters over v.
func (c *Config) apply(v url.Values) {
	for name, value := range c.Extra {
		if value == "" {
			v.Del(name)
		} else {
			v.Set(name, value)
		}
	}
}

// serverOf is what of a discovery stays with a token, and the token's key.
func serverOf(d *discovery) (Server, error) {
	s := Server{Issuer: d.server.Issuer, TokenEndpoint: d.server.TokenEndpoint, Resource: d.resource}
	if !d.proof {
		return s, nil
	}
	var err error
	if s.ProofKey, err = newProofKey(); err != nil {
		return Server{}, refuse("there is no key for the token: %v", err)
	}
	return s, nil
}

// machineToken obtains a token without a person.
func (u *Upstream) machineToken(ctx context.Context, server Server, client Client, scopes []string) (*Token, error) {
	var params url.Values
	var secrets []string
	switch u.cfg.Grant {
	case ClientCredentials:
		params = server.parameters(string(ClientCredentials), scopes)
	case JWTBearer:
		assertion, err := u.cfg.Assertion(ctx)
		if err != nil {
			return nil, refuse("the assertion is not available: %v", err)
		}
		params = server.parameters(grantJWTBearer, scopes)
		params.Set("assertion", assertion)
		secrets = append(secrets, assertion)
	case IdentityAssertion:
		assertion, err := u.identityAssertion(ctx, server, scopes)
		if err != nil {
			return nil, err
		}
		params = server.parameters(grantJWTBearer, scopes)
		params.Del("resource") // the assertion names it
		params.Set("assertion", assertion)
		secrets = append(secrets, assertion)
	}
	u.cfg.apply(params)
	answer, err := u.ask(ctx, server, client, params, secrets...)
	if err != nil {
		return nil, err
	}
	return newToken(answer, scopes, server, client), nil
}

// identityAssertion exchanges the identity token, at the provider that issued it,
// for an assertion to the service's authorization server.
func (u *Upstream) identityAssertion(ctx context.Context, server Server, scopes []string) (string, error) {
	idp := u.cfg.Identity
	subject, err := idp.Subject(ctx)
	if err != nil {
		return "", refuse("the identity token is not available: %v", err)
	}
	if err := u.net.check(idp.TokenURL); err != nil {
		return "", refuse("the identity provider: %v", err)
	}
	at := Server{TokenEndpoint: idp.TokenURL, Resource: server.Resource}
	params := at.parameters("urn:ietf:params:oauth:grant-type:token-exchange", scopes)
	params.Set("requested_token_type", oauthex.TokenTypeIDJAG)
	params.Set("audience", server.Issuer)
	params.Set("subject_token", subject)
	params.Set("subject_token_type", oauthex.TokenTypeIDToken)
	answer, err := u.ask(ctx, at, idp.Client.settled(nil), params, subject)
	if err != nil {
		return "", err
	}
	if kind, _ := answer.Extra("issued_token_type").(string); kind != oauthex.TokenTypeIDJAG {
		return "", refuse("the identity provider at %s gave something else than the assertion that was asked for", origin(idp.TokenURL))
	}
	return answer.AccessToken, nil
}

// refresh trades the refresh token of old for a new token. A server that gives
// no new refresh token leaves the old one in force.
func (u *Upstream) refresh(ctx context.Context, old *Token) (*Token, error) {
	client := u.clientOf(old)
	params := old.Server.parameters(grantRefresh, nil)
	params.Set("refresh_token", old.RefreshToken)
	answer, err := u.ask(ctx, old.Server, client, params, old.RefreshToken)
	if err != nil {
		if refusedWith(err, "invalid_client") {
			u.forget(client)
		}
		return nil, err
	}
	next := newToken(answer, old.Asked, old.Server, client)
	if _, told := answer.Extra("scope").(string); !told {
		next.Granted = old.Granted
	}
	return next, nil
}

// clientOf is the client that a token was given to, with its key, which no token
// holds.
func (u *Upstream) clientOf(t *Token) Client {
	client := t.Client
	if client.ID == u.cfg.Client.ID {
		client.Secret, client.Key = u.cfg.Client.Secret, u.cfg.Client.Key
	}
	return client
}

// exchange trades the code of an authorization for a token.
func (u *Upstream) exchange(ctx context.Context, a *attempt, code string) (*Token, error) {
	params := a.server.parameters("authorization_code", nil)
	params.Set("code", code)
	params.Set("redirect_uri", a.redirect)
	params.Set("code_verifier", a.verifier)
	if value, set := u.cfg.Extra["resource"]; set && value == "" {
		params.Del("resource")
	}
	answer, err := u.ask(ctx, a.server, a.client, params, code, a.verifier)
	if err != nil {
		if refusedWith(err, "invalid_client") {
			u.forget(a.client)
		}
		return nil, err
	}
	return newToken(answer, a.scopes, a.server, a.client), nil
}

// revokedBy reports whether the answer to a refresh says that the token is of no
// more use, so that a new authorization is needed.
func revokedBy(err error) bool {
	return refusedWith(err, "invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope")
}
