package builtin

import (
	"context"
	"slices"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// Query is what is looked for.
type Query struct {
	// Text says what the tool should do, or is its name.
	Text string
	// Tags must all be on a tool.
	Tags []string
	// Source is the only source to look at, as [view.SourceName] gives it, in
	// any letter case. Empty is all.
	Source string
	// Limit bounds the hits.
	Limit int
}

// Hit is a tool that was found.
type Hit struct {
	Tool tools.Tool
	// Weak says that the tool may well be something else than was asked for.
	Weak bool
}

// Finder finds tools. It is safe for concurrent use.
type Finder interface {
	// Find returns tools that the caller on ctx sees, the best first.
	Find(ctx context.Context, q Query) ([]Hit, error)
}

// catalogFinder is the search that every catalog has. It marks nothing weak.
type catalogFinder struct{ cat tools.ToolCatalog }

func (f catalogFinder) Find(ctx context.Context, q Query) ([]Hit, error) {
	ask := q.Limit
	if q.Source != "" {
		ask = sourceDepth
	}
	var hits []Hit
	for _, t := range f.cat.Search(ctx, q.Text, q.Tags, ask) {
		if len(hits) < q.Limit && (q.Source == "" || isSource(view.SourceName(&t), q.Source)) {
			hits = append(hits, Hit{Tool: t})
		}
	}
	return hits, nil
}

// sourceDepth is how many hits of all sources are looked through for those of
// one.
const sourceDepth = 1000

// Find returns the hits that the caller on ctx is shown, of what f finds. A tool whose very name was asked
// for comes first, and no source takes more than its share while others have
// something as good.
func Find(ctx context.Context, cat tools.Snapshotter, f Finder, q Query) ([]Hit, error) {
	v := view.From(ctx, cat)
	wide := q
	wide.Limit = q.Limit * candidates
	hits, err := f.Find(ctx, wide)
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Tool.Kind == tools.KindMeta || !v.Has(h.Tool.Name) })
	if t, ok := v.Tool(q.Text); ok && t.Kind != tools.KindMeta && carries(&t, q.Tags) && (q.Source == "" || isSource(view.SourceName(&t), q.Source)) {
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Tool.Name == t.Name })
		hits = slices.Insert(hits, 0, Hit{Tool: t})
	}
	return spread(hits, q.Limit), nil
}

// candidates is how many hits are asked for, for each that is shown.
const candidates = 4

// spread picks the hits to show, in their order. A source takes at most half of
// the places, unless the others have nothing that is as strong.
func spread(hits []Hit, limit int) []Hit {
	if len(hits) <= limit {
		return hits
	}
	share := (limit + 1) / 2
	taken := map[string]int{}
	picked := make([]bool, len(hits))
	n := 0
	take := func(i int) {
		picked[i] = true
		taken[view.SourceName(&hits[i].Tool)]++
		n++
	}
	for i := range hits {
		if n < limit && !hits[i].Weak && taken[view.SourceName(&hits[i].Tool)] < share {
			take(i)
		}
	}
	for i := range hits {
		if n < limit && !picked[i] {
			take(i)
		}
	}
	out := make([]Hit, 0, n)
	for i := range hits {
		if picked[i] {
			out = append(out, hits[i])
		}
	}
	return out
}
