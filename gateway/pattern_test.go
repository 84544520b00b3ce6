package gateway

import "testing"

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		p       pattern
		yes, no string
	}{
		{namePattern, "a.b-c_1", "a b"},
		{sourcePattern, "up", "up:1"},
		{headerName, "X-Key", "X Key"},
		{secretName, "X-Api-Key", "X-Keyboard"},
	} {
		if !c.p.MatchString(c.yes) || c.p.MatchString(c.no) || c.p.MatchString("") || c.p.String() == "" {
			t.Errorf("%s: %q or %q", c.p, c.yes, c.no)
		}
	}
}
