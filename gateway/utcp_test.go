package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// echoAPI answers with the credentials of each request.
func echoAPI(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"url": r.URL.String(), "bearer": r.Header.Get("Authorization"), "key": r.Header.Get("X-Key")})
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// write puts files into a folder and returns the configuration in it.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestManualsAreSources(t *testing.T) {
	t.Setenv("GATEWAY_TEST_KEY", "k3y-c4n4ry")
	dir := write(t, map[string]string{
		"toolcrib.yaml": `
tools:
  utcp:
    - name: u
      manual: manual.json
      auth: {kind: api_key, secret: "${GATEWAY_TEST_KEY}"}
      allow_private: true
      allow_text: true
`,
		"manual.json": fmt.Sprintf(`{"utcp_version":"1.0.1","tools":[
			{"name":"get","tool_call_template":{"call_template_type":"http","url":"%s/get/{id}","auth":{"auth_type":"api_key","api_key":"$KEY","var_name":"X-Key"}}},
			{"name":"note","tool_provider":{"provider_type":"text","file_path":"note.txt"}},
			{"name":"shell","tool_call_template":{"call_template_type":"cli"}}]}`, echoAPI(t)),
		"note.txt": "remember",
	})
	book := &logbook{}
	g := open(t, load(t, dir), &gateway.Options{Logger: book.logger()})
	if got := names(t, g); !slices.Equal(got, []string{"u_get", "u_note"}) {
		t.Fatalf("tools %v", got)
	}
	if got := call(t, g, "u_get", `{"id":"a/b","q":1}`); !strings.Contains(got, `"key":"k3y-c4n4ry"`) || !strings.Contains(got, "/get/a%2Fb?q=1") {
		t.Errorf("u_get = %s", got)
	}
	if got := call(t, g, "u_note", `{}`); !strings.Contains(got, "remember") {
		t.Errorf("u_note = %s", got)
	}
	state := g.Sources()[0]
	if state.Kind != "utcp" || state.Tools != 2 || len(state.Refused) != 1 || !strings.Contains(state.Refused[0].Reason, "runs a command") {
		t.Errorf("state %+v", state)
	}
	if strings.Contains(book.String(), "c4n4ry") {
		t.Errorf("a secret is in the log:\n%s", book)
	}
}

func TestManualsAreValidated(t *testing.T) {
	dir := write(t, map[string]string{
		"toolcrib.yaml": "tools: {utcp: [{name: u, manual: manual.yaml}]}\n",
		"manual.yaml":   "tools:\n  - name: shell\n    tool_call_template: {call_template_type: cli}\n  - name: bad\n    tool_call_template: {call_template_type: http, url: nowhere}\n",
	})
	err := load(t, dir).Validate()
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "manual.yaml")+":5:") || strings.Contains(err.Error(), "shell") {
		t.Errorf("err = %v", err)
	}
}

func TestSchemesAndResponses(t *testing.T) {
	t.Setenv("GATEWAY_TEST_KEY", "k3y-c4n4ry")
	dir := write(t, map[string]string{
		"toolcrib.yaml": `
tools:
  openapi:
    - name: o
      document: api.yaml
      server_variables: {v: v2}
      auths: {key: {secret: "${GATEWAY_TEST_KEY}"}, user: {secret: "file:token"}}
      responses: checked
      allow_private: true
`,
		"token": "t0ken-c4n4ry",
		"api.yaml": fmt.Sprintf(`
openapi: 3.1.0
servers: [{url: "%s/{v}", variables: {v: {default: v1}}}]
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    user: {type: http, scheme: bearer}
paths:
  /key: {get: {operationId: key, security: [{key: []}]}}
  /user: {get: {operationId: user, security: [{user: []}]}}
  /lie: {get: {operationId: lie, responses: {"200": {description: ok, content: {application/json: {schema: {type: object, required: [gone]}}}}}}}
`, echoAPI(t)),
	})
	g := open(t, load(t, dir), nil)
	for tool, want := range map[string]string{
		"o_key": `"bearer":"","key":"k3y-c4n4ry","url":"/v2/key"`, "o_user": `"bearer":"Bearer t0ken-c4n4ry","key":"","url":"/v2/user"`,
	} {
		if got := call(t, g, tool, `{}`); !strings.Contains(got, want) {
			t.Errorf("%s = %s", tool, got)
		}
	}
	if _, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "o_lie", nil); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("an answer that breaks the document: %v", err)
	}
}

func TestBadSchemes(t *testing.T) {
	for config, want := range map[string]string{
		`auths: {a: {secret: plain}}`:                                        "not a reference to a secret",
		`auths: {a: {secret: "${GATEWAY_TEST_NOT_SET}"}}`:                    "tools.openapi[0].auths.a.secret: the environment variable GATEWAY_TEST_NOT_SET",
		`auths: {a: {kind: magic, secret: "file:x"}}`:                        "magic",
		`auths: {a: {kind: bearer, query: q, secret: "file:x"}}`:             "is sent in a header",
		`responses: strict`:                                                  "shown",
		`auths: {a: {header: A, query: b, kind: api_key, secret: "file:x"}}`: "more than one place",
	} {
		cfg, err := gateway.Parse("toolcrib.yaml", []byte("tools: {openapi: [{name: a, document: d, "+config+"}]}"))
		if err == nil {
			_, err = gateway.Open(bounded(t), cfg, nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
