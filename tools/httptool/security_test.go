package httptool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools/httptool"
)

const securedDocument = `"components":{"securitySchemes":{
		"key":{"type":"apiKey","in":"query","name":"api_key"},"app":{"type":"apiKey","in":"header","name":"X-App"},
		"user":{"type":"http","scheme":"Bearer"},"login":{"type":"http","scheme":"basic"},"oauth":{"type":"oauth2","flows":{}},
		"tls":{"type":"mutualTLS"}}},
	"security":[{"key":[]}],
	"paths":{
		"/default":{"get":{"operationId":"default","parameters":[{"name":"api_key","in":"query","schema":{"type":"string"}}]}},
		"/both":{"get":{"operationId":"both","security":[{"oauth":["s"],"app":[]},{"app":[],"user":[]}]}},
		"/login":{"get":{"operationId":"login","security":[{},{"login":[]}]}},
		"/open":{"get":{"operationId":"open","security":[]}},
		"/other":{"get":{"operationId":"other","security":[{"oauth":[]}]}}}`

func TestSecuritySchemes(t *testing.T) {
	srv, next := serve(t, answerJSON)
	secret := func(s string) *httptool.Auth { return &httptool.Auth{Secret: httptool.FixedSecret(s)} }
	cfg := httptool.OpenAPIConfig{Content: document("3.1.0", securedDocument), ServerURL: srv.URL, Auths: map[string]*httptool.Auth{
		"key": secret("k1"), "app": secret("a1"), "user": secret("u1"), "login": secret("me:pw")}}
	cat := attach(t, openAPI(t, cfg))
	d, _ := cat.Resolve("api_default")
	if strings.Contains(string(d.Tool.ArgsSchema), "api_key") {
		t.Errorf("the key is an argument: %s", d.Tool.ArgsSchema)
	}
	for _, c := range []struct{ tool, uri, app, auth string }{
		{"api_default", "/default?api_key=k1", "", ""},
		{"api_both", "/both", "a1", "Bearer u1"},
		{"api_login", "/login", "", "Basic bWU6cHc="},
		{"api_open", "/open", "", ""},
		{"api_other", "/other", "", ""},
	} {
		call(t, cat, c.tool, `{}`)
		got := next()
		if got.URI != c.uri || got.Header.Get("X-App") != c.app || got.Header.Get("Authorization") != c.auth {
			t.Errorf("%s: got %s %v", c.tool, got.URI, got.Header)
		}
	}
	cfg.Auth = &httptool.Auth{Kind: httptool.AuthBearer, Secret: httptool.FixedSecret("rest")}
	cat = attach(t, openAPI(t, cfg))
	call(t, cat, "api_other", `{}`)
	if got := next().Header.Get("Authorization"); got != "Bearer rest" {
		t.Errorf("what no scheme covers carries %q", got)
	}
}

func TestBadSecuritySchemes(t *testing.T) {
	secret := httptool.FixedSecret("hunter2")
	for name, c := range map[string]struct {
		auth *httptool.Auth
		want string
	}{
		"nope": {&httptool.Auth{Secret: secret}, `no security scheme "nope": it has app, key, login, oauth, tls, user`},
		"tls":  {&httptool.Auth{Secret: secret}, `auths: tls: auth: unknown kind ""`},
	} {
		src := openAPI(t, httptool.OpenAPIConfig{Content: document("3.1.0", securedDocument), ServerURL: "https://h.example",
			Auths: map[string]*httptool.Auth{name: c.auth}})
		_, err := src.Discover(context.Background())
		var at *httptool.DocumentError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for want, auth := range map[string]*httptool.Auth{"no credential": nil, "no secret": {}, "unknown kind": {Kind: "magic", Secret: secret}} {
		_, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "x", Document: "f", Auths: map[string]*httptool.Auth{"k": auth}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
