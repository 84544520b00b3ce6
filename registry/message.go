package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/tools"
)

// ErrInvalid is in the chain of every error about a message, a contract or an
// option that cannot be used.
var ErrInvalid = errors.New("registry: invalid")

// The types of a ToolCallMessage, which are also the names of its events.
const (
	TypeCall = "call"
	TypePing = "ping"
)

// The names of events and messages that answer a call.
const (
	// ResultEventKey is the name of the event that holds a ToolResultMessage.
	ResultEventKey = "result"
	// OutputDeltaEventKey is the name of what holds an OutputDeltaMessage.
	OutputDeltaEventKey = "output_delta"
	// ProgressEventKey is the name of what holds a ProgressMessage.
	ProgressEventKey = "progress"
	// LogEventKey is the name of what holds a LogMessage.
	LogEventKey = "log"
)

// Limits of messages. Beside them a backend has a limit of its own for the
// whole message (stream.Client.MaxPayload).
const (
	// MaxIDBytes bounds ids: those of calls, pings, runs, sessions and turns.
	MaxIDBytes = 512
	// MaxToolUseIDBytes bounds a call's tool_use_id, of which a stream's name is
	// made.
	MaxToolUseIDBytes = stream.MaxNameBytes - len("result:")
	// MaxMessageBytes bounds a message that is read.
	MaxMessageBytes = 64 << 20
	// maxTraceBytes bounds each of traceparent, tracestate and baggage.
	maxTraceBytes = 8 << 10
)

// ToolCallMessage is what stands on a toolset's request stream: a call, or a
// ping.
type ToolCallMessage struct {
	// Type is TypeCall or TypePing.
	Type string `json:"type"`
	// ToolUseID identifies the call.
	ToolUseID string `json:"tool_use_id,omitzero"`
	// PingID identifies the ping.
	PingID string `json:"ping_id,omitzero"`
	// Tool is the name of the tool within its toolset.
	Tool string `json:"tool,omitzero"`
	// Payload holds the arguments, an object as a rule.
	Payload json.RawMessage `json:"payload,omitzero"`
	// Meta says where the call comes from.
	Meta *ToolCallMeta `json:"meta,omitzero"`
	// TraceParent, TraceState and Baggage are the headers of W3C Trace Context
	// and Baggage.
	TraceParent string `json:"traceparent,omitzero"`
	TraceState  string `json:"tracestate,omitzero"`
	Baggage     string `json:"baggage,omitzero"`

	// ReplyTo names the stream that takes the answer. Empty means
	// ResultStream(ToolUseID).
	ReplyTo string `json:"reply_to,omitzero"`
	// Deadline is when the answer comes too late. Zero means never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Toolset is the one whose workers the call is for. Those of another do not run
	// it. Empty means that the sender does not say.
	Toolset string `json:"toolset,omitzero"`
	// Contract is the fingerprint of the ToolSpec that the arguments were
	// checked against. Empty means that the sender knows none.
	Contract string `json:"contract,omitzero"`
	// Route is how the registry that sent the call is reached at once. Nil
	// means that a stream takes the answer, and that nothing is claimed.
	Route *Route `json:"route,omitzero"`
	// Asks says what the caller can be asked while the tool runs. Nil means
	// nothing, as it is without a Route.
	Asks *Asks `json:"asks,omitzero"`
}

// ToolCallMeta says where a call comes from.
type ToolCallMeta struct {
	RunID            string `json:"run_id,omitzero"`
	SessionID        string `json:"session_id,omitzero"`
	TurnID           string `json:"turn_id,omitzero"`
	ToolCallID       string `json:"tool_call_id,omitzero"`
	ParentToolCallID string `json:"parent_tool_call_id,omitzero"`
	// TenantID and UserID complete the identity of the caller.
	TenantID string `json:"tenant_id,omitzero"`
	UserID   string `json:"user_id,omitzero"`
	// IdempotencyKey is the caller's, or empty.
	IdempotencyKey string `json:"idempotency_key,omitzero"`
	// Attempt counts the attempts at the call from 1, or is 0 when not known.
	Attempt int `json:"attempt,omitzero"`
	// Caller is the caller's own _meta object.
	Caller json.RawMessage `json:"caller,omitzero"`
}

