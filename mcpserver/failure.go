package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// metaError is the member of a failed result's _meta that holds an ErrorInfo.
const metaError = "toolcrib/error"

// ErrorInfo says why a call failed, for programs. It is the member
// "toolcrib/error" of the _meta of a result with isError that the tool did not
// give itself.
type ErrorInfo struct {
	// Class is the kind of failure: transient, timeout, 5xx or permanent.
	Class tools.ErrorClass `json:"class"`
	// Code says what happened: invalid_args, denied, rejected,
	// approval_expired, overloaded, unavailable, idempotency_conflict,
	// invalid_output, ask_unsupported, authorization_required, timeout or failed.
	Code string `json:"code"`
	// RetryAfterMS is how long to wait before the call is made again, in
	// milliseconds; absent when nobody said.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// OutcomeUnknown says that the call was sent, no answer came, and it may
	// have had its effect.
	OutcomeUnknown bool `json:"outcome_unknown"`
	// Attempts is how many attempts were made; 0 means that the tool was not
	// reached.
	Attempts int `json:"attempts"`
}

// A reason is how one kind of failure is told.
type reason struct {
	sentinel   error
	code, text string
}

// reasons is the table of failures that have a sentinel.
func reasons() []reason {
	return []reason{
		{tools.ErrToolInvalidArgs, "invalid_args", "Invalid arguments"},
		{tools.ErrToolDenied, "denied", "The call was denied"},
		{tools.ErrToolRejected, "rejected", "The call was rejected"},
		{tools.ErrApprovalExpired, "approval_expired", "The call was not approved in time"},
		{tools.ErrOverloaded, "overloaded", "Overloaded, try again later"},
		{tools.ErrUnavailable, "unavailable", "What runs the tool is not there now, try again later"},
		{tools.ErrIdempotencyConflict, "idempotency_conflict", "The idempotency key was used for another call"},
		{tools.ErrToolInvalidOutput, "invalid_output", "The result of the tool does not satisfy its output schema"},
		{tools.ErrAskUnsupported, "ask_unsupported", "The tool asks what this client cannot answer"},
		{tools.ErrAuthorizationRequired, "authorization_required", "The service behind the tool wants authorization"},
	}
}

// answerFailure answers a call that gave no result: with a JSON-RPC error or
// with a result that says what went wrong.
func answerFailure(ctx context.Context, name string, err error) (json.RawMessage, error) {
	var e *tools.Error
	if !errors.As(err, &e) {
		e = &tools.Error{Class: tools.ClassifyError(err, false), Err: err}
	}
	var rpc *mcpwire.Error
	switch {
	case ctx.Err() != nil:
		return nil, mcpwire.Errorf(mcpwire.CodeRequestCancelled, "request cancelled")
	case e.Code == tools.ErrToolNotFound && e.Attempts == 0:
		if !strings.HasPrefix(name, e.Tool) {
			name = e.Tool // a call that was redirected is that of its target
		}
		return nil, unknownTool(name)
	case e.Code == tools.ErrIdentityRequired && e.Attempts == 0:
		return nil, identityRequired()
	case errors.As(err, &rpc):
		return nil, rpc
	}
	return failedResult(e)
}

func unknownTool(name string) error {
	return mcpwire.Errorf(mcpwire.CodeInvalidParams, "Unknown tool: %s", shorten(name, 128))
}

func identityRequired() error {
	return mcpwire.Errorf(mcpwire.CodeInvalidRequest, "this server demands an identity, and the request carries none")
}

func failedResult(e *tools.Error) (json.RawMessage, error) {
	text, info := tell(e)
	return encodeResult(&tools.ToolResult{
		IsError: true,
		Content: []tools.Content{tools.TextContent(text)},
		Meta:    map[string]any{metaError: info},
	}, nil)
}

// tell says what went wrong, for a model and for programs.
func tell(e *tools.Error) (string, ErrorInfo) {
	code, text := explain(e)
	switch m := e.SafeMessage(); {
	case m != "":
		text += ": " + m
	case code == "failed" && e.Code != nil:
		text += ": " + strings.TrimPrefix(e.Code.Error(), "tools: ")
	}
	if e.OutcomeUnknown {
		text += ". Whether the call took effect is not known."
	}
	return text, ErrorInfo{Class: e.Class, Code: code, RetryAfterMS: e.RetryAfter.Milliseconds(),
		OutcomeUnknown: e.OutcomeUnknown, Attempts: e.Attempts}
}

func explain(e *tools.Error) (code, text string) {
	for _, r := range reasons() {
		if errors.Is(e, r.sentinel) {
			return r.code, r.text
		}
	}
	if e.Class == tools.ErrClassTimeout {
		return "timeout", "The tool did not answer in time"
	}
	return "failed", "The tool failed"
}
