package api

import (
	"context"

	"github.com/toolcrib/toolcrib/registry"
)

// WorkersResponse lists the toolsets that workers serve, sorted by name.
type WorkersResponse struct {
	Toolsets []registry.ToolsetState `json:"toolsets"`
}

// Workers returns the toolsets that workers serve, as far as the caller on ctx may
// know of them.
func (s *Server) Workers(ctx context.Context) (*WorkersResponse, error) {
	resp := &WorkersResponse{Toolsets: []registry.ToolsetState{}}
	if s.opts.Workers != nil {
		resp.Toolsets = present(s.opts.Workers(ctx))
	}
	return resp, nil
}

// ForgottenResponse is the answer of ForgetWorkers.
type ForgottenResponse struct {
	Forgotten string `json:"forgotten"`
}

// ForgetWorkers removes the toolset of that name, which no worker serves any more,
// with its tools.
func (s *Server) ForgetWorkers(ctx context.Context, toolset string) (*ForgottenResponse, error) {
	if s.opts.ForgetWorkers == nil {
		return nil, newError(CodeToolsetNotFound, "there are no workers")
	}
	if err := s.opts.ForgetWorkers(ctx, toolset); err != nil {
		return nil, err
	}
	return &ForgottenResponse{Forgotten: toolset}, nil
}
