package tools

import (
	"context"
	"encoding/json"
	"time"
)

// Redirect says which tool a call is meant for, and with which arguments. An
// error refuses the call as one with invalid arguments; it is shown to the
// caller and must not quote argument values.
type Redirect func(ctx context.Context, args json.RawMessage) (name string, target json.RawMessage, err error)

// WithRedirect makes the tool a way to call others by name: a call of it becomes
// the call of the tool that f names, before anything else happens, so that
// stages, middleware, events and records know that tool alone. The arguments are
// checked against the redirecting tool's own schema first. A target that the
// caller may not see, that does not exist, or that redirects as well is answered
// as an unknown tool. The descriptor's Invoke is never used.
func WithRedirect(f Redirect) DescriptorOption {
	return func(c *descriptorConfig) { c.Redirect = f }
}

// Target returns what a call of the tool would be meant for, where the tool is a
// way to call others and args say which. It runs nothing and promises nothing:
// the call itself looks again.
func (d *ToolDescriptor) Target(ctx context.Context, args json.RawMessage) (name string, target json.RawMessage, ok bool) {
	if d.redirect == nil {
		return "", nil, false
	}
	defer func() {
		if recover() != nil {
			name, target, ok = "", nil, false
		}
	}()
	name, target, err := d.redirect(ctx, args)
	return name, target, err == nil
}

// handOver makes a call of a redirecting tool the call of its target.
func (b *binding) handOver(ctx context.Context, args json.RawMessage) (ToolResult, error) {
	p := passage{b: b, stages: b.cat.stages.Load(), start: time.Now()}
	p.em = newEmitter(ctx, b.cat, b.tool.Name, b.bus)
	name, target, err := p.aim(ctx, args)
	if err != nil {
		return p.conclude(ctx, ToolResult{}, err)
	}
	if t := b.cat.Snapshot().byName[name]; t != nil && t.redirect == nil {
		return t.Invoke(ctx, target)
	}
	return b.cat.unknown(ctx, name)
}

// aim returns what a call is meant for.
func (p *passage) aim(ctx context.Context, args json.RawMessage) (name string, target json.RawMessage, err error) {
	b := p.b
	defer func() {
		if r := recover(); r != nil {
			err = b.cat.panicked(ctx, b.tool.Name, r)
		}
	}()
	if err := b.cat.checkCaller(ctx, truncate(b.tool.Name, maxShownName)); err != nil {
		return "", nil, err
	}
	if !b.permitted(ctx, partFuncOf(ctx)) {
		return "", nil, notFound(b.tool.Name)
	}
	p.call = &p.own
	p.call.begin(ctx, b, CallFrom(ctx), p.em.who.RunID)
	p.em.call = p.call.ID
	args = orEmptyObject(args)
	if err := b.checkArgs(args); err != nil {
		return "", nil, err
	}
	if name, target, err = b.redirect(ctx, args); err != nil {
		return "", nil, &Error{Code: ErrToolInvalidArgs, Class: ErrClassPermanent, Delivery: NotDelivered, Err: err}
	}
	return name, target, nil
}
