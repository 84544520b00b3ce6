package a2atool

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// exactMark stands before a number that was made a string on its way through
// the library, whose float64 would change it. It begins with a character of
// the private use area, which no protocol text has.
const exactMark = "\uE000number:"

// exactDigits is how many digits every float64 keeps.
const exactDigits = 15

// maxNumber bounds the number that is kept exact, in bytes.
const maxNumber = 1024

// An exactReader passes on JSON text, or a stream of events that hold JSON,
// and makes marked strings of the numbers that a float64 may not hold.
type exactReader struct {
	src     io.Reader
	in      []byte
	out     []byte // what is left of made to pass on
	made    []byte
	err     error
	number  []byte // the number that is being read
	quoted  bool   // inside a string
	escaped bool   // after a backslash in it
}

func newExactReader(src io.Reader) *exactReader {
	return &exactReader{src: src, in: make([]byte, 16<<10)}
}

func (r *exactReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := r.src.Read(r.in)
		r.made = r.made[:0]
		for _, c := range r.in[:n] {
			r.next(c)
		}
		if err != nil {
			r.endNumber()
			r.err = err
		}
		r.out = r.made
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// next takes one byte. A string of JSON never holds a line break, so a line
// begins outside of strings, whatever stood before it.
func (r *exactReader) next(c byte) {
	switch {
	case c == '\n':
		r.quoted, r.escaped = false, false
	case r.escaped:
		r.escaped = false
	case r.quoted:
		r.escaped, r.quoted = c == '\\', c != '"'
	case c == '"':
		r.quoted = true
	case numeric(c) && len(r.number) < maxNumber:
		r.number = append(r.number, c)
		return
	}
	r.endNumber()
	r.made = append(r.made, c)
}

func numeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func (r *exactReader) endNumber() {
	if len(r.number) == 0 {
		return
	}
	if digits(r.number) > exactDigits && rawjson.Valid(r.number) {
		r.made = append(append(append(r.made, '"'), exactMark...), r.number...)
		r.made = append(r.made, '"')
	} else {
		r.made = append(r.made, r.number...)
	}
	r.number = r.number[:0]
}

// digits counts those of the mantissa.
func digits(number []byte) int {
	n := 0
	for _, c := range number {
		switch {
		case c == 'e' || c == 'E':
			return n
		case c >= '0' && c <= '9':
			n++
		}
	}
	return n
}

// exactly encodes a value that the library decoded, with the numbers as the
// agent wrote them.
func exactly(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(unmarked(v))
	return rawjson.UnescapeHTML(raw), err
}

// unmarked returns v with the marked strings as the numbers they were.
func unmarked(v any) any {
	switch v := v.(type) {
	case string:
		if n, ok := strings.CutPrefix(v, exactMark); ok && rawjson.KindOf([]byte(n)) == rawjson.KindNumber && rawjson.Valid([]byte(n)) {
			return json.Number(n)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = unmarked(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = unmarked(v[k])
		}
		return out
	}
	return v
}
