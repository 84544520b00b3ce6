package gateway

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: those
// of names take a noticeable part of the time in which the program starts.
type pattern struct {
	text     string
	compiled func() *regexp.Regexp
}

func newPattern(text string) pattern {
	return pattern{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// MatchString reports whether s matches.
func (p pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// String returns the expression.
func (p pattern) String() string { return p.text }

// globs are patterns of names, in which "*" stands for any characters and "?" for
// one.
func globs(list []string) []pattern {
	out := make([]pattern, len(list))
	for i, glob := range list {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(glob))
		out[i] = newPattern(`(?s)\A` + quoted + `\z`)
	}
	return out
}

// matches reports whether one of the patterns matches a name.
func matches(patterns []pattern, name string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.MatchString(name) })
}
