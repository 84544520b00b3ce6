package rawjson

import "bytes"

// UnescapeHTML returns doc with the three characters that encoding/json writes
// as escapes for the sake of HTML, < > and &, written as themselves. The
// document means the same and is easier to read. doc itself is returned when it
// holds none.
func UnescapeHTML(doc []byte) []byte {
	if !bytes.Contains(doc, []byte(`\u00`)) {
		return doc
	}
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		if doc[i] != '\\' || i+1 == len(doc) {
			out = append(out, doc[i])
			i++
			continue
		}
		if c := htmlEscape(doc[i:]); c != 0 {
			out = append(out, c)
			i += 6
			continue
		}
		out = append(out, doc[i], doc[i+1])
		i += 2
	}
	return out
}

// htmlEscape returns the character that b begins with an escape of, or 0.
func htmlEscape(b []byte) byte {
	if len(b) < 6 {
		return 0
	}
	switch string(b[:6]) {
	case `\u003c`:
		return '<'
	case `\u003e`:
		return '>'
	case `\u0026`:
		return '&'
	}
	return 0
}
