package auth

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

// A world is an authorization server, a service that trusts it, and what they
// saw. Tests change its fields before the first request.
type world struct {
	service, server *httptest.Server

	resource   string   // as the service publishes it; its address by default
	demands    []string // scopes that the service wants
	listed     []string // scopes_supported of the service
	supported  []string // scopes_supported of the server
	methods    []string // token_endpoint_auth_methods_supported
	noPKCE     bool
	issuer     string // of the metadata, in place of the server's address
	sendsIss   bool
	iss        func(issuer string) string // of responses; nil sends none
	denies     bool                       // the person says no
	lifetime   int                        // of tokens, in seconds; 0 says nothing
	refreshing func(w http.ResponseWriter) bool
	answers    func(form url.Values, w http.ResponseWriter) bool // before the token endpoint does

	mu         sync.Mutex
	challenges map[string]url.Values // authorization requests by code
	tokens     map[string][]string   // scopes of access tokens
	refreshes  map[string][]string   // scopes of refresh tokens, each good once
	requests   []url.Values          // to the token endpoint
	headers    []http.Header         // of them
	clients    []map[string]any      // that were registered
	asked      []url.Values          // authorization requests
	seen       []*http.Request       // by the service, with a token
	bodies     []string              // that the service took
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{methods: []string{"none", "client_secret_basic"}, challenges: map[string]url.Values{},
		tokens: map[string][]string{}, refreshes: map[string][]string{}}
	w.server = httptest.NewServer(w.serverMux())
	w.service = httptest.NewServer(w.serviceMux())
	t.Cleanup(w.server.Close)
	t.Cleanup(w.service.Close)
	w.resource = w.service.URL + "/mcp"
	return w
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (w *world) serviceMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", w.serve)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(out http.ResponseWriter, _ *http.Request) {
		writeJSON(out, 200, map[string]any{"resource": w.resource, "authorization_servers": []string{w.server.URL}, "scopes_supported": w.listed})
	})
	return mux
}

// serve is the service.
func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token != "" {
		w.seen = append(w.seen, r)
	}
	scopes, ok := w.tokens[token]
	missing := slices.ContainsFunc(w.demands, func(s string) bool { return !slices.Contains(scopes, s) })
	switch {
	case !ok:
		w.challenge(out, 401, "")
	case missing:
		w.challenge(out, 403, `, error="insufficient_scope"`)
	default:
		w.bodies = append(w.bodies, string(body))
		fmt.Fprint(out, "welcome")
	}
}

func (w *world) challenge(out http.ResponseWriter, status int, more string) {
	scope := ""
	if len(w.demands) > 0 {
		scope = fmt.Sprintf(`, scope="%s"`, strings.Join(w.demands, " "))
	}
	out.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"%s%s`, w.service.URL, scope, more))
	out.WriteHeader(status)
}

func (w *world) serverMux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(out http.ResponseWriter, _ *http.Request) { writeJSON(out, 200, w.metadata()) })
	mux.HandleFunc("POST /register", w.register)
	mux.HandleFunc("GET /authorize", w.authorize)
	mux.HandleFunc("POST /token", w.token)
	return mux
}

func (w *world) metadata() map[string]any {
	at := w.server.URL
	m := map[string]any{"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token",
		"registration_endpoint": at + "/register", "token_endpoint_auth_methods_supported": w.methods, "scopes_supported": w.supported,
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": w.sendsIss}
	if w.noPKCE {
		delete(m, "code_challenge_methods_supported")
	}
	if w.issuer != "" {
		m["issuer"] = w.issuer
	}
	return m
}

func (w *world) register(out http.ResponseWriter, r *http.Request) {
	var client map[string]any
	_ = json.NewDecoder(r.Body).Decode(&client)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = append(w.clients, client)
	client["client_id"] = fmt.Sprintf("client-%d", len(w.clients))
	writeJSON(out, 201, client)
}

// authorize is a person who agrees at once, or not.
func (w *world) authorize(out http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back := url.Values{"state": {q.Get("state")}}
	w.mu.Lock()
	w.asked = append(w.asked, q)
	if w.denies {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		w.challenges[code] = q
		back.Set("code", code)
	}
	w.mu.Unlock()
	if w.iss != nil {
		back.Set("iss", w.iss(w.server.URL))
	}
	http.Redirect(out, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (w *world) token(out http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	form := r.PostForm
	w.mu.Lock()
	w.requests, w.headers = append(w.requests, form), append(w.headers, r.Header)
	w.mu.Unlock()
	if w.answers != nil && w.answers(form, out) {
		return
	}
	if w.refreshing != nil && form.Get("grant_type") == "refresh_token" && w.refreshing(out) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	scopes, ok := w.granted(form)
	if !ok {
		writeJSON(out, 400, map[string]string{"error": "invalid_grant"})
		return
	}
	token, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	w.tokens[token] = scopes
	answer := map[string]any{"access_token": token, "token_type": "Bearer"}
	if form.Get("grant_type") == "authorization_code" || form.Get("grant_type") == "refresh_token" {
		w.refreshes[refresh] = scopes
		answer["refresh_token"] = refresh
	}
	if w.lifetime != 0 {
		answer["expires_in"] = w.lifetime
	}
	writeJSON(out, 200, answer)
}

// granted checks what a grant brings, and returns the scopes that it is worth.
func (w *world) granted(form url.Values) ([]string, bool) {
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

// expire makes every access token worthless, as a service that no longer takes it.
func (w *world) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.tokens)
}

// count returns how many token requests were of a grant.
func (w *world) count(grant string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, form := range w.requests {
		if form.Get("grant_type") == grant {
			n++
		}
	}
	return n
}
