package artifacts

import (
	"errors"
	"regexp/syntax"
)

// maxPatternSteps bounds what a regular expression does for each character in the
// worst case. No clock interrupts it while it looks at one text.
const maxPatternSteps = 2000

var errPattern = errors.New("the regular expression is too large: repeat less in it")

// checkPattern refuses an expression that takes too long for each character. One
// that cannot be read is left to whoever compiles it.
func checkPattern(expression string) error {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err == nil && patternSteps(parsed) > maxPatternSteps {
		return errPattern
	}
	return nil
}

// patternSteps returns about how many instructions an expression becomes, of which
// each may be looked at for each character. A parsed expression is small enough
// for the sum to be counted.
func patternSteps(re *syntax.Regexp) int64 {
	n := max(int64(len(re.Rune)), 1)
	if re.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range re.Sub {
		n += patternSteps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n = (n-1)*int64(max(re.Min+1, re.Max)) + 1
	}
	return n
}
