package view

import (
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/internal/spread"
	"github.com/toolcrib/toolcrib/tools"
)

// Format says how a protocol writes a list of tools. It is used by pointer, and
// not changed once it is in use.
type Format struct {
	// Pick returns the tools of a view that the list is of, in the view's
	// order. Nil picks all.
	Pick func(View) []tools.Tool
	// Element encodes one tool. Nil leaves the tool out. It is called for
	// several tools at once.
	Element func(tools.Tool) []byte
	// Head and Tail stand before and after a list that is complete in one
	// page.
	Head, Tail string
}

// List returns the view in the format, encoded once for all views of the same
// generation and class.
func (f *Format) List(v View) *List { return Memo(v, f, f.encode) }

func (f *Format) encode(v View) *List { return f.encodeOf(v, f.pick(v)) }

func (f *Format) pick(v View) []tools.Tool {
	if f.Pick == nil {
		return v.shared()
	}
	return f.Pick(v)
}

// encodeOf encodes some tools of a view.
func (f *Format) encodeOf(v View, list []tools.Tool) *List {
	l := f.begin(v)
	elements := f.elements(list)
	size := len(f.Tail)
	for _, element := range elements {
		size += len(element) + 1
	}
	l.buf = slices.Grow(l.buf, size)
	for i, element := range elements {
		if element != nil {
			l.add(list[i].Name, element)
		}
	}
	l.finish(f.Tail)
	return l
}

// begin is a list of a view with nothing in it.
func (f *Format) begin(v View) *List {
	return &List{generation: v.Generation(), head: len(f.Head), buf: []byte(f.Head)}
}

// elements encodes tools, several at once where there are many.
func (f *Format) elements(list []tools.Tool) [][]byte {
	out := make([][]byte, len(list))
	spread.Each(len(list), worthAWorker, func(i int) { out[i] = f.Element(list[i]) })
	return out
}

// worthAWorker is how many elements make up for starting a goroutine.
const worthAWorker = 16

// add appends an element to a list that is being made.
func (l *List) add(name string, element []byte) {
	if len(l.names) > 0 {
		l.buf = append(l.buf, ',')
	}
	l.buf = append(l.buf, element...)
	l.names = append(l.names, name)
	l.ends = append(l.ends, len(l.buf))
}

// finish ends a list that is being made.
func (l *List) finish(tail string) {
	l.buf = slices.Clip(append(l.buf, tail...))
	l.digest = sync.OnceValue(func() digest { return digestOf(l.buf) })
}

// Declared returns what a caller is declared in the format. What all callers of
// its class have in common is encoded once, and what it has found, for it. What
// is found is in the list whatever Pick says.
func (f *Format) Declared(d Declared) *List {
	if d.division == nil {
		return f.List(d.view)
	}
	common := Memo(d.view, declaredKey{f, d.division}, func(v View) *List { return f.common(v, d.division) })
	if len(d.found) == 0 {
		return common
	}
	return f.with(common, d)
}

type declaredKey struct {
	format   *Format
	division *division
}

// common is what is declared of a view while nothing was found.
func (f *Format) common(v View, d *division) *List {
	list := make([]tools.Tool, 0, len(d.names))
	for _, t := range f.pick(v) {
		if _, declared := slices.BinarySearch(d.names, t.Name); declared {
			d.describe(&t)
			list = append(list, t)
		}
	}
	return f.encodeOf(v, list)
}

// with is a list with what a caller has found as well, in the order of names.
func (f *Format) with(common *List, d Declared) *List {
	l := f.begin(d.view)
	found := d.found
	for i, name := range common.names {
		for ; len(found) > 0 && found[0] < name; found = found[1:] {
			f.addFound(l, d, found[0])
		}
		l.add(name, common.buf[common.start(i):common.ends[i]])
	}
	for _, name := range found {
		f.addFound(l, d, name)
	}
	l.finish(f.Tail)
	return l
}

func (f *Format) addFound(l *List, d Declared, name string) {
	if t, ok := d.view.Tool(name); ok {
		if element := f.Element(t); element != nil {
			l.add(name, element)
		}
	}
}

// List is a view in a [Format]. It never changes and is safe for concurrent
// use.
type List struct {
	generation uint64
	buf        []byte // head, elements with commas between them, tail
	head       int    // its length
	names      []string
	ends       []int // of the elements in buf
	digest     func() digest
}

// Generation is that of the view.
func (l *List) Generation() uint64 { return l.generation }

// Len returns how many tools there are.
func (l *List) Len() int { return len(l.names) }

// Whole returns the complete list between head and tail. It must not be
// changed.
func (l *List) Whole() []byte { return l.buf }

// Page is a part of a list.
type Page struct {
	// Elements are the encoded tools, separated by commas. They must not be
	// changed.
	Elements []byte
	// Len is how many there are.
	Len int
	// Next is the cursor of the next page, "" when there is none.
	Next string
}

// Page returns up to limit tools, from the one after the place that cursor
// stands for; the empty cursor stands for the start. The cursor may come from
// a list of another generation: the page goes on after the same name, whether
// that is still there or not. The error is [ErrCursor].
func (l *List) Page(cursor string, limit int) (Page, error) {
	last, err := parseCursor(cursor)
	if err != nil {
		return Page{}, err
	}
	from := 0
	if cursor != "" {
		at, found := slices.BinarySearch(l.names, last)
		if from = at; found {
			from++
		}
	}
	to := from + min(max(limit, 1), len(l.names)-from)
	p := Page{Len: to - from}
	if p.Len > 0 {
		p.Elements = l.buf[l.start(from):l.ends[to-1]]
	}
	if to < len(l.names) {
		p.Next = newCursor(l.names[to-1])
	}
	return p, nil
}

// start returns where the element i starts.
func (l *List) start(i int) int {
	if i == 0 {
		return l.head
	}
	return l.ends[i-1] + 1
}
