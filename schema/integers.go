package schema

import "github.com/toolcrib/toolcrib/internal/rawjson"

// PlainIntegers rewrites the numbers of a well-formed document that are integers
// but not written as such, like 1.0 and 2e3, as plain digits, which is the only
// form that encoding/json decodes into a Go integer. Numbers of more than 18
// digits stay as they are. It reports whether it changed anything, and returns
// doc itself otherwise.
func PlainIntegers(doc []byte) ([]byte, bool) {
	var out []byte
	copied := 0
	for i := 0; i < len(doc); {
		switch c := doc[i]; {
		case c == '"':
			i, _, _ = rawjson.ScanString(doc, i)
		case c == '-' || '0' <= c && c <= '9':
			end, plain, _ := rawjson.ScanNumber(doc, i)
			if d := parseDecimal(doc[i:end]); !plain && d.isInt() && d.exp <= 18 {
				out = append(out, doc[copied:i]...)
				out = appendInt(out, d)
				copied = end
			}
			i = end
		default:
			i++
		}
	}
	if copied == 0 {
		return doc, false
	}
	return append(out, doc[copied:]...), true
}
