package httptool_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/toolcrib/toolcrib/tools/httptool"
)

// FuzzDocument checks that no document, however broken, does worse than give
// an error, and that the schemas of what it gives are JSON.
func FuzzDocument(f *testing.F) {
	for _, name := range []string{"shop.yaml", "badref.yaml"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(document("3.0.0", `"paths":{"/a/{b}":{"get":{"parameters":[{"$ref":"#/paths/~1a~1{b}/get/parameters/0"}]}}}`))
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
