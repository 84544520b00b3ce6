package httptool_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools/httptool"
)

// bodySource is an API with one operation that has a request body.
func bodySource(t *testing.T, version, content, url string) *httptool.OpenAPI {
	t.Helper()
	doc := document(version, `"paths":{"/a":{"post":{"operationId":"a","requestBody":{"required":true,"content":`+content+`}}},
		"/b":{"patch":{"operationId":"b","requestBody":{"content":`+content+`}}}}`)
	return openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerURL: url})
}

// argsSchema returns a tool's properties and what is required.
func argsSchema(t *testing.T, src *httptool.OpenAPI) (props map[string]json.RawMessage, required []string) {
	t.Helper()
	d, ok := attach(t, src).Resolve("api_a")
	if !ok {
		t.Fatalf("refused: %v", src.Refused())
	}
	var s struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(d.Tool.ArgsSchema, &s); err != nil {
		t.Fatal(err)
	}
	return s.Properties, s.Required
}

// part is one part of a multipart body as it arrived.
type part struct{ Disposition, Type, Content string }

func parts(t *testing.T, s seen) []part {
	t.Helper()
	kind, params, err := mime.ParseMediaType(s.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		t.Fatalf("Content-Type %q: %v", s.Header.Get("Content-Type"), err)
	}
	var list []part
	r := multipart.NewReader(bytes.NewReader([]byte(s.Body)), params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(p)
		list = append(list, part{p.Header.Get("Content-Disposition"), p.Header.Get("Content-Type"), string(content)})
	}
}

