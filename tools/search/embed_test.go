package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint speaks the embeddings protocol. Its vectors have a direction for "celestial" things, one for others.
type endpoint struct {
	*httptest.Server
	texts  atomic.Int64
	broken atomic.Bool
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if e.broken.Load() || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer hush" || json.NewDecoder(r.Body).Decode(&req) != nil || req.Model != "m" {
		http.Error(w, "the key is hush", http.StatusTeapot)
		return
	}
	e.texts.Add(int64(len(req.Input)))
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []item
	for i, text := range slices.Backward(req.Input) { // any order is allowed
		v := []float32{0.1, 2}
		if strings.Contains(text, "star") || strings.Contains(text, "sky") {
			v = []float32{3, 0.1}
		}
		data = append(data, item{i, v})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

type withKey struct{ next http.RoundTripper }

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer hush")
	return k.next.RoundTrip(r)
}

func (e *endpoint) embedder() *search.OpenAIEmbedder {
	return &search.OpenAIEmbedder{BaseURL: e.URL + "/v1/", Name: "m", Client: &http.Client{Transport: withKey{e.Client().Transport}}}
}

var night = append(slices.Clone(shop), described("astro.plot", "Draws the stars above a place."))

func warm(t *testing.T, index *search.Index, cat tools.LiveCatalog) int {
	t.Helper()
	n, err := index.Warm(t.Context(), cat.Snapshot().Visible(tools.FilterFrom(t.Context())))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMeaningFindsWhatWordsDoNot(t *testing.T) {
	e := newEndpoint(t)
	index := search.New(&search.Options{Embedder: e.embedder()})
	defer index.Close()
	cat := catalog(t, index, night...)
	warm(t, index, cat)
	r := find(t, index, t.Context(), cat, search.Query{Text: "sky"})
	if len(r.Hits) == 0 || r.Hits[0].Name != "astro.plot" || r.Hits[0].Weak || r.Note != "" {
		t.Errorf("found %+v", r)
	}
	r = find(t, index, t.Context(), cat, search.Query{Text: "create_issue sky"})
	if r.Hits[0].Name != "tracker.create_issue" {
		t.Errorf("a name found %+v", r)
	}
}

func TestFailingEndpointLeavesTheWords(t *testing.T) {
	e := newEndpoint(t)
	e.broken.Store(true)
	index := search.New(&search.Options{Embedder: e.embedder(), Logger: slog.New(slog.DiscardHandler)})
	defer index.Close()
	cat := catalog(t, index, night...)
	r := find(t, index, t.Context(), cat, search.Query{Text: "create an issue"})
	if len(r.Hits) == 0 || r.Hits[0].Name != "tracker.create_issue" || r.Note == "" {
		t.Errorf("found %+v", r)
	}
	_, err := index.Warm(t.Context(), cat.Snapshot().Visible(tools.FilterFrom(t.Context())))
	if err == nil || !strings.Contains(err.Error(), "418") || strings.Contains(err.Error(), "hush") {
		t.Errorf("the error is %v", err)
	}
}

func TestEmbeddingsAreKept(t *testing.T) {
	e := newEndpoint(t)
	dir := search.VectorDir(t.TempDir() + "/vectors")
	for _, want := range []int{len(night), 0} { // the second is a restart
		index := search.New(&search.Options{Embedder: e.embedder(), Vectors: dir})
		cat := catalog(t, index, night...)
		before := e.texts.Load()
		warm(t, index, cat)
		warm(t, index, cat)
		if got := e.texts.Load() - before; got != int64(want) {
			t.Errorf("%d texts were embedded; want %d", got, want)
		}
		if err := cat.Replace([]tools.ToolDescriptor{described("astro.plot", "Draws the star of the day.")}); err != nil {
			t.Fatal(err)
		}
		warm(t, index, cat)
		if want == 0 {
			if got := e.texts.Load() - before; got != 0 {
				t.Errorf("%d texts were embedded after a change that was seen before", got)
			}
		}
		index.Close()
	}
	if _, ok := dir.Load(t.Context(), "../secret"); ok {
		t.Error("a key left the folder")
	}
	if err := dir.Store(t.Context(), "../secret", nil); err == nil {
		t.Error("a key left the folder")
	}
}

// Two tenants that ask the same make the endpoint answer twice, so that neither learns what the other asked
// from how long it takes.
func TestQueriesAreKeptByTenant(t *testing.T) {
	e := newEndpoint(t)
	index := search.New(&search.Options{Embedder: e.embedder()})
	defer index.Close()
	cat := catalog(t, index, night...)
	warm(t, index, cat)
	before := e.texts.Load()
	for _, tenant := range []string{"acme", "acme", "globex"} {
		find(t, index, as(tenant, nil), cat, search.Query{Text: "what is in the sky"})
	}
	if got := e.texts.Load() - before; got != 2 {
		t.Errorf("%d queries were embedded; want 2", got)
	}
}

func TestAnswersOfTheEndpointAreChecked(t *testing.T) {
	for _, body := range []string{``, `{}`, `{"data":[]}`, `{"data":[{"index":7,"embedding":[1]}]}`, `{"data":[{"index":0,"embedding":[]}]}`,
		`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, `{"data":[{"index":-1,"embedding":[1]}]}`} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		e := &search.OpenAIEmbedder{BaseURL: srv.URL, Name: "m", Client: srv.Client()}
		if v, err := e.Embed(t.Context(), []string{"a", "b"}); err == nil {
			t.Errorf("%s gave %v", body, v)
		}
		srv.Close()
	}
}

type failing struct{}

func (failing) Embed(context.Context, []string) ([][]float32, error) { return [][]float32{}, nil }
func (failing) Model() string                                        { return "none" }

func TestEmbedderWithTooFewVectors(t *testing.T) {
	index := search.New(&search.Options{Embedder: failing{}, Logger: slog.New(slog.DiscardHandler)})
	defer index.Close()
	cat := catalog(t, index, shop...)
	if r := find(t, index, t.Context(), cat, search.Query{Text: "create an issue"}); len(r.Hits) == 0 || r.Note == "" {
		t.Errorf("found %+v", r)
	}
	if _, err := index.Warm(t.Context(), cat.Snapshot().Visible(tools.FilterFrom(t.Context()))); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
