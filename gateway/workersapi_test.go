package gateway_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/registry"
	streams "github.com/toolcrib/toolcrib/registry/stream/connect"
)

// A tool of a worker says which toolset has it, and is found by that.
func TestToolsOfWorkersNameTheirToolset(t *testing.T) {
	g := gatewaytest.Open(t, gatewaytest.Parse(t, fmt.Sprintf(embedded, t.TempDir(), "")), nil)
	at, _ := g.WorkersAddress()
	serveToolset(t, at, "sums", "")
	awaitTool(t, g, "sums.double", true)
	serveTools(t, at, "more", "", "twice")
	awaitTool(t, g, "twice", true)
	local := g.LocalContext(t.Context())
	for source, want := range map[string]string{"workers": "sums.double=sums twice=more", "workers/sums": "sums.double=sums", "workers/more": "twice=more", "sums": "", "workers/": ""} {
		list, err := g.LocalAPI().List(local, api.ListRequest{Filter: api.ListFilter{Sources: []string{source}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range list.Tools {
			got = append(got, row.Name+"="+row.SourcePart)
			if row.Source != "workers" || row.Origin() != "workers/"+row.SourcePart {
				t.Errorf("%s comes from %q, shown as %q", row.Name, row.Source, row.Origin())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("from %s come %q, want %q", source, got, want)
		}
	}
	if d, err := g.LocalAPI().Describe(local, "twice"); err != nil || d.SourcePart != "more" {
		t.Errorf("the description: %+v, %v", d, err)
	}
}

// Who operates the gateway is told of dead letters, and nobody else.
func TestDeadLettersAreToldToOperators(t *testing.T) {
	g := gatewaytest.Open(t, gatewaytest.Parse(t, fmt.Sprintf(embedded, t.TempDir(), "")), nil)
	at, _ := g.WorkersAddress()
	serveToolset(t, at, "sums", "")
	awaitTool(t, g, "sums.double", true)
	client, err := streams.Client(t.Context(), at.URL, &streams.Options{TokenFile: at.TokenFile})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := client.Stream(t.Context(), registry.DeadStream("sums"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := s.Add(t.Context(), "call", []byte(`{"type":"call","tool_use_id":"t","tool":"sums.double","payload":{"pin":"1234"},"meta":{"tenant_id":"acme"}}`))
		if err != nil {
			t.Fatal(err)
		}
	}
	local := g.LocalContext(t.Context())
	page, err := g.LocalAPI().DeadLetters(local, api.DeadLettersRequest{Limit: 2})
	if err != nil || len(page.Letters) != 2 || page.Next == "" || page.Letters[0].TenantID != "acme" || strings.Contains(fmt.Sprint(page), "1234") {
		t.Errorf("the operator is told %+v, %v", page, err)
	}
	page, err = g.LocalAPI().DeadLetters(local, api.DeadLettersRequest{Toolset: "sums", After: page.Next})
	if err != nil || len(page.Letters) != 1 || page.Next != "" {
		t.Errorf("the second page is %+v, %v", page, err)
	}
	acme := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "u", SessionID: "s"})
	var e *api.Error
	if page, err := g.LocalAPI().DeadLetters(acme, api.DeadLettersRequest{Toolset: "sums"}); !errors.As(err, &e) || e.Code != api.CodeDenied {
		t.Errorf("a tenant is told %+v, %v", page, err)
	}
	for _, wrong := range []struct {
		req  api.DeadLettersRequest
		code api.Code
	}{
		{api.DeadLettersRequest{Toolset: "none"}, api.CodeToolsetNotFound},
		{api.DeadLettersRequest{Toolset: "no name"}, api.CodeInvalidRequest},
		{api.DeadLettersRequest{After: "sums/x"}, api.CodeInvalidRequest},
	} {
		if _, err := g.LocalAPI().DeadLetters(local, wrong.req); !errors.As(err, &e) || e.Code != wrong.code {
			t.Errorf("%+v: %v", wrong.req, err)
		}
	}
	without := gatewaytest.Open(t, gatewaytest.Parse(t, "tools: {built_in: [text.echo]}\n"), nil)
	if page, err := without.LocalAPI().DeadLetters(without.LocalContext(t.Context()), api.DeadLettersRequest{}); err != nil || len(page.Letters) != 0 {
		t.Errorf("without workers there are %+v, %v", page, err)
	}
}