// Route is how the registry that sent a call is reached at once.
type Route struct {
	// Inbox is the subject of the very process that waits for the answer. It
	// responds to claims and results, and listens to notes under NotesSubject.
	Inbox string `json:"inbox"`
	// Shared is the subject that any registry of the namespace responds to when
	// Inbox does not.
	Shared string `json:"shared,omitzero"`
	// Token proves that a claim or result answers this message.
	Token string `json:"token,omitzero"`
	// Claim says that the call must be claimed before the tool runs.
	Claim bool `json:"claim,omitzero"`
	// Confirm says that the result is handed in as a question to Inbox, whose
	// answer confirms that it is recorded. Otherwise it is published under
	// NotesSubject, and the call is sent again if it gets lost.
	Confirm bool `json:"confirm,omitzero"`
	// Again says that a call which needs no claim was sent before, and that a claim
	// tells whether it is still to run: it may have killed those that had it.
	Again bool `json:"again,omitzero"`
}

// NotesSubject returns the subject on which the owner of an inbox listens to
// what comes before a result.
func NotesSubject(inbox string) string { return inbox + ":notes" }

// ToolResultMessage is the one answer to a call.
type ToolResultMessage struct {
	ToolUseID string `json:"tool_use_id"`
	// ResultJSON is the structured result.
	ResultJSON json.RawMessage `json:"result_json,omitzero"`
	// Bounds says what part of a larger result this is.
	Bounds *Bounds `json:"bounds,omitzero"`
	// ServerData is for programs around the model, never for the model.
	ServerData []ServerData `json:"server_data,omitzero"`
	// Error, when not nil, says that there is no result, and why.
	Error *ToolError `json:"error,omitzero"`

	// Content holds the blocks of the result, where it is more than its
	// structured part.
	Content []tools.Content `json:"content,omitzero"`
	// IsError says that the result is the tool's answer that it failed.
	IsError bool `json:"is_error,omitzero"`
	// Meta is the result's _meta object.
	Meta json.RawMessage `json:"meta,omitzero"`
	// Wire is the result object of an MCP server as it came, and WireKind says
	// of what; see tools.ToolResult.
	Wire     json.RawMessage `json:"wire,omitzero"`
	WireKind string          `json:"wire_kind,omitzero"`
	// Receipt goes back to the registry that sent the call.
	Receipt *Receipt `json:"receipt,omitzero"`
}

// Receipt tells a registry which call a result answers, and who gives it.
type Receipt struct {
	// Instance is the worker that ran the call.
	Instance string `json:"instance,omitzero"`
	// Token is that of the call's Route.
	Token string `json:"token,omitzero"`
	// TenantID is the tenant of the caller.
	TenantID string `json:"tenant_id,omitzero"`
	// Notes is how many notes were sent ahead of the result.
	Notes int `json:"notes,omitzero"`
}

// Bounds says what part of a larger result a result is.
type Bounds struct {
	// Returned is how many items the result holds.
	Returned int `json:"returned"`
	// Total is how many there are, if that is known.
	Total *int `json:"total,omitzero"`
	// Truncated says that there are more than were returned.
	Truncated bool `json:"truncated"`
	// RefinementHint says how to ask for less, or for the rest.
	RefinementHint string `json:"refinement_hint,omitzero"`
	// NextCursor is what gives the next part, or nil.
	NextCursor *string `json:"next_cursor,omitzero"`
}

// ServerData is something beside the result that is not for the model.
type ServerData struct {
	Kind string `json:"kind"`
	// Audience says for whom it is.
	Audience string          `json:"audience"`
	Data     json.RawMessage `json:"data"`
}

