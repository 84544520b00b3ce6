package httptool_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools/httptool"
)

const swaggerDocument = `{"swagger":"2.0","info":{"title":"t","version":"1"},"host":"h.example","basePath":"/v2","schemes":["http","https"],
	"consumes":["application/json","application/xml"],"produces":["text/csv","application/json"],
	"securityDefinitions":{"key":{"type":"apiKey","in":"header","name":"X-Key"}},
	"definitions":{"Pet":{"type":"object","discriminator":"kind","required":["kind"],"properties":{"kind":{"type":"string"},"owner":{"type":"string","x-nullable":true}}}},
	"parameters":{"Id":{"name":"id","in":"path","type":"integer","format":"int64","required":true,"description":"The pet."}},
	"paths":{
		"/pets/{id}":{"parameters":[{"$ref":"#/parameters/Id"}],
			"put":{"operationId":"put","parameters":[{"in":"body","name":"pet","required":true,"description":"A pet.","schema":{"$ref":"#/definitions/Pet"}},
				{"in":"header","name":"X-Key","type":"string"}],"responses":{"200":{"description":"d","schema":{"$ref":"#/definitions/Pet"}}}},
			"get":{"operationId":"get","schemes":["http"],"produces":["application/json"],"parameters":[
				{"in":"query","name":"csv","type":"array","items":{"type":"string"}},
				{"in":"query","name":"ssv","type":"array","collectionFormat":"ssv","items":{"type":"string"}},
				{"in":"query","name":"tsv","type":"array","collectionFormat":"tsv","items":{"type":"string"}},
				{"in":"query","name":"pipes","type":"array","collectionFormat":"pipes","items":{"type":"string"}},
				{"in":"query","name":"multi","type":"array","collectionFormat":"multi","items":{"type":"string"}},
				{"in":"header","name":"X-List","type":"array","collectionFormat":"pipes","items":{"type":"string"}}]}},
		"/form":{"post":{"operationId":"form","consumes":["application/x-www-form-urlencoded"],"parameters":[
			{"in":"formData","name":"a","type":"string","required":true,"default":"x"},{"in":"formData","name":"l","type":"array","collectionFormat":"pipes","items":{"type":"integer"}}]}},
		"/upload":{"post":{"operationId":"upload","parameters":[{"in":"formData","name":"pic","type":"file","description":"A picture."},{"in":"formData","name":"note","type":"string"}]}}}}`

func swagger(t *testing.T, url string) *httptool.OpenAPI {
	t.Helper()
	return openAPI(t, httptool.OpenAPIConfig{Name: "s", Content: []byte(swaggerDocument), ServerURL: url,
		Auth: &httptool.Auth{Kind: httptool.AuthAPIKey, Secret: httptool.FixedSecret("k3y-value")}})
}

func TestSwagger(t *testing.T) {
	srv, next := serve(t, answerJSON)
	cat := attach(t, swagger(t, srv.URL+"/v2"))
	for _, c := range []struct{ tool, args, method, uri, body, media, accept string }{
		{"s_put", `{"id":9007199254740993,"body":{"kind":"cat","owner":null}}`, "PUT", "/v2/pets/9007199254740993", `{"kind":"cat","owner":null}`, "application/json", "application/json, text/csv;q=0.5, */*;q=0.1"},
		{"s_get", `{"id":1,"csv":["a","b"],"ssv":["a","b"],"tsv":["a","b"],"pipes":["a","b"],"multi":["a","b"],"X-List":["a","b"]}`,
			"GET", "/v2/pets/1?csv=a,b&ssv=a%20b&tsv=a%09b&pipes=a%7Cb&multi=a&multi=b", "", "", "application/json, */*;q=0.1"},
		{"s_form", `{"body":{"a":"x y","l":[1,2]}}`, "POST", "/v2/form", "a=x%20y&l=1%7C2", "application/x-www-form-urlencoded", "application/json, text/csv;q=0.5, */*;q=0.1"},
	} {
		call(t, cat, c.tool, c.args)
		got := next()
		if got.Method != c.method || got.URI != c.uri || got.Body != c.body || got.Header.Get("Content-Type") != c.media {
			t.Errorf("%s: got %s %s %q %q", c.tool, got.Method, got.URI, got.Body, got.Header.Get("Content-Type"))
		}
		if got.Header.Get("Accept") != c.accept {
			t.Errorf("%s: Accept %q", c.tool, got.Header.Get("Accept"))
		}
		if got.Header.Get("X-Key") != "k3y-value" {
			t.Errorf("%s: the key is %q", c.tool, got.Header.Get("X-Key"))
		}
	}
	call(t, cat, "s_upload", `{"body":{"pic":{"data":"AAE="},"note":"n"}}`)
	want := []part{{`form-data; name="pic"; filename="pic"`, "application/octet-stream", "\x00\x01"}, {`form-data; name="note"`, "", "n"}}
	if d := cmp.Diff(want, parts(t, next())); d != "" {
		t.Error(d)
	}
}

func TestSwaggerSchemas(t *testing.T) {
	cat := attach(t, swagger(t, ""))
	put, _ := cat.Resolve("s_put")
	want := `{"type":"object","properties":{"id":{"type":"integer","format":"int64","description":"The pet."},` +
		`"body":{"$ref":"#/$defs/Pet","description":"A pet."}},"required":["id","body"],"additionalProperties":false,` +
		`"$defs":{"Pet":{"type":"object","discriminator":{"propertyName":"kind"},"required":["kind"],` +
		`"properties":{"kind":{"type":"string"},"owner":{"type":["string","null"]}}}}}`
	if d := cmp.Diff(want, string(put.Tool.ArgsSchema)); d != "" {
		t.Error(d)
	}
	form, _ := cat.Resolve("s_form")
	want = `{"type":"object","properties":{"body":{"type":"object","properties":{"a":{"type":"string","default":"x"},` +
		`"l":{"type":"array","items":{"type":"integer"}}},"required":["a"]}},"required":["body"],"additionalProperties":false}`
	if d := cmp.Diff(want, string(form.Tool.ArgsSchema)); d != "" {
		t.Error(d)
	}
	upload, _ := cat.Resolve("s_upload")
	mustContain(t, string(upload.Tool.ArgsSchema), `"pic":{"type":"object","properties":{"filename"`, `"description":"A picture."`)
	if !json.Valid(put.Tool.OutSchema) || len(put.Tool.OutSchema) == 0 {
		t.Errorf("output schema %s", put.Tool.OutSchema)
	}
}

// TestSwaggerServers checks where operations are called without a server_url.
func TestSwaggerServers(t *testing.T) {
	for name, c := range map[string]struct{ head, want string }{
		"https preferred": {`"host":"h.example","basePath":"/v2","schemes":["http","https"]`, ""},
		"private":         {`"host":"10.0.0.1","schemes":["http"]`, "allow_private"},
		"no host":         {`"basePath":"/v2"`, "relative"},
		"template":        {`"host":"{h}.example"`, "malformed"},
	} {
		doc := []byte(`{"swagger":"2.0",` + c.head + `,"paths":{"/a":{"get":{"operationId":"a"}}}}`)
		src, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "x", Content: doc})
		if err != nil {
			t.Fatal(err)
		}
		attach(t, src)
		refused := src.Refused()
		if c.want == "" && len(refused) > 0 || c.want != "" && len(refused) != 1 {
			t.Errorf("%s: refused %v", name, refused)
		} else if c.want != "" {
			mustContain(t, refused[0].Err.Error(), c.want)
		}
	}
}
