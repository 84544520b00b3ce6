package search

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord bounds a word, in bytes. What is longer is cut.
const maxWord = 48

// splitter takes texts and names apart into words in small letters. It is not for concurrent use.
type splitter struct {
	word []byte
	emit func(word []byte)
}

// text emits the words of s: runs of letters and digits, taken apart at changes of case. Accents are dropped.
// Scripts without spaces give pairs of characters.
func (p *splitter) text(s string) {
	p.word = p.word[:0]
	var last byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf:
			i += p.foreign(s[i:]) - 1
			last = 'x'
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			p.add(c)
			last = c
		case c >= 'A' && c <= 'Z':
			p.capital(s, i, last)
			last = c
		case c == '\'':
			i += p.apostrophe(s[i:])
			last = 0
		default:
			p.flush()
			last = 0
		}
	}
	p.flush()
}

// capital adds the capital at i. A word begins there after a small letter, and when it is the last of several
// capitals before one.
func (p *splitter) capital(s string, i int, last byte) {
	afterSmall := last >= 'a' && last <= 'z' || last >= '0' && last <= '9' && i+1 < len(s) && isSmall(s[i+1])
	afterCapital := last >= 'A' && last <= 'Z'
	if afterSmall || afterCapital && i+1 < len(s) && isSmall(s[i+1]) && !pluralEnd(s[i+1:]) {
		p.flush()
	}
	p.add(s[i] + 'a' - 'A')
}

func isSmall(c byte) bool { return c >= 'a' && c <= 'z' }

// pluralEnd reports whether the rest begins with an s that ends the word, as in "URLs".
func pluralEnd(rest string) bool {
	return rest[0] == 's' && (len(rest) == 1 || !isSmall(rest[1]))
}

// apostrophe ends a word and returns how many of the letters after it belong to its ending, as in "what's".
func (p *splitter) apostrophe(s string) int {
	joined := len(p.word) > 0
	p.flush()
	n := 0
	for 1+n < len(s) && isSmall(s[1+n]|0x20) {
		n++
	}
	if joined && n <= 2 {
		return n
	}
	return 0
}

func (p *splitter) add(c byte) {
	if len(p.word) < maxWord {
		p.word = append(p.word, c)
	}
}

func (p *splitter) flush() {
	if len(p.word) > 0 {
		p.emit(p.word)
		p.word = p.word[:0]
	}
}

// foreign handles what begins with a character beyond ASCII and returns how many bytes of s it took.
func (p *splitter) foreign(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == '’':
		p.flush()
	case dense(r):
		return p.pairs(s)
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		var buf [utf8.UTFMax]byte
		n := utf8.EncodeRune(buf[:], unicode.ToLower(r))
		for _, c := range string(norm.NFKD.Bytes(buf[:n])) {
			if !unicode.Is(unicode.Mn, c) && len(p.word) < maxWord {
				p.word = utf8.AppendRune(p.word, unicode.ToLower(c))
			}
		}
	case unicode.Is(unicode.Mn, r):
	default:
		p.flush()
	}
	return size
}

// dense reports whether a script writes words without spaces.
func dense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// pairs emits each two neighbouring characters of a run, or the only one.
func (p *splitter) pairs(s string) int {
	p.flush()
	last, at := 0, 0
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		if !dense(r) {
			break
		}
		if at > 0 {
			p.emit([]byte(s[last : at+size]))
		}
		last, at = at, at+size
	}
	if last == 0 {
		p.emit([]byte(s[:at]))
	}
	return at
}
