package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/view"
)

// The bounds of tool_search.
const (
	DefaultLimit = 10
	MaxLimit     = 50

	// fewHits is how many are shown even if they are weak, where nobody asked for
	// a number.
	fewHits = 5

	// maxQuery bounds how much of a query is looked at, in bytes.
	maxQuery = 1 << 10
	// shownDescription and shownTags bound what a hit repeats of a tool, in
	// bytes: enough to choose by, as the whole is one tool_get away.
	shownDescription = 160
	shownTags        = 60
)

// SearchArgs are the arguments of tool_search.
type SearchArgs struct {
	// Query says what the tool should do. Without one, the tools of Source are
	// listed by name.
	Query string `json:"query,omitempty"`
	// Tags must all be on a tool.
	Tags []string `json:"tags,omitempty"`
	// Source is the only source to look at, as [view.SourceName] gives it.
	Source string `json:"source,omitempty"`
	// After is the name in a listing to go on behind.
	After string `json:"after,omitempty"`
	// Limit is how many tools to show, at most 50. Without one, up to 10 are
	// shown; weak ones only among the first 5, and only tools.
	Limit int `json:"limit,omitempty"`
}

// SearchResult is the result of tool_search.
type SearchResult struct {
	Tools []Found `json:"tools"`
	// Count is how many there are in Tools.
	Count int `json:"count"`
	// Hint says what else to do: when nothing was found, when all hits are
	// weak, or when a listing goes on.
	Hint string `json:"hint,omitempty"`
}

// Found is one hit: enough of a tool to choose it by.
type Found struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags,omitempty"`
	// Weak says that the tool may well be something else than was asked for.
	Weak bool `json:"weak,omitempty"`
}

func (m *meta) search() tools.ToolDescriptor {
	return m.descriptor(tools.Tool{Name: SearchName,
		Description: "Find tools that are not in your list by what they do. You can call hits from your next turn on. " +
			"A source without a query lists it.",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},` +
			`"tags":{"type":"array","items":{"type":"string"}},"source":{"type":"string"},"after":{"type":"string"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":50}}}`),
	}, m.runSearch, tools.WithSideEffect(tools.SideEffectRead))
}

func (m *meta) runSearch(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	var in SearchArgs
	if err := json.Unmarshal(args, &in); err != nil {
		return tools.ToolResult{}, err
	}
	enough := in.Limit == 0 // as a model that names no limit wants no more than helps it
	if in.Limit == 0 {
		in.Limit = DefaultLimit
	}
	in.Query = cut(strings.TrimSpace(in.Query), maxQuery)
	v := view.From(ctx, m.cat)
	source, known := sourceNamed(v, in.Source)
	if known {
		in.Source = source
	}
	switch {
	case in.Source != "" && !known:
		return answer(SearchResult{Tools: []Found{}, Hint: "There is no such source. " + listSources(v)})
	case in.Query != "":
		return m.find(ctx, v, in, enough)
	case in.Source != "" || len(in.Tags) > 0:
		return answer(list(v, in))
	}
	return tools.ToolResult{}, &tools.Error{Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
		Message: "expected a query, or a source to list", Err: errors.New("neither query nor source")}
}

// find answers a query, and remembers the hits for the caller.
func (m *meta) find(ctx context.Context, v view.View, in SearchArgs, enough bool) (tools.ToolResult, error) {
	found, err := Find(ctx, m.cat, m.opts.Index, search.Query{Text: in.Query, Tags: in.Tags, Source: in.Source, Limit: in.Limit})
	if err != nil {
		return tools.ToolResult{}, &tools.Error{Class: tools.ErrClassTransient, Delivery: tools.Answered, Message: "the search failed", Err: err}
	}
	if enough {
		found.Hits = withoutTail(found.Hits)
	}
	out := SearchResult{Tools: make([]Found, 0, len(found.Hits))}
	var names []string
	for _, h := range found.Hits {
		t, ok := v.Tool(h.Name)
		guess := h.Weak && !found.Weak && t.Kind != tools.KindTool // a resource or a prompt, where there is a tool
		if ok && !(enough && guess) {
			out.Tools, names = append(out.Tools, show(&t, h.Weak)), append(names, h.Name)
		}
	}
	out.Count = len(out.Tools)
	switch {
	case out.Count == 0:
		out.Hint = "Nothing was found. Say it in other words, or list a source. " + listSources(v)
	case found.Weak:
		out.Hint = "These are weak matches. Say it in other words, or list a source. " + listSources(v)
	}
	slices.Reverse(names) // the best is remembered last, and longest
	if err := m.remember(ctx, names...); err != nil {
		out.Hint = strings.TrimSpace(out.Hint + " " + notRemembered)
	}
	return answer(out)
}

// withoutTail drops the weak hits behind the first few: each that is shown is
// declared from then on.
func withoutTail(hits []search.Hit) []search.Hit {
	n := len(hits)
	for n > fewHits && hits[n-1].Weak {
		n--
	}
	return hits[:n]
}

// list is the tools of a source, or with tags, by name. What is listed is not
// remembered: it would fill a model's context with what it only leafs through.
func list(v view.View, in SearchArgs) SearchResult {
	out := SearchResult{Tools: []Found{}}
	rest := 0
	for _, t := range v.Tools() {
		switch {
		case t.Kind == tools.KindMeta || t.Name <= in.After || !carries(&t, in.Tags),
			in.Source != "" && view.SourceName(&t) != in.Source:
		case len(out.Tools) == in.Limit:
			rest++
		default:
			out.Tools = append(out.Tools, show(&t, false))
		}
	}
	out.Count = len(out.Tools)
	if rest > 0 {
		out.Hint = fmt.Sprintf("%d more: add a query, or give after: %q. ", rest, out.Tools[len(out.Tools)-1].Name)
	}
	if out.Count > 0 {
		out.Hint += "Use " + GetName + " for one that you want to call."
	}
	return out
}

func carries(t *tools.Tool, tags []string) bool {
	for _, tag := range tags {
		if !slices.Contains(t.Tags, tag) {
			return false
		}
	}
	return true
}

// listSources tells which sources there are, in a bounded text.
func listSources(v view.View) string {
	return strings.TrimSpace(view.AboutSources(view.Sources(v)))
}

// show returns what a hit tells of a tool.
func show(t *tools.Tool, weak bool) Found {
	f := Found{Name: t.Name, Description: firstWords(t.Description, shownDescription), Weak: weak}
	room := shownTags
	for _, tag := range t.Tags {
		if room -= len(tag) + 3; room < 0 {
			break
		}
		f.Tags = append(f.Tags, tag)
	}
	return f
}

// firstWords returns the first paragraph of a text on one line, cut between
// words to at most n bytes.
func firstWords(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n\n")
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	short := cut(s, n-len("…"))
	if i := strings.LastIndexByte(short, ' '); i > n/2 {
		short = short[:i]
	}
	return short + "…"
}

// cut returns at most n bytes of a text, and no part of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
