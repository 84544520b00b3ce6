package turn

import (
	"context"
	"errors"

	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// Confirmer asks a person whether a call may be made.
type Confirmer func(ctx context.Context, inv *Invocation) (agreed bool, err error)

var errNotConfirmed = errors.New("it was not confirmed")

// Confirm returns middleware that asks before calls of tools for which one of the
// rules holds; without a rule, of all that are not known to be read-only. Without
// an agreement the call is refused. Nobody is asked about arguments that are not
// valid, nor about a tool that needs confirmation by itself: for that one the
// door asks the catalog's approver.
//
// Place it last, so that nothing changes the arguments after they were agreed to.
func Confirm(ask Confirmer, rules ...Rule) Middleware {
	rule := Not(Is(ReadOnly))
	if len(rules) > 0 {
		rule = Any(rules...)
	}
	return func(next Handler) Handler {
		return func(ctx context.Context, inv *Invocation) (tools.ToolResult, error) {
			t := inv.Tool
			if t.Kind == tools.KindMeta || t.Safety.NeedsConfirmation == tools.Yes || !rule(t) || !satisfies(t, inv.Args) {
				return next(ctx, inv)
			}
			if ask == nil {
				return tools.ToolResult{}, denied(errNotConfirmed)
			}
			agreed, err := ask(ctx, inv)
			if err != nil {
				return tools.ToolResult{}, denied(err)
			}
			if !agreed {
				return tools.ToolResult{}, &tools.Error{Code: tools.ErrToolRejected, Class: tools.ErrClassPermanent,
					Delivery: tools.NotDelivered, Err: errNotConfirmed}
			}
			return next(ctx, inv)
		}
	}
}

// satisfies reports whether the door is going to take the arguments, as far as
// the tool's schema tells.
func satisfies(tool *tools.Tool, args []byte) bool {
	if absent(args) {
		args = []byte("{}")
	}
	raw := tool.ArgsSchema
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	s, err := schema.Compile(raw, nil)
	return err != nil || s.Check(args) == nil
}
