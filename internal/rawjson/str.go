package rawjson

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of the JSON string raw, which includes its quotes
// and may have white space around it. Invalid UTF-8 and lone surrogates become
// U+FFFD, as with encoding/json. It reports false when raw is no string.
func Unquote(raw []byte) (string, bool) {
	raw = Trim(raw)
	if KindOf(raw) != KindString {
		return "", false
	}
	end, plain, fault := ScanString(raw, 0)
	if fault != FaultNone || end != len(raw) {
		return "", false
	}
	body := raw[1 : end-1]
	if plain && utf8.Valid(body) {
		return string(body), true
	}
	return string(appendUnescaped(make([]byte, 0, len(body)), body)), true
}

// AppendUnquoted appends the text of the well-formed JSON string raw, which
// includes its quotes, to dst.
func AppendUnquoted(dst, raw []byte) []byte {
	if len(raw) < 2 {
		return dst
	}
	return appendUnescaped(dst, raw[1:len(raw)-1])
}

// appendUnescaped appends the text of a string body without quotes. The body
// need not be well-formed: what is not an escape is copied.
func appendUnescaped(dst, body []byte) []byte {
	for i := 0; i < len(body); {
		c := body[i]
		switch {
		case c == '\\' && i+1 < len(body):
			dst, i = appendEscape(dst, body, i)
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, size := utf8.DecodeRune(body[i:])
			dst = utf8.AppendRune(dst, r)
			i += size
		}
	}
	return dst
}

// appendEscape appends what the escape at i stands for and returns the offset
// after it.
func appendEscape(dst, body []byte, i int) ([]byte, int) {
	c := body[i+1]
	if c != 'u' {
		return append(dst, unescapeByte(c)), i + 2
	}
	r := hexRune(body, i)
	if r < 0 {
		return append(dst, '\\'), i + 1
	}
	i += 6
	if utf16.IsSurrogate(r) {
		low := hexRune(body, i)
		if pair := utf16.DecodeRune(r, low); low >= 0 && pair != utf8.RuneError {
			return utf8.AppendRune(dst, pair), i + 6
		}
		r = utf8.RuneError
	}
	return utf8.AppendRune(dst, r), i
}

func unescapeByte(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hexRune returns the code unit of the \uXXXX at i, or -1 when there is none.
func hexRune(b []byte, i int) rune {
	if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
		return -1
	}
	r := rune(0)
	for _, c := range b[i+2 : i+6] {
		v := hexValue(c)
		if v < 0 {
			return -1
		}
		r = r<<4 | rune(v)
	}
	return r
}

// Quote returns s as a JSON string; see [AppendQuoted].
func Quote(s string) []byte { return AppendQuoted(make([]byte, 0, len(s)+2), s) }

// AppendQuoted appends s to dst as a JSON string. It escapes what JSON demands
// and U+2028 and U+2029, but not '<', '>' and '&'. Invalid UTF-8 becomes
// U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if !(r == utf8.RuneError && size == 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscaped(dst, s[i:i+size])
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends the escape for one byte, one line separator, or one
// invalid byte.
func appendEscaped(dst []byte, s string) []byte {
	switch c := s[0]; {
	case len(s) > 1:
		return append(dst, '\\', 'u', '2', '0', '2', hexDigits[s[2]&0xf])
	case c >= utf8.RuneSelf:
		return append(dst, "\ufffd"...)
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, '\\', 'n')
	case c == '\r':
		return append(dst, '\\', 'r')
	case c == '\t':
		return append(dst, '\\', 't')
	case c == '\b':
		return append(dst, '\\', 'b')
	case c == '\f':
		return append(dst, '\\', 'f')
	default:
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}
