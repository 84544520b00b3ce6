package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/internal/nearest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// explain says in words for a model what became of a call that gave no result,
// and what to do about it.
func (p *plan) explain(ctx context.Context) string {
	name, why := shorten(p.shown(p.call.Name)), reason(p.result.Err)
	switch p.result.Status {
	case StatusUnknown:
		return p.unknown()
	case StatusInvalid:
		return fmt.Sprintf("%q was not run, its arguments are not valid: %s. Send the call again with arguments that satisfy its schema.", name, why)
	case StatusDenied:
		return fmt.Sprintf("%q was not run, the call was refused: %s.", name, why)
	case StatusNotRun:
		return fmt.Sprintf("%q was not run: %s.", name, why)
	case StatusCancelled:
		return fmt.Sprintf("%q was cancelled while it ran: %v.%s", name, causeOf(ctx), doubt(p.result.Err))
	}
	return fmt.Sprintf("%q failed: %s.%s", name, why, doubt(p.result.Err))
}

// unknown says that there is no such tool, and which may have been meant.
func (p *plan) unknown() string {
	var b strings.Builder
	if target, ok := p.target(); ok {
		fmt.Fprintf(&b, "There is no tool %q that %q could call.", target, p.shown(p.call.Name))
	} else {
		fmt.Fprintf(&b, "There is no tool %q in this turn.", shorten(p.call.Name))
	}
	if p.turn.hints.Add(1) <= maxHints {
		if meant, ok := p.meant(); ok {
			fmt.Fprintf(&b, " Did you mean %q?", meant)
		}
	}
	if p.turn.Has(view.SearchTool) {
		fmt.Fprintf(&b, " More tools are found with %q, and can be called from the next turn on.", p.shown(view.SearchTool))
	}
	return b.String()
}

// maxHints bounds how many calls of a turn are told what they may have meant:
// each is compared with every name there is.
const maxHints = 64

// target returns the target of a redirect that is not known, if the call was one.
func (p *plan) target() (string, bool) {
	var e *tools.Error
	if p.call.Err != nil || !p.turn.Has(p.call.Name) || !errors.As(p.result.Err, &e) {
		return "", false
	}
	return e.Tool, true
}

// meant returns the name, as the model knows it, that is nearest to that of a call
// that is not known.
func (p *plan) meant() (string, bool) {
	known := p.turn.Names()
	if target, ok := p.target(); ok { // which is a canonical name
		if p.turn.run.runner.opts.Select == nil {
			known = p.turn.declared.View().Names()
		}
		return nearest.Word(target, known)
	}
	wires := make([]string, len(known))
	for i, name := range known {
		wires[i] = p.shown(name)
	}
	if wire, ok := nearest.Word(p.call.Name, wires); ok {
		return wire, true
	}
	name, ok := nearest.Word(p.call.Name, known)
	return p.shown(name), ok
}

// reason returns what an error says, without what only programs need.
func reason(err error) string {
	text := err.Error()
	var e *tools.Error
	if errors.As(err, &e) {
		if text = e.SafeMessage(); text == "" && e.Code != nil {
			text = strings.TrimPrefix(e.Code.Error(), "tools: ")
		}
	}
	return strings.TrimRight(text, ". \n")
}

// doubt says what is left open by a failure.
func doubt(err error) string {
	var e *tools.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.OutcomeUnknown:
		return " It is not known whether it had its effect: find that out before it is called again."
	case e.RetryAfter > 0:
		return fmt.Sprintf(" It may be called again after %v.", e.RetryAfter.Round(time.Second))
	case e.Retryable:
		return " The same call may succeed later."
	}
	return ""
}

// maxShownName bounds how much is repeated of a name that a model made up, in
// bytes.
const maxShownName = 128

func shorten(name string) string {
	if len(name) <= maxShownName {
		return name
	}
	return strings.ToValidUTF8(name[:maxShownName], "") + "…"
}
