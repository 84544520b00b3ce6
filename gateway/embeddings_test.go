package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
)

// embeddings is a service for which whatever speaks of time has one meaning, and
// everything else another.
func embeddings(t *testing.T, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model string
			Input []string
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Model != "small" || r.Header.Get("Authorization") != "Bearer s3cret-word" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		asked.Add(1)
		type item struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var out struct {
			Data []item `json:"data"`
		}
		for i, text := range req.Input {
			vector := []float32{0, 1}
			if strings.Contains(strings.ToLower(text), "time") || strings.Contains(text, "kellonaika") {
				vector = []float32{1, 0}
			}
			out.Data = append(out.Data, item{i, vector})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestToolsAreFoundByMeaning(t *testing.T) {
	t.Setenv("EMBEDDINGS_KEY", "s3cret-word")
	var asked atomic.Int64
	service := embeddings(t, &asked)
	g := openFor(t, "tools: {built_in: [text.echo, clock.now]}\nsearch: {embeddings: {url: '"+service.URL+"/v1', model: small, headers: {Authorization: 'Bearer ${EMBEDDINGS_KEY}'}}}")
	ctx := g.LocalContext(bounded(t))
	if err := g.SearchReady(ctx); err != nil {
		t.Fatal(err)
	}
	found, err := g.LocalAPI().Search(ctx, api.SearchRequest{Query: "kellonaika", Limit: 1})
	if err != nil || len(found.Tools) != 1 || found.Tools[0].Name != "clock.now" {
		t.Errorf("%+v, %v", found, err)
	}
	if asked.Load() == 0 {
		t.Error("the service was not asked")
	}
}

func TestEmbeddingsThatAreWrong(t *testing.T) {
	for yaml, want := range map[string]string{
		"search: {embeddings: {url: 'http://127.0.0.1:1/v1'}}":                                                       "t.yaml:1:22: search.embeddings.model: missing",
		"search: {embeddings: {url: nowhere, model: m}}":                                                             "t.yaml:1:28: search.embeddings.url",
		"search: {embeddings: {url: 'http://127.0.0.1:1/v1', model: m, headers: {Authorization: 'Bearer visible'}}}": "search.embeddings.headers.Authorization",
		"search: {embeddings: {url: 'http://127.0.0.1:1/v1', model: m, headers: {X-Key: '${NOT_THERE_AT_ALL}'}}}":    "NOT_THERE_AT_ALL is not set",
	} {
		cfg, err := gateway.Parse("t.yaml", []byte(yaml))
		if err == nil {
			_, err = gateway.Open(bounded(t), cfg, nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "visible") {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}
