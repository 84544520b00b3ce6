package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// folder holds a configuration, a manifest, an OpenAPI document and a secret,
// all of one API, which name each other by relative paths.
func folder(t *testing.T, api string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"toolcrib.yaml": `
tools:
  openapi:
    - {name: docs, document: api/openapi.yaml, allow_private: true, auth: {kind: bearer, secret: "file:api/token"}, policy: {max_attempts: 1}}
  http_manifests:
    - {file: api/plain.yaml, allow_private: true}
`,
		"api/token": "s3cr3t-c4n4ry\n",
		"api/openapi.yaml": fmt.Sprintf(`
openapi: 3.0.3
info: {title: T, version: "1"}
servers: [{url: %q}]
paths:
  /who:
    get: {operationId: who, responses: {"200": {description: ok}}}
  /broken:
    get: {operationId: broken, parameters: [{$ref: "#/nowhere"}], responses: {"200": {description: ok}}}
`, api),
		"api/plain.yaml": fmt.Sprintf(`
auth:
  - {name: key, kind: api_key, header: X-Key, secret: "${GATEWAY_TEST_KEY}"}
tools:
  - name: plain.who
    method: GET
    url_template: %q
    description: Who calls.
    auth_ref: key
`, api+"/who"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, dir string) *gateway.Config {
	t.Helper()
	cfg, err := gateway.Load(filepath.Join(dir, "toolcrib.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestEndpoints(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"bearer": r.Header.Get("Authorization"), "key": r.Header.Get("X-Key")})
	}))
	defer api.Close()
	t.Setenv("GATEWAY_TEST_KEY", "k3y-c4n4ry")
	dir := folder(t, api.URL)
	book := &logbook{}
	g := open(t, load(t, dir), &gateway.Options{Logger: book.logger()})
	if got := call(t, g, "docs_who", `{}`); !strings.Contains(got, `"bearer":"Bearer s3cr3t-c4n4ry"`) {
		t.Errorf("docs_who = %s", got)
	}
	if got := call(t, g, "plain.who", `{}`); !strings.Contains(got, `"key":"k3y-c4n4ry"`) {
		t.Errorf("plain.who = %s", got)
	}
	states := g.Sources()
	if len(states) != 2 || states[0].Tools != 1 || states[1].Name != "plain" || states[1].Tools != 1 {
		t.Errorf("states: %+v", states)
	}
	if len(states[0].Refused) != 1 || !strings.Contains(states[0].Refused[0].Reason, "#/nowhere") {
		t.Errorf("refused: %+v", states[0].Refused)
	}
	if strings.Contains(book.String(), "c4n4ry") {
		t.Errorf("a secret is in the log:\n%s", book)
	}

	if err := os.WriteFile(filepath.Join(dir, "api/token"), []byte("r0tated"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(t, g, "docs_who", `{}`); !strings.Contains(got, `"bearer":"Bearer r0tated"`) {
		t.Errorf("after the secret was rotated: %s", got)
	}
}

func TestFaultsOfAManifest(t *testing.T) {
	t.Setenv("GATEWAY_TEST_KEY", "")
	dir := folder(t, "http://127.0.0.1:1")
	_, err := gateway.Open(bounded(t), load(t, dir), nil)
	var faults gateway.ConfigErrors
	if !errors.As(err, &faults) || !strings.Contains(err.Error(), filepath.Join(dir, "api/plain.yaml")+":3:") || !strings.Contains(err.Error(), "GATEWAY_TEST_KEY") {
		t.Errorf("err = %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "api/plain.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err = gateway.Open(bounded(t), load(t, dir), nil)
	if err == nil || !strings.Contains(err.Error(), "toolcrib.yaml:6:14: tools.http_manifests[0].file: ") {
		t.Errorf("err = %v", err)
	}
}

// A call that runs while its source is taken out of the configuration ends as
// if nothing had happened.
func TestReloadLetsCallsEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"done":true}`)
	}))
	defer api.Close()
	t.Setenv("GATEWAY_TEST_KEY", "k")
	g := open(t, load(t, folder(t, api.URL)), nil)
	type outcome struct {
		res tools.ToolResult
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		res, err := tools.Invoke(g.LocalContext(bounded(t)), g.Catalog(), "docs_who", nil)
		ended <- outcome{res, err}
	}()
	<-entered
	if err := g.Reload(bounded(t), nil); err != nil {
		t.Fatal(err)
	}
	if got := names(t, g); len(got) != 0 {
		t.Errorf("tools after the reload: %v", got)
	}
	close(release)
	got := <-ended
	if out, _ := got.res.JSON(); got.err != nil || !strings.Contains(string(out), `"done":true`) {
		t.Errorf("the call gave %s, %v", out, got.err)
	}
}
