package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
)

// The bounds of a page of List.
const (
	DefaultPageSize = 50
	MaxPageSize     = 200

	maxPage = 1 << 30
)

// ListRequest selects tools and a page of them.
type ListRequest struct {
	Filter ListFilter `json:"filter"`
	// Page counts from 1. 0 means 1.
	Page int `json:"page,omitempty"`
	// PageSize is at most MaxPageSize. 0 means DefaultPageSize.
	PageSize int `json:"page_size,omitempty"`
}

// ListFilter selects tools. An empty field selects all; a tool must satisfy
// every field that is not empty.
type ListFilter struct {
	// Scopes lists who the tool is for: "global" or "tenant".
	Scopes []string `json:"scopes,omitempty"`
	// Transports lists how the tool is reached, such as "mcp".
	Transports []string `json:"transports,omitempty"`
	// Sources lists where the tool comes from, as Summary.Source gives it, such
	// as "mcp:github", or without the kind: "github". "workers" are those of all
	// workers, and "workers/NAME" those of one of their toolsets.
	Sources []string `json:"sources,omitempty"`
	// Loading lists "always" and "deferred".
	Loading []string `json:"loading,omitempty"`
	// Tags must all be on the tool.
	Tags []string `json:"tags,omitempty"`
	// Search is words that must all occur in the name, the title, the
	// description or the tags, in any letter case.
	Search string `json:"search,omitempty"`
}

// ListResponse is one page of the tools that the caller sees, sorted by name.
type ListResponse struct {
	Tools     []Summary `json:"tools"`
	Page      int       `json:"page"`
	PageSize  int       `json:"page_size"`
	PageCount int       `json:"page_count"`
	// TotalRows counts the tools that the filter selects, on all pages.
	TotalRows  int        `json:"total_rows"`
	Aggregates Aggregates `json:"aggregates"`
}

// Aggregates counts the tools that the filter selects.
type Aggregates struct {
	Total int `json:"total"`
	// Active counts those that can be called now.
	Active     int            `json:"active"`
	Transports map[string]int `json:"transports"`
	Sources    map[string]int `json:"sources"`
	Loading    map[string]int `json:"loading"`
}

// Summary is a tool in a list.
type Summary struct {
	// ID is the canonical name.
	ID          string `json:"id"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description"`
	// Scope is "tenant" for a tool that only some tenants see, else "global".
	Scope     string `json:"scope"`
	Transport string `json:"transport"`
	// Source is empty for Go functions.
	Source string `json:"source"`
	// SourcePart is the toolset of workers that serves the tool, and absent for
	// others.
	SourcePart string `json:"source_part,omitempty"`
	// Loading is "always" or "deferred".
	Loading string `json:"loading"`
	// Kind is "resource", "resource_template" or "prompt" for what is no tool at
	// its source, "meta" for a tool about tools, and absent otherwise.
	Kind string   `json:"kind,omitempty"`
	Tags []string `json:"tags"`
	// SideEffect is empty when nobody classified the tool.
	SideEffect string `json:"side_effect"`
}

// Origin is the tool's source as it is shown to people and taken by
// ListFilter.Sources: Source, and its part where it has one, as "workers/post".
func (s *Summary) Origin() string {
	if s.SourcePart == "" {
		return s.Source
	}
	return s.Source + "/" + s.SourcePart
}

// The values of Summary.Scope.
const (
	scopeGlobal = "global"
	scopeTenant = "tenant"
)

// List returns a page of the tools that the caller on ctx sees.
func (s *Server) List(ctx context.Context, req ListRequest) (*ListResponse, error) {
	if err := req.normalize(); err != nil {
		return nil, err
	}
	rows := selected(summaries(s.visible(ctx)), &req.Filter)
	first := min((req.Page-1)*req.PageSize, len(rows))
	page := slices.Clone(rows[first:min(first+req.PageSize, len(rows))])
	for i := range page {
		page[i].Tags = present(slices.Clone(page[i].Tags))
	}
	return &ListResponse{
		Tools: present(page), Page: req.Page, PageSize: req.PageSize,
		PageCount:  (len(rows) + req.PageSize - 1) / req.PageSize,
		TotalRows:  len(rows),
		Aggregates: aggregate(rows),
	}, nil
}

type summariesKey struct{}

// summaries returns the rows of a whole visible set, made once for the set.
// They must not be changed.
func summaries(set *tools.VisibleSet) []Summary {
	return set.Memo(summariesKey{}, func() any {
		list := set.Tools()
		rows := make([]Summary, 0, len(list))
		for i := range list {
			if listed(&list[i]) {
				rows = append(rows, summarize(&list[i]))
			}
		}
		return rows
	}).([]Summary)
}

// listed reports whether a tool is part of lists. A tool about tools is only if
// somebody offers it: otherwise it is for models, and comes and goes with what
// there is to find.
func listed(t *tools.Tool) bool { return t.Kind != tools.KindMeta || t.Loading == tools.LoadingAlways }

