package artifacts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/internal/peertest"
)

// No expression keeps the process busy beyond the time of an answer.
func TestExpressionsThatAreTooLarge(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	text := f.put(t, ada(t), strings.Repeat("a", 8<<10), artifacts.Meta{MIME: "text/plain"})
	doc := f.put(t, ada(t), `"`+strings.Repeat("a", 8<<10)+`"`, artifacts.Meta{MIME: "application/json"})
	for pattern, refused := range map[string]bool{
		strings.Repeat("(a?){1000}", 16) + "b": true,
		"(?:(?:a?){30}){30}a{999}b":            true,
		"(a|aa){700,}b":                        true,
		"a{1,1000}$":                           false,
		"(?i)[a-z]{2}.{0,900}a":                false,
		"a(":                                   false,
	} {
		for _, args := range []artifacts.FetchArgs{{Ref: text.Ref, Search: pattern}, {Ref: doc.Ref, Query: `test("` + pattern + `")`}} {
			began := peertest.Busy()
			got := f.fetch(t, args)
			took := peertest.Busy() - began
			if strings.Contains(got.Error, "too large") != refused || took > 5*time.Second {
				t.Errorf("%+v: %q after %v", args, got.Error, took)
			}
		}
	}
}

// Where to go on from one long line is not its own beginning.
func TestSearchInOneLongLine(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), strings.Repeat("needle "+strings.Repeat("x", 70_000), 8), artifacts.Meta{MIME: "text/plain"})
	got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Search: "needle", MaxBytes: 1500})
	if !got.Truncated || got.NextLine != 0 || got.NextOffset < 70_000 {
		t.Errorf("%v, line %d, offset %d", got.Truncated, got.NextLine, got.NextOffset)
	}
}
