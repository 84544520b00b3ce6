package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/tools"
)

// Description is everything that a caller may know about a tool.
type Description struct {
	Summary
	// SourceName is the tool's name at its source.
	SourceName string `json:"source_name"`
	Namespace  string `json:"namespace,omitempty"`
	Category   string `json:"category,omitempty"`
	// ArgsSchema and OutSchema are JSON Schemas; absent means any JSON.
	ArgsSchema json.RawMessage `json:"args_schema,omitempty"`
	OutSchema  json.RawMessage `json:"out_schema,omitempty"`
	Examples   []Example       `json:"examples"`
	// AuthScopes must all be granted to a caller of the tool.
	AuthScopes []string `json:"auth_scopes"`
	// RetryAttempts is how many attempts may follow the first one.
	RetryAttempts int `json:"retry_attempts"`
	// TimeoutMS is the time limit of one attempt, in milliseconds; 0 means none.
	TimeoutMS   int         `json:"timeout_ms"`
	LoadingMode string      `json:"loading_mode"`
	Safety      SafetyFlags `json:"safety"`
	SafetyNotes string      `json:"safety_notes,omitempty"`
	CostHint    string      `json:"cost_hint,omitempty"`
	// LatencyHintMS is how long a call usually takes, in milliseconds; 0 means
	// that nobody said.
	LatencyHintMS int64    `json:"latency_hint_ms,omitempty"`
	HandlesMIME   []string `json:"handles_mime,omitempty"`
	Exclusive     bool     `json:"exclusive,omitempty"`
	// DefinitionDigest changes when what a caller relies on changes.
	DefinitionDigest string `json:"definition_digest,omitempty"`
}

// Example is one working use of a tool.
type Example struct {
	Args        map[string]any `json:"args"`
	Description string         `json:"description,omitempty"`
	Tags        []string       `json:"tags,omitempty"`
}

// SafetyFlags tells what is known about the effects of a call. A flag that is
// absent is not known, which is not the same as false.
type SafetyFlags struct {
	ReadOnly          *bool  `json:"read_only,omitempty"`
	Destructive       *bool  `json:"destructive,omitempty"`
	Idempotent        *bool  `json:"idempotent,omitempty"`
	OpenWorld         *bool  `json:"open_world,omitempty"`
	Filesystem        *bool  `json:"filesystem,omitempty"`
	Process           *bool  `json:"process,omitempty"`
	Spend             *bool  `json:"spend,omitempty"`
	NeedsConfirmation *bool  `json:"needs_confirmation,omitempty"`
	WorkspaceRoot     string `json:"workspace_root,omitempty"`
	Redaction         string `json:"redaction,omitempty"`
}

// Get returns the tool of that name as List shows it.
func (s *Server) Get(ctx context.Context, id string) (*Summary, error) {
	t, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	row := summarize(t)
	return &row, nil
}

// Describe returns the tool of that name with its schemas, examples and policy.
func (s *Server) Describe(ctx context.Context, id string) (*Description, error) {
	t, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return describe(t), nil
}

// find returns a tool that the caller on ctx sees. A tool that is hidden from
// it gives the same error as one that does not exist.
func (s *Server) find(ctx context.Context, id string) (*tools.Tool, error) {
	if id == "" {
		return nil, newError(CodeInvalidRequest, "id: expected the name of a tool")
	}
	if t, ok := s.visible(ctx).Get(id); ok {
		return &t, nil
	}
	return nil, newError(CodeToolNotFound, fmt.Sprintf("tool not found: %q", shorten(id)))
}

func describe(t *tools.Tool) *Description {
	policy := t.Policy.Resolved()
	d := &Description{
		Summary: summarize(t), SourceName: t.SourceName, Namespace: t.Namespace, Category: t.Category,
		ArgsSchema: t.ArgsSchema, OutSchema: t.OutSchema, AuthScopes: present(t.AuthScopes),
		RetryAttempts: max(policy.MaxRetries, 0), TimeoutMS: max(policy.TimeoutMS, 0),
		LoadingMode: loadingOf(t), Safety: safetyFlags(&t.Safety), SafetyNotes: t.SafetyNotes,
		CostHint: t.CostHint, LatencyHintMS: t.LatencyHint.Milliseconds(), HandlesMIME: t.HandlesMIME,
		Exclusive: t.Exclusive, DefinitionDigest: t.DefinitionDigest, Examples: []Example{},
	}
	if d.SourceName == "" {
		d.SourceName = t.Name
	}
	if len(policy.RetryOn) == 0 {
		d.RetryAttempts = 0
	}
	for _, e := range t.Examples {
		d.Examples = append(d.Examples, Example{Args: e.Args, Description: e.Description, Tags: e.Tags})
	}
	return d
}

func safetyFlags(s *tools.Safety) SafetyFlags {
	return SafetyFlags{
		ReadOnly: known(s.ReadOnly), Destructive: known(s.Destructive), Idempotent: known(s.Idempotent),
		OpenWorld: known(s.OpenWorld), Filesystem: known(s.Filesystem), Process: known(s.Process),
		Spend: known(s.Spend), NeedsConfirmation: known(s.NeedsConfirmation),
		WorkspaceRoot: s.WorkspaceRoot, Redaction: s.Redaction,
	}
}

func known(f tools.Flag) *bool {
	if f == tools.Unset {
		return nil
	}
	yes := f == tools.Yes
	return &yes
}

// idRequest is the request of get and describe.
type idRequest struct {
	ID string `json:"id"`
}

func decodeID(raw []byte) (string, error) {
	var req idRequest
	err := decodeObject("", raw, []field{{"id", takeString(&req.ID)}})
	return req.ID, err
}
