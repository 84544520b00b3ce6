package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

// The exit statuses that scripts can rely on.
const (
	exitOK = iota
	exitFailure
	exitUsage
	exitToolNotFound
	exitInvalidArguments
	exitToolFailed
	exitDenied
	exitBusy // timed out, overloaded or unavailable

	exitInterrupted = 130 // as shells have it for SIGINT
)

// exits is the one table from the codes of failed calls to exit statuses, for
// calls of a catalog in this process and of a server alike.
var exits = map[api.Code]int{
	api.CodeToolNotFound:     exitToolNotFound,
	api.CodeToolsetNotFound:  exitToolNotFound,
	api.CodeRunNotFound:      exitToolNotFound,
	api.CodeInvalidArguments: exitInvalidArguments,
	api.CodeTooLarge:         exitInvalidArguments,
	api.CodeConflict:         exitInvalidArguments,
	api.CodeToolFailed:       exitToolFailed,
	api.CodeInvalidOutput:    exitToolFailed,
	api.CodeAskUnsupported:   exitToolFailed,
	api.CodeAuthorization:    exitDenied,
	api.CodeDenied:           exitDenied,
	api.CodeRejected:         exitDenied,
	api.CodeApprovalExpired:  exitDenied,
	api.CodeUnauthenticated:  exitDenied,
	api.CodeTimeout:          exitBusy,
	api.CodeOverloaded:       exitBusy,
	api.CodeUnavailable:      exitBusy,
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// interruptedError is a command that a signal ended.
type interruptedError struct{ error }

func (e interruptedError) Unwrap() error { return e.error }

func (e interruptedError) Error() string {
	if failed, ok := errors.AsType[*api.Error](e.error); ok && failed.OutcomeUnknown {
		return "interrupted" + api.OutcomeUnknown
	}
	return "interrupted"
}

// exitStatus is the exit status that belongs to an error.
func exitStatus(err error) int {
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[interruptedError](err); ok {
		return exitInterrupted
	}
	if failed, ok := errors.AsType[*api.Error](err); ok {
		if status, ok := exits[failed.Code]; ok {
			return status
		}
	}
	return exitFailure
}

// explain prints an error on stderr. Faults of a configuration stand alone on
// their lines, so that editors find the places.
func (a *app) explain(err error) {
	if faults, ok := errors.AsType[gateway.ConfigErrors](err); ok {
		fmt.Fprintln(a.errOut, faults)
		return
	}
	fmt.Fprintf(a.errOut, "toolcrib: %s\n", printable(strings.TrimPrefix(err.Error(), "gateway: ")))
	if failed, ok := errors.AsType[*api.Error](err); ok && failed.RetryAfterMS > 0 {
		fmt.Fprintf(a.errOut, "toolcrib: try again after %v\n", time.Duration(failed.RetryAfterMS)*time.Millisecond)
	}
}

// failure is the body of an answer that is an error.
type failure struct {
	Error *api.Error `json:"error"`
}

// state prints an error on stdout as the JSON protocol has it, where the
// command was asked for JSON and nothing stands there yet.
func (a *app) state(cmd *cobra.Command, err error) {
	if flag := cmd.Flag("output"); flag == nil || flag.Value.String() != "json" || errors.As(err, new(answeredError)) {
		return
	}
	failed, ok := errors.AsType[*api.Error](err)
	if !ok {
		code := api.CodeInternal
		if exitStatus(err) == exitUsage {
			code = api.CodeInvalidRequest
		}
		failed = &api.Error{Code: code, Message: strings.TrimPrefix(err.Error(), "gateway: "), Class: tools.ErrClassPermanent}
	}
	_ = writeJSON(a.out, failure{failed}) // a reader that went away has the exit status
}
