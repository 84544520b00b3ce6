package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/internal/oauthtest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// protected is an MCP server behind OAuth.
func protected(t *testing.T) *oauthtest.World {
	t.Helper()
	w := oauthtest.New(t)
	server := childServer()
	w.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	return w
}

// serveHTTP serves a gateway to browsers.
func serveHTTP(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	s := httptest.NewServer(g.Handler())
	t.Cleanup(s.Close)
	g.ServedAt(s.URL)
}

// agree opens a page in a browser.
func agree(t *testing.T, url string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	resp, err := (&http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the browser came to %s", resp.Status)
	}
}

func ready(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	ctx, tick := bounded(t), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for g.Sources()[0].State != gateway.SourceReady {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the source is %+v", g.Sources()[0])
		}
	}
}

// What a person has agreed to outlives a reload, whether or not that touches the
// source, and so does the link of what is not agreed to yet.
func TestReloadKeepsAuthorizations(t *testing.T) {
	w := protected(t)
	config := func(more string) *gateway.Config {
		return parse(t, fmt.Sprintf("tools: {mcp_servers: [{name: notes, url: %s/mcp, oauth: {binding_scope: user}%s}]}", w.Service.URL, more))
	}
	g := open(t, config(""), nil)
	serveHTTP(t, g)
	link := g.Sources()[0].AuthorizationURL
	if err := g.Reload(bounded(t), config("")); err != nil {
		t.Fatal(err)
	}
	if again := g.Sources()[0].AuthorizationURL; again != link || link == "" {
		t.Fatalf("the link was %q and is %q", link, again)
	}
	agree(t, link)
	ready(t, g)
	if err := g.Reload(bounded(t), config(", policy: {max_attempts: 1}")); err != nil {
		t.Fatal(err)
	}
	ready(t, g)
	if got := call(t, g, "notes_echo", `{"text":"hello"}`); !strings.Contains(got, "hello") {
		t.Errorf("the call gave %s", got)
	}
	if len(w.Asked) != 1 {
		t.Errorf("the person was asked %d times", len(w.Asked))
	}
}

// Callers who meet the end of a token at one moment get one new token between
// them, and none of them fails.
func TestManyCallersAtTheEndOfAToken(t *testing.T) {
	w := protected(t)
	g := open(t, parse(t, fmt.Sprintf("tools: {mcp_servers: [{name: notes, url: %s/mcp, oauth: {binding_scope: user}}]}", w.Service.URL)), nil)
	serveHTTP(t, g)
	agree(t, g.Sources()[0].AuthorizationURL)
	ready(t, g)
	call(t, g, "notes_echo", `{"text":"first"}`)
	for range 3 {
		before := w.Count("refresh_token")
		w.Expire()
		start := make(chan struct{})
		var work sync.WaitGroup
		for range 50 {
			work.Go(func() {
				<-start
				res, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "notes_echo", json.RawMessage(`{"text":"again"}`))
				if err != nil || res.IsError {
					t.Errorf("the call gave %+v, %v", res, err)
				}
			})
		}
		close(start)
		work.Wait()
		if n := w.Count("refresh_token") - before; n != 1 {
			t.Errorf("%d refreshes", n)
		}
	}
	if len(w.Asked) != 1 {
		t.Errorf("the person was asked %d times", len(w.Asked))
	}
}

// A server that says again what it was sent does not bring its token into the
// error of a call.
func TestAServerThatRepeatsItsToken(t *testing.T) {
	w := protected(t)
	real := w.Handler
	var token string
	w.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var call struct {
			ID     json.RawMessage
			Method string
		}
		if _ = json.Unmarshal(body, &call); call.Method != "tools/call" {
			r.Body = io.NopCloser(bytes.NewReader(body))
			real.ServeHTTP(out, r)
			return
		}
		said := r.Header.Get("Authorization")
		_, token, _ = strings.Cut(said, " ")
		oauthtest.WriteJSON(out, 200, map[string]any{"jsonrpc": "2.0", "id": call.ID,
			"error": map[string]any{"code": -32000, "message": "no such user for " + said, "data": said}})
	})
	g := open(t, parse(t, fmt.Sprintf("tools: {mcp_servers: [{name: notes, url: %s/mcp, oauth: {binding_scope: user}}]}", w.Service.URL)), nil)
	serveHTTP(t, g)
	agree(t, g.Sources()[0].AuthorizationURL)
	ready(t, g)
	for range 2 {
		_, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "notes_echo", json.RawMessage(`{"text":"hello"}`))
		if err == nil || !strings.Contains(err.Error(), "no such user for") || token == "" {
			t.Fatalf("the call gave %v", err)
		}
		for shown := err; shown != nil; shown = errors.Unwrap(shown) {
			if strings.Contains(fmt.Sprintf("%v %+v", shown, shown), token) {
				t.Errorf("the token is shown: %v", shown)
			}
		}
		if rpc, ok := errors.AsType[*mcptool.RPCError](err); !ok || strings.Contains(string(rpc.Data), token) {
			t.Errorf("the token is in the data of %v", err)
		}
		w.Expire()
	}
}

