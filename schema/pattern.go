package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/toolcrib/toolcrib/internal/effort"
)

// pattern is a compiled regular expression with the meaning that ECMA-262 gives
// it. It has one of the two engines.
type pattern struct {
	source string
	linear *regexp.Regexp  // where its syntax says exactly the same
	steps  int             // what linear may look at for each character
	back   *regexp2.Regexp // with look-around and back-references
}

// maxMatchTime bounds one match of the backtracking engine. What takes longer
// neither matches nor fails to: the document cannot be checked.
const maxMatchTime = 100 * time.Millisecond

// backtrackUnit is how much time of the backtracking engine counts as one unit
// of a check's budget.
const backtrackUnit = 200 * time.Nanosecond

// stepsPerUnit is how many steps of the linear engine take as long as one unit,
// and maxLinearSteps bounds the memory that a pattern takes in it.
const (
	stepsPerUnit   = 20
	maxLinearSteps = 20_000
)

// match matches a text of the document. The time that backtracking takes, and
// that the linear engine takes at worst, is taken from the budget.
func (c *checker) match(p *pattern, text []byte) bool {
	if p.linear != nil {
		if c.budget -= p.steps * len(text) / stepsPerUnit; c.budget < 0 {
			c.budget, c.exhausted = 0, true
			return false
		}
		return p.linear.Match(text)
	}
	begin := time.Now()
	ok, err := p.back.MatchString(string(text))
	if c.budget -= int(time.Since(begin) / backtrackUnit); err != nil {
		c.budget, c.exhausted = 0, true
	}
	return ok && err == nil
}

func compilePattern(source string) (*pattern, error) {
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("regular expression longer than %d bytes", maxPatternBytes)
	}
	if text, ok := linearSyntax(source); ok {
		if re, steps := compileLinear(text); re != nil {
			return &pattern{source: source, linear: re, steps: steps}, nil
		}
	}
	re, err := regexp2.Compile(backSyntax(source), regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		// The engine's own message quotes the whole expression.
		return nil, errors.New("invalid regular expression")
	}
	re.MatchTimeout = maxMatchTime
	return &pattern{source: source, back: re}, nil
}

// compileLinear returns nil for what is no expression of the linear engine, or one
// that becomes too large in it.
func compileLinear(text string) (re *regexp.Regexp, steps int) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0
	}
	n := effort.Steps(parsed)
	if n > maxLinearSteps {
		return nil, 0
	}
	re, _ = regexp.Compile(text)
	return re, int(n)
}

// The classes that the engines take to be smaller than ECMA-262 does, as the
// bodies of bracket expressions that both engines read.
const (
	ecmaSpace    = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
	ecmaNotSpace = "\x00-\x08\x0e-\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e" +
		"\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
	ecmaBoundary = `(?:(?<=[A-Za-z0-9_])(?![A-Za-z0-9_])|(?<![A-Za-z0-9_])(?=[A-Za-z0-9_]))`
	ecmaDot      = "[^\n\r\u2028\u2029]"
)

// backSyntax rewrites what the backtracking engine understands otherwise than
// ECMA-262: '.', '$', word boundaries and the classes of white space.
func backSyntax(source string) string {
	var sb strings.Builder
	inClass := false
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case c == '\\' && i+1 < len(source):
			i++
			switch source[i] {
			case 's':
				sb.WriteString(classText(ecmaSpace, inClass))
			case 'S':
				sb.WriteString(classText(ecmaNotSpace, inClass))
			case 'b':
				sb.WriteString(orBackspace(ecmaBoundary, inClass))
			case 'B':
				sb.WriteString(orBackspace("(?!"+ecmaBoundary+")", inClass))
			default:
				sb.WriteString(source[i-1 : i+1])
			}
			continue
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case c == '.' && !inClass:
			sb.WriteString(ecmaDot)
			continue
		case c == '$' && !inClass:
			sb.WriteString("(?![\\s\\S])")
			continue
		}
		sb.WriteByte(c)
	}
	return sb.String()
}

// orBackspace returns what \b stands for: a backspace inside a class.
func orBackspace(boundary string, inClass bool) string {
	if inClass {
		return `\b`
	}
	return boundary
}

// linearSyntax rewrites an ECMA-262 expression to one for package regexp that
// means the same, and reports whether it could.
func linearSyntax(source string) (string, bool) {
	var sb strings.Builder
	inClass := false
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case c == '\\':
			text, n := linearEscape(source[i:], inClass)
			if n == 0 {
				return "", false
			}
			sb.WriteString(text)
			i += n - 1
		case inClass && c == '[':
			sb.WriteString(`\[`)
		case inClass && c == ']':
			inClass = false
			sb.WriteByte(c)
		case !inClass && c == '[':
			inClass = true
			rest := strings.TrimPrefix(source[i+1:], "^")
			if strings.HasPrefix(rest, "]") {
				return "", false
			}
			sb.WriteByte(c)
		case !inClass && c == '.':
			sb.WriteString(ecmaDot)
		case !inClass && c == '(' && !plainGroup(source[i:]):
			return "", false
		default:
			sb.WriteByte(c)
		}
	}
	return sb.String(), !inClass
}

// plainGroup reports whether the group that rest starts with captures, or is a
// non-capturing or named one.
func plainGroup(rest string) bool {
	if !strings.HasPrefix(rest, "(?") || strings.HasPrefix(rest, "(?:") {
		return true
	}
	return strings.HasPrefix(rest, "(?<") && !strings.HasPrefix(rest, "(?<=") && !strings.HasPrefix(rest, "(?<!")
}

// linearEscape rewrites the escape that rest starts with and returns its length
// in rest, 0 when it has no equal.
func linearEscape(rest string, inClass bool) (text string, n int) {
	if len(rest) < 2 {
		return "", 0
	}
	switch c := rest[1]; c {
	case 'd', 'D', 'w', 'W', 't', 'n', 'v', 'f', 'r':
		return rest[:2], 2
	case 'b', 'B':
		if inClass {
			return "", 0
		}
		return rest[:2], 2
	case 's':
		return classText(ecmaSpace, inClass), 2
	case 'S':
		return classText(ecmaNotSpace, inClass), 2
	case 'x':
		return hexEscape(rest, 2)
	case 'u':
		return hexEscape(rest, 4)
	case 'p', 'P':
		return propertyEscape(rest)
	default:
		if strings.IndexByte(`^$\.*+?()[]{}|/-`, c) < 0 {
			return "", 0
		}
		if c == '/' {
			return "/", 2
		}
		return rest[:2], 2
	}
}

func classText(class string, inClass bool) string {
	if inClass {
		return class
	}
	return "[" + class + "]"
}

// hexEscape rewrites \xHH and \uHHHH, save for the halves of a surrogate pair.
func hexEscape(rest string, digits int) (string, int) {
	if len(rest) < 2+digits {
		return "", 0
	}
	hex := rest[2 : 2+digits]
	if strings.Trim(hex, "0123456789abcdefABCDEF") != "" {
		return "", 0
	}
	if digits == 4 && (hex[0] == 'd' || hex[0] == 'D') && hex[1] >= '8' {
		return "", 0
	}
	return `\x{` + hex + `}`, 2 + digits
}

// propertyEscape keeps the one- and two-letter general categories, which both
// syntaxes have.
func propertyEscape(rest string) (string, int) {
	end := strings.IndexByte(rest, '}')
	if len(rest) < 4 || rest[2] != '{' || end < 4 || end > 5 {
		return "", 0
	}
	return rest[:end+1], end + 1
}
