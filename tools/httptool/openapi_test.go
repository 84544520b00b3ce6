package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

func TestShop(t *testing.T) {
	srv, next := serve(t, answerJSON)
	src := openAPI(t, httptool.OpenAPIConfig{Name: "shop", Document: "testdata/shop.yaml", ServerURL: srv.URL + "/v1/",
		Auth:    &httptool.Auth{Kind: httptool.AuthBearer, Secret: httptool.FixedSecret("s3cret-token")},
		Headers: map[string]string{"X-Tenant": "acme"}})
	cat := attach(t, src)

	names := tools.VisibleNames(cat, tools.CatalogFilter{})
	want := []string{"shop_createOrder", "shop_delete_orders_by_order_id", "shop_getOrder", "shop_listOrders", "shop_login", "shop_note",
		"shop_upload"}
	if d := cmp.Diff(want, names); d != "" {
		t.Fatal(d)
	}
	for _, c := range []struct {
		tool, args  string
		method, uri string
		body        string
		header      map[string]string
	}{
		{"shop_listOrders", `{"status":["open","a,b"],"filter":{"min":5},"X-Trace":"t 1","session":"s1","page":2}`,
			"GET", "/v1/orders?status=open,a%2Cb&filter%5Bmin%5D=5&page=2", "",
			map[string]string{"Authorization": "Bearer s3cret-token", "X-Trace": "t 1", "Cookie": "session=s1", "X-Tenant": "acme"}},
		{"shop_getOrder", `{"order.id":"../a/b?c","order.id_query":"q"}`, "GET", "/v1/orders/..%2Fa%2Fb%3Fc?order.id=q", "", nil},
		{"shop_createOrder", `{"body":{"item":"x","amount":9007199254740993,"parent":null}}`, "POST", "/v1/orders",
			`{"item":"x","amount":9007199254740993,"parent":null}`, map[string]string{"Content-Type": "application/json"}},
		{"shop_delete_orders_by_order_id", `{"order.id":"7"}`, "DELETE", "/v1/orders/7", "", nil},
		{"shop_login", `{"body":{"user":"a b","roles":["x","y"],"meta":{"k":{"l":1}}}}`, "POST", "/v1/login",
			"user=a%20b&roles=x&roles=y&meta%5Bk%5D%5Bl%5D=1", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{"shop_note", `{"body":"hello\nworld"}`, "PUT", "/v1/note", "hello\nworld", map[string]string{"Content-Type": "text/plain"}},
	} {
		res := call(t, cat, c.tool, c.args)
		if string(res.Structured) != `{"id":9007199254740993,"ok":true}` {
			t.Errorf("%s: result %s", c.tool, res.Structured)
		}
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
}

func TestShopTools(t *testing.T) {
	src := openAPI(t, httptool.OpenAPIConfig{Name: "shop", Document: "testdata/shop.yaml", ServerURL: "https://api.example.com"})
	cat := attach(t, src)
	list, _ := cat.Resolve("shop_listOrders")
	if list.Tool.SideEffects != tools.SideEffectRead || list.Tool.Safety.OpenWorld != tools.Yes || !slices.Equal(list.Tool.Tags, []string{"orders"}) {
		t.Errorf("listOrders: %+v", list.Tool)
	}
	if len(list.Tool.Examples) != 1 {
		t.Errorf("listOrders: examples %v", list.Tool.Examples)
	}
	del, _ := cat.Resolve("shop_delete_orders_by_order_id")
	if s := del.Tool.Safety; s.Destructive != tools.Yes || s.Idempotent != tools.Yes || s.ReadOnly != tools.No {
		t.Errorf("delete: %+v", s)
	}
	mustContain(t, del.Tool.Description, "Deprecated. ")
	create, _ := cat.Resolve("shop_createOrder")
	if create.Tool.Safety.Idempotent != tools.Unset || create.Tool.SideEffects != tools.SideEffectWrite {
		t.Errorf("create: %+v", create.Tool)
	}
	want := `{"type":"object","properties":{"page":{"type":"integer","deprecated":true},"X-Tenant":{"type":"string"},` +
		`"body":{"$ref":"#/$defs/Order"}},"required":["X-Tenant","body"],"additionalProperties":false,` +
		`"$defs":{"Order":{"type":"object","required":["item"],"properties":{"id":{"type":"string","readOnly":true},` +
		`"item":{"type":"string","examples":["book"]},"amount":{"type":["integer","null"],"minimum":0,"exclusiveMinimum":0},` +
		`"parent":{"anyOf":[{"allOf":[{"$ref":"#/$defs/Order"}]},{"type":"null"}]},"children":{"type":"array","items":{"$ref":"#/$defs/Order"}}}}}}`
	if got := string(create.Tool.ArgsSchema); got != want {
		t.Errorf("createOrder:\ngot  %s\nwant %s", got, want)
	}
	refused := src.Refused()
	if len(refused) != 1 || refused[0].Name != "shop_strange" {
		t.Fatalf("refused: %v", refused)
	}
	mustContain(t, refused[0].Err.Error(), `parameters in "matrix"`)
	if err := src.Check(context.Background()); err != nil {
		t.Errorf("what is not supported is reported as a fault: %v", err)
	}
}

func TestNames(t *testing.T) {
	op := func(id string) string { return `{"operationId":"` + id + `","responses":{}}` }
	doc := document("3.1.0", `"servers":[{"url":"https://a.example"}],"paths":{
		"/a":{"get":`+op("repos/list")+`,"post":`+op("same")+`},
		"/b":{"get":`+op("a b")+`,"post":`+op("same")+`},
		"/c":{"get":`+op("a/b")+`},
		"/users/{id}/posts.json":{"get":{"responses":{}}},
		"/":{"get":{"responses":{}}}}`)
	for range 3 {
		src := openAPI(t, httptool.OpenAPIConfig{Name: "x", Content: doc})
		got := map[string]string{}
		list, err := src.Discover(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			got[d.Tool.Name] = d.Tool.SourceName
		}
		want := map[string]string{"x_repos_list": "repos/list", "x_same_post_a": "same", "x_same_post_b": "same", "x_get": "get",
			tools.CanonicalName("x_", "a b"): "a b", tools.CanonicalName("x_", "a/b"): "a/b",
			"x_get_users_by_id_posts_json": "get_users_by_id_posts_json"}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
}

func TestSelectionAndPrefix(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		prefix           string
		want, unmatched  []string
	}{
		{[]string{"GET *"}, nil, "none", []string{"getOrder", "listOrders"}, nil},
		{[]string{"tag:orders", "tag:order"}, []string{"*Order"}, "", []string{"shop_listOrders"}, []string{"tag:order"}},
		{[]string{"log*n", "shop_note"}, nil, "s.", []string{"s.login"}, []string{"shop_note"}},
	} {
		src := openAPI(t, httptool.OpenAPIConfig{Name: "shop", Document: "testdata/shop.yaml", ServerURL: "https://api.example.com",
			Include: c.include, Exclude: c.exclude, Prefix: c.prefix})
		list, err := src.Discover(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range list {
			names = append(names, d.Tool.Name)
		}
		if d := cmp.Diff(c.want, names); d != "" {
			t.Errorf("%v %v: %s", c.include, c.exclude, d)
		}
		if got := src.Unmatched(); !slices.Equal(c.unmatched, got) {
			t.Errorf("%v: unmatched %v, want %v", c.include, got, c.unmatched)
		}
	}
}

func TestServers(t *testing.T) {
	srv, next := serve(t, answerJSON)
	paths := `"paths":{
		"/a":{"get":{"operationId":"a","responses":{}}},
		"/b":{"servers":[{"url":"/path"}],"get":{"operationId":"b","responses":{}}},
		"/c":{"get":{"operationId":"c","servers":[{"url":"` + srv.URL + `/{v}/x","variables":{"v":{"default":"v2"}}}],"responses":{}}}}`
	doc := document("3.0.3", `"servers":[{"url":"../base"}],`+paths)
	mux := http.NewServeMux()
	mux.HandleFunc("/docs/api/openapi.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(doc) })
	docs, _ := serve(t, mux.ServeHTTP)
	cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Document: docs.URL + "/docs/api/openapi.json"}))
	call(t, cat, "api_c", `{}`)
	if got := next().URI; got != "/v2/x/c" {
		t.Errorf("operation server: %s", got)
	}
	mustContain(t, callError(t, cat, "api_a", `{}`).Message, "HTTP 404")

	file := filepath.Join(t.TempDir(), "api.json")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	src := openAPI(t, httptool.OpenAPIConfig{Document: file})
	attach(t, src)
	refused := src.Refused()
	if len(refused) != 2 {
		t.Fatalf("refused: %v", refused)
	}
	mustContain(t, refused[0].Err.Error(), "relative", "server_url")
}

func TestUnresolvableRef(t *testing.T) {
	src := openAPI(t, httptool.OpenAPIConfig{Document: "testdata/badref.yaml", ServerURL: "https://api.example.com"})
	cat := attach(t, src)
	if names := tools.VisibleNames(cat, tools.CatalogFilter{}); !slices.Equal(names, []string{"api_good", "api_lies"}) {
		t.Errorf("the others do not serve: %v", names)
	}
	refused := src.Refused()
	if len(refused) != 1 || refused[0].Name != "api_bad" {
		t.Fatalf("refused: %v", refused)
	}
	var at *httptool.DocumentError
	if !errors.As(refused[0].Err, &at) || at.Line != 14 || at.Pointer != "/paths/~1bad/get/parameters/0/schema/$ref" {
		t.Fatalf("got %#v", refused[0].Err)
	}
	err := src.Check(context.Background())
	mustContain(t, err.Error(), "testdata/badref.yaml:14:", "#/components/schemas/Nowhere", "#/components/schemas/Missing")
}

func TestReferencedFiles(t *testing.T) {
	src := openAPI(t, httptool.OpenAPIConfig{Document: "testdata/split/api.yaml", ServerURL: "https://api.example.com"})
	cat := attach(t, src)
	d, ok := cat.Resolve("api_pets_get")
	if !ok {
		t.Fatal(src.Refused())
	}
	mustContain(t, string(d.Tool.ArgsSchema), `"$defs":{"Kind":{"enum":["cat","dog"]}}`)
	mustContain(t, src.Check(context.Background()).Error(), "cannot resolve $ref", "outside.yaml")
	if names := fmt.Sprint(src.Refused()); !strings.Contains(names, "api_out") || !strings.Contains(names, "/gone") {
		t.Errorf("refused: %v", names)
	}
}

func TestBadDocuments(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"swagger":  {`{"swagger":"1.2"}`, `doc.json:1:12: Swagger 1.2 is not known`},
		"version":  {`openapi: 4.0.0`, `OpenAPI 4.0.0 is not known`},
		"none":     {`{"a":1}`, `"openapi" is missing`},
		"list":     {`- a`, `expected an OpenAPI document`},
		"syntax":   {"openapi: 3.0.0\npaths: {", `doc.json:2:`},
		"alias":    {"openapi: 3.0.0\npaths: *nope", `doc.json:2:`},
		"empty":    {``, `empty`},
		"bad path": {"openapi: 3.0.0\npaths: [1]", `paths is not an object`},
	} {
		src := openAPI(t, httptool.OpenAPIConfig{Document: "doc.json", Content: []byte(c.content)})
		_, err := src.Discover(context.Background())
		var at *httptool.DocumentError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	src := openAPI(t, httptool.OpenAPIConfig{Document: "testdata/none.yaml"})
	if _, err := src.Discover(context.Background()); err == nil || !strings.Contains(err.Error(), "testdata/none.yaml: cannot read") {
		t.Errorf("missing file: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	secret := httptool.FixedSecret("x")
	for want, cfg := range map[string]httptool.OpenAPIConfig{
		"name is missing":                 {Document: "a"},
		"document is missing":             {Name: "a"},
		"allow_private":                   {Name: "a", Document: "http://127.0.0.1:1/x"},
		"set allow_private":               {Name: "a", Document: "f", ServerURL: "http://localhost:80"},
		"relative":                        {Name: "a", Document: "f", ServerURL: "/v1"},
		"user name or password":           {Name: "a", Document: "f", ServerURL: "https://u:hunter2@h.example"},
		"expected http or https":          {Name: "a", Document: "ftp://h/x"},
		"not a header name":               {Name: "a", Document: "f", Headers: map[string]string{"a b": "c"}},
		"X-A holds a line break":          {Name: "a", Document: "f", Headers: map[string]string{"X-A": "c\r\nd"}},
		"unknown kind \"magic\"":          {Name: "a", Document: "f", Auth: &httptool.Auth{Kind: "magic", Secret: secret}},
		"no secret":                       {Name: "a", Document: "f", Auth: &httptool.Auth{Kind: "bearer"}},
		"at most one of header":           {Name: "a", Document: "f", Auth: &httptool.Auth{Kind: "api_key", Header: "a", Query: "b", Secret: secret}},
		"kind cookie needs cookie":        {Name: "a", Document: "f", Auth: &httptool.Auth{Kind: "cookie", Secret: secret}},
		"kind bearer is sent in a header": {Name: "a", Document: "f", Auth: &httptool.Auth{Kind: "bearer", Query: "q", Secret: secret}},
	} {
		_, err := httptool.NewOpenAPI(cfg)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestResponseModes(t *testing.T) {
	srv, _ := serve(t, answerJSON)
	doc := document("3.0.3", `"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"description":"d","content":{
		"application/json":{"schema":{"type":"object","properties":{"id":{"type":"string"}}}}}}}}}}`)
	for mode, fails := range map[httptool.ResponseMode]bool{
		httptool.ResponsesShown: false, httptool.ResponsesChecked: true, httptool.ResponsesOmitted: false} {
		cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerURL: srv.URL, Responses: mode}))
		_, err := tools.Invoke(context.Background(), cat, "api_a", nil)
		if errors.Is(err, tools.ErrToolInvalidOutput) != fails {
			t.Errorf("mode %q: %v", mode, err)
		}
		d, _ := cat.Resolve("api_a")
		if (len(d.Tool.OutSchema) == 0) != (mode == httptool.ResponsesOmitted) {
			t.Errorf("mode %q: schema %s", mode, d.Tool.OutSchema)
		}
	}
}

func TestDialect(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"nullable":         {`{"type":"string","nullable":true,"enum":["a"]}`, `{"type":["string","null"],"enum":["a",null]}`},
		"nullable allOf":   {`{"nullable":true,"allOf":[{"type":"object"}]}`, `{"anyOf":[{"allOf":[{"type":"object"}]},{"type":"null"}]}`},
		"exclusive bounds": {`{"minimum":1,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, `{"minimum":1,"exclusiveMinimum":1,"maximum":9}`},
		"example":          {`{"type":"integer","example":9007199254740993}`, `{"type":"integer","examples":[9007199254740993]}`},
		"wrong shapes":     {`{"type":"file","minLength":"3","required":true,"enum":[],"items":null,"pattern":"(","multipleOf":0}`, `{}`},
		"left out":         {`{"xml":{},"externalDocs":{},"x-a":1,"$id":"q","title":"t"}`, `{"title":"t"}`},
		"discriminator":    {`{"discriminator":{"propertyName":"k","mapping":{"a":"#/x"}},"oneOf":[{},true]}`, `{"discriminator":{"propertyName":"k"},"oneOf":[{},true]}`},
		"required twice":   {`{"required":["a","a",1]}`, `{"required":["a"]}`},
		"tuples":           {`{"items":[{"type":"string"}]}`, `{"prefixItems":[{"type":"string"}]}`},
		"data stays":       {`{"default":{"nullable":true,"type":"file"},"const":1.10}`, `{"default":{"nullable":true,"type":"file"},"const":1.10}`},
	} {
		doc := document("3.0.3", `"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":`+c.schema+`}}}}}}`)
		cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerURL: "https://a.example"}))
		d, ok := cat.Resolve("api_a")
		if !ok {
			t.Errorf("%s: refused", name)
			continue
		}
		var got struct {
			Properties struct{ Body json.RawMessage }
		}
		if err := json.Unmarshal(d.Tool.ArgsSchema, &got); err != nil {
			t.Fatal(err)
		}
		if string(got.Properties.Body) != c.want {
			t.Errorf("%s: got %s, want %s", name, got.Properties.Body, c.want)
		}
	}
}

// TestHiddenParameters checks that no model fills in a credential.
func TestHiddenParameters(t *testing.T) {
	srv, next := serve(t, answerJSON)
	param := func(in, name string) string {
		return `{"in":"` + in + `","name":"` + name + `","required":true,"schema":{"type":"string"}}`
	}
	doc := document("3.1.0", `"components":{"securitySchemes":{"k":{"type":"apiKey","in":"query","name":"api_key"}}},
		"paths":{"/a":{"get":{"operationId":"a","parameters":[`+param("query", "api_key")+`,`+param("header", "Authorization")+`,`+
		param("header", "x-tenant")+`,`+param("query", "q")+`]}}}`)
	cat := attach(t, openAPI(t, httptool.OpenAPIConfig{Content: doc, ServerURL: srv.URL, Headers: map[string]string{"X-Tenant": "acme"},
		Auth: &httptool.Auth{Kind: httptool.AuthAPIKey, Secret: httptool.FixedSecret("k&y")}}))
	d, _ := cat.Resolve("api_a")
	want := `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`
	if string(d.Tool.ArgsSchema) != want {
		t.Errorf("got %s", d.Tool.ArgsSchema)
	}
	call(t, cat, "api_a", `{"q":"1"}`)
	if got := next(); got.URI != "/a?q=1&api_key=k%26y" || got.Header.Get("X-Tenant") != "acme" {
		t.Errorf("got %+v", got)
	}
}
