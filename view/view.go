package view

import (
	"context"
	"iter"

	"github.com/toolcrib/toolcrib/tools"
)

// View is the tools that one caller sees at one moment, sorted by name. It is a
// small value, never changes, and is safe for concurrent use. The zero View is
// empty.
type View struct{ set *tools.VisibleSet }

// From returns what the caller on ctx sees of cat now. Tools of both loading
// modes are part of it: a tool that is hidden until a search finds it would be
// out of reach where there is no search.
func From(ctx context.Context, cat tools.Snapshotter) View {
	return Through(cat, tools.FilterFrom(ctx))
}

// Through returns what filter selects of cat now. Its NameRegex is not applied.
func Through(cat tools.Snapshotter, filter tools.CatalogFilter) View {
	return View{cat.Snapshot().Visible(filter)}
}

// Generation is that of the catalog's snapshot. It grows with every change of
// the catalog, also with one that this caller does not see.
func (v View) Generation() uint64 {
	if v.set == nil {
		return 0
	}
	return v.set.Generation()
}

// Class names the visibility class. Views of the same generation and class hold
// the same tools; whatever is kept for a view is kept under both.
func (v View) Class() string {
	if v.set == nil {
		return ""
	}
	return v.set.Class()
}

// Len returns how many tools there are.
func (v View) Len() int {
	if v.set == nil {
		return 0
	}
	return v.set.Len()
}

// Has reports whether there is a tool of that canonical name.
func (v View) Has(name string) bool { return v.set != nil && v.set.Has(name) }

// Tool returns a copy of the tool of that canonical name.
func (v View) Tool(name string) (tools.Tool, bool) {
	if v.set == nil {
		return tools.Tool{}, false
	}
	return v.set.Get(name)
}

// Ref returns the tool of that canonical name itself, which must not be changed,
// or nil.
func (v View) Ref(name string) *tools.Tool {
	if v.set == nil {
		return nil
	}
	return v.set.Ref(name)
}

// Names returns the canonical names, sorted.
func (v View) Names() []string {
	if v.set == nil {
		return nil
	}
	return v.set.Names()
}

// All yields all the tools, sorted by name, without copying them. They must not
// be changed.
func (v View) All() iter.Seq[*tools.Tool] {
	if v.set == nil {
		return func(func(*tools.Tool) bool) {}
	}
	return v.set.All()
}

// shared returns all the tools, whose texts are the catalog's own.
func (v View) shared() []tools.Tool {
	list := make([]tools.Tool, 0, v.Len())
	for t := range v.All() {
		list = append(list, *t)
	}
	return list
}

// Tools returns copies of all the tools.
func (v View) Tools() []tools.Tool {
	if v.set == nil {
		return nil
	}
	return v.set.Tools()
}

// Page returns copies of up to limit tools from offset on.
func (v View) Page(offset, limit int) []tools.Tool {
	if v.set == nil {
		return nil
	}
	return v.set.Page(offset, limit)
}

// After returns copies of up to limit tools, from the one after the place that
// cursor stands for, and the cursor of the next page, "" when there is none.
// The empty cursor stands for the start. The error is [ErrCursor].
func (v View) After(cursor string, limit int) (page []tools.Tool, next string, err error) {
	last, err := parseCursor(cursor)
	if err != nil || v.set == nil {
		return nil, "", err
	}
	from := 0
	if cursor != "" {
		from = v.indexAfter(last)
	}
	page = v.set.Page(from, limit)
	if n := len(page); n > 0 && from+n < v.set.Len() {
		next = newCursor(page[n-1].Name)
	}
	return page, next, nil
}

// indexAfter returns the place of the first name after name.
func (v View) indexAfter(name string) int {
	i := v.set.Index(name)
	if v.set.Has(name) {
		i++
	}
	return i
}

// Memo returns what build gives for the view, computed once for all views of
// the same generation and class and kept for as long as the catalog keeps
// those. What is built must depend on the view alone, and must not be changed.
func Memo[T any](v View, key any, build func(View) T) T {
	if v.set == nil {
		return build(v)
	}
	return v.set.Memo(key, func() any { return build(v) }).(T)
}
