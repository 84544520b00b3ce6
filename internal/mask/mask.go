// Package mask takes secrets out of texts that people and models read: errors,
// log lines, what a peer printed.
//
// A peer that was given a secret may say it again in many ways, so that a
// [Mask] knows more than the secret itself: the credential behind the word
// "Bearer", the lines of a key file, and how each of them looks in JSON, in a
// URL, in HTML, in Go syntax and in base64, wherever in the encoded bytes it
// stands.
package mask

import (
	"cmp"
	"slices"
	"strings"
)

// Hidden stands where a secret stood.
const Hidden = "[hidden]"

const (
	// minAnywhere is the length, in bytes, from which on a secret is found
	// inside of words too. A shorter one is hidden where it is a word of its
	// own: everything else would be full of it.
	minAnywhere = 4
	// minShort is the length below which a text can be no secret.
	minShort = 2
	// minLine is the least length of a line of a secret of many lines.
	minLine = 6
	// minWord is the length from which on a word behind another is found
	// inside of words too.
	minWord = 6
)

// A pattern is one form of a secret.
type pattern struct {
	text string
	word bool // only between characters that are none of a word
}

// Mask hides a set of secrets. It is safe for concurrent use, and nil hides
// nothing.
type Mask struct {
	first    [256]bool             // bytes that patterns begin with
	patterns map[[2]byte][]pattern // by their first bytes, longest first
}

// New returns a mask of the secrets: the values as they are configured, such as
// "Bearer abc" or the content of a key file.
//
//   - A value of at least 4 bytes is hidden wherever it stands. One of 2 or 3
//     bytes is hidden as a word of its own, unless it is a number.
//   - Of a value of several words, each but the first is hidden too: from 6
//     bytes on wherever it stands, a shorter one as a word of its own, and not
//     below 4 bytes where there are more than two.
//   - Each line of at least 6 bytes of a value of many lines is hidden.
//
// Words that are no secrets, such as "true" and "debug", are left alone.
func New(values ...string) *Mask {
	var list []pattern
	for _, v := range values {
		list = appendValue(list, strings.TrimSpace(v))
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b pattern) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text), compareBool(a.word, b.word))
	})
	m := &Mask{patterns: map[[2]byte][]pattern{}}
	for _, p := range slices.Compact(list) {
		key := [2]byte{p.text[0], p.text[1]}
		m.first[key[0]] = true
		m.patterns[key] = append(m.patterns[key], p)
	}
	return m
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func appendValue(list []pattern, v string) []pattern {
	list = appendSecret(list, v)
	if strings.ContainsAny(v, "\r\n") {
		for line := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '\r' || r == '\n' }) {
			if line = strings.TrimSpace(line); len(line) >= minLine {
				list = appendForms(list, line)
			}
		}
		return list
	}
	words := strings.Fields(v)
	for _, word := range words[min(1, len(words)):] {
		switch {
		case len(word) >= minWord:
			list = appendSecret(list, word)
		case len(word) >= minAnywhere || len(words) == 2:
			list = appendWord(list, word)
		}
	}
	return list
}

// appendWord adds a text that is hidden as a word of its own.
func appendWord(list []pattern, v string) []pattern {
	number := strings.Trim(v, "0123456789") == ""
	if len(v) < minShort || plain(v) || number && len(v) < minAnywhere {
		return list
	}
	return append(list, pattern{v, true})
}

// appendSecret adds a text that is hidden by its length.
func appendSecret(list []pattern, v string) []pattern {
	switch {
	case len(v) < minShort || plain(v):
		return list
	case len(v) < minAnywhere:
		return appendWord(list, v)
	}
	return appendForms(list, v)
}

func appendForms(list []pattern, v string) []pattern {
	list = append(list, pattern{text: v})
	for _, form := range forms(v) {
		if len(form) >= minAnywhere && form != v {
			list = append(list, pattern{text: form})
		}
	}
	return list
}

// plain reports whether a value is a word of configurations and not a secret.
func plain(v string) bool {
	switch strings.ToLower(v) {
	case "true", "false", "yes", "no", "on", "off", "none", "null", "auto",
		"trace", "debug", "info", "warn", "warning", "error", "test", "utf-8":
		return true
	}
	return false
}

// Clean returns text with [Hidden] in the place of every secret. Secrets that
// overlap or touch each other become one.
func (m *Mask) Clean(text string) string {
	if m == nil {
		return text
	}
	var out strings.Builder
	rest, end := 0, -1 // where what is not written yet begins, and where the last secret ended
	for i := range len(text) {
		n := m.match(text, i)
		if n == 0 {
			continue
		}
		if i > end {
			out.WriteString(text[rest:i])
			out.WriteString(Hidden)
		}
		end = max(end, i+n)
		rest = end
	}
	if end < 0 {
		return text
	}
	out.WriteString(text[rest:])
	return out.String()
}

// match returns the length of the longest secret that stands at i, or 0.
func (m *Mask) match(text string, i int) int {
	if !m.first[text[i]] || i+1 == len(text) {
		return 0
	}
	for _, p := range m.patterns[[2]byte{text[i], text[i+1]}] {
		if strings.HasPrefix(text[i:], p.text) && (!p.word || alone(text, i, i+len(p.text))) {
			return len(p.text)
		}
	}
	return 0
}

// alone reports whether text[start:end] is not a part of a longer word.
func alone(text string, start, end int) bool {
	return (start == 0 || !wordByte(text[start-1])) && (end == len(text) || !wordByte(text[end]))
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
