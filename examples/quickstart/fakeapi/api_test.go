package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func gitea(t *testing.T) *api {
	t.Helper()
	text, err := os.ReadFile("../testdata/gitea.openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	api, err := newAPI(text)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func TestAPI(t *testing.T) {
	handler := gitea(t)
	cases := map[string]struct {
		method, target, body string
		status               int
		contains             string
	}{
		"no parameters":        {"GET", "/api/v1/version", "", 200, `"version":`},
		"path parameter":       {"GET", "/api/v1/users/ada", "", 200, `"email":"someone@example.com"`},
		"body member returned": {"POST", "/api/v1/user/repos", `{"name":"engine","private":false}`, 201, `"name":"engine"`},
		"query of a list":      {"GET", "/api/v1/repos/ada/engine/issues?state=open&limit=2", "", 200, `[{`},
		"missing body":         {"POST", "/api/v1/markdown/raw", "", 422, `message`},
		"wrong query type":     {"GET", "/api/v1/repos/ada/engine/issues?limit=many", "", 422, `limit`},
		"wrong enum":           {"GET", "/api/v1/repos/ada/engine/issues?state=ajar", "", 422, `state`},
		"missing body member":  {"POST", "/api/v1/user/repos", `{"private":false}`, 422, `name`},
		"unknown path":         {"GET", "/api/v1/nothing", "", 404, `message`},
		"outside the server":   {"GET", "/version", "", 404, `message`},
		"unknown method":       {"DELETE", "/api/v1/version", "", 405, `message`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.target, strings.NewReader(tc.body))
			if tc.body != "" {
				r.Header.Set("Content-Type", "application/json")
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.contains) {
				t.Errorf("%s %s = %d %s, want %d with %s", tc.method, tc.target, w.Code, w.Body, tc.status, tc.contains)
			}
		})
	}
}

func TestAnswerNamesItsOperation(t *testing.T) {
	w := httptest.NewRecorder()
	gitea(t).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/repos/search?q=x", nil))
	var answer struct{ Data []map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Data) != 1 {
		t.Errorf("answer = %s (%v), want one repository in data", w.Body, err)
	}
	if id := w.Header().Get("X-Operation-Id"); id != "repoSearch" {
		t.Errorf("X-Operation-Id = %q", id)
	}
}

// Every sample must fit the schema that it was made from; a client may check it.
func TestSamplesFitTheirSchema(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../testdata/gitea.openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range doc.Paths.Map() {
		for _, op := range path.Operations() {
			_, response := success(op)
			if response == nil || response.Content.Get("application/json") == nil {
				continue
			}
			schema := response.Content.Get("application/json").Schema
			text, err := json.Marshal(sample(schema, nil))
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(text, &value); err != nil {
				t.Fatal(err)
			}
			if err := schema.Value.VisitJSON(value); err != nil {
				t.Errorf("%s: %v", op.OperationID, err)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("only %d operations answer with JSON", checked)
	}
}
