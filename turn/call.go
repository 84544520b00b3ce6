package turn

import (
	"encoding/json"
	"errors"

	"github.com/toolcrib/toolcrib/tools"
)

// Call is one tool call as a model made it.
type Call struct {
	// ID is the provider's id for the call. It may be repeated or empty.
	ID string
	// Name is the canonical name of the tool that is called.
	Name string
	// Args are the arguments, as the model wrote them.
	Args json.RawMessage
	// Err is why whoever read the model's answer could not make sense of the
	// call, or nil. Such a call is not run; a *tools.Error says what it is taken
	// for.
	Err error
	// Read maps arguments that were mended, and were not those of the tool's own
	// schema, to those that are. Nil leaves them as they are.
	Read func(args json.RawMessage) (json.RawMessage, error)
}

// Result is what became of one call.
type Result struct {
	// ID and Name are those of the Call, unchanged.
	ID, Name string
	// Tool is the canonical name of what was to run: the target where the call
	// was redirected. It is empty where no tool of the turn was meant.
	Tool string
	// ToolResult is what the model is told. Unless the call completed it is an
	// error result whose text says what happened and what to do about it.
	tools.ToolResult
	// Status says how the call ended.
	Status Status
	// Err is why the call did not complete, nil when it did.
	Err error
	// Unwrapped says what was taken off the arguments before they were
	// checked: "json string" or "code fence", joined by commas. It is empty
	// when they were taken as they came.
	Unwrapped string
}

// Status says how a call ended.
type Status string

// The Status values.
const (
	// StatusCompleted: the tool answered. Its answer may be that it failed,
	// see tools.ToolResult.IsError.
	StatusCompleted Status = "completed"
	// StatusFailed: the tool was called and gave no result, or there was no
	// capacity to call it.
	StatusFailed Status = "failed"
	// StatusUnknown: no tool of that name was declared in this turn.
	StatusUnknown Status = "unknown"
	// StatusInvalid: the arguments were refused.
	StatusInvalid Status = "invalid"
	// StatusDenied: a rule or a person refused the call.
	StatusDenied Status = "denied"
	// StatusCancelled: the turn ended while the tool ran. Err tells whether the
	// call may have had its effect.
	StatusCancelled Status = "cancelled"
	// StatusNotRun: the tool was certainly not called, for a limit or because
	// the turn ended first.
	StatusNotRun Status = "not_run"
)

// bad reports whether the call was one that should not have been made.
func (s Status) bad() bool {
	return s == StatusUnknown || s == StatusInvalid || s == StatusDenied
}

// Sentinels, for callers that branch. Compare with errors.Is.
var (
	// ErrNotRun stands in Result.Err of every call with StatusNotRun.
	ErrNotRun = errors.New("turn: not run")
	// ErrBudget stands in Result.Err of a call that a limit kept from running or
	// cut off, and is what Execute returns when the run can make no more calls.
	ErrBudget = errors.New("turn: budget used up")
	// ErrBadCall is what Execute returns under the policy Fail when a call was
	// unknown, invalid or denied.
	ErrBadCall = errors.New("turn: bad call")
)
