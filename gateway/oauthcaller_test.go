package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/identity"
)

// Whoever a program says that a request is from authorizes for itself, and for
// nobody else.
func TestBrowsersOfOtherCallers(t *testing.T) {
	w := protected(t)
	g := open(t, parse(t, fmt.Sprintf("tools: {mcp_servers: [{name: notes, url: %s/mcp, oauth: {binding_scope: user}}]}", w.Service.URL)), nil)
	ada := identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s"}
	handler := g.Handler()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("ada"); err == nil {
			r = r.WithContext(identity.With(r.Context(), ada))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	g.ServedAt(s.URL)
	agree(t, g.Sources()[0].AuthorizationURL)
	ready(t, g)

	ctx := identity.With(bounded(t), ada)
	local := g.LocalAPI()
	list, err := local.List(ctx, api.ListRequest{})
	if err != nil || len(list.Tools) == 0 {
		t.Fatalf("%+v, %v", list, err)
	}
	var name string
	for _, row := range list.Tools {
		if row.Source == "mcp:notes" {
			name = row.Name
		}
	}
	if _, err := local.Call(ctx, api.CallRequest{Name: name}); code(err) != api.CodeAuthorization {
		t.Fatalf("%s: %v", name, err)
	}
	sources, err := local.Sources(ctx)
	if err != nil || sources.Sources[0].AuthorizationURL == "" {
		t.Fatalf("%+v, %v", sources, err)
	}
	link := sources.Sources[0].AuthorizationURL
	open := func(cookie string) int {
		jar, _ := cookiejar.New(nil)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
		if err != nil {
			t.Fatal(err)
		}
		jar.SetCookies(req.URL, []*http.Cookie{{Name: cookie, Value: "1", Path: "/"}})
		resp, err := (&http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status := open("nobody"); status != http.StatusNotFound {
		t.Errorf("the local caller, in the place of another: %d", status)
	}
	if status := open("ada"); status != http.StatusOK {
		t.Errorf("the caller itself: %d", status)
	}
	if _, err := local.Call(ctx, api.CallRequest{Name: name}); code(err) == api.CodeAuthorization {
		t.Errorf("after it agreed: %v", err)
	}
}
