package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// freeType is the type of values that may have any form.
var freeType = reflect.TypeFor[json.RawMessage]()

// free lays a value of any form into v as JSON, and notes where its parts stand.
func (d *decoder) free(n *node, v reflect.Value, path string) {
	v.SetBytes(d.appendJSON(nil, n, path))
}

func (d *decoder) appendJSON(dst []byte, n *node, path string) []byte {
	d.cfg.places[path] = n.at
	switch n.kind {
	case nullKind:
		return append(dst, "null"...)
	case boolKind:
		return append(dst, n.text...)
	case intKind, floatKind:
		return d.appendNumber(dst, n, path)
	case listKind:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = d.appendJSON(dst, item, fmt.Sprintf("%s[%d]", path, i))
		}
		return append(dst, ']')
	case mapKind:
		dst = append(dst, '{')
		for i, f := range n.fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, f.key), ':')
			dst = d.appendJSON(dst, f.value, join(path, f.key))
		}
		return append(dst, '}')
	}
	return appendText(dst, n.text)
}

func appendText(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a text always encodes
	return append(dst, quoted...)
}

// appendNumber keeps the spelling of a number where JSON has the same.
func (d *decoder) appendNumber(dst []byte, n *node, path string) []byte {
	text := strings.ReplaceAll(n.text, "_", "")
	if json.Valid([]byte(text)) {
		return append(dst, text...)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		d.fault(n, path, "is not a finite number", "a number")
		return append(dst, '0')
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// freeFault says what is wrong with a value of any form, which must be a mapping if
// object says so, or nothing. One that was made in Go may be anything.
func freeFault(raw []byte, object bool) (problem, expected string) {
	switch {
	case len(raw) == 0:
	case !json.Valid(raw):
		return "is not JSON", "JSON"
	case object && raw[0] != '{':
		return "is not a mapping", mapKind.String()
	}
	return "", ""
}
