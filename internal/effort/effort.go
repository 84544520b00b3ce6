// Package effort says beforehand how much work a regular expression is for the
// engine of package regexp, whose time grows with the expression as well as with
// the text, and which nothing interrupts while it looks at one text.
package effort

import "regexp/syntax"

// Steps returns about how many instructions an expression becomes, of which each
// may be looked at for each character.
func Steps(re *syntax.Regexp) int64 {
	n := max(int64(len(re.Rune)), 1)
	if re.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range re.Sub {
		n += Steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n = (n-1)*int64(max(re.Min+1, re.Max)) + 1
	}
	return n
}

// Within reports whether an expression takes at most so many steps. One that cannot
// be read is left to whoever compiles it.
func Within(expression string, steps int64) bool {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	return err != nil || Steps(parsed) <= steps
}
