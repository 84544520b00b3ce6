package httptool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools/httptool"
)

// TestNamedPlaces follows anchors, $id and $self, and checks what OpenAPI 3.2
// adds to methods and parameters.
func TestNamedPlaces(t *testing.T) {
	srv, next := serve(t, answerJSON)
	src := openAPI(t, httptool.OpenAPIConfig{Document: "testdata/named/api.yaml", ServerURL: srv.URL})
	cat := attach(t, src)
	for tool, want := range map[string]string{
		"api_a":   `"$defs":{"Box":{"type":"object","properties":{"inner":{"$ref":"#/$defs/Box"}}}}`,
		"api_ask": `"$defs":{"Ask":{"type":"object","required":["q"]`,
		"api_id":  `"$defs":{"Tree":{"type":"string","enum":["oak"]}}`,
	} {
		d, ok := cat.Resolve(tool)
		if !ok {
			t.Errorf("%s is missing: %v", tool, src.Refused())
			continue
		}
		mustContain(t, string(d.Tool.ArgsSchema), want)
	}
	for _, c := range []struct{ tool, args, method, uri string }{
		{"api_copy", `{}`, "COPY", "/a"},
		{"api_ask", `{"body":{"q":"x"}}`, "QUERY", "/a"},
		{"api_self", `{"q":{"a":"x y","l":["1","2"]}}`, "GET", "/self?a=x%20y&l=1,2"},
		{"api_self", `{}`, "GET", "/self"},
	} {
		call(t, cat, c.tool, c.args)
		if got := next(); got.Method != c.method || got.URI != c.uri {
			t.Errorf("%s: got %s %s", c.tool, got.Method, got.URI)
		}
	}
	refused := fmt.Sprint(src.Refused())
	mustContain(t, refused, "api_elsewhere", "another origin", "api_nowhere", "no such anchor")
	if n := len(src.Refused()); n != 2 {
		t.Errorf("%d refused: %s", n, refused)
	}
}

// TestSelfIsTheBase checks that the servers of a file are relative to its $self.
func TestSelfIsTheBase(t *testing.T) {
	src, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "api", Document: "testdata/named/api.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := src.Discover(context.Background())
	if err != nil || len(list) == 0 {
		t.Fatalf("%d tools, %v, %v", len(list), err, src.Refused())
	}
}

func TestQuerystrings(t *testing.T) {
	srv, next := serve(t, answerJSON)
	for media, c := range map[string]struct{ args, want string }{
		"application/json": {`{"q":{"a":[1]}}`, "/a?%7B%22a%22%3A%5B1%5D%7D"},
		"text/plain":       {`{"q":"a b&c"}`, "/a?a%20b%26c"},
	} {
		doc := document("3.2.0", `"paths":{"/a":{"get":{"operationId":"a","parameters":[{"in":"querystring","name":"q","content":{"`+media+`":{"schema":{}}}}]}}}`)
		cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerURL: srv.URL}))
		call(t, cat, "api_a", c.args)
		if got := next().URI; got != c.want {
			t.Errorf("%s: got %s, want %s", media, got, c.want)
		}
	}
}

func TestServerVariables(t *testing.T) {
	srv, next := serve(t, answerJSON)
	doc := document("3.1.0", `"servers":[{"url":"`+srv.URL+`/{v}/{region}{rest}","variables":{"v":{"default":"v1","enum":["v1","v2"]},
		"region":{"enum":["eu","us"]},"rest":{"default":""}}}],"paths":{"/a":{"get":{"operationId":"a"}}}`)
	for values, want := range map[string]string{"": "/v1/eu/a", "v=v2": "/v2/eu/a", "region=us": "/v1/us/a"} {
		name, value, _ := strings.Cut(values, "=")
		cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerVariables: map[string]string{name: value}}))
		call(t, cat, "api_a", `{}`)
		if got := next().URI; got != want {
			t.Errorf("%s: got %s, want %s", values, got, want)
		}
	}
	src := openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerVariables: map[string]string{"v": "v9"}})
	attach(t, src)
	mustContain(t, fmt.Sprint(src.Refused()), `set to "v9": expected one of v1, v2`)
}

// TestManySubtypes checks that a base type does not bring thousands of others.
func TestManySubtypes(t *testing.T) {
	var mapping, subtypes strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&mapping, `,"s%d":"#/components/schemas/S%d"`, i, i)
		fmt.Fprintf(&subtypes, `,"S%d":{"type":"object"}`, i)
	}
	doc := document("3.0.3", `"components":{"schemas":{"Base":{"type":"object","discriminator":{"propertyName":"k","mapping":{`+mapping.String()[1:]+`}}}`+
		subtypes.String()+`}},"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Base"}}}}}}}`)
	cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerURL: "https://h.example"}))
	d, _ := cat.Resolve("api_a")
	mustContain(t, string(d.Tool.ArgsSchema), `"$defs":{"Base":{"type":"object","discriminator":{"propertyName":"k"}}}`)
}

func TestDiscriminatorMapping(t *testing.T) {
	doc := document("3.1.0", `"components":{"schemas":{
		"Pet":{"discriminator":{"propertyName":"kind","mapping":{"cat":"#/components/schemas/Cat","d":"Dog","x":"models/none.yml#/x"}},"oneOf":[{"$ref":"#/components/schemas/Cat"},{"$ref":"#/components/schemas/Dog"}]},
		"Cat":{"type":"object","required":["kind"],"properties":{"kind":{"const":"cat"},"friend":{"$ref":"#/components/schemas/Pet"}}},
		"Dog":{"type":"object","required":["kind"],"properties":{"kind":{"const":"d"}}}}},
		"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Pet"}}}}}}}`)
	srv, next := serve(t, answerJSON)
	cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerURL: srv.URL}))
	d, _ := cat.Resolve("api_a")
	mustContain(t, string(d.Tool.ArgsSchema), `"discriminator":{"propertyName":"kind","mapping":{"cat":"#/$defs/Cat","d":"#/$defs/Dog"}}`,
		`"Cat":{"type":"object"`, `"Dog":{"type":"object"`)
	call(t, cat, "api_a", `{"body":{"kind":"cat","friend":{"kind":"d"}}}`)
	next()
	callError(t, cat, "api_a", `{"body":{"kind":"cow"}}`)
}
