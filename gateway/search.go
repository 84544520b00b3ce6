package gateway

import (
	"context"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/search"
)

// apiSearch finds tools for callers of the JSON protocol, as tool_search does for
// models.
func (g *Gateway) apiSearch(ctx context.Context, req api.SearchRequest) (*api.SearchResponse, error) {
	found, err := builtin.Find(ctx, g.cat, g.index, search.Query{Text: req.Query, Tags: req.Tags, Source: req.Source, Limit: req.Limit})
	if err != nil {
		return nil, err
	}
	out := &api.SearchResponse{Matched: found.Matched, Weak: found.Weak, Note: found.Note}
	for _, h := range found.Hits {
		out.Tools = append(out.Tools, api.SearchHit{Summary: api.Summary{Name: h.Name}, Score: h.Score, Exact: h.Exact, Weak: h.Weak})
	}
	for _, r := range found.Repairs {
		out.Repairs = append(out.Repairs, api.Repair(r))
	}
	return out, nil
}
