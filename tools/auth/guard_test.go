package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/internal/oauthtest"
	"github.com/toolcrib/toolcrib/tools"
)

// The token is for one origin, whatever a server sends its client to.
func TestTheTokenStaysAtItsOrigin(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	var leaked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked = append(leaked, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	c, _ := g.client(t, w, machine(w))
	welcome(t, c, w, bob)
	if status, _, err := post(t, c, other.URL, bob); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	if status, _, err := post(t, c, moved.URL, bob); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if !slices.Equal(leaked, []string{"", ""}) {
		t.Errorf("the other server got %q", leaked)
	}
}

// What a request brings arrives whole when it is sent again.
func TestTheBodyIsSentAgain(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, _ := g.client(t, w, machine(w))
	welcome(t, c, w, bob)
	if !slices.Equal(w.Bodies, []string{"hello"}) {
		t.Errorf("the service got %q", w.Bodies)
	}
	w.Expire()
	req, _ := http.NewRequest(http.MethodPost, w.Service.URL+"/mcp", struct{ *strings.Reader }{strings.NewReader("once")})
	resp, err := c.Do(req)
	if err != nil || resp.StatusCode != 401 {
		t.Fatalf("a body that cannot be sent again: %v %v", resp, err)
	}
	resp.Body.Close()
}

func TestWhatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(w *oauthtest.World, c *Config)
		want string
	}{
		"metadata of another service": {func(w *oauthtest.World, _ *Config) { w.Resource = "https://evil.example/mcp" }, "those of another one, https://evil.example/mcp"},
		"metadata of a sibling":       {func(w *oauthtest.World, _ *Config) { w.Resource = w.Service.URL + "/mcp2" }, "those of another one"},
		"metadata of another server":  {func(w *oauthtest.World, _ *Config) { w.Issuer = "https://evil.example" }, "those of another one, https://evil.example"},
		"a server without PKCE":       {func(w *oauthtest.World, _ *Config) { w.NoPKCE = true }, "PKCE"},
		"credentials for another server": {func(_ *oauthtest.World, c *Config) {
			c.Client, c.Issuer = Client{ID: "me", Secret: "s"}, "https://login.example"
		}, "registered with https://login.example"},
	} {
		t.Run(name, func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			var cfg Config
			tc.set(w, &cfg)
			c, _ := g.client(t, w, cfg)
			_, _, err := post(t, c, w.Service.URL+"/mcp", ada)
			var te *tools.Error
			if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || !strings.Contains(te.Message, tc.want) {
				t.Errorf("the request gave %v, want %q", err, tc.want)
			}
			if len(w.Requests)+len(w.Clients)+len(w.Asked) > 0 {
				t.Error("the server was used")
			}
		})
	}
}

