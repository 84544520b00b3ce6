package httptool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

func manifest(t *testing.T, content string) (*httptool.Manifest, error) {
	t.Helper()
	return httptool.NewManifest(httptool.ManifestConfig{Name: "m", File: "m.yaml", Content: []byte(content),
		Network: httptool.Network{AllowPrivate: true},
		Secret: func(ref string) (string, error) {
			if ref == "${TOKEN}" || ref == "file:token" {
				return "t0ken", nil
			}
			return "", errors.New(ref + " is not set")
		}})
}

func TestManifest(t *testing.T) {
	srv, next := serve(t, answerJSON)
	text, err := os.ReadFile("testdata/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest(t, strings.ReplaceAll(string(text), "https://api.example.com", srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	cat := attach(t, m)
	for _, c := range []struct {
		tool, args        string
		method, uri, body string
		header            map[string]string
	}{
		{"user.get", `{"id":"a/b?","fields":"x&y","trace":"t"}`, "GET", "/users/a%2Fb%3F?fields=x%26y", "",
			map[string]string{"Authorization": "Bearer t0ken", "X-Trace": "t"}},
		{"user.get", `{"id":"7"}`, "GET", "/users/7", "", map[string]string{"X-Trace": ""}},
		{"user.create", `{"name":"O\"Hara\n","age":9007199254740993,"tags":["a","b"]}`, "POST", "/users?k=t0ken",
			`{"name": "Mr O\"Hara\n", "age": 9007199254740993, "tags": ["a","b"], "note": null}`,
			map[string]string{"Content-Type": "application/json"}},
		{"user.put", `{"id":1.10,"x":{"y":[1,2]}}`, "PUT", "/users/1.10", `{"id":1.10,"x":{"y":[1,2]}}`, nil},
		{"user.form", `{"q":"a b&c"}`, "POST", "/form", "q=a%20b%26c", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{"user.xml", `{"q":"<&>"}`, "POST", "/xml", "<q>&lt;&amp;&gt;</q>", nil},
		{"user.list", `{"ids":["x","y z"]}`, "GET", "/list?id=x&id=y%20z&", "", nil},
		{"user.send_form", `{"a":"1 2","b":[3,4]}`, "POST", "/form", "a=1%202&b=3&b=4", nil},
	} {
		call(t, cat, c.tool, c.args)
		got := next()
		if got.Method != c.method || got.URI != c.uri || got.Body != c.body {
			t.Errorf("%s: got %s %s %q\nwant %s %s %q", c.tool, got.Method, got.URI, got.Body, c.method, c.uri, c.body)
		}
		for name, v := range c.header {
			if got.Header.Get(name) != v {
				t.Errorf("%s: header %s is %q, want %q", c.tool, name, got.Header.Get(name), v)
			}
		}
	}
	for _, c := range []struct{ tool, args, want string }{
		{"user.get", `{"id":".."}`, "must not be"},
		{"user.get", `{"id":""}`, "missing or empty"},
		{"user.get", `{"id":"1","trace":"a\r\nEvil: 1"}`, "line break"},
	} {
		e := callError(t, cat, c.tool, c.args)
		if !errors.Is(e, tools.ErrToolInvalidArgs) || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s %s: got %v, want %q", c.tool, c.args, e, c.want)
		}
	}
}

func TestManifestTool(t *testing.T) {
	m, err := httptool.NewManifest(httptool.ManifestConfig{File: "testdata/manifest.yaml",
		Secret: func(string) (string, error) { return "x", nil }})
	if err != nil {
		t.Fatal(err)
	}
	d, ok := attach(t, m).Resolve("user.create")
	if !ok {
		t.Fatal("user.create is missing")
	}
	got := d.Tool
	want := tools.ToolPolicy{MaxRetries: 1, TimeoutMS: 5000, RetryOn: []tools.ErrorClass{"5xx"}}
	if diff := cmp.Diff(want, got.Policy); diff != "" {
		t.Error(diff)
	}
	if got.SideEffects != tools.SideEffectExternal || got.Loading != tools.LoadingDeferred || got.Namespace != "crm" ||
		strings.Join(got.Tags, ",") != "users,write" || strings.Join(got.AuthScopes, ",") != "users:write" {
		t.Errorf("got %+v", got)
	}
	if string(got.OutSchema) != `{"type":"object","required":["id"]}` {
		t.Errorf("out_schema: %s", got.OutSchema)
	}
}

func TestManifestFaults(t *testing.T) {
	tool := func(lines ...string) string {
		return "tools:\n  - name: a\n    method: GET\n    url_template: https://h.example/x\n    " + strings.Join(lines, "\n    ")
	}
	for name, c := range map[string]struct{ content, want string }{
		"unknown key":     {tool("metod: GET"), `m.yaml:5:5: unknown key "metod" in an entry of tools: did you mean "method"?`},
		"top level":       {"tols: []", `m.yaml:1:1: unknown key "tols" in the manifest: did you mean "tools"?`},
		"no tools":        {"auth: []", `tools is missing`},
		"wrong type":      {tool("tags: x"), `m.yaml:5:11: expected tags to be a list, found text`},
		"number as text":  {tool("description: 5"), `m.yaml:5:18: expected description to be text, found a number`},
		"choice":          {tool("loading: lazy"), `m.yaml:5:14: loading is "lazy": expected one of always, deferred`},
		"side effect":     {tool("side_effect: none"), `side_effect is "none": expected one of pure, read`},
		"no method":       {"tools: [{name: a, url_template: 'https://h.example/'}]", `method is missing: expected GET`},
		"bad method":      {strings.Replace(tool(), "GET", "FETCH", 1), `method is "FETCH": expected one of GET`},
		"bad name":        {strings.Replace(tool(), "name: a", "name: a b", 1), `m.yaml:2:11: tool name "a b"`},
		"bad schema":      {tool("args_schema: {type: strng}"), `m.yaml:5:`},
		"schema text":     {tool("args_schema: '{'"), `args_schema: `},
		"auth_ref":        {tool("auth_ref: nope"), `m.yaml:5:15: auth_ref names "nope"`},
		"template":        {tool("headers: {X: '{{.Args.a'}"), `X: `},
		"other data":      {tool("headers: {X: '{{template \"x\"}}'}"), `not available`},
		"host":            {strings.Replace(tool(), "h.example", "{{.Args.h}}", 1), `must not come from arguments`},
		"host suffix":     {strings.Replace(tool(), "h.example/x", "h.example{{.Args.h}}", 1), `must not come from arguments`},
		"json branches":   {tool(`body_template: '{"a": {{if .Args.x}}"{{end}}1}'`), `end in different places`},
		"open string":     {tool(`body_template: '{"a'`), `ends inside a JSON string`},
		"policy":          {tool("policy: {max_attempts: 0}"), `max_attempts: expected a number of at least 1`},
		"policy key":      {tool("policy: {max_attempt: 1}"), `did you mean "max_attempts"?`},
		"retry_on":        {tool("policy: {retry_on: [4xx]}"), `unknown class "4xx"`},
		"twice":           {tool() + "\n" + strings.TrimPrefix(tool(), "tools:\n"), `the tool "a" is there twice`},
		"syntax":          {"tools: [", `m.yaml:1:`},
		"literal secret":  {"auth: [{name: k, kind: bearer, secret: hunter2}]\n" + tool(), `secret must be a reference`},
		"missing secret":  {"auth: [{name: k, kind: bearer, secret: '${NOPE}'}]\n" + tool(), `m.yaml:1:40: secret: ${NOPE} is not set`},
		"auth kind":       {"auth: [{name: k, kind: magic, secret: '${TOKEN}'}]\n" + tool(), `kind is "magic": expected one of api_key`},
		"auth place":      {"auth: [{name: k, kind: api_key, secret: '${TOKEN}'}]\n" + tool(), `kind api_key needs header, query or cookie`},
		"duplicate key":   {tool("tags: [a]", "tags: [b]"), `m.yaml:6:`},
		"header line end": {tool("headers: {'a b': c}"), `"a b" is not a header name`},
	} {
		_, err := manifest(t, c.content)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		var at *httptool.DocumentError
		if err != nil && (!errors.As(err, &at) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %#v", name, err)
		}
	}
	if _, err := httptool.NewManifest(httptool.ManifestConfig{File: "testdata/none.yaml"}); err == nil {
		t.Error("a missing file was accepted")
	}
	_, err := httptool.NewManifest(httptool.ManifestConfig{File: "m.yaml", Content: []byte(strings.Replace(tool(), "h.example", "10.0.0.1", 1))})
	if err == nil || !strings.Contains(err.Error(), "allow_private") {
		t.Errorf("private host: %v", err)
	}
}

func TestManifestAnchors(t *testing.T) {
	m, err := manifest(t, `tools:
  - name: a
    method: POST
    url_template: https://h.example/x
    args_schema: &schema {type: object, properties: {n: &n {type: integer}}}
    tags: &tags [x]
  - {name: b, method: POST, url_template: "https://h.example/y", tags: *tags, args_schema: *schema, out_schema: {items: *n}}
`)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := attach(t, m).Resolve("b")
	if string(d.Tool.ArgsSchema) != `{"type":"object","properties":{"n":{"type":"integer"}}}` || len(d.Tool.Tags) != 1 ||
		string(d.Tool.OutSchema) != `{"items":{"type":"integer"}}` {
		t.Errorf("got %+v", d.Tool)
	}
}

func TestDefaultSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTPTOOL_TEST_TOKEN", "from-env")
	srv, next := serve(t, answerJSON)
	for ref, want := range map[string]string{"${HTTPTOOL_TEST_TOKEN}": "from-env", "file:" + file: "from-file"} {
		m, err := httptool.NewManifest(httptool.ManifestConfig{Name: "m", Network: httptool.Network{AllowPrivate: true},
			Content: []byte("auth: [{name: k, kind: bearer, secret: '" + ref + "'}]\n" +
				"tools: [{name: a, method: GET, auth_ref: k, url_template: '" + srv.URL + "/x'}]")})
		if err != nil {
			t.Fatal(err)
		}
		call(t, attach(t, m), "a", `{}`)
		if got := next().Header.Get("Authorization"); got != "Bearer "+want {
			t.Errorf("%s: %q", ref, got)
		}
	}
}
