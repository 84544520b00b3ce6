package builtin

import (
	"context"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/view"
)

// Find returns what the caller on ctx finds of cat in an index: never a tool about
// tools, and with a source as callers are told it ([view.SourceName]), in any
// letter case and with its kind or without. A source that the caller does not see has nothing to find.
func Find(ctx context.Context, cat tools.Snapshotter, index *search.Index, q search.Query) (search.Result, error) {
	v := view.From(ctx, cat)
	source := ""
	if q.Source != "" {
		var ok bool
		if source, ok = sourceNamed(v, q.Source); !ok {
			return search.Result{}, nil
		}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = search.DefaultLimit
	}
	q.Source, q.Limit = source, limit+len(MetaNames())
	if source == view.LocalSource { // which the index does not know by this name
		q.Source, q.Limit = "", search.MaxLimit
	}
	found, err := index.Find(ctx, cat.Snapshot().Visible(tools.FilterFrom(ctx)), q)
	if err != nil {
		return search.Result{}, err
	}
	found.Hits = kept(v, found.Hits, source)
	found.Hits = found.Hits[:min(len(found.Hits), limit)]
	found.Weak = len(found.Hits) > 0 && !slices.ContainsFunc(found.Hits, func(h search.Hit) bool { return !h.Weak })
	return found, nil
}

// kept returns the hits without tools about tools and, if there is a source,
// without those of others.
func kept(v view.View, hits []search.Hit, source string) []search.Hit {
	out := make([]search.Hit, 0, len(hits))
	for _, h := range hits {
		t, ok := v.Tool(h.Name)
		if !ok || t.Kind == tools.KindMeta || source != "" && view.SourceName(&t) != source {
			continue
		}
		h.Source = view.SourceName(&t)
		out = append(out, h)
	}
	return out
}

// sourceNamed returns the name of a source as the caller of a view may write it,
// with its kind or without.
func sourceNamed(v view.View, meant string) (string, bool) {
	_, bare, _ := strings.Cut(meant, ":")
	for _, c := range view.Sources(v) {
		if strings.EqualFold(c.Name, meant) || bare != "" && strings.EqualFold(c.Name, bare) {
			return c.Name, true
		}
	}
	return "", false
}
