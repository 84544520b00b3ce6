package schema

import "github.com/toolcrib/toolcrib/internal/rawjson"

// spans is what is known of the text of a schema before it is checked against
// its meta-schema. Every vocabulary looks at every level of it, which without
// this would scan what lies below once for each of them.
type spans struct {
	ends map[int]int // of long values, by where they start
	// opaque are where parts start that are checked by themselves.
	opaque map[int]bool
	shift  int // what to add to an offset
}

// end returns where the value at i ends, 0 when that is not known.
func (s *spans) end(i int) int {
	if end, ok := s.ends[i+s.shift]; ok {
		return end - s.shift
	}
	return 0
}

// foreign reports whether the value at i is checked by itself.
func (s *spans) foreign(i int) bool { return s.opaque[i+s.shift] }

// longValue is the length from which on it is worth to know where a value ends.
const longValue = 128

// longValues returns where the long arrays, objects and strings of a well-formed
// text end.
func longValues(text []byte) map[int]int {
	ends := map[int]int{}
	var open []int
	for i := 0; i < len(text); i++ {
		start := i
		switch text[i] {
		case '{', '[':
			open = append(open, i)
			continue
		case '}', ']':
			start, open = open[len(open)-1], open[:len(open)-1]
		case '"':
			end, _, _ := rawjson.ScanString(text, i)
			i = end - 1
		}
		if i+1-start >= longValue {
			ends[start] = i + 1
		}
	}
	return ends
}

// checkSchema checks the well-formed text of a schema against s, its
// meta-schema.
func (s *Schema) checkSchema(text []byte, known *spans) error {
	c := s.pool.Get().(*checker)
	defer s.release(c)
	root := s.nodes()
	c.begin(text)
	c.w.Trusted, c.spans = true, known
	if c.value(root, 0, 0) >= 0 && !c.exhausted {
		return nil
	}
	return c.violations(root, text)
}
