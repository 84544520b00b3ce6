package effort_test

import (
	"regexp/syntax"
	"testing"

	"github.com/toolcrib/toolcrib/internal/effort"
)

func TestSteps(t *testing.T) {
	for expression, want := range map[string][2]int64{
		`a`: {1, 4}, `[a-z]+`: {1, 6}, `(a?){1000}`: {1000, 9000}, `((a{1,30}){1,30})`: {900, 9000}, `abc|def`: {6, 20}, `a{3,}`: {3, 12},
	} {
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := effort.Steps(parsed); got < want[0] || got > want[1] {
			t.Errorf("%s takes %d steps, expected %d to %d", expression, got, want[0], want[1])
		}
	}
}

func TestWithin(t *testing.T) {
	for expression, want := range map[string]bool{`a{10}`: true, `(a?){1000}`: false, `(`: true} {
		if got := effort.Within(expression, 100); got != want {
			t.Errorf("%s: %t", expression, got)
		}
	}
}
