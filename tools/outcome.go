package tools

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// checkOutput makes sure that what a tool calls JSON is JSON, and validates the
// structured result, unless the tool says that it failed. The MCP driver hands
// out bytes that were scanned when they came.
func (b *binding) checkOutput(res *ToolResult) error {
	if res.Structured == nil && res.Value != nil && len(res.Content) == 0 {
		raw, err := res.JSON()
		if err != nil {
			return invalidOutput(fmt.Errorf("the result cannot be encoded as JSON: %w", err))
		}
		res.Structured = raw
	}
	if b.out == nil || res.IsError || res.TaskID != "" || !b.policy.Validate.out() {
		return b.checkWellFormed(res, false)
	}
	if res.Structured == nil && len(res.Artifacts) > 0 {
		return b.checkWellFormed(res, false) // it was kept aside as it came
	}
	if res.Structured == nil {
		return invalidOutput(errors.New("the tool declares an output schema and gave no structured result"))
	}
	if err := b.out.Check(res.Structured); err != nil {
		return invalidOutput(err)
	}
	return b.checkWellFormed(res, true)
}

func (b *binding) checkWellFormed(res *ToolResult, structuredIs bool) error {
	if b.tool.Transport == TransportMCP {
		return nil
	}
	if !structuredIs && res.Structured != nil && !rawjson.Valid(res.Structured) {
		return invalidOutput(errors.New("the structured result is not JSON"))
	}
	for i, c := range res.Content {
		if !rawjson.Valid(c.JSON) {
			return invalidOutput(fmt.Errorf("content block %d is not JSON", i))
		}
	}
	if res.Wire != nil && !rawjson.Valid(res.Wire) {
		return invalidOutput(errors.New("the result object is not JSON"))
	}
	return nil
}

func invalidOutput(err error) *Error {
	return &Error{Code: ErrToolInvalidOutput, Class: ErrClassPermanent, Delivery: Answered, Err: err}
}

// conclude completes the result or the error, publishes the terminal event and
// tells admission and the recorder.
func (p *passage) conclude(ctx context.Context, res ToolResult, err error) (ToolResult, error) {
	p.close()
	elapsed := time.Since(p.start)
	var failure *Error
	if err != nil {
		failure = p.blame(err)
		res, err = ToolResult{}, failure
		p.call.forsake(ctx)
	} else {
		res.Tool, res.CallID, res.Elapsed, res.Attempts = p.b.tool.Name, p.call.ID, elapsed, p.attempts
	}
	if p.release != nil {
		p.leave(ctx, err)
	}
	if !p.em.silent() {
		p.report(ctx, &res, failure, elapsed)
	}
	if r := p.stages.Recorder; r != nil && p.call != nil {
		p.record(ctx, r, res, err, elapsed)
	}
	return res, err
}

// leave tells admission that the call has ended.
func (p *passage) leave(ctx context.Context, err error) {
	defer p.b.cat.survive(ctx, p.b.tool.Name, "admission")
	done := p.release
	p.release = nil
	done(err)
}

// survive is deferred around parts that are told of a call which has ended:
// what they do wrong must not take its result away.
func (c *catalog) survive(ctx context.Context, tool, part string) {
	if r := recover(); r != nil {
		c.logger.ErrorContext(ctx, "a part of the road panicked", "part", part, "tool", tool, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	}
}

func (p *passage) record(ctx context.Context, r Recorder, res ToolResult, err error, elapsed time.Duration) {
	defer p.b.cat.survive(ctx, p.b.tool.Name, "recorder")
	rec := CallRecord{Call: p.call, Identity: p.em.who, Tool: &p.b.tool, Args: p.call.args, Err: err,
		StartedAt: p.start, Elapsed: elapsed, Attempts: p.attempts}
	if err == nil {
		rec.Result = &res
	}
	r.Record(ctx, rec)
}

// blame makes err the one error type, with what the door knows.
func (p *passage) blame(err error) *Error {
	e := asError(finite(err))
	e.Tool = truncate(p.b.tool.Name, maxShownName)
	e.Attempts = p.attempts
	if e.Code == ErrToolPolicyExhausted {
		p.spent = e
	}
	return e
}

// asError returns a copy of err's own *Error, or a new one around it.
func asError(err error) *Error {
	if e, ok := err.(*Error); ok {
		c := *e
		if !c.Class.known() {
			c.Class = ClassifyError(err, false)
		}
		return &c
	}
	return &Error{Class: ClassifyError(err, false), Err: err}
}

// report publishes the terminal event.
func (p *passage) report(ctx context.Context, res *ToolResult, failure *Error, elapsed time.Duration) {
	t, end := &p.b.tool, p.start.Add(elapsed)
	switch {
	case failure == nil:
		p.em.emit(ctx, EventTypeToolCompleted, ToolCompletedPayload{Identity: p.em.who, ToolName: t.Name, Transport: t.Transport,
			Attempts: p.attempts, DurationMS: elapsed.Milliseconds(), IsError: res.IsError}, end)
	case failure.Code == ErrToolNotFound && p.call == nil:
		p.em.emit(ctx, EventTypeToolUnknown, ToolUnknownPayload{Identity: p.em.who, ToolName: failure.Tool}, end)
	case p.call == nil:
		transport := t.Transport
		if !p.b.permitted(ctx, partFuncOf(ctx)) {
			transport = ""
		}
		p.em.failed(ctx, transport, failure)
	case failure.Code == ErrToolInvalidArgs && !p.invoked:
		p.em.emit(ctx, EventTypeToolInvalidArgs, ToolInvalidArgsPayload{Identity: p.em.who, ToolName: t.Name, Transport: t.Transport,
			ValidationError: failure.SafeMessage()}, end)
	case p.refusing != "" && !p.invoked:
		p.em.emit(ctx, EventTypeToolDenied, ToolDeniedPayload{Identity: p.em.who, ToolName: t.Name, Transport: t.Transport,
			Stage: p.refusing, Reason: failure.SafeMessage()}, end)
	default:
		if p.spent != nil {
			p.em.emit(ctx, EventTypeToolPolicyExhausted, ToolPolicyExhaustedPayload{Identity: p.em.who, ToolName: t.Name, Transport: t.Transport,
				Attempts: p.attempts, LastClass: failure.Class, LastError: failure.SafeMessage()}, end)
		}
		p.em.failed(ctx, t.Transport, failure)
	}
}

func (e *emitter) failed(ctx context.Context, transport TransportKind, err *Error) {
	if e.silent() {
		return
	}
	e.emit(ctx, EventTypeToolFailed, ToolFailedPayload{Identity: e.who, ToolName: e.tool, Transport: transport, Attempts: err.Attempts,
		ErrorClass: err.Class, ErrorMessage: err.SafeMessage(), OutcomeUnknown: err.OutcomeUnknown}, time.Now())
}
