package httptool_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/schema"
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
		if !strings.Contains(r.Err.Error(), "not supported") {
			t.Errorf("%s was refused: %v", r.Name, r.Err)
		}
	}
	if err := src.Check(context.Background()); err != nil {
		t.Error(err)
	}
	names := tools.VisibleNames(cat, tools.CatalogFilter{})
	if len(names) < 300 {
		t.Fatalf("only %d tools", len(names))
	}
	for _, name := range names {
		d, _ := cat.Resolve(name)
		args := sampleArgs(t, d.Tool.ArgsSchema)
		call(t, cat, name, args)
		got := next()
		path, _, _ := strings.Cut(got.URI, "?")
		if !strings.HasPrefix(path, "/api/v1/") || strings.ContainsAny(path, "{}") || strings.Contains(path, "//") {
			t.Errorf("%s %s: %s %s", name, args, got.Method, got.URI)
		}
	}
}

// sampleArgs makes arguments with every required member.
func sampleArgs(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(sample(root, root))
	compiled, err := schema.Compile(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Check(args); err != nil {
		t.Fatalf("sample %s: %v", args, err)
	}
	return string(args)
}

func sample(root, s map[string]any) any {
	if ref, ok := s["$ref"].(string); ok {
		defs := root["$defs"].(map[string]any)
		return sample(root, defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any))
	}
	if enum, ok := s["enum"].([]any); ok {
		return enum[0]
	}
	kind := s["type"]
	if list, ok := kind.([]any); ok {
		kind = list[0]
	}
	switch kind {
	case "string":
		return "a/b c"
	case "integer", "number":
		return 7
	case "boolean":
		return true
	case "array":
		return []any{}
	}
	props, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	out := map[string]any{}
	for name, p := range props {
		if slices.Contains(required, any(name)) {
			out[name] = sample(root, p.(map[string]any))
		}
	}
	return out
}