// ToolError says why there is no result.
type ToolError struct {
	// Code is one of the Code constants, or the tool's own.
	Code string `json:"code"`
	// Message is for people and models.
	Message string `json:"message"`
	// Issues says what is wrong with which argument.
	Issues []Issue `json:"issues,omitzero"`

	// Class is the kind of failure. Empty lets Code decide.
	Class tools.ErrorClass `json:"class,omitzero"`
	// NotDelivered says that the tool was certainly not run.
	NotDelivered bool `json:"not_delivered,omitzero"`
	// OutcomeUnknown says that it is not known whether the tool had its effect.
	OutcomeUnknown bool `json:"outcome_unknown,omitzero"`
	// RetryAfterMS is how long to wait before the same call may succeed, in
	// milliseconds.
	RetryAfterMS int64 `json:"retry_after_ms,omitzero"`
}

// Issue is one thing that is wrong with the arguments.
type Issue struct {
	// Field names the argument, as a path.
	Field string `json:"field"`
	// Constraint says what is not satisfied.
	Constraint string `json:"constraint"`
	// Message explains it, and never quotes a value.
	Message string `json:"message,omitzero"`
	// Allowed lists what is allowed, where that is a list.
	Allowed []string `json:"allowed,omitzero"`
}

// The codes of a ToolError that the registry knows. Others are a tool's own.
const (
	CodeInvalidArguments = "invalid_arguments"
	CodeInvalidOutput    = "invalid_output"
	CodeToolNotFound     = "tool_not_found"
	CodeExecutionFailed  = "execution_failed"
	CodeTimeout          = "timeout"
	CodeCancelled        = "cancelled"
	CodeExpired          = "expired"
	CodeOverloaded       = "overloaded"
	CodeStaleContract    = "stale_contract"
	CodeDeadLetter       = "dead_letter"
	CodeInvalidMessage   = "invalid_message"
	CodeResultTooLarge   = "result_too_large"
	CodeOutcomeUnknown   = "outcome_unknown"
	CodeUnavailable      = "unavailable"
	CodeAskUnsupported   = "ask_unsupported"
	// CodeConflict: the id of the call was used for another.
	CodeConflict = "idempotency_conflict"
)

// OutputDeltaMessage is a piece of a tool's output that comes before its result.
type OutputDeltaMessage struct {
	ToolUseID string `json:"tool_use_id"`
	// Stream names the output that the piece belongs to, such as "stdout".
	Stream string `json:"stream"`
	Delta  string `json:"delta"`
	// Token is that of the call's Route, if it has one.
	Token string `json:"token,omitzero"`
}

// ProgressMessage says how far a call is.
type ProgressMessage struct {
	ToolUseID string          `json:"tool_use_id"`
	Progress  float64         `json:"progress"`
	Total     float64         `json:"total,omitzero"`
	Message   string          `json:"message,omitzero"`
	Raw       json.RawMessage `json:"raw,omitzero"`
	// Token is that of the call's Route.
	Token string `json:"token,omitzero"`
}

// LogMessage is a line for the caller's log.
type LogMessage struct {
	ToolUseID string          `json:"tool_use_id"`
	Level     string          `json:"level"`
	Logger    string          `json:"logger,omitzero"`
	Data      json.RawMessage `json:"data,omitzero"`
	Raw       json.RawMessage `json:"raw,omitzero"`
	// Token is that of the call's Route.
	Token string `json:"token,omitzero"`
}

// DecodeCall reads what stands on a request stream. The error is ErrInvalid and
// quotes no value; what could be read of an invalid message is returned with
// it, so that it can be answered.
func DecodeCall(data []byte) (ToolCallMessage, error) {
	var m ToolCallMessage
	if err := decode(data, &m); err != nil {
		return m, err
	}
	return m, m.check()
}

func (m *ToolCallMessage) check() error {
	for _, t := range []string{m.TraceParent, m.TraceState, m.Baggage} {
		if len(t) > maxTraceBytes {
			return fmt.Errorf("%w: a trace header has %d bytes; at most %d are allowed", ErrInvalid, len(t), maxTraceBytes)
		}
	}
	switch m.Type {
	case TypePing:
		return checkID("ping_id", m.PingID)
	case TypeCall:
		return m.checkCall()
	}
	return fmt.Errorf("%w: the type of the message is neither %q nor %q", ErrInvalid, TypeCall, TypePing)
}

