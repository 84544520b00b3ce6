package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/internal/nearest"
)

// hintOfSources says on stderr which source was probably meant by a name of
// --source that is not one. shown are the tools that were found, and takes tells
// whether the command takes a name; nil takes all that list does.
func (a *app) hintOfSources(s *session, asked []string, shown []api.Summary, takes func(string) bool) {
	have := namesOfSources(shown)
	asked = slices.DeleteFunc(slices.Clone(asked), func(name string) bool { return slices.Contains(have, name) })
	if len(asked) == 0 {
		return
	}
	all, err := listAll(s, api.ListFilter{})
	if err != nil {
		return
	}
	known := namesOfSources(all.Tools)
	if resp, err := s.Sources(s.ctx); err == nil {
		for _, row := range resp.Sources {
			known = append(known, row.Name)
		}
	}
	for _, name := range asked {
		if takes == nil && slices.Contains(known, name) {
			continue // It has no such tools.
		}
		a.hintOfSource(name, meant(name, known), takes)
	}
}

func (a *app) hintOfSource(name string, likely []string, takes func(string) bool) {
	if takes != nil {
		others := slices.DeleteFunc(slices.Clone(likely), func(name string) bool { return !takes(name) })
		if len(others) == 0 && len(likely) > 0 {
			fmt.Fprintf(a.errOut, "toolcrib: --source %q: see \"toolcrib list --source %s\"\n", name, printable(likely[0]))
			return
		}
		likely = others
	}
	if len(likely) == 0 {
		fmt.Fprintf(a.errOut, "toolcrib: --source %q: no tools come from there; \"toolcrib sources\" lists the sources\n", name)
		return
	}
	fmt.Fprintf(a.errOut, "toolcrib: --source %q: no source has this name; did you mean %s?\n", name, printable(strings.Join(likely, " or ")))
}

// namesOfSources lists what --source of list may be for tools, sorted.
func namesOfSources(list []api.Summary) []string {
	var names []string
	for i := range list {
		t := &list[i]
		if t.Source == "" {
			continue
		}
		names = append(names, t.Source, t.Origin())
		if _, name, found := strings.Cut(t.Source, ":"); found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// meant finds the sources that a name stands for which is none: those that end in
// it, such as workers/post for post, or else the one that is spelled like it.
func meant(name string, known []string) []string {
	var same []string
	for _, k := range known {
		if k != name && ending(k) == ending(name) && !slices.Contains(same, k) {
			same = append(same, k)
		}
	}
	if len(same) > 0 {
		return same
	}
	if word, ok := nearest.Word(name, known); ok {
		return []string{word}
	}
	endings := make([]string, len(known))
	for i, k := range known {
		endings[i] = ending(k)
	}
	if word, ok := nearest.Word(ending(name), endings); ok {
		return []string{known[slices.Index(endings, word)]}
	}
	return nil
}

// ending is the last part of a source's name.
func ending(name string) string { return name[strings.LastIndexAny(name, "/:")+1:] }
