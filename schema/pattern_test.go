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
		if err != nil || re.linear == nil {
			return
		}
		back, err := regexp2.Compile(backSyntax(source), regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			return
		}
		for _, text := range texts {
			want, err := back.MatchString(text)
			if got := re.MatchString(text); err == nil && got != want {
				t.Fatalf("%q on %q: %v, want %v (as %q)", source, text, got, want, re.linear)
			}
		}
	})
}

// A pattern that cannot be matched in time never lets a document pass, whichever
// way the answer would count.
func TestPatternThatTakesTooLong(t *testing.T) {
	const slow = `"^(?=(a+)+$)(a+)+$"`
	text := strings.Repeat("a", 60) + "!"
	member, name := `{"s":"`+text+`"}`, `{"`+text+`":"x"}`
	for schema, doc := range map[string]string{
		`{"properties":{"s":{"pattern":` + slow + `}}}`:                                              member,
		`{"properties":{"s":{"not":{"pattern":` + slow + `}}}}`:                                      member,
		`{"properties":{"s":{"if":{"pattern":` + slow + `},"else":true,"then":false}}}`:              member,
		`{"patternProperties":{` + slow + `:{"type":"integer"}}}`:                                    name,
		`{"propertyNames":{"not":{"pattern":` + slow + `}}}`:                                         name,
		`{"unevaluatedProperties":true,"properties":{"s":{"pattern":` + slow + `}}}`:                 member,
		`{"unevaluatedItems":true,"properties":{"s":{"not":{"pattern":` + slow + `}}}}`:              member,
		`{"unevaluatedProperties":{"type":"string"},"patternProperties":{` + slow + `:{}}}`:          name,
		`{"unevaluatedProperties":false,"properties":{"s":true},"not":{"required":["z"]}}`:           `{"s":1}`, // no pattern
		`{"not":{"unevaluatedProperties":true,"properties":{"s":{"not":{"pattern":` + slow + `}}}}}`: member,
	} {
		s, err := Compile([]byte(schema), nil)
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		err = s.Check([]byte(doc))
		if strings.Contains(schema, slow) != (err != nil) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
