package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/nearest"
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
	// RetryAttempts is how many attempts may follow the first one when the
	// call was not delivered.
	RetryAttempts int `json:"retry_attempts"`
	// RepeatsDelivered says that they may follow as well when the call was
	// delivered and failed.
	RepeatsDelivered bool `json:"repeats_delivered"`
	// ApprovalPolicy is what becomes of a call before it runs: "auto", or
	// "denied". Empty means that nobody said.
	ApprovalPolicy string `json:"approval_policy,omitempty"`
	ApprovalReason string `json:"approval_reason,omitempty"`
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
	d := describe(t)
	if s.opts.Approval != nil {
		d.ApprovalPolicy, d.ApprovalReason = s.opts.Approval(ctx, t)
	}
	return d, nil
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
	e := newError(CodeToolNotFound, fmt.Sprintf("tool not found: %q", shorten(id)))
	return nil, s.suggest(ctx, e, id)
}

// suggest adds to the error about a tool that does not exist which one that the
// caller sees was most likely meant.
func (s *Server) suggest(ctx context.Context, e *Error, id string) *Error {
	if near, ok := nearest.Word(id, s.visible(ctx).Names()); ok {
		e.Message += fmt.Sprintf(", did you mean %q?", near)
	}
	return e
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
	d.RepeatsDelivered = d.RetryAttempts > 0 && repeatsDelivered(t)
	for _, e := range t.Examples {
		d.Examples = append(d.Examples, Example{Args: e.Args, Description: e.Description, Tags: e.Tags})
	}
	return d
}

// repeatsDelivered reports whether the door makes a call again that was
// delivered: where that does no harm, or the policy asks for it.
func repeatsDelivered(t *tools.Tool) bool {
	harmless := t.SideEffects == tools.SideEffectPure || t.SideEffects == tools.SideEffectRead || t.Safety.Idempotent == tools.Yes
	return harmless || t.Policy.MaxRetries != 0 || t.Policy.RetryOn != nil ||
		t.Transport == tools.TransportInProcess && t.SideEffects == ""
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
