package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// EventTypeArgsUnwrapped tells of arguments that came wrapped and were unwrapped
// under the policy Normalize.
const EventTypeArgsUnwrapped events.EventType = "tool.args_unwrapped"

// ArgsUnwrappedPayload: arguments came wrapped.
type ArgsUnwrappedPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	ToolName string
	// Wrapping is what was taken off: "json string" or "code fence", joined by
	// commas.
	Wrapping string
}

// EventDefinitions lists the events of this package, for an events.Registry.
func EventDefinitions() []events.Definition {
	return []events.Definition{events.Define[ArgsUnwrappedPayload](EventTypeArgsUnwrapped)}
}

// arguments returns the arguments to go on with.
func (p *plan) arguments(ctx context.Context, tool *tools.Tool, args json.RawMessage) (json.RawMessage, error) {
	readOnly := tool.Safety.ReadOnly == tools.Yes
	mends := readOnly && p.turn.run.runner.opts.BadCalls == Normalize
	switch {
	case p.call.Err != nil && !mends:
		return nil, unreadable(p.call.Err)
	case p.call.Err == nil && absent(args):
		if !readOnly && takesArguments(tool) {
			return nil, &tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
				Err: errors.New("there are none; to call the tool without any, send {}")}
		}
		return args, nil
	case !mends:
		return args, nil
	}
	return p.mend(ctx, tool, args)
}

// mend takes off what arguments are wrapped in.
func (p *plan) mend(ctx context.Context, tool *tools.Tool, args json.RawMessage) (json.RawMessage, error) {
	inner, wrapping := unwrap(args)
	if wrapping != "" && p.call.Read != nil {
		var err error
		if inner, err = p.call.Read(inner); err != nil {
			return nil, unreadable(err)
		}
	}
	if wrapping == "" {
		if p.call.Err != nil {
			return nil, unreadable(p.call.Err)
		}
		return args, nil
	}
	p.unwrapped = wrapping
	p.tellUnwrapped(ctx, tool.Name)
	return inner, nil
}

func absent(args json.RawMessage) bool {
	t := rawjson.Trim(args)
	return len(t) == 0 || string(t) == "null"
}

// takesArguments reports whether a tool has arguments that may be left out by
// mistake.
func takesArguments(tool *tools.Tool) bool {
	if len(tool.ArgsSchema) == 0 {
		return true
	}
	props, _ := rawjson.Get(tool.ArgsSchema, "properties")
	return rawjson.Len(props) > 0
}

// maxWrappings bounds how many layers are taken off.
const maxWrappings = 4

// unwrap returns the JSON object inside args, and what stood around it, or args
// as they are.
func unwrap(args json.RawMessage) (inner json.RawMessage, wrapping string) {
	at := rawjson.Trim(args)
	for range maxWrappings {
		if rawjson.KindOf(at) == rawjson.KindObject && rawjson.Valid(at) {
			return at, wrapping
		}
		what := "code fence"
		next, ok := unfence(at)
		if !ok {
			what = "json string"
			next, ok = unquote(at)
		}
		if !ok {
			break
		}
		at = rawjson.Trim(next)
		if wrapping != "" {
			wrapping += ","
		}
		wrapping += what
	}
	if rawjson.KindOf(at) == rawjson.KindObject && rawjson.Valid(at) {
		return at, wrapping
	}
	return args, ""
}

func unquote(v []byte) ([]byte, bool) {
	if rawjson.KindOf(v) != rawjson.KindString || !rawjson.Valid(v) {
		return nil, false
	}
	s, ok := rawjson.Unquote(v)
	return []byte(s), ok
}

// unfence returns what stands between the lines of a code fence.
func unfence(v []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(v, fence)
	if !ok {
		return nil, false
	}
	word, body, ok := bytes.Cut(rest, []byte("\n"))
	if word = bytes.TrimSpace(word); !ok || len(word) > 0 && string(word) != "json" {
		return nil, false
	}
	return bytes.CutSuffix(bytes.TrimRight(body, " \t\r\n"), fence)
}

var fence = []byte("```")

// tellUnwrapped publishes that arguments were unwrapped. A bus that does not
// know the event loses it, and the call goes on.
func (p *plan) tellUnwrapped(ctx context.Context, tool string) {
	bus := p.turn.run.runner.opts.Bus
	if bus == nil {
		bus, _ = events.From(ctx)
	}
	who, ok := identity.QuadrupleFrom(ctx)
	if bus == nil || !ok {
		return
	}
	e := events.Event{Type: EventTypeArgsUnwrapped, Time: time.Now(), Identity: who, Tool: tool,
		Payload: ArgsUnwrappedPayload{Identity: who, ToolName: tool, Wrapping: p.unwrapped}}
	if c := tools.CallFrom(ctx); c != nil {
		e.CallID = c.ID
	}
	_ = bus.Publish(ctx, e)
}
