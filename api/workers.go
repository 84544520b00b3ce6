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

// DeadLettersRequest asks for dead letters of workers.
type DeadLettersRequest struct {
	// Toolset is the one whose letters are wanted. Empty means all.
	Toolset string `json:"toolset,omitempty"`
	// After is the Next of the page before, or empty.
	After string `json:"after,omitempty"`
	// Limit is how many are wanted at most, 1 to registry.MaxDeadLetters. 0 means as
	// many as that.
	Limit int `json:"limit,omitempty"`
}

// DeadLetters returns the messages that the workers of toolsets could not serve, for
// who operates the gateway. The arguments of calls are not among what it says.
func (s *Server) DeadLetters(ctx context.Context, req DeadLettersRequest) (*registry.DeadLetterPage, error) {
	if s.opts.DeadLetters == nil {
		return &registry.DeadLetterPage{Letters: []registry.DeadLetter{}}, nil
	}
	page, err := s.opts.DeadLetters(ctx, registry.DeadLetterQuery(req))
	if err != nil {
		return nil, err
	}
	return &page, nil
}

func decodeDeadLetters(raw []byte) (req DeadLettersRequest, err error) {
	err = decodeObject("", raw, []field{{"toolset", takeString(&req.Toolset)}, {"after", takeString(&req.After)},
		{"limit", takeCount(&req.Limit, registry.MaxDeadLetters)}})
	return req, err
}
