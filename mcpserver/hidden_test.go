package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// serveVault serves a source of resources some of which need the scope "s", and
// that gives everything that it is asked for but mem://nope.
func serveVault(t *testing.T) (url string, upstream *mcp.Server) {
	t.Helper()
	upstream = mcp.NewServer(&mcp.Implementation{Name: "vault", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "content of " + r.Params.URI}}}, nil
	}
	for uri, name := range map[string]string{"file:///secret.txt": "secret", "mem://hid": "hid", "mem://open": "open"} {
		upstream.AddResource(&mcp.Resource{URI: uri, Name: name}, read)
	}
	for form, name := range map[string]string{"file:///{name}": "files", "db://{+rest}": "all", "db://secret/{id}": "dbs", "log://{+rest}": "logs", "log://day/{id}": "days"} {
		upstream.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: form, Name: name}, read)
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return upstream }, nil))
	t.Cleanup(web.Close)
	source, err := mcptool.New(&mcptool.Config{Name: "k", URL: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	list, err := source.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range list {
		switch d.Tool.Name {
		case "k_resource_secret", "k_resource_hid", "k_resource_template_dbs", "k_resource_template_logs":
			list[i].Tool.AuthScopes = []string{"s"}
		}
	}
	cat := tools.NewCatalog().(tools.LiveCatalog)
	cat.SwapSource(source.SourceID(), list)
	return listenHTTP(t, (&crib{LiveCatalog: cat}).serve(t, &mcpserver.Options{Authenticate: byTenant})), upstream
}

func TestHiddenResourcesAreReadInNoWay(t *testing.T) {
	url, _ := serveVault(t)
	ask := func(auth, method, target, params string) string {
		m := modern{url: url, auth: auth, header: http.Header{"Mcp-Name": {target}}}
		var p map[string]json.RawMessage
		if err := json.Unmarshal([]byte(params), &p); err != nil {
			t.Fatal(err)
		}
		_, answer := m.post(t, method, "", p)
		return string(answer)
	}
	read := func(auth, uri string) string { return ask(auth, "resources/read", uri, `{"uri":"`+uri+`"}`) }
	for _, uri := range []string{"file:///secret.txt", "file:///secret%2Etxt", "FILE:///secret.txt", "mem://hid", "MEM://hid", "mem://hid#x",
		"mem://hid?", "db://secret/1", "DB://secret/1", "log://day/1", "mem://absent"} {
		if got := read("Bearer acme", uri); !strings.Contains(got, `"error":{"code":-32602,"message":"Resource not found","data":{"uri":"`+uri+`"}}`) {
			t.Errorf("%s: %s", uri, got)
		}
	}
	for auth, uris := range map[string][]string{"Bearer acme": {"mem://open", "file:///other.txt", "db://other/1"},
		"Bearer acme s": {"file:///secret.txt", "mem://hid", "db://secret/1", "log://day/1"}} {
		for _, uri := range uris {
			if got := read(auth, uri); !strings.Contains(got, "content of "+uri) {
				t.Errorf("%s: %s", uri, got)
			}
		}
	}
	absent := ask("Bearer acme", "tools/call", "k_read_resource", `{"name":"k_read_resource","arguments":{"uri":"mem://absent"}}`)
	for tool, uri := range map[string]string{"k_read_resource": "MEM://hid", "k_resource_template_files": "file:///secret.txt", "k_resource_template_all": "db://secret/1",
		"k_resource_template_days": "log://day/1"} {
		if got := ask("Bearer acme", "tools/call", tool, `{"name":"`+tool+`","arguments":{"uri":"`+uri+`"}}`); got != absent {
			t.Errorf("%s: %s, and what is absent: %s", uri, got, absent)
		}
	}
}

// Nothing hidden is watched, nor heard of through what is around it. That
// nothing was heard is certain once a later update was.
func TestHiddenResourcesAreNotWatched(t *testing.T) {
	url, upstream := serveVault(t)
	updated := make(chan string, 64)
	session := connect(t, overHTTP(t, url, "Bearer acme"), "2025-11-25", &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
	})
	for _, uri := range []string{"mem://hid", "MEM://hid", "file:///secret.txt", "file:///secret%2Etxt", "db://secret/1"} {
		if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, uri := range []string{"mem:", "mem://", "db://secret", "mem://open"} {
		if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil && uri == "mem://open" {
			t.Fatal(err)
		}
	}
	for _, uri := range []string{"mem://hid", "file:///secret.txt", "db://secret/1", "mem://open"} {
		if err := upstream.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	if uri := receive(t, updated); uri != "mem://open" {
		t.Errorf("heard of %s", uri)
	}
}
