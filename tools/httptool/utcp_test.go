package httptool_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

var (
	_ tools.ToolProvider = (*httptool.UTCP)(nil)
	_ tools.Refuser      = (*httptool.UTCP)(nil)
)

func utcp(t *testing.T, cfg httptool.UTCPConfig) *httptool.UTCP {
	t.Helper()
	cfg.Network.AllowPrivate = true
	cfg.Name = "m"
	s, err := httptool.NewUTCP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// template is a tool of a manual, called by a template with more members.
func template(name, more string) string {
	return `{"name":"` + name + `","description":"d","inputs":{"type":"object"},"tool_call_template":{"call_template_type":"http",` + more + `}}`
}

func manual(list ...string) []byte {
	return []byte(`{"utcp_version":"1.0.1","manual_version":"1.0.0","tools":[` + strings.Join(list, ",") + `]}`)
}

func TestManualTools(t *testing.T) {
	srv, next := serve(t, answerJSON)
	content := manual(
		`{"name":"user.get","description":" Gets a user. ","tags":["users"],"inputs":{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"}},"required":["id"]},
			"outputs":{"type":"object","properties":{"id":{"type":"string"}}},
			"tool_call_template":{"call_template_type":"http","url":"`+srv.URL+`/u/{id}?fixed=1","http_method":"GET"}}`,
		template("post", `"url":"`+srv.URL+`/p","http_method":"POST","header_fields":["X-One","Host"],"headers":{"X-One":"default","X-Two":"two","Content-Type":"application/merge-patch+json"}`),
		template("form", `"url":"`+srv.URL+`/f","http_method":"PUT","content_type":"application/x-www-form-urlencoded","body_field":"data"`),
		template("key", `"url":"`+srv.URL+`/k","auth":{"auth_type":"api_key","api_key":"k1-literal","var_name":"q","location":"query"}`),
		template("basic", `"url":"`+srv.URL+`/b","auth":{"auth_type":"basic","username":"me","password":"pw"}`),
		template("cookie", `"url":"`+srv.URL+`/c","auth":{"auth_type":"api_key","api_key":"k2-literal","var_name":"sid","location":"cookie"}`),
		`{"name":"old","tool_provider":{"provider_type":"http","name":"p","url":"`+srv.URL+`/o/{x}","http_method":"DELETE","body_field":null}}`)
	cat := attach(t, utcp(t, httptool.UTCPConfig{Content: content}))
	for _, c := range []struct {
		tool, args, method, uri, body string
		header                        map[string]string
	}{
		{"m_user.get", `{"id":"../a b","n":9007199254740993}`, "GET", "/u/..%2Fa%20b?fixed=1&n=9007199254740993", "", nil},
		{"m_post", `{"body":{"a":1.0},"q":["x","y"],"o":{"k":1},"X-One":"mine","Host":"evil"}`, "POST", "/p?Host=evil&o=%7B%22k%22%3A1%7D&q=x&q=y", `{"a":1.0}`,
			map[string]string{"Content-Type": "application/merge-patch+json", "X-One": "mine", "X-Two": "two"}},
		{"m_post", `{}`, "POST", "/p", "", map[string]string{"X-One": "default", "Content-Type": ""}},
		{"m_form", `{"data":{"a":"b c"}}`, "PUT", "/f", "a=b%20c", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{"m_key", `{"q":"from the model"}`, "GET", "/k?q=k1-literal", "", nil},
		{"m_basic", `{}`, "GET", "/b", "", map[string]string{"Authorization": "Basic bWU6cHc="}},
		{"m_cookie", `{}`, "GET", "/c", "", map[string]string{"Cookie": "sid=k2-literal"}},
		{"m_old", `{"x":"1","body":"b"}`, "DELETE", "/o/1?body=b", "", nil},
	} {
		call(t, cat, c.tool, c.args)
		got := next()
		if got.Method != c.method || got.URI != c.uri || got.Body != c.body {
			t.Errorf("%s: got %s %s %q", c.tool, got.Method, got.URI, got.Body)
		}
		for name, want := range c.header {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", c.tool, name, got.Header.Get(name), want)
			}
		}
	}
	d, _ := cat.Resolve("m_user.get")
	if d.Tool.Description != "Gets a user." || d.Tool.SideEffects != tools.SideEffectRead || d.Tool.SourceName != "user.get" || len(d.Tool.OutSchema) == 0 {
		t.Errorf("got %+v", d.Tool)
	}
	callError(t, cat, "m_user.get", `{"id":".."}`)
	callError(t, cat, "m_old", `{}`)
}

// TestManualAuth checks the operator's credential in place of a manual's.
func TestManualAuth(t *testing.T) {
	srv, next := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad s3cret-k", http.StatusForbidden) })
	content := manual(
		template("variable", `"url":"`+srv.URL+`/v","auth":{"auth_type":"api_key","api_key":"${API_KEY}","var_name":"X-Key"}`),
		template("query", `"url":"`+srv.URL+`/q","auth":{"auth_type":"api_key","api_key":"$API_KEY","var_name":"k","location":"query"}`),
		template("oauth", `"url":"`+srv.URL+`/o","auth":{"auth_type":"oauth2","token_url":"https://t.example","client_id":"i","client_secret":"s"}`),
		template("header", `"url":"`+srv.URL+`/h","headers":{"X-Team":"$TEAM"}`))
	src := utcp(t, httptool.UTCPConfig{Content: content})
	if names := tools.VisibleNames(attach(t, src), tools.CatalogFilter{}); len(names) != 0 {
		t.Errorf("tools without their credentials: %v", names)
	}
	mustContain(t, fmt.Sprint(src.Refused()), "variable ${API_KEY}: set auth", "variable $API_KEY", `auth of the kind "oauth2"`, "header X-Team holds the variable $TEAM")

	cat := attach(t, utcp(t, httptool.UTCPConfig{Content: content, Headers: map[string]string{"x-team": "blue"},
		Auth: &httptool.Auth{Kind: httptool.AuthAPIKey, Secret: httptool.FixedSecret("s3cret-k")}}))
	for tool, want := range map[string]string{"m_variable": "/v s3cret-k", "m_query": "/q?k=s3cret-k "} {
		e := callError(t, cat, tool, `{}`)
		if strings.Contains(e.Error(), "s3cret") {
			t.Errorf("%s: the error shows the key: %v", tool, e)
		}
		got := next()
		if text := got.URI + " " + got.Header.Get("X-Key"); text != want || got.Header.Get("X-Team") != "blue" {
			t.Errorf("%s: got %s, %v", tool, text, got.Header)
		}
	}
}

func TestRefusedManualTools(t *testing.T) {
	content := manual(
		template("good", `"url":"https://api.example.com/x"`), template("good", `"url":"https://api.example.com/y"`),
		`{"name":"text","tool_call_template":{"call_template_type":"text","file_path":"a.txt"}}`,
		`{"name":"cli","tool_call_template":{"call_template_type":"cli","commands":[{"command":"rm -rf /"}]}}`,
		`{"name":"mcp","tool_provider":{"provider_type":"mcp"}}`, `{"name":"gql","tool_call_template":{"call_template_type":"graphql","url":"https://a"}}`,
		`{"name":"none"}`, `{"description":"nameless"}`, `{"name":"in","inputs":{"type":"nope"},"tool_call_template":{"call_template_type":"http","url":"https://a.example"}}`,
		template("host", `"url":"https://{h}.example/x"`), template("relative", `"url":"/x"`), template("private", `"url":"http://169.254.169.254/"`),
		template("file", `"url":"file:///etc/passwd"`), template("method", `"url":"https://a.example","http_method":"G T"`),
		template("split", `"url":"https://a.example","headers":{"X":"a\r\nb"}`))
	src, err := httptool.NewUTCP(httptool.UTCPConfig{Name: "m", Content: content})
	if err != nil {
		t.Fatal(err)
	}
	cat := attach(t, src)
	if d := cmp.Diff([]string{"m_good"}, tools.VisibleNames(cat, tools.CatalogFilter{})); d != "" {
		t.Error(d)
	}
	reasons := map[string]string{"good": "twice", "text": "allow_text", "cli": "runs a command", "mcp": "MCP server", "gql": `"graphql" is not supported`,
		"none": "tool_call_template", "/tools/7": "without a name", "in": "inputs:", "host": "must not come from arguments", "relative": "expected a URL",
		"private": "allow_private", "file": "expected", "method": "not a method", "split": "not a header"}
	for _, r := range src.Refused() {
		want, ok := reasons[r.Name]
		if !ok {
			t.Errorf("refused: %v", r)
		}
		mustContain(t, r.Err.Error(), want)
		delete(reasons, r.Name)
	}
	if len(reasons) > 0 {
		t.Errorf("not refused: %v", reasons)
	}
}

// TestManualLists reads manuals through a list of providers, beside texts.
func TestManualLists(t *testing.T) {
	srv, next := serve(t, answerJSON)
	mux := http.NewServeMux()
	mux.HandleFunc("/utcp", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(manual(template("a", `"url":"`+srv.URL+`/a"`)))
	})
	docs, _ := serve(t, mux.ServeHTTP)
	dir := t.TempDir()
	files := map[string]string{
		"list.yaml": "- {name: far, provider_type: http, url: " + docs.URL + "/utcp}\n- {name: near, call_template_type: text, file_path: near.json}\n" +
			"- {name: gone, call_template_type: http, url: " + docs.URL + "/gone}\n- {name: out, provider_type: text, file_path: ../out.json}\n- {name: sse, provider_type: sse}\n",
		"near.json": `{"tools":[{"name":"note","tool_call_template":{"call_template_type":"text","file_path":"note.txt"}},
			{"name":"json","outputs":{"type":"object"},"tool_call_template":{"call_template_type":"text","content":"{\"a\":1.50}"}},
			{"name":"escape","tool_call_template":{"call_template_type":"text","file_path":"../../etc/passwd"}}]}`,
		"note.txt": "hello",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src := utcp(t, httptool.UTCPConfig{Manual: filepath.Join(dir, "list.yaml"), AllowText: true, Exclude: []string{"*.none"}})
	cat := attach(t, src)
	want := []string{"m_far.a", "m_near.json", "m_near.note"}
	if d := cmp.Diff(want, tools.VisibleNames(cat, tools.CatalogFilter{})); d != "" {
		t.Fatal(d, src.Refused())
	}
	call(t, cat, "m_far.a", `{}`)
	next()
	if res := call(t, cat, "m_near.note", `{}`); res.Value != "hello" {
		t.Errorf("got %+v", res)
	}
	if res := call(t, cat, "m_near.json", `{}`); string(res.Structured) != `{"a":1.50}` {
		t.Errorf("got %s", res.Structured)
	}
	refused := fmt.Sprint(src.Refused())
	mustContain(t, refused, "gone", "HTTP 404", "out", "escape", "sse", "over sse")
	if n := len(src.Refused()); n != 4 {
		t.Errorf("%d refused: %s", n, refused)
	}
}

func TestManualSelection(t *testing.T) {
	content := manual(template("a.one", `"url":"https://a.example/1"`), template("a.two", `"url":"https://a.example/2"`),
		`{"name":"b","tags":["x"],"tool_call_template":{"call_template_type":"http","url":"https://a.example/3"}}`)
	src := utcp(t, httptool.UTCPConfig{Content: content, Include: []string{"a.*", "tag:x", "nope"}, Exclude: []string{"m_a.two"}, Prefix: "p."})
	cat := attach(t, src)
	if d := cmp.Diff([]string{"p.a.one", "p.a.two", "p.b"}, tools.VisibleNames(cat, tools.CatalogFilter{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"nope"}, src.Unmatched()); d != "" {
		t.Error(d)
	}
	src = utcp(t, httptool.UTCPConfig{Content: content, Exclude: []string{"m_a.two", "tag:x"}})
	if d := cmp.Diff([]string{"m_a.one"}, tools.VisibleNames(attach(t, src), tools.CatalogFilter{})); d != "" {
		t.Error(d)
	}
}

// TestCheckManual checks that only what is wrong is a fault, and that no
// manual is fetched for it.
func TestCheckManual(t *testing.T) {
	list := []byte(`{"providers":[{"name":"far","provider_type":"http","url":"http://127.0.0.1:1/x"},{"name":"sse","provider_type":"sse"}]}`)
	if err := utcp(t, httptool.UTCPConfig{Manual: "list.json", Content: list}).Check(context.Background()); err != nil {
		t.Errorf("a list: %v", err)
	}
	content := manual(`{"name":"cli","tool_call_template":{"call_template_type":"cli"}}`, template("bad", `"url":"nowhere"`))
	err := utcp(t, httptool.UTCPConfig{Manual: "m.json", Content: content}).Check(context.Background())
	if err == nil || strings.Contains(err.Error(), "command") {
		t.Fatalf("got %v", err)
	}
	mustContain(t, err.Error(), "m.json:1:", `url "nowhere"`)
}

func TestManualServer(t *testing.T) {
	srv, next := serve(t, answerJSON)
	content := manual(template("a", `"url":"https://api.example.com/v1/{x}"`))
	cat := attach(t, utcp(t, httptool.UTCPConfig{Content: content, ServerURL: srv.URL + "/base/"}))
	call(t, cat, "m_a", `{"x":"1"}`)
	if got := next().URI; got != "/base/v1/1" {
		t.Errorf("got %s", got)
	}
}

func TestBadManuals(t *testing.T) {
	for content, want := range map[string]string{
		`"x"`: "expected a UTCP manual", `{}`: `"tools" is missing`, `{"tools":1}`: "not a list", `{"openapi":"3.0.0"}`: "OpenAPI document",
		"a: [": "m.json:1:", ``: "empty",
	} {
		src := utcp(t, httptool.UTCPConfig{Manual: "m.json", Content: []byte(content)})
		_, err := src.Discover(context.Background())
		var at *httptool.DocumentError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", content, err, want)
		}
	}
	for want, cfg := range map[string]httptool.UTCPConfig{
		"name is missing": {Manual: "a"}, "manual is missing": {Name: "a"}, "allow_private": {Name: "a", Manual: "http://127.0.0.1/x"},
		"no secret": {Name: "a", Manual: "f", Auth: &httptool.Auth{Kind: "bearer"}}, "response mode": {Name: "a", Manual: "f", Responses: "x"},
	} {
		if _, err := httptool.NewUTCP(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
