package gateway

import (
	"slices"
	"unicode/utf8"
)

// glob is a pattern of names, in which "*" stands for any characters and "?" for
// one.
type glob string

// matches reports whether the whole name matches. It takes at most as many steps
// as the two lengths multiplied, whatever the pattern.
func (g glob) matches(name string) bool {
	at, from := 0, 0    // in the pattern and in the name
	star, rest := -1, 0 // the last star, and what of the name comes after it
	for from < len(name) {
		_, size := utf8.DecodeRuneInString(name[from:])
		switch {
		case at < len(g) && g[at] == '*':
			star, rest = at, from
			at++
		case at < len(g) && g[at] == '?':
			at, from = at+1, from+size
		case at < len(g) && g[at] == name[from]:
			at, from = at+1, from+1
		case star >= 0: // one more character belongs to the star
			_, size = utf8.DecodeRuneInString(name[rest:])
			rest += size
			at, from = star+1, rest
		default:
			return false
		}
	}
	for at < len(g) && g[at] == '*' {
		at++
	}
	return at == len(g)
}

// anyMatches reports whether one of the patterns matches a name.
func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return glob(p).matches(name) })
}
