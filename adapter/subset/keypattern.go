package subset

import (
	"regexp"
	"regexp/syntax"

	"github.com/toolcrib/toolcrib/internal/effort"
)

// Bounds of what a pattern does for each character of a key, and of all patterns
// of a schema together.
const (
	maxPatternSteps = 2_000
	maxAllSteps     = 200_000
)

// A keyPattern is a pattern of patternProperties. One that package regexp does
// not know, or that is too much work for it, has no expression.
type keyPattern struct {
	re    *regexp.Regexp
	steps int
}

// matches reports whether a key matches the pattern. Without an expression
// nothing does.
func (k *keyPattern) matches(key string) bool { return k.re != nil && k.re.MatchString(key) }

// cost is about how much work a match is, in units of what a look at a schema is.
func (k *keyPattern) cost(key string) int { return 1 + len(key)*k.steps/64 }

// keyPatterns remembers what the patterns of one schema are compiled to.
type keyPatterns struct {
	kept  map[string]keyPattern
	steps int // of all
}

func (l *keyPatterns) get(pattern string) keyPattern {
	if k, ok := l.kept[pattern]; ok {
		return k
	}
	if l.kept == nil {
		l.kept = map[string]keyPattern{}
	}
	l.kept[pattern] = l.compile(pattern)
	return l.kept[pattern]
}

func (l *keyPatterns) compile(pattern string) keyPattern {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return keyPattern{}
	}
	steps := effort.Steps(parsed)
	if steps > maxPatternSteps || steps > int64(maxAllSteps-l.steps) {
		return keyPattern{}
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return keyPattern{}
	}
	l.steps += int(steps)
	return keyPattern{re, int(steps)}
}
