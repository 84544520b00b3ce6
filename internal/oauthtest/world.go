// Package oauthtest holds a service behind OAuth and the authorization server
// that it trusts, for tests of those who use it. It speaks HTTP on this machine
// and checks what it is sent.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// World is an authorization server, a service that trusts it, and what they saw.
// Tests change its settings before the first request, or between two.
type World struct {
	// Service is the protected one, at the path /mcp, and Server issues tokens.
	Service, Server *httptest.Server
	// Handler answers requests that carry a good token. Without one the service
	// says "welcome".
	Handler http.Handler

	Resource   string   // as the service publishes it; its address by default
	Demands    []string // scopes that the service wants
	Listed     []string // scopes_supported of the service
	Supported  []string // scopes_supported of the server
	Methods    []string // token_endpoint_auth_methods_supported
	NoPKCE     bool
	Issuer     string // of the metadata, in place of the server's address
	SendsIss   bool
	Iss        func(issuer string) string // of responses; nil sends none
	Denies     bool                       // the person says no
	Lifetime   int                        // of tokens, in seconds; 0 says nothing
	Refreshing func(w http.ResponseWriter) bool
	Answers    func(form url.Values, w http.ResponseWriter) bool // before the token endpoint does

	// Proofs says that tokens are bound to keys (RFC 9449), and ProofNonce, if not
	// empty, what proofs must have. Faults are proofs that were wrong otherwise.
	Proofs          bool
	ProofAlgorithms []string
	ProofNonce      string
	Faults          []string

	proofs map[string]bool   // ids of those that were used
	bound  map[string]string // keys of access tokens

	mu         sync.Mutex
	challenges map[string]url.Values // authorization requests by code
	tokens     map[string][]string   // scopes of access tokens
	refreshes  map[string][]string   // scopes of refresh tokens, each good once

	// What was seen, in order: requests to the token endpoint and their headers,
	// clients that were registered, authorization requests, and what the service
	// took. They are to be read when nothing is under way.
	Requests []url.Values
	Headers  []http.Header
	Clients  []map[string]any
	Asked    []url.Values
	Bodies   []string
}

// New returns a world that ends with the test.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{Methods: []string{"none", "client_secret_basic"}, challenges: map[string]url.Values{},
		tokens: map[string][]string{}, refreshes: map[string][]string{},
		proofs: map[string]bool{}, bound: map[string]string{}, ProofAlgorithms: []string{"ES256"}}
	w.Server = httptest.NewServer(w.serverMux())
	w.Service = httptest.NewServer(w.serviceMux())
	t.Cleanup(w.Server.Close)
	t.Cleanup(w.Service.Close)
	w.Resource = w.Service.URL + "/mcp"
	return w
}

// WriteJSON answers with a document.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (w *World) serviceMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", w.serve)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(out http.ResponseWriter, _ *http.Request) {
		WriteJSON(out, 200, map[string]any{"resource": w.Resource, "authorization_servers": []string{w.Server.URL}, "scopes_supported": w.Listed})
	})
	return mux
}

// serve is the service.
func (w *World) serve(out http.ResponseWriter, r *http.Request) {
	if w.admits(out, r) && w.Handler != nil {
		w.Handler.ServeHTTP(out, r)
	}
}

// admits looks at the token of a request, and answers where it does not do.
func (w *World) admits(out http.ResponseWriter, r *http.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Proofs && !w.admitsProof(out, r) {
		return false
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	scopes, ok := w.tokens[token]
	missing := slices.ContainsFunc(w.Demands, func(s string) bool { return !slices.Contains(scopes, s) })
	switch {
	case !ok:
		w.challenge(out, 401, "")
	case missing:
		w.challenge(out, 403, `, error="insufficient_scope"`)
	case w.Handler != nil:
		return true
	default:
		body, _ := io.ReadAll(r.Body)
		w.Bodies = append(w.Bodies, string(body))
		fmt.Fprint(out, "welcome")
	}
	return false
}

func (w *World) challenge(out http.ResponseWriter, status int, more string) {
	scope := ""
	if len(w.Demands) > 0 {
		scope = fmt.Sprintf(`, scope="%s"`, strings.Join(w.Demands, " "))
	}
	out.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"%s%s`, w.Service.URL, scope, more))
	out.WriteHeader(status)
}

func (w *World) serverMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(out http.ResponseWriter, _ *http.Request) { WriteJSON(out, 200, w.metadata()) })
	mux.HandleFunc("POST /register", w.register)
	mux.HandleFunc("GET /authorize", w.authorize)
	mux.HandleFunc("POST /token", w.token)
	return mux
}

