package mcpwire

import (
	"errors"
	"io"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// errMalformed: bytes that are no JSON-RPC message.
var errMalformed = errors.New("mcpwire: the message is not well-formed")

// errHeavy stops a scan whose skeleton becomes too long.
var errHeavy = errors.New("mcpwire: the result is long without long parts")

const (
	// longPart is the size above which a value is left out of a skeleton.
	longPart = 32 << 10
	// longSkeleton bounds a skeleton.
	longSkeleton = 1 << 20
	// longMember bounds each member of the skeleton of a result that is one part.
	longMember = 4 << 10
	scanBuffer = 64 << 10
	maxKey     = 256
)

// A longScanner reads an answer from its source once, checks the grammar, and
// makes the skeleton of the result.
type longScanner struct {
	src      io.Reader
	buf      []byte
	pos, end int
	base     int64 // the offset of buf[0]

	part, most int // longPart and longSkeleton, in use
	// heads: the result is one part, and its skeleton has the short members.
	heads bool

	skeleton []byte
	keep     bool   // what is read goes into the skeleton
	hole     int    // where in the skeleton a value begins that may be left out, or -1
	list     string // which of the lists of blocks is being read
	caught   *catch
	parts    []LongPart

	from, to  int64 // of the result
	id        ID
	version   bool
	results   int
	otherwise bool // it is something else than a plain result
	ambiguous bool // a member that matters is there twice
}

// A catch is what has been read of a value, up to a limit.
type catch struct {
	raw   []byte
	limit int
	over  bool
}

func newLongScanner(src io.Reader) *longScanner {
	return &longScanner{src: src, buf: make([]byte, scanBuffer), part: longPart, most: longSkeleton, hole: -1}
}

func (s *longScanner) offset() int64 { return s.base + int64(s.pos) }

// more reads on, once everything has been consumed.
func (s *longScanner) more() error {
	s.base += int64(s.pos)
	s.pos, s.end = 0, 0
	for {
		n, err := s.src.Read(s.buf)
		if n > 0 {
			s.end = n
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// peek returns the next byte.
func (s *longScanner) peek() (byte, error) {
	if s.pos == s.end {
		if err := s.more(); err != nil {
			return 0, cutShort(err)
		}
	}
	return s.buf[s.pos], nil
}

func cutShort(err error) error {
	if err == io.EOF {
		return errMalformed
	}
	return err
}

// advance consumes n bytes of the buffer.
func (s *longScanner) advance(n int) error {
	read := s.buf[s.pos : s.pos+n]
	s.pos += n
	if c := s.caught; c != nil && !c.over {
		if c.over = len(c.raw)+n > c.limit; !c.over {
			c.raw = append(c.raw, read...)
		}
	}
	if !s.keep {
		return nil
	}
	s.skeleton = append(s.skeleton, read...)
	if s.hole >= 0 && len(s.skeleton)-s.hole > s.part {
		s.skeleton, s.keep = s.skeleton[:s.hole], false
		return nil
	}
	if len(s.skeleton) > s.most+s.part {
		return errHeavy
	}
	return nil
}

// space skips white space.
func (s *longScanner) space() error {
	for {
		c, err := s.peek()
		if err != nil || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return err
		}
		if err := s.advance(1); err != nil {
			return err
		}
	}
}

// take consumes one byte, which must be c.
func (s *longScanner) take(c byte) error {
	got, err := s.peek()
	if err != nil {
		return err
	}
	if got != c {
		return errMalformed
	}
	return s.advance(1)
}

// value consumes a value of any kind. depth counts what is open around it.
func (s *longScanner) value(depth int) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		return s.text()
	case '{':
		return s.members(depth)
	case '[':
		return s.elements(depth)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

// members consumes an object of no interest.
func (s *longScanner) members(depth int) error {
	if err := s.open('{', depth); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.next(i, '}')
		if err != nil || !more {
			return err
		}
		if err := s.text(); err != nil {
			return err
		}
		if err := s.colon(); err != nil {
			return err
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
}

// elements consumes an array of no interest.
func (s *longScanner) elements(depth int) error {
	return s.array(depth, func(int) error { return s.value(depth + 1) })
}

// object consumes an object; member consumes each value.
func (s *longScanner) object(depth int, member func(key string) error) error {
	if err := s.open('{', depth); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.next(i, '}')
		if err != nil || !more {
			return err
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// array consumes an array; element consumes each element.
func (s *longScanner) array(depth int, element func(i int) error) error {
	if err := s.open('[', depth); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := s.next(i, ']')
		if err != nil || !more {
			return err
		}
		if err := element(i); err != nil {
			return err
		}
	}
}

func (s *longScanner) open(bracket byte, depth int) error {
	if depth >= rawjson.DefaultMaxDepth {
		return errMalformed
	}
	return s.take(bracket)
}

// next steps to the i-th element of what is open, or behind its end.
func (s *longScanner) next(i int, closing byte) (more bool, err error) {
	if err := s.space(); err != nil {
		return false, err
	}
	c, err := s.peek()
	switch {
	case err != nil:
		return false, err
	case c == closing:
		return false, s.advance(1)
	case i == 0:
		return true, nil
	}
	if err := s.take(','); err != nil {
		return false, err
	}
	return true, s.space()
}

// key consumes a key and the colon after it. One that is too long to matter is
// returned as "".
func (s *longScanner) key() (string, error) {
	c := &catch{limit: maxKey}
	s.caught = c
	err := s.text()
	s.caught = nil
	if err != nil {
		return "", err
	}
	key := ""
	if !c.over {
		key, _ = rawjson.Unquote(c.raw)
	}
	return key, s.colon()
}

// colon consumes the colon after a key.
func (s *longScanner) colon() error {
	if err := s.space(); err != nil {
		return err
	}
	if err := s.take(':'); err != nil {
		return err
	}
	return s.space()
}

// text consumes a string.
func (s *longScanner) text() error {
	if err := s.take('"'); err != nil {
		return err
	}
	return s.rest()
}

// rest consumes a string behind its opening quote.
func (s *longScanner) rest() error {
	for {
		if _, err := s.peek(); err != nil {
			return err
		}
		if n := rawjson.SkipPlain(s.buf[:s.end], s.pos) - s.pos; n > 0 {
			if err := s.advance(n); err != nil {
				return err
			}
			continue
		}
		switch s.buf[s.pos] {
		case '"':
			return s.advance(1)
		case '\\':
			if err := s.escape(); err != nil {
				return err
			}
		default:
			return errMalformed
		}
	}
}

// escape consumes an escape in a string.
func (s *longScanner) escape() error {
	if err := s.advance(1); err != nil {
		return err
	}
	c, err := s.peek()
	if err != nil {
		return err
	}
	digits := 0
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
	case 'u':
		digits = 4
	default:
		return errMalformed
	}
	if err := s.advance(1); err != nil {
		return err
	}
	for range digits {
		if c, err = s.peek(); err != nil {
			return err
		}
		if !isHex(c) {
			return errMalformed
		}
		if err := s.advance(1); err != nil {
			return err
		}
	}
	return nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func (s *longScanner) literal(word string) error {
	for i := range len(word) {
		if err := s.take(word[i]); err != nil {
			return err
		}
	}
	return nil
}

// number consumes a number.
func (s *longScanner) number() error {
	if c, err := s.peek(); err != nil {
		return err
	} else if c == '-' {
		if err := s.advance(1); err != nil {
			return err
		}
	}
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c == '0' {
		err = s.advance(1)
	} else {
		err = s.digits()
	}
	if err != nil {
		return err
	}
	if ok, err := s.optional('.', '.'); err != nil {
		return err
	} else if ok {
		if err := s.digits(); err != nil {
			return err
		}
	}
	ok, err := s.optional('e', 'E')
	if err != nil || !ok {
		return err
	}
	if _, err := s.optional('+', '-'); err != nil {
		return err
	}
	return s.digits()
}

// optional consumes a byte if it is one of two.
func (s *longScanner) optional(a, b byte) (bool, error) {
	c, err := s.peek()
	if err != nil || c != a && c != b {
		return false, err
	}
	return true, s.advance(1)
}

// digits consumes at least one.
func (s *longScanner) digits() error {
	for n := 0; ; n++ {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c < '0' || c > '9' {
			if n == 0 {
				return errMalformed
			}
			return nil
		}
		if err := s.advance(1); err != nil {
			return err
		}
	}
}
