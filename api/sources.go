package api

import "context"

// Source is the state of something that tools come from.
type Source struct {
	Name string `json:"name"`
	// Kind is "mcp", "openapi", "http_manifest" and the like.
	Kind string `json:"kind"`
	// State is a word such as "ready", "connecting", "down" or "replacing".
	State string `json:"state"`
	// Error says why the source is not ready, or is empty.
	Error string `json:"error,omitempty"`
	// AuthorizationURL is where the caller can authorize, in a browser, what the
	// source needs; empty when it needs nothing, or not from this caller.
	AuthorizationURL string `json:"authorization_url,omitempty"`
	// Tools counts the tools of it that the caller sees.
	Tools int `json:"tools"`
	// Total counts all its tools in the catalog, those that the caller does not see
	// included. It is for the same callers as Refused.
	Total int `json:"total,omitempty"`
	// Refused lists tools that could not be taken. This and Unmatched are for
	// callers who may see what the configuration names, and empty for others.
	Refused []RefusedTool `json:"refused,omitempty"`
	// Unmatched lists keys of the source's settings that name tools which it
	// does not have.
	Unmatched []string `json:"unmatched,omitempty"`
}

// RefusedTool is a tool of a source that is not in the catalog, and why.
type RefusedTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// SourcesResponse lists sources in the order of the configuration.
type SourcesResponse struct {
	Sources []Source `json:"sources"`
	// UnmatchedEntries are names of entries of the configuration that no tool
	// has.
	UnmatchedEntries []string `json:"unmatched_entries,omitempty"`
}

// Sources returns the state of the sources that the caller on ctx may see.
func (s *Server) Sources(ctx context.Context) (*SourcesResponse, error) {
	resp := &SourcesResponse{Sources: []Source{}}
	if s.opts.Sources != nil {
		resp.Sources = present(s.opts.Sources(ctx))
	}
	if s.opts.Unmatched != nil {
		resp.UnmatchedEntries = s.opts.Unmatched(ctx)
	}
	return resp, nil
}
