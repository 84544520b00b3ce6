package api

import (
	"context"
	"fmt"
)

// The bounds of what Search returns.
const (
	DefaultSearchLimit = 10
	MaxSearchLimit     = 200
)

// SearchRequest says what is looked for: a query, or with none a source or tags
// whose tools are listed by name.
type SearchRequest struct {
	// Query says in plain words what a tool should do, or is its name.
	Query string `json:"query,omitempty"`
	// Tags must all be on the tool.
	Tags []string `json:"tags,omitempty"`
	// Source is the only source to look at, such as "github".
	Source string `json:"source,omitempty"`
	// Limit bounds the hits: DefaultSearchLimit when 0, at most MaxSearchLimit.
	Limit int `json:"limit,omitempty"`
}

// SearchResponse is what was found, the best first.
type SearchResponse struct {
	Tools []SearchHit `json:"tools"`
	Count int         `json:"count"`
	// Matched counts what matches at all, beyond the limit too.
	Matched int `json:"matched"`
	// Weak says that no hit is more than a guess.
	Weak bool `json:"weak"`
	// Repairs are words of the query that were read as others.
	Repairs []Repair `json:"repairs,omitempty"`
	// Note says what was left out, and why; empty is all well.
	Note string `json:"note,omitempty"`
}

// SearchHit is a tool that was found.
type SearchHit struct {
	Summary
	// Score tells how well the tool matches, from 0 to 1.
	Score float64 `json:"score"`
	// Exact says that the query is, or holds, the tool's name.
	Exact bool `json:"exact"`
	// Weak says that the hit is no more than a guess.
	Weak bool `json:"weak"`
}

// Repair is a word of a query, and the one that it was read as.
type Repair struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Search finds tools that the caller on ctx sees.
func (s *Server) Search(ctx context.Context, req SearchRequest) (*SearchResponse, error) {
	switch {
	case s.opts.Search == nil:
		return nil, newError(CodeUnknownMethod, "/v1/tools/search: this server has no search")
	case req.Limit < 0 || req.Limit > MaxSearchLimit:
		return nil, newError(CodeInvalidRequest, fmt.Sprintf("limit: expected an integer from 1 to %d", MaxSearchLimit))
	case req.Query == "" && req.Source == "" && len(req.Tags) == 0:
		return nil, newError(CodeInvalidRequest, "query: expected what a tool should do, or a source or tags to list")
	case req.Limit == 0:
		req.Limit = DefaultSearchLimit
	}
	out, err := s.opts.Search(ctx, req)
	if err != nil {
		return nil, err
	}
	visible := s.visible(ctx)
	rows := make([]SearchHit, 0, len(out.Tools))
	for _, hit := range out.Tools {
		if t, ok := visible.Get(hit.Name); ok {
			hit.Summary = summarize(&t)
			rows = append(rows, hit)
		}
	}
	out.Tools, out.Count = rows, len(rows)
	return out, nil
}

func decodeSearch(raw []byte) (SearchRequest, error) {
	var req SearchRequest
	err := decodeObject("", raw, []field{
		{"query", takeString(&req.Query)},
		{"tags", takeStrings(&req.Tags)},
		{"source", takeString(&req.Source)},
		{"limit", takeCount(&req.Limit, MaxSearchLimit)},
	})
	return req, err
}
