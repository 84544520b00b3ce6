package httptool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

// FuzzDocument checks that no document, however broken, does worse than give
// an error, and that the schemas of what it gives are JSON.
func FuzzDocument(f *testing.F) {
	for _, name := range []string{"shop.yaml", "badref.yaml", "named/api.yaml"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(document("3.0.0", `"paths":{"/a/{b}":{"get":{"parameters":[{"$ref":"#/paths/~1a~1{b}/get/parameters/0"}]}}}`))
	f.Add([]byte(swaggerDocument))
	f.Add(document("3.1.0", securedDocument))
	f.Add([]byte("openapi: 3.1.0\npaths: &p\n  /a: {<<: *p, get: {}}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		src, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "f", Content: content, ServerURL: "https://h.example"})
		if err != nil {
			t.Fatal(err)
		}
		list, err := src.Discover(context.Background())
		if err != nil {
			return
		}
		for _, d := range list {
			if !json.Valid(d.Tool.ArgsSchema) || len(d.Tool.OutSchema) > 0 && !json.Valid(d.Tool.OutSchema) {
				t.Fatalf("%s: args %s out %s", d.Tool.Name, d.Tool.ArgsSchema, d.Tool.OutSchema)
			}
		}
	})
}

// FuzzUTCP checks that no manual does worse than give an error, and that the
// schemas of what it gives are JSON.
func FuzzUTCP(f *testing.F) {
	f.Add(manual(template("a", `"url":"https://a.example/{x}?y={z}","auth":{"auth_type":"api_key","api_key":"k"},"header_fields":["H"],"headers":{"A":"b"}`)))
	f.Add([]byte(`{"tools":[{"name":"o","outputs":{"$defs":{}},"tool_provider":{"provider_type":"http","url":"http://h:1/x","body_field":null}}]}`))
	f.Add([]byte("- {name: a, provider_type: text, file_path: b}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		src, err := httptool.NewUTCP(httptool.UTCPConfig{Name: "f", Manual: "m.json", Content: content, AllowText: true})
		if err != nil {
			return
		}
		list, err := src.Discover(noNetwork())
		if err != nil {
			return
		}
		for _, d := range list {
			if !json.Valid(d.Tool.ArgsSchema) || len(d.Tool.OutSchema) > 0 && !json.Valid(d.Tool.OutSchema) {
				t.Fatalf("%s: args %s out %s", d.Tool.Name, d.Tool.ArgsSchema, d.Tool.OutSchema)
			}
		}
	})
}

// noNetwork is a context under which nothing is fetched.
func noNetwork() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// FuzzMultipart checks that whatever the argument, the parts that arrive are
// those that were given.
func FuzzMultipart(f *testing.F) {
	f.Add("name", "file.png", "image/png", []byte("\x89PNG"))
	f.Add("a\"b\r\n", "../x\r\nX: y", "a\nb", []byte("--boundary"))
	srv, next := serveFuzz(f)
	cat := attachFuzz(f, document("3.0.0", `"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"multipart/form-data":{
		"schema":{"type":"object","additionalProperties":true}}}}}}}`), srv)
	f.Fuzz(func(t *testing.T, name, filename, media string, content []byte) {
		if name == "" || !utf8.ValidString(name+filename+media) {
			return
		}
		args, _ := json.Marshal(map[string]any{"body": map[string]any{name: map[string]any{
			"filename": filename, "content_type": media, "data": base64.StdEncoding.EncodeToString(content)}}})
		if _, err := tools.Invoke(context.Background(), cat, "f_a", args); err != nil {
			return
		}
		got := parts(t, next())
		if len(got) != 1 || got[0].Content != string(content) {
			t.Fatalf("%s: got %q", args, got)
		}
	})
}

// FuzzManifest checks that no manifest does worse than give an error.
func FuzzManifest(f *testing.F) {
	b, err := os.ReadFile("testdata/manifest.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, content []byte) {
		if content == nil {
			return
		}
		_, _ = httptool.NewManifest(httptool.ManifestConfig{Name: "f", Content: content,
			Secret: func(string) (string, error) { return "s", nil }})
	})
}

// serveFuzz starts a server for the time of a fuzz test, and returns its URL
// and what gives the request that arrived last.
func serveFuzz(f *testing.F) (string, func() seen) {
	requests := make(chan seen, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r.Method, r.RequestURI, string(body), r.Header.Clone()}
		answerJSON(w, r)
	}))
	f.Cleanup(srv.Close)
	return srv.URL, func() seen { return <-requests }
}

func attachFuzz(f *testing.F, doc []byte, url string) tools.ToolCatalog {
	src, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "f", Content: doc, ServerURL: url, Network: httptool.Network{AllowPrivate: true}})
	if err != nil {
		f.Fatal(err)
	}
	list, err := src.Discover(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = src.Close(context.Background()) })
	cat := tools.NewCatalog().(tools.LiveCatalog)
	cat.SwapSource(src.SourceID(), list)
	return cat
}