func (m *ToolCallMessage) checkCall() error {
	if err := checkToolUseID(m.ToolUseID); err != nil {
		return err
	}
	if err := tools.CheckName(m.Tool); err != nil {
		return fmt.Errorf("%w: tool: %w", ErrInvalid, err)
	}
	if m.Meta != nil {
		for _, id := range []string{m.Meta.RunID, m.Meta.SessionID, m.Meta.TurnID, m.Meta.ToolCallID, m.Meta.ParentToolCallID,
			m.Meta.TenantID, m.Meta.UserID, m.Meta.IdempotencyKey} {
			if len(id) > MaxIDBytes {
				return fmt.Errorf("%w: an id in meta has %d bytes; at most %d are allowed", ErrInvalid, len(id), MaxIDBytes)
			}
		}
	}
	if m.ReplyTo != "" {
		if err := checkName("reply_to", m.ReplyTo); err != nil {
			return err
		}
	}
	if m.Route != nil {
		return m.Route.check()
	}
	return nil
}

func (r *Route) check() error {
	if r.Inbox == "" {
		return fmt.Errorf("%w: the route has no inbox", ErrInvalid)
	}
	if len(r.Token) > MaxIDBytes {
		return fmt.Errorf("%w: the token of the route has %d bytes; at most %d are allowed", ErrInvalid, len(r.Token), MaxIDBytes)
	}
	if err := checkName("inbox of the route", NotesSubject(r.Inbox)); err != nil || r.Shared == "" {
		return err
	}
	return checkName("shared subject of the route", r.Shared)
}

// checkName returns ErrInvalid for what can be the name of no stream or subject.
func checkName(what, name string) error {
	if err := stream.CheckName(what, name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

func checkID(field, id string) error {
	if id == "" || len(id) > MaxIDBytes {
		return fmt.Errorf("%w: %s has 1 to %d bytes, not %d", ErrInvalid, field, MaxIDBytes, len(id))
	}
	return nil
}

// DecodeResult reads the answer to a call. The error is ErrInvalid and quotes
// no value.
func DecodeResult(data []byte) (ToolResultMessage, error) {
	var m ToolResultMessage
	if err := decode(data, &m); err != nil {
		return m, err
	}
	if r := m.Receipt; r != nil {
		for _, id := range []string{r.Instance, r.Token, r.TenantID} {
			if len(id) > MaxIDBytes {
				return m, fmt.Errorf("%w: an id of the receipt has %d bytes; at most %d are allowed", ErrInvalid, len(id), MaxIDBytes)
			}
		}
	}
	return m, checkToolUseID(m.ToolUseID)
}

func checkToolUseID(id string) error {
	if id == "" || len(id) > MaxToolUseIDBytes || !utf8.ValidString(id) {
		return fmt.Errorf("%w: tool_use_id is UTF-8 of 1 to %d bytes, and this one has %d", ErrInvalid, MaxToolUseIDBytes, len(id))
	}
	return nil
}

// decode reads one JSON object without duplicate keys.
func decode(data []byte, into any) error {
	if len(data) > MaxMessageBytes {
		return fmt.Errorf("%w: the message has %d bytes; at most %d are allowed", ErrInvalid, len(data), MaxMessageBytes)
	}
	if rawjson.KindOf(data) != rawjson.KindObject {
		return fmt.Errorf("%w: the message is no JSON object", ErrInvalid)
	}
	if quickDecode(data, into) {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	if err := jsonv2.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s", ErrInvalid, misfit(err))
	}
	return nil
}

// misfit says what is wrong with a message, without its values.
func misfit(err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Sprintf("duplicate member at offset %d", syntax.ByteOffset)
		}
		return fmt.Sprintf("not JSON at offset %d", syntax.ByteOffset)
	}
	var semantic *jsonv2.SemanticError
	if errors.As(err, &semantic) {
		return fmt.Sprintf("%q has a value of the wrong form", string(semantic.JSONPointer))
	}
	return "not JSON"
}

// Encode returns a message as JSON, with text as it is.
func Encode(message any) ([]byte, error) {
	if out, ok := quickEncode(message); ok {
		return out, nil
	}
	out, err := jsonv2.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("%w: the message cannot be encoded: %w", ErrInvalid, err)
	}
	return out, nil
}
