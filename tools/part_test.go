package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// prefixed is the part of the tools whose names begin with a prefix.
func prefixed(prefix string) tools.PartFunc {
	return func(context.Context) tools.Part {
		return tools.Part{Class: prefix, Holds: func(t *tools.Tool) bool { return strings.HasPrefix(t.Name, prefix) }}
	}
}

func partCatalog(t testing.TB, list ...tools.ToolDescriptor) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, name := range []string{"in.a", "in.b", "out.a"} {
		list = append(list, tools.ToolDescriptor{Tool: tools.Tool{Name: name}, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Value: name}, nil
		}})
	}
	if err := cat.RegisterAll(list); err != nil {
		t.Fatal(err)
	}
	return cat
}

func TestAPartIsAllThereIs(t *testing.T) {
	cat := partCatalog(t)
	ctx := tools.WithPart(t.Context(), prefixed("in."))
	want := []string{"in.a", "in.b"}
	if got := tools.VisibleNames(cat, tools.FilterFrom(ctx)); !slices.Equal(got, want) {
		t.Errorf("visible: %v", got)
	}
	if got := cat.Snapshot().Visible(tools.FilterFrom(ctx)).Names(); !slices.Equal(got, want) {
		t.Errorf("snapshot: %v", got)
	}
	view := tools.NewPlannerView(cat, tools.FilterFrom(ctx))
	if _, ok := view.Resolve("out.a"); ok || len(view.List()) != 2 {
		t.Errorf("planner: %v", view.List())
	}
	if _, err := tools.Invoke(ctx, cat, "in.a", nil); err != nil {
		t.Error(err)
	}
	_, hidden := tools.Invoke(ctx, cat, "out.a", nil)
	_, absent := tools.Invoke(ctx, cat, "out.x", nil)
	if !errors.Is(hidden, tools.ErrToolNotFound) || strings.ReplaceAll(hidden.Error(), "out.a", "out.x") != absent.Error() {
		t.Errorf("a tool outside is answered %q, one that does not exist %q", hidden, absent)
	}
	if got := tools.VisibleNames(cat, tools.FilterFrom(t.Context())); len(got) != 3 {
		t.Errorf("without a part: %v", got)
	}
}

// Events do not tell what is outside from what is not there either.
func TestEventsOfWhatIsOutsideAPartAreThoseOfUnknownTools(t *testing.T) {
	w := watch(t, nil, plain("out.a", returning(tools.ToolResult{}, nil)))
	ctx := tools.WithPart(adaCtx(), prefixed("in."))
	_, _ = tools.Invoke(ctx, w, "out.a", nil)
	_, _ = tools.Invoke(ctx, w, "out.x", nil)
	if got := w.drain(); !slices.Equal(got, []string{"tool.unknown", "tool.unknown"}) {
		t.Errorf("events: %v", got)
	}
}

