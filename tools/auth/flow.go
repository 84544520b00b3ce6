package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"maps"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// attemptLife is how long a person may take from leaving this program until
// coming back.
const attemptLife = 10 * time.Minute

// An attempt is one way of a person's browser to an authorization server and
// back.
type attempt struct {
	pending  *pending
	state    string
	browser  string // a secret that only the browser which began it knows
	verifier string
	redirect string
	scopes   []string
	server   Server
	client   Client
	sendsIss bool // the server says that it names itself in its response
	expires  time.Time
}

// begin prepares the way of a browser to the authorization server, and returns
// where that is.
func (b *Broker) begin(ctx context.Context, p *pending) (*attempt, string, error) {
	p.mu.Lock()
	d, scopes := p.found, p.scopes
	p.mu.Unlock()
	u := p.upstream
	redirect := u.redirectURL()
	client, err := u.clientFor(ctx, d, redirect)
	if err != nil {
		return nil, "", err
	}
	server, err := serverOf(d)
	if err != nil {
		return nil, "", err
	}
	a := &attempt{pending: p, state: rand.Text(), browser: rand.Text(), verifier: oauth2.GenerateVerifier(), redirect: redirect,
		scopes: scopes, server: server, client: client, expires: time.Now().Add(attemptLife),
		sendsIss: d.server.AuthorizationResponseIssParameterSupported}
	address, err := a.address(d.server.AuthorizationEndpoint)
	if err != nil {
		return nil, "", err
	}
	b.keep(a)
	return a, address, nil
}

// address is the authorization request. An endpoint may have parameters of its
// own; none stands beside one of the request.
func (a *attempt) address(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || strings.Contains(endpoint, "#") {
		return "", refuse("the authorization endpoint is not an address")
	}
	cfg := oauth2.Config{ClientID: a.client.ID, RedirectURL: a.redirect, Scopes: a.scopes}
	request, err := url.Parse(cfg.AuthCodeURL(a.state, oauth2.S256ChallengeOption(a.verifier), oauth2.SetAuthURLParam("resource", a.server.Resource)))
	if err != nil {
		return "", refuse("the authorization request cannot be written")
	}
	query := u.Query()
	maps.Copy(query, request.Query())
	a.pending.upstream.cfg.apply(query)
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// keep remembers an attempt until its browser comes back, and forgets those whose
// browser will not.
func (b *Broker) keep(a *attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var oldest *attempt
	for state, other := range b.attempts {
		if now.After(other.expires) {
			delete(b.attempts, state)
		} else if oldest == nil || other.expires.Before(oldest.expires) {
			oldest = other
		}
	}
	if len(b.attempts) >= maxAttempts {
		delete(b.attempts, oldest.state)
	}
	b.attempts[a.state] = a
}

// take returns the attempt of a state, once.
func (b *Broker) take(state string) *attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.attempts[state]
	delete(b.attempts, state)
	if a == nil || time.Now().After(a.expires) {
		return nil
	}
	return a
}

// isBrowser reports whether secret is what the browser was given that began the
// attempt.
func (a *attempt) isBrowser(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(a.browser)) == 1
}

// A response is what an authorization server sends a browser back with.
type response struct{ code, iss, failure, description string }

func responseOf(query url.Values) response {
	return response{code: query.Get("code"), iss: query.Get("iss"), failure: query.Get("error"), description: query.Get("error_description")}
}

// finish checks the response and trades its code for the token.
func (b *Broker) finish(ctx context.Context, a *attempt, r response) error {
	u, key := a.pending.upstream, a.pending.key
	if err := a.checkIssuer(r.iss); err != nil {
		return err
	}
	switch {
	case r.failure != "":
		return refuse("the authorization server answered %s", bounded(strings.TrimSpace(r.failure+" "+r.description)))
	case r.code == "":
		return refuse("the authorization server sent no code")
	}
	t, err := u.exchange(ctx, a, r.code)
	if err != nil {
		return err
	}
	return u.save(ctx, key, t)
}

// checkIssuer compares who answered with who was asked, character by character
// (RFC 9207), so that no server can pass off its code as that of another.
func (a *attempt) checkIssuer(iss string) error {
	switch {
	case iss == "" && a.sendsIss:
		return refuse("the response does not name the authorization server, which says that it would")
	case iss != "" && iss != a.server.Issuer && a.server.Issuer != "":
		return refuse("the response is from another authorization server than the one that was asked")
	}
	return nil
}
