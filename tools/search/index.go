package search

import (
	"context"
	"log/slog"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// Limits of a query.
const (
	// DefaultLimit is how many hits a query without a limit gets.
	DefaultLimit = 10
	// MaxLimit bounds how many hits a query may ask for.
	MaxLimit = 1000
	// MaxText is how much of a query's text is read, in bytes.
	MaxText = 2048
)

// Options adjusts an Index. The zero value serves.
type Options struct {
	// Embedder adds a rank by meaning to that by words. Nil does without.
	Embedder Embedder
	// Vectors keeps the embeddings of tools, by the digests of their definitions. Nil keeps them in memory.
	Vectors VectorStore
	// MaxClasses bounds for how many visibility classes the index is kept up to date change by change. Zero
	// means 64. Others are built when they are asked for.
	MaxClasses int
	// Logger hears of an Embedder that fails. Nil is slog's default logger.
	Logger *slog.Logger
}

// Index searches tools. It is safe for concurrent use. What it derives from a visible set lives as long as the
// set, and the next set of the same class is derived from it by its changes.
type Index struct {
	lex        *lexicon.Table
	maxClasses int
	meaning    *meaning // nil without an Embedder

	mu     sync.Mutex // guards what follows, and every build
	vocab  *vocabulary
	reader *analyzer         // for small changes
	spaces map[string]*space // the newest of each class
	used   map[string]uint64 // when each was asked for last
	clock  uint64

	roster roster    // what Sync was given
	boards sync.Pool // of *board
}

var (
	_ tools.ToolSearchCache = (*Index)(nil)
	_ tools.VisibleSearcher = (*Index)(nil)
)

// New returns an empty index. Nil options mean the defaults.
func New(o *Options) *Index {
	if o == nil {
		o = &Options{}
	}
	lex, err := lexicon.Default()
	if err != nil {
		lex = &lexicon.Table{} // a table that was not generated; words then mean themselves alone
	}
	x := &Index{lex: lex, maxClasses: o.MaxClasses, vocab: newVocabulary(lex), spaces: map[string]*space{}, used: map[string]uint64{}}
	if x.maxClasses <= 0 {
		x.maxClasses = 64
	}
	if o.Embedder != nil {
		x.meaning = newMeaning(o)
	}
	return x
}

// Query says what is looked for.
type Query struct {
	// Text is in plain words, or a tool's name. With an empty text every tool that carries the tags is a hit.
	Text string
	// Tags are demanded, all of them.
	Tags []string
	// Source, when not empty, demands that a hit is of that source: a [tools.ToolSourceID] or a namespace.
	Source string
	// Limit bounds the hits. Zero means DefaultLimit.
	Limit int
}

// Result is what a query found.
type Result struct {
	// Hits are the best first.
	Hits []Hit
	// Matched counts the tools of the visible set that match at all, including those beyond the limit.
	Matched int
	// Weak says that no hit is more than a guess.
	Weak bool
	// Repairs are the words of the query that were read as others.
	Repairs []Repair
	// Note says what was left out, such as the rank by meaning when its service failed. Empty is all well.
	Note string
}

// Hit is one tool that was found.
type Hit struct {
	// Name is the tool's canonical name.
	Name string
	// Source is where it comes from, as Query.Source takes it.
	Source string
	// Score tells how well the tool matches, from 0 to 1. It falls from hit to hit only roughly, as hits of
	// one source make room for those of others.
	Score float64
	// Exact says that the query is, or holds, the tool's name.
	Exact bool
	// Weak says that the hit is no more than a guess.
	Weak bool
	// Matched are the words of the query that the tool answers to, in the query's order.
	Matched []string
}

// Repair is a word of a query that no visible tool knows, and what it was taken for.
type Repair struct{ From, To string }

// Find searches what v holds. An empty query without tags finds nothing. The error is that of ctx.
func (x *Index) Find(ctx context.Context, v *tools.VisibleSet, q Query) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if v == nil {
		return Result{}, nil
	}
	return x.find(ctx, visible{v}, q), nil
}

// SearchVisible implements [tools.VisibleSearcher].
func (x *Index) SearchVisible(ctx context.Context, v *tools.VisibleSet, query string, tags []string, limit int) ([]string, error) {
	found, err := x.Find(ctx, v, Query{Text: query, Tags: tags, Limit: limit})
	if err != nil {
		return nil, err
	}
	return found.names(), nil
}

func (r *Result) names() []string {
	names := make([]string, len(r.Hits))
	for i := range r.Hits {
		names[i] = r.Hits[i].Name
	}
	return names
}

// Close implements [tools.ToolSearchCache]. It ends what an Embedder is doing in the background. The index can
// be searched all the same.
func (x *Index) Close() error {
	if x.meaning != nil {
		x.meaning.close()
	}
	return nil
}
