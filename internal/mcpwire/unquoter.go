package mcpwire

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// An unquoter reads the text of a JSON string from the bytes between its quotes,
// as [rawjson.Unquote] does at once.
type unquoter struct {
	src  io.Reader
	raw  []byte // one byte in front, which stands for the opening quote
	text []byte // what has not been read yet
	memo []byte // the memory of text
	err  error  // of src
}

const unquoteBuffer = 32 << 10

func newUnquoter(src io.Reader) *unquoter {
	return &unquoter{src: src, raw: make([]byte, 1, unquoteBuffer+2)}
}

// Read implements io.Reader.
func (u *unquoter) Read(p []byte) (int, error) {
	for len(u.text) == 0 {
		if u.err != nil && len(u.raw) == 1 {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.text)
	u.text = u.text[n:]
	return n, nil
}

// fill reads on, and turns into text what can be, whatever follows it.
func (u *unquoter) fill() {
	if u.err == nil {
		n, err := u.src.Read(u.raw[len(u.raw) : cap(u.raw)-1])
		u.raw, u.err = u.raw[:len(u.raw)+n], err
	}
	body := u.raw[1:]
	end := len(body)
	if u.err == nil {
		end = wholeText(body)
	}
	if plain := body[:end]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		u.memo = append(u.memo[:0], plain...)
	} else {
		u.memo = rawjson.AppendUnquoted(u.memo[:0], u.raw[:end+2]) // the last byte stands for the closing quote
	}
	u.text = u.memo
	u.raw = append(u.raw[:1], body[end:]...)
}

// wholeText returns how much of the beginning of a string's body means the same
// whatever comes after it: without an escape, a pair of them, or a rune that is
// not all there.
func wholeText(body []byte) int {
	i := 0
	for {
		slash := bytes.IndexByte(body[i:], '\\')
		if slash < 0 {
			break
		}
		i += slash
		n := escapeLength(body[i:])
		if n == 0 {
			return i
		}
		i += n
	}
	for back := 1; back < utf8.UTFMax && back <= len(body)-i; back++ {
		if c := body[len(body)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(body[len(body)-back:]) {
				return len(body) - back
			}
			break
		}
	}
	return len(body)
}

// escapeLength returns how many bytes the escape has that b starts with, both of
// a pair where two mean one character, or 0 when that cannot be told yet.
func escapeLength(b []byte) int {
	switch {
	case len(b) < 2:
		return 0
	case b[1] != 'u':
		return 2
	case len(b) < 6:
		return 0
	case !highSurrogate(b[2:6]):
		return 6
	}
	switch {
	case len(b) > 6 && b[6] != '\\', len(b) > 7 && b[7] != 'u':
		return 6
	case len(b) < 12:
		return 0
	}
	// Whether the second is the other half, or another character, both can be read.
	if lowSurrogate(b[8:12]) {
		return 12
	}
	return 6
}

// highSurrogate reports whether four hexadecimal digits are D800 to DBFF.
func highSurrogate(hex []byte) bool {
	return hex[0]|0x20 == 'd' && (hex[1] == '8' || hex[1] == '9' || hex[1]|0x20 == 'a' || hex[1]|0x20 == 'b')
}

// lowSurrogate reports whether four hexadecimal digits are DC00 to DFFF.
func lowSurrogate(hex []byte) bool {
	return hex[0]|0x20 == 'd' && 'c' <= hex[1]|0x20 && hex[1]|0x20 <= 'f'
}
