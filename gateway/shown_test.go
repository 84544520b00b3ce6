package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/identity"
)

// Who does not see a tool does not see it counted, nor named by what the
// configuration says of tools.
func TestSourcesShowWhatTheCallerMaySee(t *testing.T) {
	kid := child("kid")
	kid = kid[:len(kid)-1] + `, include: [echo, process, "list_*"]}`
	g := open(t, parse(t, "tools: {mcp_servers: ["+kid+"], entries: [{name: kid_process, tenants: [other]}, {name: kid_echo, auth_scopes: [reading]}, {name: secret_entry}]}"),
		&gateway.Options{})
	list := []string{`include "list_*"`}
	entries := []string{"secret_entry"}
	row := func(count, total int, unmatched []string) []api.Source {
		return []api.Source{{Name: "kid", Kind: "mcp", State: "ready", Tools: count, Total: total, Unmatched: unmatched}}
	}
	as := func(tenant string, scopes ...string) *api.SourcesResponse {
		ctx := identity.With(bounded(t), identity.Identity{TenantID: tenant, UserID: "u", SessionID: "s"}, scopes...)
		resp, err := g.LocalAPI().Sources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	for name, c := range map[string]struct{ got, want *api.SourcesResponse }{
		"local":           {as("local"), &api.SourcesResponse{Sources: row(0, 2, list), UnmatchedEntries: entries}},
		"local, scope":    {as("local", "reading"), &api.SourcesResponse{Sources: row(1, 2, list), UnmatchedEntries: entries}},
		"other, scope":    {as("other", "reading"), &api.SourcesResponse{Sources: row(2, 0, nil)}},
		"stranger":        {as("stranger"), &api.SourcesResponse{Sources: row(0, 0, nil)}},
		"stranger, admin": {as("stranger", "tools:admin"), &api.SourcesResponse{Sources: row(0, 2, list), UnmatchedEntries: entries}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The names of tools that were refused are for who operates the gateway.
func TestRefusedToolsAreShownToTheOperator(t *testing.T) {
	kid := child("kid")
	kid = kid[:len(kid)-2] + `, CHILD_SECRET: "${SHOWN_TEST_MARK}"}}`
	t.Setenv("SHOWN_TEST_MARK", "marked")
	g := open(t, parse(t, "tools: {mcp_servers: ["+kid+"]}"), &gateway.Options{})
	local, err := g.LocalAPI().Sources(g.LocalContext(bounded(t)))
	if err != nil || len(local.Sources[0].Refused) != 1 {
		t.Errorf("the local caller sees %+v, %v", local, err)
	}
	ctx := identity.With(bounded(t), identity.Identity{TenantID: "stranger", UserID: "u", SessionID: "s"})
	if other, err := g.LocalAPI().Sources(ctx); err != nil || other.Sources[0].Refused != nil || other.Sources[0].Tools != local.Sources[0].Tools {
		t.Errorf("a stranger sees %+v, %v", other, err)
	}
}

// What a source says of its failure is for who operates the gateway; others
// learn which source it is and what kind of failure.
func TestFailureOfASourceIsTheOperatorsDetail(t *testing.T) {
	g := open(t, parse(t, "tools: {mcp_servers: [{name: gone, command: [/no/such/secret-place]}]}"), &gateway.Options{})
	local, err := g.LocalAPI().Sources(g.LocalContext(bounded(t)))
	if err != nil || !strings.Contains(local.Sources[0].Error, "starting /no/such/secret-place") {
		t.Errorf("the local caller sees %+v, %v", local, err)
	}
	ctx := identity.With(bounded(t), identity.Identity{TenantID: "stranger", UserID: "u", SessionID: "s"})
	if other, err := g.LocalAPI().Sources(ctx); err != nil || other.Sources[0].Error != `source "gone": permanent failure` {
		t.Errorf("a stranger sees %+v, %v", other, err)
	}
}

// Who cannot be told who it is learns from /readyz what a balancer needs.
func TestReadyzNamesNoToolsToStrangers(t *testing.T) {
	g := open(t, parse(t, "tools: {entries: [{name: secret_entry}]}"), &gateway.Options{})
	for header, want := range map[string]bool{"": true, strings.Repeat("x", 5000): false} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/readyz", nil)
		r.Header.Set(gateway.SessionHeader, header)
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), "secret_entry"); w.Code != http.StatusOK || got != want {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

// A tool whose name is taken is refused with what keeps the two apart.
func TestRefusedNamesSayWhatKeepsThemApart(t *testing.T) {
	plain := func(name string) string { return strings.TrimSuffix(child(name), "}") + ", prefix: none}" }
	g := open(t, parse(t, "tools: {mcp_servers: ["+plain("one")+", "+plain("two")+"]}"), &gateway.Options{})
	refused := slices.Concat(g.Sources()[0].Refused, g.Sources()[1].Refused)
	taken := slices.ContainsFunc(refused, func(r gateway.Refused) bool {
		return strings.Contains(r.Reason, "duplicate") && strings.HasSuffix(r.Reason, "a prefix or another name keeps them apart")
	})
	if !taken {
		t.Errorf("got %+v", refused)
	}
}
