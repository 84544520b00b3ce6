package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolcrib/toolcrib/identity"
)

// Stages are the parts of the road that an operator supplies. Each may be
// absent, and absent is safe. A catalog holds one immutable set, swapped as a
// whole; a call keeps the set it began with.
type Stages struct {
	// Safety decides whether a call may go on. Without it every call may,
	// except that a tool which needs confirmation asks for approval.
	Safety SafetyPolicy
	// Approver waits for a person. Without it a call that asks for approval
	// is denied.
	Approver Approver
	// Admission limits rates, quotas and concurrency. Without it nothing is
	// limited.
	Admission Admission
	// Redactor removes what must not leave the door. Without it results pass
	// unchanged.
	Redactor Redactor
	// Recorder is told of every call that ended. Without it nothing is kept.
	Recorder Recorder
	// Secrets resolves injected secrets. Without it a call of a tool that
	// injects one fails.
	Secrets SecretSource
}

// Verdict is the answer of a safety policy.
type Verdict int8

// The Verdict values. The zero value denies.
const (
	Deny Verdict = iota
	Allow
	Ask
)

// SafetyPolicy decides about a call whose arguments are valid. Who calls is on
// the context. The tool must not be changed.
type SafetyPolicy interface {
	Decide(ctx context.Context, tool *Tool, args json.RawMessage) (verdict Verdict, reason string, err error)
}

// Approver waits until a person decided about a call. It returns nil and the
// arguments to go on with (nil when the person did not edit them),
// ErrToolRejected, ErrApprovalExpired, or the context's error. It runs outside
// every time limit of the tool.
type Approver interface {
	Approve(ctx context.Context, req ApprovalRequest) (edited json.RawMessage, err error)
}

// ApprovalRequest says what is to be approved. An approval holds for exactly
// this: who, which definition, which arguments.
type ApprovalRequest struct {
	CallID   string
	Identity identity.Quadruple
	// Tool must not be changed.
	Tool *Tool
	// Args are the arguments as the model sent them, without hidden ones.
	Args json.RawMessage
	// ArgsDigest is the SHA-256 of the compacted Args, in hex.
	ArgsDigest string
	// Reason is why the safety policy asks.
	Reason string
}

// Admission lets a call in, or refuses it with an error that wraps
// ErrOverloaded and says how long to wait. The returned function, which may be
// nil, is called exactly once when the call has ended.
type Admission interface {
	Admit(ctx context.Context, tool *Tool) (done func(err error), err error)
}

// Redactor changes a result before anyone sees it. It must clear
// ToolResult.Wire when it changes anything.
type Redactor interface {
	Redact(ctx context.Context, tool *Tool, result *ToolResult) error
}

// Recorder is told of every call that reached a visible tool. It must not keep
// the pointers that it is given beyond its return, nor wait for anything slow.
type Recorder interface {
	Record(ctx context.Context, rec CallRecord)
}

// CallRecord describes a call that ended.
type CallRecord struct {
	Call     *Call
	Identity identity.Quadruple
	Tool     *Tool
	// Args are the arguments as validated, before injection.
	Args json.RawMessage
	// Result is nil when the call failed.
	Result *ToolResult
	// Err is nil when the call gave a result.
	Err       error
	StartedAt time.Time
	Elapsed   time.Duration
	Attempts  int
}

// SecretSource resolves a secret by name. Its error must not quote a secret.
type SecretSource interface {
	Secret(ctx context.Context, name string) (string, error)
}
