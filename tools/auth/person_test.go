package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/oauthtest"
	"github.com/toolcrib/toolcrib/tools"
)

// What goes over the wire when a person agrees is checked by the server of the
// test: PKCE, the address to come back to, and the resource.
func TestAPersonAgrees(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Listed, w.Supported, w.SendsIss, w.Iss = []string{"read"}, []string{"read", "offline_access"}, true, func(s string) string { return s }
	c, u := g.client(t, w, Config{})
	link, required := needsPerson(t, c, w, ada)
	var te *tools.Error
	if !errors.As(required, &te) || te.Code != tools.ErrAuthorizationRequired || te.Delivery != tools.NotDelivered {
		t.Errorf("the error is %+v", te)
	}
	if got := u.AuthorizationURL(identity.With(t.Context(), ada)); got != link {
		t.Errorf("AuthorizationURL = %q, the error says %q", got, link)
	}
	agree(t, link)
	welcome(t, c, w, ada)
	welcome(t, c, w, bob) // the token is everybody's
	if len(w.Asked) != 1 || len(w.Clients) != 1 || w.Count("authorization_code") != 1 {
		t.Fatalf("%d authorization requests, %d registrations, token requests %v", len(w.Asked), len(w.Clients), w.Requests)
	}
	if got := w.Asked[0]; got.Get("scope") != "read offline_access" || got.Get("resource") != w.Service.URL+"/mcp" || got.Get("state") == "" {
		t.Errorf("the authorization request was %v", got)
	}
	if diff := cmp.Diff([]any{"authorization_code", "refresh_token"}, w.Clients[0]["grant_types"]); diff != "" {
		t.Error(diff)
	}
	if w.Clients[0]["application_type"] != "native" || w.Clients[0]["token_endpoint_auth_method"] != "none" {
		t.Errorf("registered %v", w.Clients[0])
	}
	if !slices.Equal(g.done, []string{"service"}) {
		t.Errorf("told of %v", g.done)
	}
	if url := u.AuthorizationURL(identity.With(t.Context(), ada)); url != "" {
		t.Error("an authorization still waits")
	}
}

func TestAwait(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, _ := g.client(t, w, Config{})
	w.Denies = true
	link, required := needsPerson(t, c, w, ada)
	await := func() chan error {
		ended := make(chan error, 1)
		go func() { ended <- required.Await(t.Context()) }()
		return ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := required.Await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Await = %v", err)
	}
	ended := await()
	for { // until the waiter has seen it
		status, page := browse(t, link)
		if status != http.StatusBadGateway || !strings.Contains(page, "access_denied") {
			t.Fatalf("the browser came to %d %s", status, page)
		}
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "access_denied") {
				t.Errorf("Await = %v", err)
			}
		case <-time.After(10 * time.Millisecond):
			continue
		}
		break
	}
	w.Denies = false
	ended = await()
	agree(t, link)
	if err := <-ended; err != nil {
		t.Errorf("Await = %v", err)
	}
	if err := required.Await(t.Context()); err != nil {
		t.Errorf("Await once more = %v", err)
	}
}

func TestCloseGivesUp(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, u := g.client(t, w, Config{})
	link, required := needsPerson(t, c, w, ada)
	u.Close()
	if status, _ := browse(t, link); status != http.StatusNotFound {
		t.Errorf("the link leads to %d", status)
	}
	if len(g.pending)+len(g.byKey)+len(g.attempts) != 0 {
		t.Errorf("left: %v %v %v", g.pending, g.byKey, g.attempts)
	}
	if err := required.Await(t.Context()); err == nil {
		t.Error("who waits is told that somebody agreed")
	}
}

func TestOwners(t *testing.T) {
	for _, tc := range []struct {
		binding   Binding
		same      []identity.Identity // as ada's in this session
		different []identity.Identity
	}{
		{Global, []identity.Identity{bob, eve, {}}, nil},
		{PerTenant, []identity.Identity{bob, {}}, []identity.Identity{eve}},
		{PerUser, []identity.Identity{{TenantID: "acme", UserID: "ada", SessionID: "s9"}, {}}, []identity.Identity{bob, eve}},
		{PerSession, []identity.Identity{{}}, []identity.Identity{{TenantID: "acme", UserID: "ada", SessionID: "s9"}, bob, eve}},
	} {
		t.Run(string(tc.binding), func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			c, _ := g.client(t, w, Config{Binding: tc.binding})
			link, _ := needsPerson(t, c, w, ada)
			agree(t, link)
			for _, who := range append(tc.same, ada) {
				welcome(t, c, w, who)
			}
			for _, who := range tc.different {
				if other, _ := needsPerson(t, c, w, who); other == link {
					t.Errorf("%v is sent where ada was", who)
				}
			}
		})
	}
}

// Nobody may authorize in the name of another, nor see where that would be.
func TestOnlyTheOwnerAuthorizes(t *testing.T) {
	for binding, others := range map[Binding][]identity.Identity{
		Global: {bob, eve}, PerTenant: {bob, eve}, PerUser: {bob, eve}, PerSession: {bob, eve},
	} {
		t.Run(string(binding), func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			c, _ := g.client(t, w, Config{Binding: binding})
			link, required := needsPerson(t, c, w, ada)
			for _, who := range others {
				if url := required.AuthorizationURL(identity.With(t.Context(), who)); url != "" {
					t.Errorf("%v is told %s", who, url)
				}
				g.who = who
				if status, _ := browse(t, link); status != http.StatusNotFound {
					t.Errorf("%v comes to %d", who, status)
				}
			}
			if required.AuthorizationURL(t.Context()) != "" {
				t.Error("nobody is told a link")
			}
			if len(w.Asked) != 0 {
				t.Error("the authorization server was asked")
			}
		})
	}
}

