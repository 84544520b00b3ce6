package tools

import (
	"context"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
)

// The event types of tool calls. A call gives at most one of Invoked, then
// exactly one terminal event: Completed, Failed, InvalidArgs, Denied or
// Unknown. PolicyExhausted comes just before the Failed that it explains.
const (
	EventTypeToolInvoked         events.EventType = "tool.invoked"
	EventTypeToolCompleted       events.EventType = "tool.completed"
	EventTypeToolFailed          events.EventType = "tool.failed"
	EventTypeToolInvalidArgs     events.EventType = "tool.invalid_args"
	EventTypeToolPolicyExhausted events.EventType = "tool.policy_exhausted"
	// EventTypeToolDenied: a safety policy, a person or admission refused.
	EventTypeToolDenied events.EventType = "tool.denied"
	// EventTypeToolUnknown: no tool of that name is visible to the caller.
	EventTypeToolUnknown events.EventType = "tool.unknown"
	// EventTypeToolForgedArgs: a caller sent arguments that are hidden from
	// it; they were removed and the call went on, or it ends as one with
	// invalid arguments where its entrance refuses such calls.
	EventTypeToolForgedArgs events.EventType = "tool.forged_args"
	// EventTypeCatalogChanged: tools were added, replaced or removed.
	EventTypeCatalogChanged events.EventType = "catalog.changed"
	// EventTypeContextLeak: raw content that is too large for a model was about
	// to reach one whole, and was refused.
	EventTypeContextLeak events.EventType = "llm.context_leak"
)

// EventDefinitions lists the events of this package, for an events.Registry.
func EventDefinitions() []events.Definition {
	return []events.Definition{
		events.Define[ToolInvokedPayload](EventTypeToolInvoked),
		events.Define[ToolCompletedPayload](EventTypeToolCompleted),
		events.Define[ToolFailedPayload](EventTypeToolFailed),
		events.Define[ToolInvalidArgsPayload](EventTypeToolInvalidArgs),
		events.Define[ToolPolicyExhaustedPayload](EventTypeToolPolicyExhausted),
		events.Define[ToolDeniedPayload](EventTypeToolDenied),
		events.Define[ToolUnknownPayload](EventTypeToolUnknown),
		events.Define[ToolForgedArgsPayload](EventTypeToolForgedArgs),
		events.Define[CatalogChangedPayload](EventTypeCatalogChanged),
		events.Define[ContextLeakPayload](EventTypeContextLeak),
	}
}

// ToolInvokedPayload: the call was admitted and its first attempt begins.
type ToolInvokedPayload struct {
	events.SafeSealed
	Identity  identity.Quadruple
	ToolName  string
	Transport TransportKind
	StartedAt time.Time
}

// ToolCompletedPayload: the call gave a result.
type ToolCompletedPayload struct {
	events.SafeSealed
	Identity  identity.Quadruple
	ToolName  string
	Transport TransportKind
	Attempts  int
	// DurationMS counts from the start of the call, in milliseconds.
	DurationMS int64
	// IsError says that the result is the tool's own answer that it failed.
	IsError bool
}

// ToolFailedPayload: the call gave no result.
type ToolFailedPayload struct {
	events.SafeSealed
	Identity     identity.Quadruple
	ToolName     string
	Transport    TransportKind
	Attempts     int
	ErrorClass   ErrorClass
	ErrorMessage string
	// OutcomeUnknown says that the call may have had its effect.
	OutcomeUnknown bool
}

// ToolInvalidArgsPayload: the arguments do not satisfy the schema. The error
// says what was expected and never quotes a value.
type ToolInvalidArgsPayload struct {
	events.SafeSealed
	Identity        identity.Quadruple
	ToolName        string
	Transport       TransportKind
	ValidationError string
}

// ToolPolicyExhaustedPayload: every retry that the policy allows was used.
type ToolPolicyExhaustedPayload struct {
	events.SafeSealed
	Identity  identity.Quadruple
	ToolName  string
	Transport TransportKind
	Attempts  int
	LastClass ErrorClass
	LastError string
}

// ToolDeniedPayload: the call was refused before it began.
type ToolDeniedPayload struct {
	events.SafeSealed
	Identity  identity.Quadruple
	ToolName  string
	Transport TransportKind
	// Stage is what refused: "policy", "approval", "admission",
	// "middleware" or "entrance".
	Stage  string
	Reason string
}

// ToolUnknownPayload: the caller named a tool that it cannot see. It does not
// tell whether the tool exists.
type ToolUnknownPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	ToolName string
}

// ToolForgedArgsPayload: a caller sent arguments that are hidden from it.
type ToolForgedArgsPayload struct {
	events.SafeSealed
	Identity  identity.Quadruple
	ToolName  string
	Transport TransportKind
	// Args names the arguments that were removed.
	Args []string
}

// CatalogChangedPayload: the catalog's tools changed. It names no tools,
// because its readers need not see them all.
type CatalogChangedPayload struct {
	events.SafeSealed
	Source                  ToolSourceID
	Generation              uint64
	Added, Updated, Removed int
}

// ContextLeakPayload: the result of a call should have been kept as an artifact.
type ContextLeakPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	ToolName string
	// Provider names the shape that the result was to be written in.
	Provider string
	// SizeBytes is the text of the result, and LimitBytes what is let through.
	SizeBytes, LimitBytes int64
}

// emitter publishes the events of one call. Without an identity on the call's
// context it publishes nothing.
type emitter struct {
	cat           *catalog
	first, second events.EventBus
	who           identity.Quadruple
	tool, call    string
}

// newEmitter returns an emitter to the catalog's bus and to that of the tool,
// if it has one of its own.
func newEmitter(ctx context.Context, cat *catalog, tool string, own events.EventBus) (e emitter) {
	e.begin(ctx, cat, tool, own)
	return e
}

// begin makes an emitter of the zero value.
func (e *emitter) begin(ctx context.Context, cat *catalog, tool string, own events.EventBus) {
	e.cat, e.tool = cat, tool
	who, ok := identity.QuadrupleFrom(ctx)
	if !ok {
		return
	}
	e.who, e.first = who, cat.bus
	switch {
	case e.first == nil:
		e.first = own
	case own != e.first:
		e.second = own
	}
}

func (e *emitter) silent() bool { return e.first == nil }

// emit publishes; an event that a bus refuses, or panics on, is lost, and the
// call goes on.
func (e *emitter) emit(ctx context.Context, t events.EventType, p events.Payload, at time.Time) {
	defer e.cat.survive(ctx, e.tool, "event bus")
	ev := events.Event{Type: t, Time: at, Identity: e.who, Tool: e.tool, CallID: e.call, Payload: p}
	_ = e.first.Publish(ctx, ev)
	if e.second != nil {
		_ = e.second.Publish(ctx, ev)
	}
}
