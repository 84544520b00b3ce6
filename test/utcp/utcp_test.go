//go:build peers

// Package utcp stands between this module's UTCP source and the official TypeScript SDK: each reads the
// manuals of the other, and both must make the same requests of one manual.
package utcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

// peer is the command that runs testdata/peer.cjs with a job.
func peer(t *testing.T, job any) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", "peer.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	arg, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(peertest.Node(t), script, string(arg))
	cmd.Env = append(os.Environ(), peertest.PeersEnv+"="+peertest.PeersDir(t))
	return cmd
}

// source attaches a manual to a catalog.
func source(t *testing.T, manual string) tools.LiveCatalog {
	t.Helper()
	ctx := context.Background()
	src, err := httptool.NewUTCP(httptool.UTCPConfig{Name: "m", Manual: manual, Prefix: "none",
		Network: httptool.Network{AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close(ctx) })
	list, err := src.Discover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range src.Refused() {
		t.Errorf("%s was refused: %v", r.Name, r.Err)
	}
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, r := range cat.SwapSource(src.SourceID(), list).Refused {
		t.Errorf("%s was refused: %v", r.Name, r.Err)
	}
	return cat
}

func invoke(t *testing.T, cat tools.ToolCatalog, tool, args string) json.RawMessage {
	t.Helper()
	res, err := tools.Invoke(context.Background(), cat, tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res.Structured
}

// echo is what the peer's tools say of the request that reached them.
type echo struct{ Method, URL, Body, Authorization, Key, Trace, Type string }

func TestManualOfThePeer(t *testing.T) {
	server := peertest.Start(t, peer(t, map[string]any{"serve": true}))
	base := server.Line(t, `^listening on (http://\S+)`)[1]
	cat := source(t, base+"/utcp")
	want := []string{"add", "key", "login", "save", "user"}
	if d := cmp.Diff(want, tools.VisibleNames(cat, tools.CatalogFilter{})); d != "" {
		t.Fatal(d)
	}
	if got := string(invoke(t, cat, "add", `{"a":2,"b":3}`)); got != `{"sum":5}` {
		t.Errorf("add: %s", got)
	}
	for _, c := range []struct {
		tool, args string
		want       echo
	}{
		{"user", `{"id":"a/b c","verbose":true}`, echo{Method: "GET", URL: "/users/a%2Fb%20c?verbose=true"}},
		{"save", `{"body":{"n":9007199254740993},"X-Trace":"t1"}`, echo{Method: "POST", URL: "/save", Body: `{"n":9007199254740993}`, Trace: "t1", Type: "application/json"}},
		{"key", `{}`, echo{Method: "GET", URL: "/key", Key: "peer-key"}},
		{"login", `{}`, echo{Method: "GET", URL: "/login", Authorization: "Basic bWU6cHc="}},
	} {
		var got echo
		if err := json.Unmarshal(invoke(t, cat, c.tool, c.args), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.tool, d)
		}
	}
	if _, err := tools.Invoke(context.Background(), cat, "add", json.RawMessage(`{"a":"two","b":3}`)); err == nil {
		t.Error("add took a text for a number")
	}
}

// A request is what arrived, in a form that does not depend on who sent it.
type request struct {
	Method, Path string
	Query        url.Values
	Body         any
	Header       map[string]string
}

// recorder serves one manual and keeps the requests of its tools.
type recorder struct {
	manual []byte

	mu   sync.Mutex
	list []request
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if q.URL.Path == "/utcp" {
		_, _ = w.Write(r.manual)
		return
	}
	raw, _ := io.ReadAll(q.Body)
	got := request{Method: q.Method, Path: q.URL.EscapedPath(), Query: q.URL.Query(), Header: map[string]string{}}
	if json.Unmarshal(raw, &got.Body) != nil {
		got.Body = string(raw)
	}
	for _, name := range []string{"Authorization", "X-Trace", "X-Fixed", "X-Key"} {
		got.Header[name] = q.Header.Get(name)
	}
	if len(raw) > 0 {
		got.Header["Content-Type"], _, _ = strings.Cut(q.Header.Get("Content-Type"), ";")
	}
	r.mu.Lock()
	r.list = append(r.list, got)
	r.mu.Unlock()
	_, _ = io.WriteString(w, `{"path":"`+got.Path+`"}`)
}

func (r *recorder) take() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// call is one call of a tool.
type call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// both is the manual that both sides read, for a server at base.
func both(base string) []byte {
	entry := func(name, template string) string {
		return `{"name":"` + name + `","description":"d","inputs":{"type":"object","properties":{}},"outputs":{"type":"object"},"tags":[],
			"tool_call_template":{"call_template_type":"http",` + template + `}}`
	}
	return []byte(`{"utcp_version":"1.0.1","manual_version":"1.0.0","tools":[` + strings.Join([]string{
		entry("get", `"url":"`+base+`/get","http_method":"GET"`),
		entry("path", `"url":"`+base+`/a/{x}/b/{y}","http_method":"GET"`),
		entry("fixed", `"url":"`+base+`/fixed?v=1","http_method":"DELETE"`),
		entry("post", `"url":"`+base+`/post","http_method":"POST","header_fields":["X-Trace"],"headers":{"X-Fixed":"f"}`),
		entry("put", `"url":"`+base+`/put/{id}","http_method":"PUT","body_field":"data"`),
		entry("patch", `"url":"`+base+`/patch","http_method":"PATCH","content_type":"application/merge-patch+json"`),
		entry("key", `"url":"`+base+`/key","http_method":"GET","auth":{"auth_type":"api_key","api_key":"k-1","var_name":"X-Key","location":"header"}`),
		entry("query", `"url":"`+base+`/query","http_method":"GET","auth":{"auth_type":"api_key","api_key":"k-2","var_name":"key","location":"query"}`),
		entry("basic", `"url":"`+base+`/basic","http_method":"GET","auth":{"auth_type":"basic","username":"me","password":"p:w"}`),
	}, ",") + `]}`)
}

func calls() []call {
	list := []call{}
	for _, c := range [][2]string{
		{"get", `{"q":"a b&c=d/é","n":1.5,"yes":true}`}, {"get", `{}`}, {"path", `{"x":"1/2 ?#","y":"ü","z":"rest"}`}, {"fixed", `{"w":"2"}`},
		{"post", `{"body":{"a":[1,{"b":null}],"t":"é"},"X-Trace":"t-1","q":"1"}`}, {"post", `{"body":{}}`}, {"put", `{"id":"7","data":{"k":"v"}}`},
		{"patch", `{"body":{"gone":null}}`}, {"key", `{}`}, {"query", `{"a":"1"}`}, {"basic", `{}`},
	} {
		list = append(list, call{c[0], json.RawMessage(c[1])})
	}
	return list
}

func TestSameRequestsAsThePeer(t *testing.T) {
	rec := &recorder{}
	server := httptest.NewServer(rec)
	t.Cleanup(server.Close)
	rec.manual = both(server.URL)

	out := peertest.Run(t, peer(t, map[string]any{"manual": server.URL + "/utcp", "calls": calls()}))
	var report struct {
		Tools   []string
		Results []struct {
			Value json.RawMessage
			Error string
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	theirs := rec.take()
	if len(theirs) != len(calls()) {
		t.Fatalf("the peer made %d requests for %d calls: %+v", len(theirs), len(calls()), report.Results)
	}

	cat := source(t, server.URL+"/utcp")
	names := tools.VisibleNames(cat, tools.CatalogFilter{})
	for i, name := range report.Tools {
		report.Tools[i] = strings.TrimPrefix(name, "m.")
	}
	slices.Sort(report.Tools)
	if d := cmp.Diff(report.Tools, names); d != "" {
		t.Errorf("tools of the peer and ours: %s", d)
	}
	for i, c := range calls() {
		got := invoke(t, cat, c.Tool, string(c.Args))
		if r := report.Results[i]; r.Error != "" || string(r.Value) != string(got) {
			t.Errorf("%s %s: the peer got %s %s, we got %s", c.Tool, c.Args, r.Value, r.Error, got)
		}
	}
	if d := cmp.Diff(theirs, rec.take()); d != "" {
		t.Errorf("requests of the peer and ours: %s", d)
	}
}
