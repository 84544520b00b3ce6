package auth

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/oauthtest"
	"github.com/toolcrib/toolcrib/internal/peertest"
)

var (
	ada = identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"}
	bob = identity.Identity{TenantID: "acme", UserID: "bob", SessionID: "s2"}
	eve = identity.Identity{TenantID: "other", UserID: "ada", SessionID: "s1"}
)

// A gate is a broker whose pages are served, to a browser of ada's.
type gate struct {
	*Broker
	pages *httptest.Server
	log   *peertest.Log
	who   identity.Identity // of the browser
	mu    sync.Mutex
	done  []string // services that were authorized
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{log: &peertest.Log{}, who: ada}
	g.pages = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), g.who)))
	}))
	t.Cleanup(g.pages.Close)
	g.Broker = NewBroker(&Options{
		RedirectURL: func() string { return g.pages.URL + CallbackPath },
		Self:        ada,
		Operates: func(ctx context.Context) bool {
			id, _ := identity.From(ctx)
			return id == ada
		},
		Authorized: func(source string) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.done = append(g.done, source)
		},
		Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return g
}

// client returns a client of the service, with the parts of cfg that the test
// sets.
func (g *gate) client(t *testing.T, w *oauthtest.World, cfg Config) (*http.Client, *Upstream) {
	t.Helper()
	if cfg.Source == "" {
		cfg.Source = "service"
	}
	if cfg.Resource == "" {
		cfg.Resource = w.Service.URL + "/mcp"
	}
	u, err := g.Upstream(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	rt := u.Transport(nil)
	t.Cleanup(func() { _, _ = rt.(io.Closer).Close(), u.Close() })
	return &http.Client{Transport: rt}, u
}

// post sends a request in the name of who, and returns the answer.
func post(t *testing.T, c *http.Client, url string, who identity.Identity) (status int, body string, err error) {
	t.Helper()
	ctx := t.Context()
	if who != (identity.Identity{}) {
		ctx = identity.With(ctx, who)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// welcome fails the test unless the service takes a request.
func welcome(t *testing.T, c *http.Client, w *oauthtest.World, who identity.Identity) {
	t.Helper()
	if status, body, err := post(t, c, w.Service.URL+"/mcp", who); err != nil || status != 200 || body != "welcome" {
		t.Fatalf("the service answered %d %q, %v", status, body, err)
	}
}

// needsPerson fails the test unless a request needs a person, and returns where
// who can agree.
func needsPerson(t *testing.T, c *http.Client, w *oauthtest.World, who identity.Identity) (string, *RequiredError) {
	t.Helper()
	_, _, err := post(t, c, w.Service.URL+"/mcp", who)
	required, ok := errors.AsType[*RequiredError](err)
	if !ok {
		t.Fatalf("the request gave %v, want that a person is needed", err)
	}
	return required.AuthorizationURL(identity.With(t.Context(), who)), required
}

// browse opens a page in a new browser and returns where that leads.
func browse(t *testing.T, url string) (status int, page string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	return visit(t, browser, url)
}

func visit(t *testing.T, browser *http.Client, url string) (status int, page string) {
	t.Helper()
	resp, err := browser.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// agree opens a page and fails the test unless that authorizes.
func agree(t *testing.T, url string) {
	t.Helper()
	if status, page := browse(t, url); status != 200 || !strings.Contains(page, "Authorized") {
		t.Fatalf("the browser came to %d %s", status, page)
	}
}
