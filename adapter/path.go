package adapter

import (
	"strconv"
	"strings"
)

// A pathStep is a member or an element of a JSON Path.
type pathStep struct {
	key     string
	index   int
	isIndex bool
}

// parsePath reads a JSON Path (RFC 9535) that names one value: members by dot or
// in quotes, elements by index.
func parsePath(path string) ([]pathStep, bool) {
	rest, ok := strings.CutPrefix(path, "$")
	var steps []pathStep
	for ok && rest != "" {
		var s pathStep
		if s, rest, ok = nextStep(rest); ok {
			steps = append(steps, s)
		}
		ok = ok && len(steps) <= 64
	}
	return steps, ok
}

func nextStep(rest string) (pathStep, string, bool) {
	switch rest[0] {
	case '.':
		rest = rest[1:]
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		return pathStep{key: rest[:end]}, rest[end:], end > 0
	case '[':
		return bracketStep(rest[1:])
	}
	return pathStep{}, "", false
}

func bracketStep(rest string) (pathStep, string, bool) {
	if rest == "" {
		return pathStep{}, "", false
	}
	if quote := rest[0]; quote == '\'' || quote == '"' {
		return quotedStep(rest[1:], quote)
	}
	digits, after, found := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	return pathStep{index: n, isIndex: true}, after, found && err == nil && n >= 0
}

func quotedStep(rest string, quote byte) (pathStep, string, bool) {
	var key strings.Builder
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			key.WriteByte(rest[i])
		case rest[i] == quote:
			after, ok := strings.CutPrefix(rest[i+1:], "]")
			return pathStep{key: key.String()}, after, ok
		default:
			key.WriteByte(rest[i])
		}
	}
	return pathStep{}, "", false
}
