package gateway

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

func TestGlobEqualsItsRegularExpression(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab.é")), 0, 8, -1).Draw(t, "name")
		pattern := rapid.StringOfN(rapid.SampledFrom([]rune("ab.é*?")), 0, 8, -1).Draw(t, "pattern")
		if got := glob(pattern).matches(text); got != byExpression(pattern).MatchString(text) {
			t.Fatalf("%q matches %q: %v", pattern, text, got)
		}
	})
}

// byExpression is what a pattern means.
func byExpression(pattern string) *regexp.Regexp {
	quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?s)\A` + quoted + `\z`)
}

func FuzzGlob(f *testing.F) {
	for _, c := range [][2]string{{"*", ""}, {"a*b?c", "axxbyc"}, {"**", "x"}, {"?", "é"}, {"*é*", "caféx"}, {"a.b", "axb"}, {"*a*a*a", "aaaa"}, {"", ""}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(name) || len(pattern) > 100 || len(name) > 1000 {
			return
		}
		if got := glob(pattern).matches(name); got != byExpression(pattern).MatchString(name) {
			t.Errorf("%q matches %q: %v", pattern, name, got)
		}
	})
}

// No pattern takes long.
func TestGlobIsBounded(t *testing.T) {
	begun := peertest.Busy()
	if glob(strings.Repeat("*a", 2000) + "b").matches(strings.Repeat("a", 20000)) {
		t.Error("it matches")
	}
	if took := peertest.Busy() - begun; took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}
