package tools

import (
	"context"
	"strconv"
)

// Part is some of the tools of a catalog, as one caller sees them.
type Part struct {
	// Class names the part. Parts of one class hold the same tools of one
	// snapshot, so whatever of the caller they depend on is in it.
	Class string
	// Holds reports whether a tool is in the part. It must not change the tool,
	// and is called by many goroutines at once. A nil one holds nothing, and one
	// that panics does not hold the tool.
	Holds func(*Tool) bool
}

// PartFunc returns the part that is there for the caller on ctx. If it panics,
// nothing is.
type PartFunc func(ctx context.Context) Part

type partKey struct{}

// WithPart returns a context whose caller sees, finds and can call nothing of a
// catalog but what of gives: for it, other tools do not exist. It narrows what
// the caller sees anyway, also where that is a part already, and never grants.
// A nil function gives nothing.
//
// A tool about tools ([KindMeta]) works on the part of its caller. The calls that
// any other tool makes of its own are not narrowed: what it needs is for its
// author to know, and not for who shows it.
func WithPart(ctx context.Context, of PartFunc) context.Context {
	if of == nil {
		of = func(context.Context) Part { return Part{Class: "nothing"} }
	}
	if outer := partFuncOf(ctx); outer != nil {
		of = bothParts(outer, of)
	}
	return context.WithValue(ctx, partKey{}, of)
}

func bothParts(a, b PartFunc) PartFunc {
	return func(ctx context.Context) Part {
		a, b := a(ctx), b(ctx)
		return Part{
			Class: strconv.Quote(a.Class) + strconv.Quote(b.Class),
			Holds: func(t *Tool) bool { return a.holds(t) && b.holds(t) },
		}
	}
}

// partFuncOf returns what WithPart set on the context, or nil.
func partFuncOf(ctx context.Context) PartFunc {
	of, _ := ctx.Value(partKey{}).(PartFunc)
	return of
}

// at returns the part of the caller on ctx, or nil when nothing is narrowed.
func (of PartFunc) at(ctx context.Context) (p *Part) {
	if of == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			p = new(Part)
		}
	}()
	given := of(ctx)
	return &given
}

func (p *Part) holds(t *Tool) (in bool) {
	if p == nil || p.Holds == nil {
		return p == nil
	}
	defer func() {
		if recover() != nil {
			in = false
		}
	}()
	return p.Holds(t)
}

// PartClass names the part of a catalog that the filter is narrowed to, as
// [Part].Class has it, or is empty.
func (f CatalogFilter) PartClass() string {
	if f.part == nil {
		return ""
	}
	return "part " + f.part.Class
}

// Permits reports whether scopes, tenant and part let the caller see t. It is for
// those who keep tools of their own; a catalog asks it by itself.
func (f CatalogFilter) Permits(t *Tool) bool { return f.permits(t) }

// Filter returns the filter of who made the call, which the tool runs on ctx for:
// [FilterFrom] of what was the call's context. That of a nil Call is FilterFrom.
func (c *Call) Filter(ctx context.Context) CatalogFilter {
	f := FilterFrom(ctx)
	if c != nil {
		f.part = c.part.at(ctx)
	}
	return f
}

// partBehind is what a context inside a call tells of the part that the call came
// with.
func (c *Call) partBehind(ctx context.Context) any {
	if c.binding != nil && c.binding.tool.Kind == KindMeta {
		return ctx.Value(partKey{})
	}
	return PartFunc(nil)
}