// Where each session has its token, the list of sources says in any session of
// the operator where to go.
func TestTheLinkOfASourceForEachSession(t *testing.T) {
	w := protected(t)
	g := open(t, parse(t, fmt.Sprintf("tools: {mcp_servers: [{name: notes, url: %s/mcp, oauth: {binding_scope: session}}]}", w.Service.URL)), nil)
	s := httptest.NewServer(g.Handler())
	t.Cleanup(s.Close)
	g.ServedAt(s.URL)
	client, err := api.NewClient(s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Sources(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	link := resp.Sources[0].AuthorizationURL
	if link == "" {
		t.Fatalf("the source is %+v", resp.Sources[0])
	}
	agree(t, link)
	ready(t, g)
}

// A program without a page for browsers says what is missing, and no address.
func TestAuthorizationWithoutAPage(t *testing.T) {
	w := protected(t)
	g := open(t, parse(t, fmt.Sprintf("tools: {mcp_servers: [{name: notes, url: %s/mcp, oauth: {}}]}", w.Service.URL)), nil)
	s := g.Sources()[0]
	if s.State != gateway.SourceDown || s.AuthorizationURL != "" || !strings.Contains(s.Error, "a person must authorize it first") {
		t.Errorf("the source is %+v", s)
	}
}

// A program on stdio opens a page when somebody needs it, and ends it with the
// gateway.
func TestAuthorizationBesideStdio(t *testing.T) {
	w := protected(t)
	g := open(t, parse(t, fmt.Sprintf("tools: {mcp_servers: [{name: notes, url: %s/mcp, oauth: {}}]}", w.Service.URL)), nil)
	g.ServeBrowsers()
	link := g.Sources()[0].AuthorizationURL
	agree(t, link)
	ready(t, g)
	elsewhere := link[:strings.Index(link, "/oauth/")]
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Post(elsewhere+"/mcp", "application/json", nil)
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("the page serves more: %v %v", resp, err)
	}
	resp.Body.Close()
	if err := g.Close(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.Get(elsewhere); err == nil {
		resp.Body.Close()
		t.Error("the page outlives the gateway")
	}
}

func TestWhatAProviderLacks(t *testing.T) {
	t.Setenv("LATER_SECRET", "")
	for _, tc := range []struct{ provider, want string }{
		{"client_id_env: LATER_SECRET", "t.yaml:3:78: tools.oauth_providers[0].client_id_env: the environment variable LATER_SECRET is not set"},
		{"private_key: file:no.pem", "tools.oauth_providers[0].private_key: the file no.pem cannot be read"},
		{"grant: client_credentials", "t.yaml:2:62: tools.mcp_servers[0].oauth: grant client_credentials needs a client id"},
		{"grant: jwt_bearer, assertion: file:jwt", "tools.oauth_providers[0].assertion: the file jwt cannot be read"},
		{"auth_url: https://a.example", "auth_url needs token_url"},
		{"issuer: http://a.example", "t.yaml:3:71: tools.oauth_providers[0].issuer: http://a.example is not served over HTTPS"},
		{"auth_url: https://a.example, token_url: http://a.example/token", "t.yaml:3:103: tools.oauth_providers[0].token_url: http://a.example is not served over HTTPS"},
		{"extra: {code_challenge: ''}", "tools.oauth_providers[0].extra.code_challenge: the parameter is not for extra"},
	} {
		cfg, err := gateway.Parse("t.yaml", fmt.Appendf(nil, `tools:
  mcp_servers: [{name: a, url: https://a.example/mcp, oauth: {provider: p}}]
  oauth_providers: [{name: p, driver: oauth2, scopes: [some], %s}]
`, tc.provider))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gateway.Open(bounded(t), cfg, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.provider, err, tc.want)
		}
	}
}
