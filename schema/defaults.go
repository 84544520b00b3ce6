package schema

import (
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A Default is the value that a schema gives for an absent property.
type Default struct {
	Name  string
	Value json.RawMessage
}

// Defaults returns the defaults of the properties at the top level of a schema,
// in its order. A default is an annotation: checking does not apply it.
func Defaults(raw json.RawMessage) []Default {
	props, _ := rawjson.Get(raw, "properties")
	var out []Default
	it := rawjson.Object(props)
	for it.Next() {
		if v, ok := rawjson.Get(it.Value(), "default"); ok {
			out = append(out, Default{Name: it.Key(), Value: v})
		}
	}
	return out
}

// ApplyDefaults returns doc with the defaults of the properties that it does not
// have. What it has stays as it is, null included. A document that lacks none is
// returned itself. The error is a [*DocumentError] for one that is no object.
func ApplyDefaults(doc []byte, defaults []Default) ([]byte, error) {
	for _, d := range defaults {
		if _, ok := rawjson.Get(doc, d.Name); ok {
			continue
		}
		out, err := rawjson.Set(doc, d.Name, d.Value)
		if err != nil {
			return nil, documentError(err)
		}
		doc = out
	}
	return doc, nil
}

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