// callback stops a browser on its way back and returns the address that it would
// have gone to.
func callback(t *testing.T, link string) (*http.Client, string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	var back string
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	browser.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if req.URL.Path != CallbackPath {
			return nil
		}
		back = req.URL.String()
		return http.ErrUseLastResponse
	}
	if visit(t, browser, link); back == "" {
		t.Fatal("the browser did not come back")
	}
	browser.CheckRedirect = nil
	return browser, back
}

func TestAttemptsAreBoundAndUsedOnce(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, _ := g.client(t, w, Config{Binding: PerUser})
	link, _ := needsPerson(t, c, w, ada)

	_, back := callback(t, link)
	if status, _ := browse(t, back); status != http.StatusForbidden {
		t.Errorf("another browser comes to %d", status)
	}

	browser, back := callback(t, link)
	g.who = bob
	if status, _ := visit(t, browser, back); status != http.StatusForbidden {
		t.Errorf("another user comes to %d", status)
	}
	g.who = ada
	if status, _ := visit(t, browser, back); status != http.StatusBadRequest {
		t.Errorf("the state is good again: %d", status)
	}

	browser, back = callback(t, link)
	for _, a := range g.attempts {
		a.expires = time.Now()
	}
	if status, _ := visit(t, browser, back); status != http.StatusBadRequest {
		t.Errorf("a state that expired leads to %d", status)
	}

	browser, back = callback(t, link)
	foreign, _ := url.Parse(back)
	q := foreign.Query()
	q.Set("state", "x"+q.Get("state"))
	foreign.RawQuery = q.Encode()
	if status, _ := visit(t, browser, foreign.String()); status != http.StatusBadRequest {
		t.Errorf("a state that nobody gave leads to %d", status)
	}
	if w.Count("authorization_code") != 0 {
		t.Fatal("a code was traded")
	}
	if status, _ := visit(t, browser, back); status != 200 {
		t.Errorf("the right browser comes to %d", status)
	}
	if status, _ := visit(t, browser, back); status != http.StatusBadRequest {
		t.Errorf("the same way twice leads to %d", status)
	}
	if w.Count("authorization_code") != 1 {
		t.Errorf("%d codes were traded", w.Count("authorization_code"))
	}
}

func TestIssuerOfTheResponse(t *testing.T) {
	same := func(s string) string { return s }
	for name, tc := range map[string]struct {
		advertised bool
		iss        func(string) string
		good       bool
	}{
		"advertised and sent":      {true, same, true},
		"advertised and missing":   {true, nil, false},
		"advertised and another":   {true, func(string) string { return "https://evil.example" }, false},
		"a slash more":             {true, func(s string) string { return s + "/" }, false},
		"other case":               {true, strings.ToUpper, false},
		"neither":                  {false, nil, true},
		"sent all the same":        {false, same, true},
		"another, not advertised":  {false, func(string) string { return "https://evil.example" }, false},
		"nothing where it is sent": {false, func(string) string { return "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			w.SendsIss, w.Iss = tc.advertised, tc.iss
			c, _ := g.client(t, w, Config{})
			link, _ := needsPerson(t, c, w, ada)
			status, page := browse(t, link)
			if good := status == 200; good != tc.good || good != (w.Count("authorization_code") == 1) {
				t.Errorf("the browser came to %d %s; codes traded: %d", status, page, w.Count("authorization_code"))
			}
		})
	}
}

// A server that publishes nothing is known from the configuration.
func TestEndpointsOfTheOperator(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Issuer = "https://elsewhere.example" // which is not looked at
	c, _ := g.client(t, w, Config{Client: Client{ID: "me", Secret: "s"}, AuthURL: w.Server.URL + "/authorize?audience=x", TokenURL: w.Server.URL + "/token",
		Scopes: []string{"read"}, Extra: map[string]string{"prompt": "consent"}})
	link, _ := needsPerson(t, c, w, ada)
	agree(t, link)
	welcome(t, c, w, ada)
	if q := w.Asked[0]; q.Get("audience") != "x" || q.Get("prompt") != "consent" || q.Get("scope") != "read" || q.Get("client_id") != "me" {
		t.Errorf("the authorization request was %v", q)
	}
	if len(w.Clients) != 0 {
		t.Error("a client was registered")
	}
	w.Expire()
	welcome(t, c, w, ada)
	if w.Count("refresh_token") != 1 {
		t.Error("the token was not refreshed")
	}
}

func TestClientMetadataDocument(t *testing.T) {
	g := newGate(t)
	status, page := browse(t, g.pages.URL+MetadataPath)
	for _, want := range []string{`"client_id":"` + g.pages.URL + MetadataPath + `"`, `"redirect_uris":["` + g.pages.URL + CallbackPath + `"]`} {
		if status != 200 || !strings.Contains(page, want) {
			t.Errorf("%d %s lacks %s", status, page, want)
		}
	}
}
