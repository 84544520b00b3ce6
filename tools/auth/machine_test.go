package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/oauthtest"
)

// machine is a client with a secret.
func machine(w *oauthtest.World) Config {
	return Config{Grant: ClientCredentials, Client: Client{ID: "me", Secret: "se cret"}, Issuer: w.Server.URL}
}

func contextOf(t *testing.T, who identity.Identity) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(identity.With(t.Context(), who))
}

func fixed(s string) Secret { return func(context.Context) (string, error) { return s, nil } }

func keyInPEM(t *testing.T, key crypto.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestClientSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		method  string
		methods []string
		header  bool
	}{
		"nothing said":     {"", nil, true},
		"both supported":   {"", []string{"client_secret_post", "client_secret_basic"}, true},
		"body supported":   {"", []string{"client_secret_post"}, false},
		"header supported": {"", []string{"client_secret_basic"}, true},
		"body configured":  {methodPost, []string{"client_secret_basic"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			w.Methods, w.Listed = tc.methods, []string{"read"}
			cfg := machine(w)
			cfg.Client.Method, cfg.Extra = tc.method, map[string]string{"audience": "https://api.example", "resource": ""}
			c, _ := g.client(t, w, cfg)
			welcome(t, c, w, bob)
			form := w.Requests[0]
			user, password, ok := (&http.Request{Header: w.Headers[0]}).BasicAuth()
			if ok != tc.header || ok && (user != "me" || password != "se+cret") || !ok && form.Get("client_secret") != "se cret" {
				t.Errorf("basic %v %q %q, body %v", ok, user, password, form)
			}
			if form.Get("scope") != "read" || form.Get("audience") != "https://api.example" || form.Has("resource") {
				t.Errorf("the request was %v", form)
			}
		})
	}
}

func TestPrivateKey(t *testing.T) {
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rs, _ := rsa.GenerateKey(rand.Reader, 2048)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	for name, tc := range map[string]struct {
		key       crypto.Signer
		algorithm string
		want      string
	}{
		"ECDSA": {ec, "", "ES256"}, "RSA": {rs, "", "RS256"}, "PSS": {rs, "PS256", "PS256"}, "Ed25519": {ed, "", "EdDSA"},
	} {
		t.Run(name, func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			key, err := ParseSigningKey(keyInPEM(t, tc.key), tc.algorithm, "k1")
			if err != nil {
				t.Fatal(err)
			}
			c, _ := g.client(t, w, Config{Grant: ClientCredentials, Client: Client{ID: "me", Key: key}, Issuer: w.Server.URL})
			welcome(t, c, w, bob)
			form := w.Requests[0]
			if form.Get("client_assertion_type") != assertionType || form.Has("client_secret") || w.Headers[0].Get("Authorization") != "" {
				t.Errorf("the request was %v", form)
			}
			token, err := jwt.Parse(form.Get("client_assertion"), func(*jwt.Token) (any, error) { return tc.key.Public(), nil },
				jwt.WithAudience(w.Server.URL), jwt.WithIssuer("me"), jwt.WithSubject("me"), jwt.WithExpirationRequired(), jwt.WithValidMethods([]string{tc.want}))
			if err != nil || token.Header["kid"] != "k1" {
				t.Errorf("the assertion %v: %v", token, err)
			}
		})
	}
}

func TestParseSigningKeyRefuses(t *testing.T) {
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	text := keyInPEM(t, ec)
	for _, tc := range []struct{ text, algorithm, want string }{
		{"secret-key-material", "", "not in PEM"},
		{"-----BEGIN PRIVATE KEY-----\nc2VjcmV0LWtleS1tYXRlcmlhbA==\n-----END PRIVATE KEY-----\n", "", "none of RSA"},
		{text, "RS256", "does not suit"},
		{text, "none", "unknown"},
		{text, "XX", "unknown"},
	} {
		_, err := ParseSigningKey(tc.text, tc.algorithm, "")
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "material") {
			t.Errorf("%q: %v, want %q", tc.algorithm, err, tc.want)
		}
	}
}

func TestAssertionForAToken(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	assertions := []string{"jwt-1", "jwt-2"}
	cfg := Config{Grant: JWTBearer, Issuer: w.Server.URL, Scopes: []string{"ledger"}, Assertion: func(context.Context) (string, error) {
		next := assertions[0]
		assertions = assertions[1:]
		return next, nil
	}}
	c, u := g.client(t, w, cfg)
	welcome(t, c, w, bob)
	expired(t, g, u)
	welcome(t, c, w, bob)
	if len(w.Requests) != 2 || w.Requests[0].Get("assertion") != "jwt-1" || w.Requests[1].Get("assertion") != "jwt-2" {
		t.Fatalf("the requests were %v", w.Requests)
	}
	if f := w.Requests[0]; f.Get("grant_type") != grantJWTBearer || f.Get("scope") != "ledger" || f.Get("resource") == "" {
		t.Errorf("the request was %v", f)
	}
}

// A refusal is told, and neither repeated nor tried with another grant.
func TestAssertionThatIsRefused(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Answers = func(_ url.Values, out http.ResponseWriter) bool {
		oauthtest.WriteJSON(out, 400, map[string]string{"error": "invalid_grant", "error_description": "jwt-1 is expired"})
		return true
	}
	c, _ := g.client(t, w, Config{Grant: JWTBearer, Issuer: AnyIssuer, Assertion: fixed("jwt-1")})
	_, _, err := post(t, c, w.Service.URL+"/mcp", bob)
	if err == nil || !strings.Contains(err.Error(), "invalid_grant") || strings.Contains(err.Error(), "jwt-1") {
		t.Errorf("the request gave %v", err)
	}
	if len(w.Requests) != 1 {
		t.Errorf("%d token requests", len(w.Requests))
	}
}

func TestIdentityForAnAssertion(t *testing.T) {
	w, idp, g := oauthtest.New(t), oauthtest.New(t), newGate(t)
	idp.Answers = func(form url.Values, out http.ResponseWriter) bool {
		oauthtest.WriteJSON(out, 200, map[string]string{"access_token": "id-jag", "issued_token_type": oauthex.TokenTypeIDJAG, "token_type": "N_A"})
		return true
	}
	c, _ := g.client(t, w, Config{Grant: IdentityAssertion, Issuer: w.Server.URL, Client: Client{ID: "me", Secret: "s"},
		Identity: &IdentityProvider{TokenURL: idp.Server.URL + "/token", Client: Client{ID: "idp-client"}, Subject: fixed("id-token")}})
	welcome(t, c, w, bob)
	at := idp.Requests[0]
	if at.Get("subject_token") != "id-token" || at.Get("subject_token_type") != oauthex.TokenTypeIDToken || at.Get("audience") != w.Server.URL ||
		at.Get("resource") != w.Service.URL+"/mcp" || at.Get("requested_token_type") != oauthex.TokenTypeIDJAG || at.Get("client_id") != "idp-client" {
		t.Errorf("the provider was asked %v", at)
	}
	if f := w.Requests[0]; f.Get("assertion") != "id-jag" || f.Get("grant_type") != grantJWTBearer {
		t.Errorf("the server was asked %v", f)
	}
}
