package gateway

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

// vectorFolder holds the embeddings of tools in the data folder.
const vectorFolder = "vectors"

// embeddingTime bounds one request for embeddings.
const embeddingTime = 30 * time.Second

// newIndex makes the search index, which finds by meaning as well if the
// configuration names a service for that.
func (g *Gateway) newIndex() *search.Index {
	opts := &search.Options{Logger: g.log}
	if e := g.cfg.Search.Embeddings; e != nil {
		opts.Embedder = &search.OpenAIEmbedder{BaseURL: e.URL, Name: e.Model, Dimensions: e.Dimensions, Client: e.client(newResolver(g.cfg.dir))}
		if dir := g.dataDir(); dir != "" {
			opts.Vectors = search.VectorDir(filepath.Join(dir, vectorFolder))
		}
	}
	return search.New(opts)
}

// SearchReady waits until every tool that the caller on ctx sees can be found by
// meaning, if there is a service for that; until then they are found by words. The
// error is the service's, or that of ctx.
func (g *Gateway) SearchReady(ctx context.Context) error {
	_, err := g.index.Warm(ctx, g.cat.Snapshot().Visible(tools.FilterFrom(ctx)))
	return err
}

// dataDir is the folder for state, or empty.
func (g *Gateway) dataDir() string {
	if g.opts.DataDir != "" || g.cfg.DataDir == "" {
		return g.opts.DataDir
	}
	return absolute(g.cfg.dir, g.cfg.DataDir)
}

// checkEmbeddings refuses a service whose secrets are not there.
func (c *Config) checkEmbeddings() ConfigErrors {
	e := c.Search.Embeddings
	if e == nil {
		return nil
	}
	s := &specs{cfg: c, resolver: newResolver(c.dir)}
	s.secrets(e.Headers, "search.embeddings.headers")
	return s.faults
}

// client sends the headers to the service and follows no redirect, which could
// take them elsewhere.
func (e *Embeddings) client(r *resolver) *http.Client {
	return &http.Client{
		Timeout:       cmp.Or(time.Duration(e.Timeout), embeddingTime),
		Transport:     &headed{next: http.DefaultTransport, headers: e.Headers, resolver: r},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// headed adds headers whose references are resolved again for each request, so
// that a rotated secret takes effect.
type headed struct {
	next     http.RoundTripper
	headers  map[string]string
	resolver *resolver
}

// RoundTrip implements http.RoundTripper.
func (h *headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, text := range h.headers {
		value, err := h.resolver.resolve(text)
		if err != nil {
			return nil, fmt.Errorf("the header %s: %w", name, err)
		}
		r.Header.Set(name, value)
	}
	return h.next.RoundTrip(r)
}
