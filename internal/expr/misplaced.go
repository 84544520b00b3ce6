package expr

import "strings"

// Misplaced is what is wrong with one value inside another.
type Misplaced struct {
	// Pointer is the place of that value as a JSON Pointer; empty is the whole.
	Pointer string
	Err     error
}

// Error names the place and what is wrong there.
func (m *Misplaced) Error() string { return place(m.Pointer) + ": " + m.Err.Error() }

// Unwrap returns what is wrong.
func (m *Misplaced) Unwrap() error { return m.Err }

// Path returns the place as configuration files write one: .list[0].name.
func (m *Misplaced) Path() string {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	var b strings.Builder
	for step := range strings.SplitSeq(strings.TrimPrefix(m.Pointer, "/"), "/") {
		switch {
		case step == "":
		case strings.Trim(step, "0123456789") == "":
			b.WriteString("[" + step + "]")
		default:
			b.WriteString("." + unescape.Replace(step))
		}
	}
	return b.String()
}