func TestPartsNarrowEachOther(t *testing.T) {
	cat := partCatalog(t)
	ctx := tools.WithPart(tools.WithPart(t.Context(), prefixed("in.")), prefixed("out."))
	if got := tools.VisibleNames(cat, tools.FilterFrom(ctx)); len(got) != 0 {
		t.Errorf("disjoint: %v", got)
	}
	ctx = tools.WithPart(tools.WithPart(t.Context(), prefixed("in.")), prefixed("in.b"))
	if got := tools.VisibleNames(cat, tools.FilterFrom(ctx)); !slices.Equal(got, []string{"in.b"}) {
		t.Errorf("nested: %v", got)
	}
	for name, of := range map[string]tools.PartFunc{
		"nil":       nil,
		"nil holds": func(context.Context) tools.Part { return tools.Part{Class: "none"} },
		"panics":    func(context.Context) tools.Part { panic("of") },
		"panics inside": func(context.Context) tools.Part {
			return tools.Part{Class: "p", Holds: func(*tools.Tool) bool { panic("in") }}
		},
	} {
		ctx := tools.WithPart(t.Context(), of)
		_, err := tools.Invoke(ctx, cat, "in.a", nil)
		if got := tools.VisibleNames(cat, tools.FilterFrom(ctx)); len(got) != 0 || !errors.Is(err, tools.ErrToolNotFound) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Callers of different parts never share a visible set, and those of one do.
func TestPartsAreClasses(t *testing.T) {
	cat := partCatalog(t)
	snap := cat.Snapshot()
	whole := snap.Visible(tools.FilterFrom(t.Context()))
	in := snap.Visible(tools.FilterFrom(tools.WithPart(t.Context(), prefixed("in."))))
	again := snap.Visible(tools.FilterFrom(tools.WithPart(t.Context(), prefixed("in."))))
	out := snap.Visible(tools.FilterFrom(tools.WithPart(t.Context(), prefixed("out."))))
	if in == whole || in == out || in != again {
		t.Error("sets are shared wrongly")
	}
	for i, v := range []*tools.VisibleSet{whole, in, out} {
		if got := v.Memo("key", func() any { return i }); got != i {
			t.Errorf("set %d shares what is kept with set %v", i, got)
		}
	}
	if whole.Class() == in.Class() || in.Class() == out.Class() {
		t.Errorf("classes: %q, %q, %q", whole.Class(), in.Class(), out.Class())
	}
	// A class cannot be forged by scopes or names that look like one.
	forged := identity.With(t.Context(), identity.Identity{TenantID: `x in "in."`}, ` in "in."`)
	if snap.Visible(tools.FilterFrom(forged)).Class() == in.Class() {
		t.Error("a caller chose its class")
	}
}

// The calls that a tool makes of its own reach what it needs; a tool about tools
// works on the part of its caller; and a part that a tool sets for its own calls
// holds for them.
func TestAPartIsForTheCallerAlone(t *testing.T) {
	var cat tools.LiveCatalog
	nested := func(t tools.Tool, prepare func(context.Context) context.Context) tools.ToolDescriptor {
		return tools.ToolDescriptor{Tool: t, Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			ctx = prepare(ctx)
			if _, err := tools.Invoke(ctx, cat, "out.a", nil); err != nil {
				return tools.ToolResult{}, err
			}
			return tools.ToolResult{Value: len(tools.VisibleNames(cat, tools.FilterFrom(ctx))),
				Meta: map[string]any{"caller": len(tools.VisibleNames(cat, tools.CallFrom(ctx).Filter(ctx)))}}, nil
		}}
	}
	as := func(ctx context.Context) context.Context { return ctx }
	cat = partCatalog(t,
		nested(tools.Tool{Name: "in.composed"}, as),
		nested(tools.Tool{Name: "in.meta", Kind: tools.KindMeta}, as),
		nested(tools.Tool{Name: "in.careful"}, func(ctx context.Context) context.Context { return tools.WithPart(ctx, prefixed("in.")) }),
		tools.ToolDescriptor{Tool: tools.Tool{Name: "in.twice"}, Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			return tools.Invoke(ctx, cat, "in.composed", nil)
		}},
	)
	ctx := tools.WithPart(t.Context(), prefixed("in."))
	res, err := tools.Invoke(ctx, cat, "in.composed", nil)
	if err != nil || res.Value != 7 || res.Meta["caller"] != 6 {
		t.Errorf("composed: %v, %v, %v", res.Value, res.Meta, err)
	}
	if res, err := tools.Invoke(ctx, cat, "in.twice", nil); err != nil || res.Value != 7 || res.Meta["caller"] != 7 {
		t.Errorf("twice: %v, %v, %v", res.Value, res.Meta, err)
	}
	for _, tool := range []string{"in.meta", "in.careful"} {
		if _, err := tools.Invoke(ctx, cat, tool, nil); !errors.Is(err, tools.ErrToolNotFound) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// Middleware, the entrance's guard and wrappers do not change what a part means.
func TestAPartWithMiddlewareAround(t *testing.T) {
	var cat tools.LiveCatalog
	reach := func(ctx context.Context) bool {
		_, err := tools.Invoke(ctx, cat, "out.a", nil)
		return err == nil
	}
	reached := map[string]bool{}
	cat = tools.NewCatalog(tools.WithMiddleware(func(next tools.Invoker) tools.Invoker {
		return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			if call := tools.CallFrom(ctx); call != nil && call.Parent == "" {
				reached["middleware"] = reach(ctx)
			}
			return next(ctx, args)
		}
	})).(tools.LiveCatalog)
	tool := func(name string) tools.ToolDescriptor {
		return tools.ToolDescriptor{Tool: tools.Tool{Name: name}, Invoke: func(ctx context.Context, _ json.RawMessage) (tools.ToolResult, error) {
			reached[name] = name == "out.a" || reach(ctx)
			return tools.ToolResult{Value: 1}, nil
		}}
	}
	if err := cat.RegisterAll([]tools.ToolDescriptor{tool("in.a"), tool("out.a")}); err != nil {
		t.Fatal(err)
	}
	guard := func(ctx context.Context, _ *tools.Tool, args json.RawMessage, next tools.Invoker) (tools.ToolResult, error) {
		return next(ctx, args)
	}
	ctx := tools.WithPart(tools.WithEntrance(t.Context(), tools.Entrance{Guard: guard}), prefixed("in."))
	if _, err := tools.Invoke(ctx, cat, "in.a", nil); err != nil || !reached["in.a"] || !reached["middleware"] {
		t.Errorf("%v, %v", reached, err)
	}
	if _, err := tools.Invoke(ctx, cat, "out.a", nil); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("outside: %v", err)
	}
}

// However many classes of callers come, each is shown its own, and the latest is
// kept.
func TestManyClasses(t *testing.T) {
	cat := partCatalog(t)
	snap := cat.Snapshot()
	for i := range 1000 {
		ctx := tools.WithPart(t.Context(), func(context.Context) tools.Part {
			return tools.Part{Class: fmt.Sprint(i), Holds: func(t *tools.Tool) bool { return i%2 == 0 || t.Name == "out.a" }}
		})
		v := snap.Visible(tools.FilterFrom(ctx))
		if want := map[int]int{0: 3, 1: 1}[i%2]; v.Len() != want || snap.Visible(tools.FilterFrom(ctx)) != v {
			t.Fatalf("class %d: %v", i, v.Names())
		}
	}
}
