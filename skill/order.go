package skill

import (
	"cmp"
	"slices"
	"strings"
)

// order sorts the steps: by ID, or by what they need if one of them says so.
func (s *Skill) order() error {
	slices.SortFunc(s.Steps, func(a, b Step) int { return natural(a.ID, b.ID) })
	if !slices.ContainsFunc(s.Steps, func(step Step) bool { return len(step.Needs) > 0 }) {
		return nil
	}
	done := map[string]bool{}
	sorted := make([]Step, 0, len(s.Steps))
	rest := s.Steps
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(step Step) bool { return ready(step, done) })
		if i < 0 {
			return s.invalid("steps", "the needs of its steps go round in a circle: %s", circle(rest))
		}
		sorted, done[rest[i].ID] = append(sorted, rest[i]), true
		rest = slices.Delete(rest, i, i+1)
	}
	s.Steps = sorted
	return nil
}

func ready(step Step, done map[string]bool) bool {
	return !slices.ContainsFunc(step.Needs, func(need string) bool { return !done[need] })
}

// circle names the steps of one circle among steps each of which needs another
// of them.
func circle(rest []Step) string {
	byID := map[string]Step{}
	for _, step := range rest {
		byID[step.ID] = step
	}
	at := rest[0]
	var path []string
	for !slices.Contains(path, at.ID) {
		path = append(path, at.ID)
		for _, need := range at.Needs {
			if next, ok := byID[need]; ok {
				at = next
				break
			}
		}
	}
	path = append(path[slices.Index(path, at.ID):], at.ID)
	return strings.Join(path, " → ")
}

// natural compares IDs so that numbers in them count as numbers.
func natural(a, b string) int {
	for x, y := a, b; ; {
		if x == "" || y == "" {
			if c := cmp.Compare(len(x), len(y)); c != 0 {
				return c
			}
			return strings.Compare(a, b) // "01" and "1" differ after all
		}
		p, q := run(x), run(y)
		if c := compareRuns(x[:p], y[:q]); c != 0 {
			return c
		}
		x, y = x[p:], y[q:]
	}
}

// run returns the length of the digits, or of what is none, at the start of s.
func run(s string) int {
	number := digit(s[0])
	i := 1
	for i < len(s) && digit(s[i]) == number {
		i++
	}
	return i
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func compareRuns(a, b string) int {
	if !digit(a[0]) || !digit(b[0]) {
		return strings.Compare(a, b)
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