func (r *ListRequest) normalize() error {
	if r.Page == 0 {
		r.Page = 1
	}
	if r.PageSize == 0 {
		r.PageSize = DefaultPageSize
	}
	switch {
	case r.Page < 1 || r.Page > maxPage:
		return newError(CodeInvalidRequest, fmt.Sprintf("page: expected an integer from 1 to %d", maxPage))
	case r.PageSize < 1 || r.PageSize > MaxPageSize:
		return newError(CodeInvalidRequest, fmt.Sprintf("page_size: expected an integer from 1 to %d", MaxPageSize))
	}
	return r.Filter.check()
}

// check refuses words that no tool can have, so that a misspelt filter is not
// an empty list.
func (f *ListFilter) check() error {
	for _, c := range []struct {
		at           string
		given, known []string
	}{
		{"filter.scopes", f.Scopes, []string{scopeGlobal, scopeTenant}},
		{"filter.loading", f.Loading, []string{string(tools.LoadingAlways), string(tools.LoadingDeferred)}},
		{"filter.transports", f.Transports, transports()},
	} {
		for _, word := range c.given {
			if !slices.Contains(c.known, word) {
				return unknownWord(c.at, word, c.known)
			}
		}
	}
	return nil
}

func unknownWord(at, word string, known []string) error {
	return newError(CodeInvalidRequest, unknown(fmt.Sprintf("%s: unknown value %q", at, shorten(word)), word, known))
}

func transports() []string {
	return []string{
		string(tools.TransportInProcess), string(tools.TransportHTTP), string(tools.TransportMCP),
		string(tools.TransportA2A), string(tools.TransportFlow), string(tools.TransportWorker),
	}
}

// selected returns copies of the rows that the filter selects.
func selected(rows []Summary, f *ListFilter) []Summary {
	words := strings.Fields(strings.ToLower(f.Search))
	var out []Summary
	for i := range rows {
		if f.selects(&rows[i]) && mentions(&rows[i], words) {
			out = append(out, rows[i])
		}
	}
	return out
}

func (f *ListFilter) selects(t *Summary) bool {
	for _, tag := range f.Tags {
		if !slices.Contains(t.Tags, tag) {
			return false
		}
	}
	return oneOf(f.Scopes, t.Scope) && oneOf(f.Transports, t.Transport) &&
		fromOneOf(f.Sources, t) && oneOf(f.Loading, t.Loading)
}

// fromOneOf reports whether a tool's source is listed, with its kind or without, or
// the part of it that has the tool.
func fromOneOf(list []string, t *Summary) bool {
	_, name, _ := strings.Cut(t.Source, ":")
	return oneOf(list, t.Source) || name != "" && slices.Contains(list, name) || t.SourcePart != "" && slices.Contains(list, t.Origin())
}

func oneOf(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }

// mentions reports whether every word, in lower case, occurs in what describes
// the tool.
func mentions(t *Summary, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(t.Name + "\n" + t.Title + "\n" + t.Description + "\n" + strings.Join(t.Tags, "\n"))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func aggregate(rows []Summary) Aggregates {
	a := Aggregates{
		Total: len(rows), Active: len(rows),
		Transports: map[string]int{}, Sources: map[string]int{}, Loading: map[string]int{},
	}
	for i := range rows {
		a.Transports[rows[i].Transport]++
		a.Sources[rows[i].Source]++
		a.Loading[rows[i].Loading]++
	}
	return a
}

func summarize(t *tools.Tool) Summary {
	return Summary{
		ID: t.Name, Name: t.Name, Title: t.Title, Version: t.Version, Description: t.Description,
		Scope: scopeOf(t), Transport: string(t.Transport), Source: string(t.Source), SourcePart: t.SourcePart,
		Loading: loadingOf(t), Tags: present(t.Tags), SideEffect: string(t.SideEffects),
		Kind: string(t.Kind),
	}
}

func scopeOf(t *tools.Tool) string {
	if len(t.Tenants) > 0 {
		return scopeTenant
	}
	return scopeGlobal
}

func loadingOf(t *tools.Tool) string {
	if t.Loading == "" {
		return string(tools.LoadingAlways)
	}
	return string(t.Loading)
}

// present returns list, or an empty list that JSON shows as [].
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// visible is what the caller on ctx sees, of both loading modes.
func (s *Server) visible(ctx context.Context) *tools.VisibleSet {
	return s.cat.Snapshot().Visible(tools.FilterFrom(ctx))
}

func decodeList(raw []byte) (ListRequest, error) {
	var req ListRequest
	err := decodeObject("", raw, []field{
		{"filter", req.Filter.take},
		{"page", takeCount(&req.Page, maxPage)},
		{"page_size", takeCount(&req.PageSize, MaxPageSize)},
	})
	return req, err
}

func (f *ListFilter) take(at string, raw []byte) error {
	return decodeObject(at, raw, []field{
		{"scopes", takeStrings(&f.Scopes)},
		{"transports", takeStrings(&f.Transports)},
		{"sources", takeStrings(&f.Sources)},
		{"loading", takeStrings(&f.Loading)},
		{"tags", takeStrings(&f.Tags)},
		{"search", takeString(&f.Search)},
	})
}
