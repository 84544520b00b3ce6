package httptool_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

// largeDocument is a real API of more than a hundred operations.
const largeDocument = "../../examples/quickstart/testdata/gitea.openapi.json"

// TestLargeDocument reads a real document whole, registers every operation,
// and calls each with arguments made from its schema.
func TestLargeDocument(t *testing.T) {
	srv, next := serve(t, func(w http.ResponseWriter, r *http.Request) { answerJSON(w, r) })
	src := openAPI(t, httptool.OpenAPIConfig{Name: "gitea", Document: largeDocument, ServerURL: srv.URL + "/api/v1"})
	cat := attach(t, src)
	for _, r := range src.Refused() {
		t.Errorf("%s was refused: %v", r.Name, r.Err)
	}
	if err := src.Check(context.Background()); err != nil {
		t.Error(err)
	}
	names := tools.VisibleNames(cat, tools.CatalogFilter{})
	if len(names) < 346 {
		t.Fatalf("only %d tools", len(names))
	}
	for i, name := range names {
		d, _ := cat.Resolve(name)
		args := sampleArgs(t, d.Tool.ArgsSchema, i)
		call(t, cat, name, args)
		got := next()
		path, _, _ := strings.Cut(got.URI, "?")
		if !strings.HasPrefix(path, "/api/v1/") || strings.ContainsAny(path, "{}") || strings.Contains(path, "//") {
			t.Errorf("%s %s: %s %s", name, args, got.Method, got.URI)
		}
	}
}
