package api

import "context"

// Toolset is a named part of the catalog. A request that names it in ToolsetHeader
// works in it, and its path is an MCP server of its own.
type Toolset struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Path is that of the toolset's MCP server, such as "/mcp/reading".
	Path string `json:"path"`
	// Tools counts the tools that the caller is listed in it.
	Tools int `json:"tools"`
}

// ToolsetsResponse lists toolsets in the order of the configuration.
type ToolsetsResponse struct {
	Toolsets []Toolset `json:"toolsets"`
}

// Toolsets returns the toolsets that the caller on ctx may know of.
func (s *Server) Toolsets(ctx context.Context) (*ToolsetsResponse, error) {
	resp := &ToolsetsResponse{Toolsets: []Toolset{}}
	if s.opts.Toolsets != nil {
		resp.Toolsets = present(s.opts.Toolsets(ctx))
	}
	return resp, nil
}
