package httptool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

const hexDigits = "0123456789ABCDEF"

// percent escapes every byte of s that RFC 3986 does not call unreserved. With
// reserved, the reserved characters and whole escapes pass, except the ones
// that would end the value ("#", "&") or that servers read as a space ("+").
func percent(s string, reserved bool) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case unreserved(c):
			b.WriteByte(c)
		case reserved && (strings.IndexByte(":/?[]@!$'()*,;=", c) >= 0 || isEscape(s[i:])):
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

func isEscape(s string) bool { return len(s) > 2 && s[0] == '%' && isHex(s[1]) && isHex(s[2]) }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// A flat is an argument's value as parameter styles see it: one text, a list
// of texts, or pairs of texts.
type flat struct {
	kind  rawjson.Kind // KindString for any scalar, KindArray, KindObject, KindNull
	text  string
	items []string
	pairs []pair
}

type pair struct{ key, value string }

// flatten reads an argument. What is nested deeper than styles define is
// written as JSON.
func flatten(raw json.RawMessage) flat {
	switch kind := rawjson.KindOf(raw); kind {
	case rawjson.KindArray:
		f := flat{kind: kind}
		for it := rawjson.Array(raw); it.Next(); {
			f.items = append(f.items, scalarText(it.Value()))
		}
		return f
	case rawjson.KindObject:
		f := flat{kind: kind}
		for it := rawjson.Object(raw); it.Next(); {
			if rawjson.KindOf(it.Value()) != rawjson.KindNull {
				f.pairs = append(f.pairs, pair{it.Key(), scalarText(it.Value())})
			}
		}
		return f
	case rawjson.KindNull, rawjson.KindInvalid:
		return flat{kind: rawjson.KindNull}
	}
	return flat{kind: rawjson.KindString, text: scalarText(raw)}
}

// scalarText is a string's text, and any other value as it is written in JSON,
// so that no digit of a number is lost.
func scalarText(raw json.RawMessage) string {
	if s, ok := rawjson.Unquote(raw); ok {
		return s
	}
	if compact, err := rawjson.Compact(raw); err == nil {
		return string(compact)
	}
	return string(raw)
}

func (f flat) empty() bool {
	switch f.kind {
	case rawjson.KindArray:
		return len(f.items) == 0
	case rawjson.KindObject:
		return len(f.pairs) == 0
	}
	return f.kind == rawjson.KindNull
}

// join writes the value as one text: items, or keys and values, with sep
// between them and, in an exploded object, "=" between key and value. Each
// part is escaped by esc.
func (f flat) join(sep string, explode bool, esc func(string) string) string {
	var parts []string
	switch f.kind {
	case rawjson.KindArray:
		for _, s := range f.items {
			parts = append(parts, esc(s))
		}
	case rawjson.KindObject:
		between := sep
		if explode {
			between = "="
		}
		for _, p := range f.pairs {
			parts = append(parts, esc(p.key)+between+esc(p.value))
		}
	default:
		parts = []string{esc(f.text)}
	}
	return strings.Join(parts, sep)
}

// A parameter is one OpenAPI parameter of an operation.
type parameter struct {
	arg      string // the property of the arguments
	name     string // the name on the wire
	in       string // path, query, header or cookie
	style    string
	explode  bool
	reserved bool
	json     bool // written as JSON, because it has content instead of a schema
	required bool
}

func (p *parameter) escape(s string) string { return percent(s, p.reserved) }

// value reads the parameter's argument.
func (p *parameter) value(raw json.RawMessage) flat {
	if p.json && rawjson.KindOf(raw) != rawjson.KindInvalid {
		compact, err := rawjson.Compact(raw)
		if err == nil {
			return flat{kind: rawjson.KindString, text: string(compact)}
		}
	}
	return flatten(raw)
}

