package builtin

import (
	"context"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/view"
)

// Find returns what the caller on ctx finds of cat in an index: never a tool about
// tools, and with a source as callers are told it ([view.SourceName]), in any
// letter case and with its kind or without. A source that the caller does not see has nothing to find.
func Find(ctx context.Context, cat tools.Snapshotter, index *search.Index, q search.Query) (search.Result, error) {
	set := cat.Snapshot().Visible(tools.FilterFrom(ctx))
	limit := q.Limit
	q.Limit += len(MetaNames())
	if q.Source != "" {
		source, ok := sourceNamed(view.From(ctx, cat), q.Source)
		if !ok {
			return search.Result{}, nil
		}
		if q.Source = source; source == view.LocalSource {
			q.Source, q.Limit = "", search.MaxLimit
		}
		return narrow(ctx, set, index, q, limit, source)
	}
	return narrow(ctx, set, index, q, limit, "")
}

// narrow searches, and takes out what is not to be found: tools about tools, and
// if there is a source, those of others.
func narrow(ctx context.Context, set *tools.VisibleSet, index *search.Index, q search.Query, limit int, source string) (search.Result, error) {
	found, err := index.Find(ctx, set, q)
	if err != nil {
		return search.Result{}, err
	}
	kept := make([]search.Hit, 0, min(len(found.Hits), limit))
	weak := true
	for _, h := range found.Hits {
		t, ok := set.Get(h.Name)
		if len(kept) == limit || !ok || t.Kind == tools.KindMeta || source != "" && view.SourceName(&t) != source {
			continue
		}
		h.Source = view.SourceName(&t)
		kept = append(kept, h)
		weak = weak && h.Weak
	}
	found.Hits, found.Weak = kept, weak && len(kept) > 0
	return found, nil
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