// A service may name a server inside of a network that it does not reach itself.
func TestServersThatAreNotReached(t *testing.T) {
	for address, want := range map[string]string{
		"http://login.example":          "not served over HTTPS",
		"http://169.254.169.254/latest": "not served over HTTPS",
		"https://169.254.169.254":       "cannot be reached",
		"https://10.0.0.1":              "cannot be reached",
		"https://user@login.example":    "not an address",
		"https://login.example/#x":      "not an address",
		"file:///etc/passwd":            "not an address",
	} {
		t.Run(address, func(t *testing.T) {
			n := newNetwork(netguard.Policy{Loopback: true})
			defer n.transport.CloseIdleConnections()
			_, err := n.getJSON(t.Context(), address, new(any))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	public := newNetwork(policyFor(&Config{Resource: "https://mcp.example/mcp"}))
	if _, err := public.getJSON(t.Context(), "http://127.0.0.1:1/", new(any)); err == nil || !strings.Contains(err.Error(), "HTTPS") {
		t.Errorf("a public service leads to this machine: %v", err)
	}
}

func TestWhereMetadataAre(t *testing.T) {
	for in, want := range map[string]string{
		"https://a.example/mcp":     "/.well-known/oauth-protected-resource/mcp /.well-known/oauth-protected-resource",
		"https://a.example/x/mcp/":  "/.well-known/oauth-protected-resource/x/mcp /.well-known/oauth-protected-resource",
		"https://a.example":         "/.well-known/oauth-protected-resource",
		"https://a.example/?q=1":    "/.well-known/oauth-protected-resource",
		"https://a.example/a%2Fb/c": "/.well-known/oauth-protected-resource/a%2Fb/c /.well-known/oauth-protected-resource",
	} {
		if got := strings.ReplaceAll(strings.Join(resourceMetadataURLs("", in), " "), "https://a.example", ""); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	for in, want := range map[string]string{
		"https://b.example":    "/.well-known/oauth-authorization-server /.well-known/openid-configuration",
		"https://b.example/":   "/.well-known/oauth-authorization-server /.well-known/openid-configuration",
		"https://b.example/t1": "/.well-known/oauth-authorization-server/t1 /.well-known/openid-configuration/t1 /t1/.well-known/openid-configuration",
	} {
		if got := strings.ReplaceAll(strings.Join(serverMetadataURLs(in), " "), "https://b.example", ""); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		published, address string
		want               bool
	}{
		{"https://a.example/mcp", "https://a.example/mcp", true},
		{"https://a.example/mcp/", "https://a.example/mcp", true},
		{"https://a.example", "https://a.example/mcp", true},
		{"https://a.example/", "https://a.example/mcp", true},
		{"https://A.example:443/mcp", "https://a.example/mcp", true},
		{"https://a.example/m", "https://a.example/mcp", false},
		{"https://a.example/mcp/x", "https://a.example/mcp", false},
		{"http://a.example/mcp", "https://a.example/mcp", false},
		{"https://a.example:444/mcp", "https://a.example/mcp", false},
		{"https://a.example.evil/mcp", "https://a.example/mcp", false},
		{"https://a.example/mcp#x", "https://a.example/mcp", false},
		{"", "https://a.example/mcp", false},
	} {
		if got := covers(tc.published, tc.address); got != tc.want {
			t.Errorf("covers(%q, %q) = %v", tc.published, tc.address, got)
		}
	}
}

// A server that says everything again that it was told.
func TestSecretsStayHidden(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Answers = func(form url.Values, out http.ResponseWriter) bool {
		oauthtest.WriteJSON(out, 400, map[string]string{"error": "invalid_request", "error_description": fmt.Sprint(form)})
		return true
	}
	var shown strings.Builder
	cfg := machine(w)
	cfg.Client = Client{ID: "me", Secret: "top-secret", Method: methodPost}
	c, _ := g.client(t, w, cfg)
	_, _, err := post(t, c, w.Service.URL+"/mcp", bob)
	fmt.Fprintf(&shown, "%v %+v %#v\n", err, err, err)
	var te *tools.Error
	if errors.As(err, &te) {
		fmt.Fprintf(&shown, "%s %+v\n", te.SafeMessage(), te.Err)
	}
	person, u := g.client(t, w, Config{Source: "person", Client: Client{ID: "you", Secret: "top-secret"}, Issuer: w.Server.URL})
	link, _ := needsPerson(t, person, w, ada)
	_, page := browse(t, link)
	shown.WriteString(page + g.log.String())
	token := Token{AccessToken: "top-secret", RefreshToken: "top-secret", Client: Client{ID: "me", Secret: "top-secret", Key: &SigningKey{key: "top-secret"}}}
	fmt.Fprintf(&shown, "%v %+v %#v %s\n", token, token, token, token)
	fmt.Fprintf(&shown, "%v %+v %#v %v %#v\n", token.Client, token.Client, token.Client, token.Client.Key, token.Client.Key)
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "token", token, "client", token.Client, "key", token.Client.Key, "pointer", &token)
	for _, form := range w.Requests {
		for _, name := range []string{"code", "code_verifier", "client_secret"} {
			if v := form.Get(name); v != "" && strings.Contains(shown.String(), v) {
				t.Errorf("%s is shown:\n%s", name, shown.String())
			}
		}
	}
	if strings.Contains(shown.String(), "top-secret") {
		t.Errorf("the secret is shown:\n%s", shown.String())
	}
	if len(w.Requests) != 2 || u == nil {
		t.Errorf("%d token requests", len(w.Requests))
	}
}

func TestConfigurationFaults(t *testing.T) {
	secret := Client{ID: "me", Secret: "s"}
	for want, cfg := range map[string]Config{
		"url of an HTTP server":             {Resource: "stdio"},
		"is not HTTPS":                      {Resource: "http://a.example/mcp"},
		"binding_scope":                     {Resource: "https://a", Binding: "galaxy"},
		"needs a client id":                 {Resource: "https://a", Client: Client{Secret: "s"}},
		"issuer is missing":                 {Resource: "https://a", Client: secret},
		"auth_url needs token_url":          {Resource: "https://a", AuthURL: "https://b"},
		"token_url needs auth_url":          {Resource: "https://a", TokenURL: "https://b"},
		"a client secret or a private key":  {Resource: "https://a", Grant: ClientCredentials, Issuer: "https://b"},
		"needs an assertion":                {Resource: "https://a", Grant: JWTBearer, Issuer: "https://b"},
		"needs a client id, and an identit": {Resource: "https://a", Grant: IdentityAssertion, Issuer: "https://b"},
		"binding_scope must be global":      {Resource: "https://a", Grant: ClientCredentials, Client: secret, Issuer: "https://b", Binding: PerUser},
		"needs a private key":               {Resource: "https://a", Client: Client{ID: "me", Method: methodKey}},
		"expected authorization_code":       {Resource: "https://a", Grant: "password"},
		"token_url: http://b is not served": {Resource: "https://a", AuthURL: "https://b", TokenURL: "http://b/token"},
		"auth_url: http://c is not served":  {Resource: "https://a", AuthURL: "http://c/authorize", TokenURL: "https://b"},
		"auth_url: what is at https://d is": {Resource: "https://a", AuthURL: "https://d/authorize#x", TokenURL: "https://b"},
		"issuer: http://e is not served":    {Resource: "https://a", Client: secret, Issuer: "http://e"},
		"token_url: http://127.0.0.1 is no": {Resource: "https://a", AuthURL: "https://b", TokenURL: "http://127.0.0.1/token"},
		"identity_provider.token_url: http": {Resource: "https://a", Grant: IdentityAssertion, Client: secret, Issuer: "https://b",
			Identity: &IdentityProvider{TokenURL: "http://idp/token", Subject: fixed("x")}},
		"extra.state: the parameter": {Resource: "https://a", Extra: map[string]string{"state": ""}},
	} {
		if _, err := NewBroker(nil).Upstream(&cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Without an identity where one is demanded nothing is sent.
func TestIdentityIsDemanded(t *testing.T) {
	w := oauthtest.New(t)
	u, err := NewBroker(nil).Upstream(&Config{Source: "service", Resource: w.Service.URL + "/mcp", Binding: PerUser})
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Transport(nil).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, w.Service.URL+"/mcp", nil))
	if !errors.Is(err, tools.ErrIdentityRequired) {
		t.Errorf("%v", err)
	}
}

func TestRevoke(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, u := g.client(t, w, Config{Binding: PerUser})
	link, _ := needsPerson(t, c, w, ada)
	agree(t, link)
	ctx, cancel := contextOf(t, ada)
	defer cancel()
	if had, err := u.Revoke(ctx); !had || err != nil {
		t.Errorf("Revoke = %v, %v", had, err)
	}
	if had, err := u.Revoke(ctx); had || err != nil {
		t.Errorf("Revoke again = %v, %v", had, err)
	}
	needsPerson(t, c, w, ada)
}

// A store that fails is told of, and not taken for one without a token.
func TestAStoreThatFails(t *testing.T) {
	w := oauthtest.New(t)
	b := NewBroker(&Options{Store: brokenStore{}})
	u, err := b.Upstream(&Config{Source: "service", Resource: w.Service.URL + "/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Transport(nil).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, w.Service.URL+"/mcp", nil))
	if te, ok := errors.AsType[*tools.Error](err); !ok || te.Class != tools.ErrClassTransient || !strings.Contains(te.Message, "cannot be read") {
		t.Errorf("%v", err)
	}
}

type brokenStore struct{}

var errBroken = errors.New("disk full")

func (brokenStore) Load(context.Context, Key) (*Token, error) { return nil, errBroken }
func (brokenStore) Save(context.Context, Key, *Token) error   { return errBroken }
func (brokenStore) Delete(context.Context, Key) error         { return errBroken }

func FuzzChallenge(f *testing.F) {
	for _, s := range []string{`Bearer scope="a b", resource_metadata="https://a"`, `Bearer`, `Basic x, Bearer error="insufficient_scope"`, `Bearer a="`, `"`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		c, again := challengeOf(&http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Www-Authenticate": {header}}})
		if again != c.insufficient {
			t.Errorf("%q: %+v %v", header, c, again)
		}
	})
}

func FuzzCovers(f *testing.F) {
	f.Add("https://a.example", "https://a.example/mcp")
	f.Fuzz(func(t *testing.T, published, address string) {
		if !covers(published, address) {
			return
		}
		p, _ := url.Parse(published)
		a, _ := url.Parse(address)
		if netguard.Origin(p) != netguard.Origin(a) {
			t.Errorf("%q covers %q", published, address)
		}
	})
}
