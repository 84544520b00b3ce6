package gateway

import (
	"regexp"
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
