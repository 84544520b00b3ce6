package mask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// forms returns how v looks in the syntaxes that messages are written in. The
// list may hold v itself, and a form more than once.
func forms(v string) []string {
	list := texts(v)
	for _, form := range texts(v) { // JSON inside JSON
		list = append(list, quoted(form, false), quoted(form, true))
	}
	for _, form := range []string{url.QueryEscape(v), strings.ReplaceAll(url.QueryEscape(v), "+", "%20"), url.PathEscape(v)} {
		list = append(list, form, lowerHex(form))
	}
	list = append(list, html.EscapeString(v))
	return append(list, base64s(v)...)
}

// texts returns the body of a string literal of v, as JSON and other languages
// write it.
func texts(v string) []string {
	plain := quoted(v, false)
	return []string{
		plain, quoted(v, true), ascii(plain), strings.ReplaceAll(plain, "/", `\/`),
		body(strconv.Quote(v)), body(strconv.QuoteToASCII(v)),
	}
}

// quoted writes v as JSON, without the quotes.
func quoted(v string, forHTML bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(forHTML)
	if e.Encode(v) != nil {
		return v // a string always encodes
	}
	return body(strings.TrimSuffix(b.String(), "\n"))
}

func body(literal string) string { return literal[1 : len(literal)-1] }

// ascii escapes what is not ASCII in the body of a JSON string.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r >= 0x10000:
			r -= 0x10000
			writeUnit(&b, 0xd800+r>>10)
			writeUnit(&b, 0xdc00+r&0x3ff)
		default:
			writeUnit(&b, r)
		}
	}
	return b.String()
}

func writeUnit(b *strings.Builder, unit rune) {
	b.WriteString(`\u`)
	b.WriteString(strconv.FormatInt(int64(0x10000+unit), 16)[1:])
}

var percentEscape = regexp.MustCompile(`%[0-9A-F]{2}`)

func lowerHex(escaped string) string {
	return percentEscape.ReplaceAllStringFunc(escaped, strings.ToLower)
}

// minDigits is the least number of base64 digits that are taken for a part of a
// secret.
const minDigits = 8

// base64s returns the base64 of v: with and without padding, and, as what
// stands before and after it in the encoded bytes is not known, the digits that
// it alone decides for each of the three places it can begin at.
func base64s(v string) []string {
	var list []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		list = append(list, enc.EncodeToString([]byte(v)), enc.WithPadding(base64.NoPadding).EncodeToString([]byte(v)))
		for before := range 3 {
			digits := enc.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, before), v...))
			first, last := (before*8+5)/6, (before+len(v))*8/6
			if inner := digits[first:last]; len(inner) >= minDigits {
				list = append(list, inner)
			}
		}
	}
	return list
}
