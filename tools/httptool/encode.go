package httptool

import (
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/net/http/httpguts"

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
	in       string // path, query, querystring, header or cookie
	style    string
	explode  bool
	reserved bool
	json     bool      // written as JSON, because it has content instead of a schema
	whole    bool      // written as a text, because its content is one
	form     *bodyForm // written as a URL-encoded form, for the same reason
	required bool
}

func (p *parameter) escape(s string) string { return percent(s, p.reserved) }

// value reads the parameter's argument.
func (p *parameter) value(raw json.RawMessage) flat {
	kind := rawjson.KindOf(raw)
	if p.whole && kind != rawjson.KindNull && kind != rawjson.KindInvalid {
		return flat{kind: rawjson.KindString, text: scalarText(raw)}
	}
	if p.json && kind != rawjson.KindInvalid {
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
	s := f.join(p.delimiter(esc), p.explode, esc)
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
	var parts []string
	for _, kv := range p.pairs(raw, func(s string) string { return percent(s, false) }, p.escape) {
		parts = append(parts, kv.key+"="+kv.value)
	}
	return strings.Join(parts, "&")
}

// pairs returns the names and values that the parameter's style makes of an
// argument, each escaped by the function for it.
func (p *parameter) pairs(raw json.RawMessage, name, value func(string) string) []pair {
	if kind := rawjson.KindOf(raw); p.style == "deepObject" && (kind == rawjson.KindObject || kind == rawjson.KindArray) {
		leaves := deepPairs(nil, p.name, raw)
		for i, kv := range leaves {
			leaves[i] = pair{name(kv.key), value(kv.value)}
		}
		return leaves
	}
	f := p.value(raw)
	if f.empty() {
		return nil
	}
	if !p.explode || f.kind == rawjson.KindString {
		return []pair{{name(p.name), f.join(p.delimiter(name), false, value)}}
	}
	var list []pair
	for _, s := range f.items {
		list = append(list, pair{name(p.name), value(s)})
	}
	for _, kv := range f.pairs {
		list = append(list, pair{name(kv.key), value(kv.value)})
	}
	return list
}

// delimiter stands between the parts of a value that is not exploded: a comma,
// or another character, which is escaped.
func (p *parameter) delimiter(esc func(string) string) string {
	if d, ok := delimiters[p.style]; ok {
		return esc(d)
	}
	return ","
}

var delimiters = map[string]string{"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}

// deepPairs returns name[key] and value for every leaf. The specification stops
// at one level of an object; elsewhere brackets go on, with the position for array elements,
// as the servers that take nested values read them.
func deepPairs(list []pair, name string, raw json.RawMessage) []pair {
	switch rawjson.KindOf(raw) {
	case rawjson.KindObject:
		for it := rawjson.Object(raw); it.Next(); {
			list = deepPairs(list, name+"["+it.Key()+"]", it.Value())
		}
	case rawjson.KindArray:
		i := 0
		for it := rawjson.Array(raw); it.Next(); i++ {
			list = deepPairs(list, fmt.Sprintf("%s[%d]", name, i), it.Value())
		}
	case rawjson.KindNull, rawjson.KindInvalid:
	default:
		list = append(list, pair{name, scalarText(raw)})
	}
	return list
}

// header returns the parameter's header value, and whether there is one.
func (p *parameter) header(raw json.RawMessage) (string, bool, error) {
	f := p.value(raw)
	if f.empty() {
		return "", false, nil
	}
	plain := func(s string) string { return s }
	s := f.join(p.delimiter(plain), p.explode, plain)
	if !httpguts.ValidHeaderFieldValue(s) {
		return "", false, fmt.Errorf("header parameter %q must not hold line breaks or other control characters", p.arg)
	}
	return s, true, nil
}

// querystring returns the whole query of a URL.
func (p *parameter) querystring(raw json.RawMessage) (string, error) {
	if p.form != nil && raw != nil {
		body, err := p.form.urlEncoded(raw)
		return string(body), err
	}
	if f := p.value(raw); !f.empty() {
		return p.escape(f.text), nil
	}
	return "", nil
}

// cookie returns the parameter as part of a Cookie header, or "". The style
// "cookie" escapes nothing, so that a value must not hold what ends it.
func (p *parameter) cookie(raw json.RawMessage) (string, error) {
	name, esc := func(s string) string { return percent(s, false) }, p.escape
	if p.style == "cookie" {
		name = func(s string) string { return s }
		esc = name
	}
	var parts []string
	for _, kv := range p.pairs(raw, name, esc) {
		parts = append(parts, kv.key+"="+kv.value)
		if !httpguts.ValidHeaderFieldValue(kv.key+kv.value) || strings.Contains(kv.key+kv.value, ";") {
			return "", fmt.Errorf("cookie parameter %q must not hold semicolons, line breaks or other control characters", p.arg)
		}
	}
	return strings.Join(parts, "; "), nil
}
