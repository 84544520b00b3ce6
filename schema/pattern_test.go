package schema

import (
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"pgregory.net/rapid"
)

// TestLinearPatterns compares what is rewritten for the linear engine with the
// engine that takes ECMA-262 syntax as it is.
func TestLinearPatterns(t *testing.T) {
	tokens := []string{
		"a", "b", ".", `\d`, `\D`, `\w`, `\W`, `\b`, `\s`, `[\S]`, `[a-c]`, `[^a]`, `[[a]`, `[\d.]`, `[^\w-]`, "^", "$", "|", "*", "+", "?", "*?",
		"{1,2}", "(a|b)", "(?:ab)", `\.`, `\n`, `\x41`, `\u00e9`, `\/`, "é", "-", "]", "\n",
	}
	texts := []string{"", "a", "b", "ab", "aab", "é", "A", "1", "a\n", "\n", "a.b", "[", "-", "a-b_1", "c]", "/", "\r", "\u2028"}
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 1, 5).Draw(t, "tokens"), "")
		re, err := compilePattern(source)
		if err != nil || re.(*pattern).linear == nil {
			return
		}
		back, err := regexp2.Compile(backSyntax(source), regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			return
		}
		for _, text := range texts {
			want, err := back.MatchString(text)
			if got := re.MatchString(text); err == nil && got != want {
				t.Fatalf("%q on %q: %v, want %v (as %q)", source, text, got, want, re.(*pattern).linear)
			}
		}
	})
}
