package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// ConfigError is one fault of a configuration.
type ConfigError struct {
	// File is the file's name as it was given, or empty for a Config that was
	// made in Go.
	File string
	// Line and Column count from 1; 0 means that the place is not known.
	Line, Column int
	// Path leads to the value, such as tools.mcp_servers[0].url.
	Path string
	// Problem says what is wrong. It never holds a secret.
	Problem string
	// Expected says what would be right, or is empty.
	Expected string

	cause error
}

// Unwrap returns ErrUnavailable where that is what is wrong, else nil.
func (e *ConfigError) Unwrap() error { return e.cause }

// Error returns "file:line:column: path: problem; expected …".
func (e *ConfigError) Error() string {
	var b strings.Builder
	switch {
	case e.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", cmp.Or(e.File, "config"), e.Line, e.Column)
	case e.File != "":
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Path != "" {
		b.WriteString(shown(e.Path) + ": ")
	}
	b.WriteString(shown(e.Problem))
	if e.Expected != "" {
		b.WriteString("; expected " + e.Expected)
	}
	return b.String()
}

// maxShown bounds how much of a path or a problem is shown, in bytes.
const maxShown = 400

// shown returns text from a file in a form that a terminal can take: bounded,
// and with what cannot be printed escaped.
func shown(s string) string {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }) {
		q := strconv.QuoteToGraphic(s)
		return q[1 : len(q)-1]
	}
	return s
}

// ConfigErrors are all the faults of a configuration, in the order of the
// file.
type ConfigErrors []*ConfigError

// maxShownErrors bounds how many faults are shown at once.
const maxShownErrors = 50

// Error returns one line for each fault, and counts those beyond the first 50.
func (l ConfigErrors) Error() string {
	var lines []string
	for _, e := range l[:min(len(l), maxShownErrors)] {
		lines = append(lines, e.Error())
	}
	if more := len(l) - maxShownErrors; more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.As each fault.
func (l ConfigErrors) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// sorted returns the list as an error, or nil when it is empty.
func (l ConfigErrors) sorted() error {
	if len(l) == 0 {
		return nil
	}
	slices.SortStableFunc(l, func(a, b *ConfigError) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.order(), b.order()), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return l
}

// order is the line, and behind every line when there is none.
func (e *ConfigError) order() int {
	if e.Line == 0 {
		return int(^uint(0) >> 1)
	}
	return e.Line
}

var (
	errNotDuration = errors.New("not a duration")

	// ErrUnavailable: the configuration asks for something that this version
	// does not have.
	ErrUnavailable = errors.New("gateway: not available in this version")
	// ErrClosed: the gateway was closed.
	ErrClosed = errors.New("gateway: closed")
)
