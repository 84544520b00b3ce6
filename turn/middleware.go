package turn

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/toolcrib/toolcrib/tools"
)

// Invocation is one call as middleware sees it: declared in this turn, and not
// yet checked against the tool's schema.
type Invocation struct {
	// ID is the provider's id for the call. It may be empty or repeated.
	ID string
	// Tool is what is going to run, with its safety metadata; the target where
	// the call was redirected. It must not be changed.
	Tool *tools.Tool
	// Args are the arguments. What middleware makes of them is checked.
	Args json.RawMessage

	run  *Run
	next tools.Invoker
}

// Run returns the run that the call belongs to.
func (i *Invocation) Run() *Run { return i.run }

// Handler answers a call.
type Handler func(ctx context.Context, inv *Invocation) (tools.ToolResult, error)

// Middleware surrounds the handling of calls. It may change the arguments or the
// result, answer by itself, or refuse with an error; whoever changes a result
// clears its Wire. It is called by many goroutines at once.
type Middleware func(next Handler) Handler

// goOn passes the call on to the rest of the road.
func goOn(ctx context.Context, inv *Invocation) (tools.ToolResult, error) {
	return inv.next(ctx, inv.Args)
}

// surround puts middleware around a handler, the first outermost.
func surround(next Handler, middleware []Middleware) Handler {
	for _, m := range slices.Backward(middleware) {
		if m != nil {
			next = m(next)
		}
	}
	return next
}

// Before returns middleware that runs f before each call. An error of f refuses
// the call.
func Before(f func(ctx context.Context, inv *Invocation) error) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, inv *Invocation) (tools.ToolResult, error) {
			if err := f(ctx, inv); err != nil {
				return tools.ToolResult{}, denied(err)
			}
			return next(ctx, inv)
		}
	}
}

// After returns middleware that runs f with the result of each call that gave
// one. f may change it. An error of f takes the place of the result.
func After(f func(ctx context.Context, inv *Invocation, result *tools.ToolResult) error) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, inv *Invocation) (tools.ToolResult, error) {
			res, err := next(ctx, inv)
			if err != nil {
				return res, err
			}
			if err := f(ctx, inv, &res); err != nil {
				return tools.ToolResult{}, withheld(err)
			}
			return res, nil
		}
	}
}

// denied makes err the refusal of a call.
func denied(err error) error {
	if _, ok := err.(*tools.Error); ok {
		return err
	}
	return &tools.Error{Code: tools.ErrToolDenied, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered, Err: err}
}

// withheld makes err take the place of a result that there was.
func withheld(err error) error {
	if _, ok := err.(*tools.Error); ok {
		return err
	}
	return &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered,
		Message: "the call was made, but its result is withheld: " + err.Error(), Err: err}
}
