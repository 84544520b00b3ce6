package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
)

// rule is what decides how a view is divided. It is the key under which a
// division is kept.
type rule struct {
	mode      Mode
	budget    int
	toolsOnly bool
}

// division is a view, divided into what is declared from the start and what is
// deferred. It is the same for every caller of the view's class.
type division struct {
	names    []string // that are declared while nothing was found, sorted
	deferred []string // sorted
	// apart are declared to those who found them alone, and not deferred: what
	// stands in lists of its own, and meta-tools that are deferred themselves.
	apart   []string // sorted
	tokens  int      // of names
	sources []SourceCount
	about   string // what the search tool's description says of the sources
}

// describe adds to the search tool's description what it finds.
func (d *division) describe(t *tools.Tool) {
	if t.Name == SearchTool && t.Kind == tools.KindMeta {
		t.Description += d.about
	}
}

func (d *division) defers(name string) bool {
	_, found := slices.BinarySearch(d.deferred, name)
	return found
}

// adds reports whether a tool is declared once it is found, and not before.
func (d *division) adds(name string) bool {
	_, apart := slices.BinarySearch(d.apart, name)
	return apart || d.defers(name)
}

// divide divides a view.
func (r rule) divide(v View) *division {
	d := &division{}
	list := slices.DeleteFunc(v.shared(), func(t tools.Tool) bool {
		apart := r.toolsOnly && hasOwnList(t.Kind)
		if apart {
			d.apart = append(d.apart, t.Name)
		}
		return apart
	})
	search, ok := v.Tool(SearchTool)
	reachable := ok && search.Kind == tools.KindMeta
	hides := reachable && r.hides(list)
	for i := range list {
		if reachable && defers(&list[i], hides) {
			d.deferred = append(d.deferred, list[i].Name)
		}
	}
	for i := range list {
		t := &list[i]
		switch {
		case d.defers(t.Name):
		case t.Kind != tools.KindMeta || d.declaresMeta(t):
			d.names = append(d.names, t.Name)
			d.tokens += Tokens(t)
		case t.Loading == tools.LoadingDeferred:
			d.apart = append(d.apart, t.Name)
		}
	}
	slices.Sort(d.apart)
	d.sources = countSources(list, d)
	d.about = AboutSources(slices.DeleteFunc(slices.Clone(d.sources), func(c SourceCount) bool { return c.Deferred == 0 }))
	return d
}

// hasOwnList reports whether a protocol may have a list of its own for a kind.
func hasOwnList(k tools.Kind) bool {
	return k == tools.KindResource || k == tools.KindResourceTemplate || k == tools.KindPrompt
}

// hides reports whether tools whose loading nobody set are deferred.
func (r rule) hides(list []tools.Tool) bool {
	if r.mode != ModeAuto {
		return r.mode == ModeSearch
	}
	sum := 0
	for i := range list {
		if t := &list[i]; t.Kind != tools.KindMeta && t.Loading != tools.LoadingDeferred {
			sum += Tokens(t)
		}
	}
	return sum > r.budget
}

// defers reports whether a tool is deferred. Meta-tools never are.
func defers(t *tools.Tool, hides bool) bool {
	if t.Kind == tools.KindMeta {
		return false
	}
	return t.Loading == tools.LoadingDeferred || t.Loading == "" && hides
}

// declaresMeta reports whether a meta-tool is declared to all: always or, when
// nobody said, while something is deferred. One that is deferred itself is
// declared to those who found it; but without the search tool nothing is found,
// so that one is declared while something is deferred whatever is said of it.
func (d *division) declaresMeta(t *tools.Tool) bool {
	if t.Loading == tools.LoadingAlways {
		return true
	}
	return len(d.deferred) > 0 && (t.Loading == "" || t.Name == SearchTool)
}

// SourceCount says how many tools of one source a caller sees.
type SourceCount struct {
	// Name is that of SourceName.
	Name string
	// Tools counts them, and Deferred those that are deferred for the caller's
	// class, whether or not the caller has found some of them.
	Tools, Deferred int
}

// LocalSource is the name of the source of what is in no other.
const LocalSource = "local"

// SourceName returns the name of the source of a tool as callers are told it: its
// namespace, which is the source's name in the configuration, or else the source
// without its kind, or LocalSource.
func SourceName(t *tools.Tool) string {
	name := string(t.Source)
	if _, after, ok := strings.Cut(name, ":"); ok {
		name = after
	}
	return cmp.Or(t.Namespace, name, LocalSource)
}

// countSources counts what is no meta-tool, by the names of sources.
func countSources(list []tools.Tool, d *division) []SourceCount {
	counts := map[string]*SourceCount{}
	for i := range list {
		t := &list[i]
		if t.Kind == tools.KindMeta {
			continue
		}
		name := SourceName(t)
		c := counts[name]
		if c == nil {
			c = &SourceCount{Name: name}
			counts[name] = c
		}
		c.Tools++
		if d.defers(t.Name) {
			c.Deferred++
		}
	}
	out := make([]SourceCount, 0, len(counts))
	for _, c := range counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b SourceCount) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// maxAbout bounds what a description says of sources, in bytes.
const maxAbout = 200

// AboutSources is what a description says of sources: the largest first, as far
// as there is room, and how many more there are. It counts what is deferred of
// them, or everything of a source of which nothing is.
func AboutSources(sources []SourceCount) string {
	if len(sources) == 0 {
		return ""
	}
	size := func(c SourceCount) int { return cmp.Or(c.Deferred, c.Tools) }
	list := slices.Clone(sources)
	slices.SortStableFunc(list, func(a, b SourceCount) int { return cmp.Compare(size(b), size(a)) })
	var b strings.Builder
	b.WriteString(" Sources: ")
	for i, c := range list {
		part := fmt.Sprintf("%s (%d)", c.Name, size(c))
		if i > 0 {
			part = ", " + part
		}
		if b.Len()+len(part) > maxAbout {
			b.WriteString(" and " + strconv.Itoa(len(list)-i) + " more")
			break
		}
		b.WriteString(part)
	}
	return b.String() + "."
}

type sourcesKey struct{}

// Sources counts what a view shows by where it comes from, by name. Meta-tools
// do not count, and nothing is deferred in a view.
func Sources(v View) []SourceCount {
	return slices.Clone(Memo(v, sourcesKey{}, func(v View) []SourceCount { return countSources(v.shared(), &division{}) }))
}