// path returns what stands for the parameter in a URL's path. Everything but
// the style's own delimiters is escaped.
func (p *parameter) path(raw json.RawMessage) (string, error) {
	f := p.value(raw)
	if f.empty() {
		return "", fmt.Errorf("path parameter %q needs a value", p.arg)
	}
	esc := func(s string) string { return percent(s, false) }
	name := esc(p.name)
	switch p.style {
	case "label":
		sep := ","
		if p.explode {
			sep = "."
		}
		return "." + f.join(sep, p.explode, esc), nil
	case "matrix":
		return matrix(name, f, p.explode, esc), nil
	}
	s := f.join(",", p.explode, esc)
	if s == "" {
		return "", fmt.Errorf("path parameter %q must not be empty", p.arg)
	}
	return s, nil
}

func matrix(name string, f flat, explode bool, esc func(string) string) string {
	if !explode || f.kind == rawjson.KindString {
		if s := f.join(",", false, esc); s != "" {
			return ";" + name + "=" + s
		}
		return ";" + name
	}
	var b strings.Builder
	for _, s := range f.items {
		b.WriteString(";" + name + "=" + esc(s))
	}
	for _, p := range f.pairs {
		b.WriteString(";" + esc(p.key) + "=" + esc(p.value))
	}
	return b.String()
}

// query returns the parameter as part of a query, without "?" or "&" around
// it; "" when there is nothing to say.
func (p *parameter) query(raw json.RawMessage) string {
	if p.style == "deepObject" && rawjson.KindOf(raw) == rawjson.KindObject {
		return strings.Join(deepPairs(nil, percent(p.name, false), raw, p.escape), "&")
	}
	f := p.value(raw)
	if f.empty() {
		return ""
	}
	name := percent(p.name, false)
	if p.explode && f.kind != rawjson.KindString {
		var parts []string
		for _, s := range f.items {
			parts = append(parts, name+"="+p.escape(s))
		}
		for _, kv := range f.pairs {
			parts = append(parts, percent(kv.key, false)+"="+p.escape(kv.value))
		}
		return strings.Join(parts, "&")
	}
	sep := ","
	switch p.style {
	case "spaceDelimited":
		sep = "%20"
	case "pipeDelimited":
		sep = "%7C"
	}
	return name + "=" + f.join(sep, false, p.escape)
}

// deepPairs writes name[key]=value for every leaf. The specification stops at
// one level; below it, brackets go on, with the position for array elements,
// as the servers that take nested values read them.
func deepPairs(parts []string, name string, raw json.RawMessage, esc func(string) string) []string {
	switch rawjson.KindOf(raw) {
	case rawjson.KindObject:
		for it := rawjson.Object(raw); it.Next(); {
			parts = deepPairs(parts, name+"%5B"+percent(it.Key(), false)+"%5D", it.Value(), esc)
		}
	case rawjson.KindArray:
		i := 0
		for it := rawjson.Array(raw); it.Next(); i++ {
			parts = deepPairs(parts, fmt.Sprintf("%s%%5B%d%%5D", name, i), it.Value(), esc)
		}
	case rawjson.KindNull, rawjson.KindInvalid:
	default:
		parts = append(parts, name+"="+esc(scalarText(raw)))
	}
	return parts
}

// header returns the parameter's header value, and whether there is one.
func (p *parameter) header(raw json.RawMessage) (string, bool, error) {
	f := p.value(raw)
	if f.empty() {
		return "", false, nil
	}
	s := f.join(",", p.explode, func(s string) string { return s })
	if !validHeaderValue(s) {
		return "", false, fmt.Errorf("header parameter %q must not hold line breaks or other control characters", p.arg)
	}
	return s, true, nil
}

// cookie returns the parameter as part of a Cookie header, or "".
func (p *parameter) cookie(raw json.RawMessage) string {
	f := p.value(raw)
	if f.empty() {
		return ""
	}
	if p.explode && f.kind == rawjson.KindObject {
		return f.join("; ", true, p.escape)
	}
	if p.explode && f.kind == rawjson.KindArray {
		return strings.ReplaceAll(p.query(raw), "&", "; ")
	}
	return percent(p.name, false) + "=" + f.join(",", false, p.escape)
}