func TestMultipart(t *testing.T) {
	srv, next := serve(t, answerJSON)
	field := func(name string) string { return `form-data; name="` + name + `"` }
	const uploads = `{"multipart/form-data":{"schema":{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"},
		"meta":{"type":"object"},"tags":{"type":"array","items":{"type":"string"}},"photo":{"type":"string","format":"binary"},
		"more":{"type":"array","items":{"type":"string","format":"binary"}},"expand":{"type":"array","items":{"type":"string"}}}},
		"encoding":{"photo":{"contentType":"image/png, image/*"},"title":{"contentType":"text/html"},"expand":{"style":"deepObject","explode":true}}}}`
	const nested = `{"multipart/form-data":{"schema":{"allOf":[{"type":"object","properties":{"doc":{"contentMediaType":"application/pdf"}}}]}}}`
	const one = `{"multipart/form-data":{"schema":{"type":"string","format":"binary"}}}`
	const mixed = `{"multipart/mixed":{"itemSchema":{"type":"object"},"prefixEncoding":[{"contentType":"application/json"}],"itemEncoding":{"contentType":"text/csv"}}}`
	for name, c := range map[string]struct {
		content, args string
		want          []part
	}{
		"fields": {uploads, `{"title":"a\"b","n":9007199254740993,"meta":{"k":[1]},"tags":["x","y"],"expand":["z"]}`, []part{
			{field("title"), "text/html", `a"b`}, {field("n"), "", "9007199254740993"}, {field("meta"), "application/json", `{"k":[1]}`},
			{field("tags"), "", "x"}, {field("tags"), "", "y"}, {field("expand[0]"), "", "z"}}},
		"files": {uploads, `{"photo":{"filename":"a\r\nb\".png","data":"iVBORw0KGgo="},"more":[{"text":"hello"},{"data":"_-8","content_type":"x/y"}]}`, []part{
			{`form-data; name="photo"; filename="a%0D%0Ab\".png"`, "image/png", "\x89PNG\r\n\x1a\n"},
			{`form-data; name="more"; filename="more"`, "text/plain; charset=utf-8", "hello"},
			{`form-data; name="more"; filename="more"`, "x/y", "\xff\xef"}}},
		"allOf":      {nested, `{"doc":{"data":"JVBERg=="}}`, []part{{`form-data; name="doc"; filename="doc"`, "application/octet-stream", "%PDF"}}},
		"one file":   {one, `{"filename":"x.txt","text":"t"}`, []part{{`form-data; name="file"; filename="x.txt"`, "text/plain; charset=utf-8", "t"}}},
		"positional": {mixed, `[{"a":1},{"filename":"t.csv","text":"b,c"}]`, []part{{"", "application/json", `{"a":1}`}, {"", "text/csv", "b,c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			cat := attach(t, bodySource(t, "3.2.0", c.content, srv.URL))
			call(t, cat, "api_a", `{"body":`+c.args+`}`)
			if d := cmp.Diff(c.want, parts(t, next())); d != "" {
				t.Error(d)
			}
		})
	}
	cat := attach(t, bodySource(t, "3.0.3", uploads, srv.URL))
	for args, want := range map[string]string{
		`{"photo":{"data":"%%"}}`:                                   "base64",
		`{"photo":{"data":"AA==","content_type":"a\r\nX-Evil: b"}}`: "line break",
		`{"photo":"text"}`:                                          "invalid arguments",
		`{"photo":{"data":"AA==","text":"t"}}`:                      "invalid arguments",
	} {
		mustContain(t, callError(t, cat, "api_a", `{"body":`+args+`}`).Error(), want)
	}
}

func TestBodies(t *testing.T) {
	srv, next := serve(t, answerJSON)
	for name, c := range map[string]struct{ content, args, media, body string }{
		"bytes":          {`{"application/octet-stream":{}}`, `{"body":"AAH/"}`, "application/octet-stream", "\x00\x01\xff"},
		"image, default": {`{"image/png":{},"image/jpeg":{}}`, `{"body":"AAH/"}`, "image/png", "\x00\x01\xff"},
		"image, chosen":  {`{"image/png":{},"image/jpeg":{}}`, `{"body":"AAH/","content_type":"image/jpeg"}`, "image/jpeg", "\x00\x01\xff"},
		"any image":      {`{"image/*":{"schema":{"type":"string","format":"binary"}}}`, `{"body":"AA","content_type":"image/gif"}`, "image/gif", "\x00"},
		"anything":       {`{"*/*":{"schema":{"type":"string","format":"binary"}}}`, `{"body":"AA"}`, "application/octet-stream", "\x00"},
		"any JSON":       {`{"*/*":{"schema":{"type":"object"}}}`, `{"body":{"a":1.50}}`, "application/json", `{"a":1.50}`},
		"markdown":       {`{"text/plain":{"schema":{"type":"string"}},"text/x-markdown":{"schema":{"type":"string"}}}`, `{"body":"# h","content_type":"text/x-markdown"}`, "text/x-markdown", "# h"},
		"xml":            {`{"application/xml":{"schema":{"type":"object"}}}`, `{"body":"<a/>"}`, "application/xml", "<a/>"},
		"yaml as JSON":   {`{"application/yaml":{"schema":{"type":"object"}}}`, `{"body":{"a":1}}`, "application/yaml", `{"a":1}`},
		"lines":          {`{"application/jsonl":{"itemSchema":{"type":"object"}}}`, `{"body":[{"a": 1},{"b":2}]}`, "application/jsonl", "{\"a\":1}\n{\"b\":2}\n"},
		"records":        {`{"application/json-seq":{"itemSchema":{}}}`, `{"body":[1]}`, "application/json-seq", "\x1e1\n"},
		"patch":          {`{"application/json-patch+json":{"schema":{"type":"array"}},"application/merge-patch+json":{"schema":{"type":"object"}}}`, `{"body":{"a":null},"content_type":"application/merge-patch+json"}`, "application/merge-patch+json", `{"a":null}`},
		"JSON first":     {`{"multipart/form-data":{},"application/xml":{},"application/hal+json":{},"application/json":{"schema":{"type":"object"}}}`, `{"body":{"a":1}}`, "application/json", `{"a":1}`},
		"form": {`{"application/x-www-form-urlencoded":{"schema":{"type":"object"},"encoding":{"j":{"contentType":"application/json"},"csv":{"explode":false},"r":{"allowReserved":true}}}}`,
			`{"body":{"a":{"b":1},"j":[1,2],"csv":["x","y"],"r":"/?","n":null}}`, "application/x-www-form-urlencoded", "a=%7B%22b%22%3A1%7D&j=%5B1%2C2%5D&csv=x,y&r=/?"},
	} {
		t.Run(name, func(t *testing.T) {
			cat := attach(t, bodySource(t, "3.2.0", c.content, srv.URL))
			call(t, cat, "api_a", c.args)
			if got := next(); got.Body != c.body || got.Header.Get("Content-Type") != c.media {
				t.Errorf("got %q %q, want %q %q", got.Header.Get("Content-Type"), got.Body, c.media, c.body)
			}
		})
	}
}

func TestContentTypeArgument(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    string // the schema of content_type, "" for none
		must    bool
	}{
		"one":       {`{"image/png":{}}`, "", false},
		"variants":  {`{"application/json":{},"text/json":{}}`, "", false},
		"any":       {`{"*/*":{"schema":{"type":"string","format":"binary"}}}`, `{"default":"application/octet-stream","description":"The media type of the body.","type":"string"}`, false},
		"two":       {`{"image/png":{},"image/gif":{}}`, `{"default":"image/png","description":"The media type of the body.","enum":["image/png","image/gif"],"type":"string"}`, false},
		"any image": {`{"image/*":{}}`, `{"description":"The media type of the body, such as image/....","type":"string"}`, true},
	} {
		props, required := argsSchema(t, bodySource(t, "3.1.0", c.content, "https://h.example"))
		if got := string(props["content_type"]); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if must := len(required) == 2; must != c.must {
			t.Errorf("%s: required %v", name, required)
		}
	}
}

func TestPatchBodies(t *testing.T) {
	props, _ := argsSchema(t, bodySource(t, "3.1.0", `{"application/json-patch+json":{"schema":{"type":"array"}},
		"application/merge-patch+json":{"schema":{"type":"object"}}}`, "https://h.example"))
	if got, want := string(props["body"]), `{"anyOf":[{"type":"array"},{"type":"object"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBadBodies(t *testing.T) {
	cat := attach(t, bodySource(t, "3.1.0", `{"image/*":{}}`, "https://h.example"))
	for args, want := range map[string]string{
		`{"body":"AA","content_type":"a\r\nb"}`: "media type",
		`{"body":"AA","content_type":"png"}`:    "media type",
		`{"body":"!","content_type":"a/b"}`:     "base64",
	} {
		e := callError(t, cat, "api_a", args)
		mustContain(t, e.Error(), want)
	}
	mustContain(t, callError(t, cat, "api_b", `{"body":"AA"}`).Error(), "content_type", "missing")
}
