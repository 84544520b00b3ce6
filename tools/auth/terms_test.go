package auth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/oauthtest"
)

// A token that was obtained on other terms is not that of the service as it is
// configured now, and stays with whoever still works on the old ones.
func TestTokensOfOtherTerms(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	before, _ := g.client(t, w, Config{Scopes: []string{"read", "write"}})
	link, _ := needsPerson(t, before, w, ada)
	agree(t, link)
	welcome(t, before, w, ada)
	same, _ := g.client(t, w, Config{Scopes: []string{"write", "read"}})
	welcome(t, same, w, ada)
	for name, cfg := range map[string]Config{
		"scopes":   {Scopes: []string{"read"}},
		"client":   {Scopes: []string{"read", "write"}, Client: Client{ID: "me"}},
		"document": {Scopes: []string{"read", "write"}, ClientMetadataURL: "https://a.example/client.json"},
		"issuer":   {Scopes: []string{"read", "write"}, Issuer: w.Server.URL},
		"server":   {Scopes: []string{"read", "write"}, AuthURL: w.Server.URL + "/authorize", TokenURL: w.Server.URL + "/token"},
		"extra":    {Scopes: []string{"read", "write"}, Extra: map[string]string{"audience": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := g.client(t, w, cfg)
			needsPerson(t, c, w, ada)
		})
	}
	now, _ := g.client(t, w, machine(w))
	welcome(t, now, w, ada)
	if w.Count("client_credentials") != 1 {
		t.Error("another grant goes on with the token of a person")
	}
	welcome(t, before, w, ada)
	if len(w.Asked) != 1 {
		t.Errorf("the person was asked %d times", len(w.Asked))
	}
}

func TestSecretsAreNoTerms(t *testing.T) {
	a := Config{Client: Client{ID: "me", Secret: "old"}, Issuer: AnyIssuer}
	b := Config{Client: Client{ID: "me", Secret: "new"}, Issuer: AnyIssuer}
	if a.terms() != b.terms() {
		t.Error("a new secret makes other terms")
	}
}

// What was sent to the service lately is hidden, whoever obtained it: the token in
// use and the one before.
func TestHide(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, u := g.client(t, w, machine(w))
	said := func() string {
		key, err := u.keyFor(identity.With(t.Context(), ada))
		if err != nil {
			t.Fatal(err)
		}
		token, err := g.opts.Store.Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return token.AccessToken
	}
	welcome(t, c, w, ada)
	first := said()
	w.Expire()
	welcome(t, c, w, ada)
	text := "you sent Bearer " + first + " and then " + url.QueryEscape(said())
	if got, want := u.Hide(text), "you sent Bearer [hidden] and then [hidden]"; got != want {
		t.Errorf("Hide = %q", got)
	}
	_, after := g.client(t, w, machine(w))
	if got := after.Hide("plain " + first); got != "plain "+first {
		t.Errorf("what was never sent is hidden: %q", got)
	}
}

// The memory of what was sent is bounded, and keeps what is in use.
func TestWhatIsRememberedAsSent(t *testing.T) {
	var s sent
	for i := range 10 * maxSent {
		s.note("token-" + strings.Repeat("x", i))
		s.note("in-use")
	}
	if n := len(s.young) + len(s.old); n > 2*maxSent+2 {
		t.Errorf("%d tokens are remembered", n)
	}
	if got := s.mask().Clean("it is in-use now"); got != "it is [hidden] now" {
		t.Errorf("Clean = %q", got)
	}
}

func TestTokensThatNoHeaderHolds(t *testing.T) {
	for _, token := range []string{"a b-secret", "a\r\nX-Evil: b-secret", "b-secret\x00", "b-secret\x7f", "é-b-secret"} {
		w, g := oauthtest.New(t), newGate(t)
		w.Answers = func(_ url.Values, out http.ResponseWriter) bool {
			w.Issue(token)
			oauthtest.WriteJSON(out, 200, map[string]string{"access_token": token})
			return true
		}
		c, _ := g.client(t, w, machine(w))
		_, _, err := post(t, c, w.Service.URL+"/mcp", ada)
		if err == nil || !strings.Contains(err.Error(), "that no header can hold") || strings.Contains(err.Error(), "b-secret") {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// Parameters that the endpoint has of its own stand beside none of the request.
func TestParametersOfTheEndpoint(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	own := "?audience=x&state=evil&client_id=evil&redirect_uri=https://evil.example&code_challenge=evil&code_challenge_method=plain"
	c, _ := g.client(t, w, Config{Client: Client{ID: "me"}, AuthURL: w.Server.URL + "/authorize" + own, TokenURL: w.Server.URL + "/token"})
	link, _ := needsPerson(t, c, w, ada)
	agree(t, link)
	welcome(t, c, w, ada)
	q := w.Asked[0]
	for name, values := range q {
		if len(values) != 1 || strings.Contains(values[0], "evil") {
			t.Errorf("%s is %q", name, values)
		}
	}
	if q.Get("audience") != "x" || q.Get("client_id") != "me" {
		t.Errorf("the authorization request was %v", q)
	}
	if _, err := new(attempt).address("https://a.example/authorize#"); err == nil {
		t.Error("an endpoint with a fragment is taken")
	}
}

func TestParametersThatAreReserved(t *testing.T) {
	for _, name := range []string{"state", "State", "code", "code_challenge", "code_challenge_method", "code_verifier", "redirect_uri", "response_type",
		"client_id", "client_secret", "client_assertion", "grant_type", "refresh_token", "assertion", "subject_token", "subject_token_type", "request_uri"} {
		for _, value := range []string{"", "x"} {
			err := (&Config{Extra: map[string]string{name: value}}).checkExtra()
			if err == nil || !strings.HasPrefix(err.Error(), "extra."+name+": ") {
				t.Errorf("%s %q: %v", name, value, err)
			}
		}
	}
	if err := (&Config{Extra: map[string]string{"resource": "https://b.example"}}).checkExtra(); err == nil {
		t.Error("another resource is taken")
	}
	if err := (&Config{Extra: map[string]string{"resource": "", "audience": "x", "prompt": "consent", "scope": ""}}).checkExtra(); err != nil {
		t.Error(err)
	}
}

// Where each session has a token, the gateway's own requests need one too. Its
// operator is told, in whatever session, and nobody else.
func TestTheLinkOfTheGatewaysOwnRequests(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, u := g.client(t, w, Config{Binding: PerSession})
	link, _ := needsPerson(t, c, w, ada) // ada's session is that of the gateway itself
	later := ada
	later.SessionID = "s9"
	if got := u.AuthorizationURL(identity.With(t.Context(), later)); got != link || link == "" {
		t.Errorf("another session gets %q, want %q", got, link)
	}
	for _, who := range []identity.Identity{bob, eve} {
		if got := u.AuthorizationURL(identity.With(t.Context(), who)); got != "" {
			t.Errorf("%v gets %q", who, got)
		}
	}
	own, _ := needsPerson(t, c, w, later)
	if got := u.AuthorizationURL(identity.With(t.Context(), later)); got != own || own == link {
		t.Errorf("the session gets %q, want its own %q", got, own)
	}
}