func (w *World) metadata() map[string]any {
	at := w.Server.URL
	m := map[string]any{"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token",
		"registration_endpoint": at + "/register", "token_endpoint_auth_methods_supported": w.Methods, "scopes_supported": w.Supported,
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": w.SendsIss}
	if w.Proofs {
		m["dpop_signing_alg_values_supported"] = w.ProofAlgorithms
	}
	if w.NoPKCE {
		delete(m, "code_challenge_methods_supported")
	}
	if w.Issuer != "" {
		m["issuer"] = w.Issuer
	}
	return m
}

func (w *World) register(out http.ResponseWriter, r *http.Request) {
	var client map[string]any
	_ = json.NewDecoder(r.Body).Decode(&client)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Clients = append(w.Clients, client)
	client["client_id"] = fmt.Sprintf("client-%d", len(w.Clients))
	WriteJSON(out, 201, client)
}

// authorize is a person who agrees at once, or not.
func (w *World) authorize(out http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back := url.Values{"state": {q.Get("state")}}
	w.mu.Lock()
	w.Asked = append(w.Asked, q)
	if w.Denies {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		w.challenges[code] = q
		back.Set("code", code)
	}
	w.mu.Unlock()
	if w.Iss != nil {
		back.Set("iss", w.Iss(w.Server.URL))
	}
	http.Redirect(out, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (w *World) token(out http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	form := r.PostForm
	w.mu.Lock()
	w.Requests, w.Headers = append(w.Requests, form), append(w.Headers, r.Header)
	w.mu.Unlock()
	if w.Answers != nil && w.Answers(form, out) {
		return
	}
	if w.Refreshing != nil && form.Get("grant_type") == "refresh_token" && w.Refreshing(out) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := ""
	if w.Proofs {
		var ok bool
		if key, ok = w.provesToken(out, r); !ok {
			return
		}
	}
	scopes, ok := w.granted(form)
	if !ok {
		WriteJSON(out, 400, map[string]string{"error": "invalid_grant"})
		return
	}
	token, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	w.tokens[token] = scopes
	answer := map[string]any{"access_token": token, "token_type": "Bearer"}
	if w.Proofs {
		w.bound[token], answer["token_type"] = key, "DPoP"
	}
	if form.Get("grant_type") == "authorization_code" || form.Get("grant_type") == "refresh_token" {
		w.refreshes[refresh] = scopes
		answer["refresh_token"] = refresh
	}
	if w.Lifetime != 0 {
		answer["expires_in"] = w.Lifetime
	}
	WriteJSON(out, 200, answer)
}

// granted checks what a grant brings, and returns the scopes that it is worth.
func (w *World) granted(form url.Values) ([]string, bool) {
	switch form.Get("grant_type") {
	case "authorization_code":
		q, ok := w.challenges[form.Get("code")]
		delete(w.challenges, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		ok = ok && q.Get("code_challenge_method") == "S256" && q.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) &&
			q.Get("redirect_uri") == form.Get("redirect_uri") && q.Get("resource") == form.Get("resource")
		return strings.Fields(q.Get("scope")), ok
	case "refresh_token":
		scopes, ok := w.refreshes[form.Get("refresh_token")]
		delete(w.refreshes, form.Get("refresh_token"))
		return scopes, ok
	}
	return strings.Fields(form.Get("scope")), true
}

// Expire makes every access token worthless, as a service that no longer takes it.
func (w *World) Expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.tokens)
}

// Count returns how many token requests were of a grant.
func (w *World) Count(grant string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, form := range w.Requests {
		if form.Get("grant_type") == grant {
			n++
		}
	}
	return n
}

// Demand changes the scopes that the service wants.
func (w *World) Demand(scopes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Demands = scopes
}

// Issue makes a token good.
func (w *World) Issue(token string, scopes ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[token] = scopes
}
