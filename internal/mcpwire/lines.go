package mcpwire

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A lineReader reads newline-delimited messages of any length up to a limit.
type lineReader struct {
	br  *bufio.Reader
	max int64
	// spill, where not nil, says where a line of more than above bytes goes; nil
	// leaves it in memory.
	spill func() *spool
	above int64
}

// errSpooled is a line that was too long for memory. Whoever gets it closes the
// spool.
type errSpooled struct{ message *spool }

func (*errSpooled) Error() string { return "mcpwire: the message is on the disk" }

// errOverlong is a line beyond the limit, which has been skipped. It had a
// member "id", whose value is empty where it is no id, and a method if it was
// no answer.
type errOverlong struct {
	id         ID
	identified bool
	method     bool
}

func (*errOverlong) Error() string { return ErrTooLarge.Error() }

func newLineReader(r io.Reader, max int64) *lineReader {
	return &lineReader{br: bufio.NewReaderSize(r, 32<<10), max: max}
}

// next returns the next line that is not blank, without its end and the
// caller's to keep. A last line without an end is returned as well.
func (r *lineReader) next() ([]byte, error) {
	for {
		line, err := r.line()
		line = bytes.TrimSpace(line)
		if len(line) > 0 && (err == nil || err == io.EOF) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (r *lineReader) line() ([]byte, error) {
	var whole chunks
	for {
		part, err := r.br.ReadSlice('\n')
		if p := r.spilled(&whole, part); p != nil {
			return nil, r.spool(p, &whole, part, err)
		}
		if int64(whole.size+len(part))-1 > r.max {
			return nil, r.skip(&whole, part, err)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if whole.size == 0 { // as nearly all are
				return bytes.Clone(part), err
			}
			whole.write(part)
			return whole.take(), err
		}
		whole.write(part)
	}
}

// spilled opens the spool of a line that becomes too long for memory.
func (r *lineReader) spilled(whole *chunks, part []byte) *spool {
	if r.spill == nil || int64(whole.size+len(part)) <= r.above {
		return nil
	}
	start := part
	switch {
	case len(whole.full) > 0:
		start = whole.full[0]
	case len(whole.last) > 0:
		start = whole.last
	}
	if !startsObject(start) {
		return nil
	}
	return r.spill()
}

// spool writes a line to the disk, from its beginning. One that the end of the
// pipe cut off is no message.
func (r *lineReader) spool(p *spool, whole *chunks, part []byte, err error) error {
	for _, b := range whole.full {
		p.write(b)
	}
	p.write(whole.last)
	*whole = chunks{}
	p.write(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.br.ReadSlice('\n')
		p.write(part)
	}
	p.end()
	if err != nil && !(err == io.EOF && p.finder.complete()) {
		p.close()
		return err
	}
	return &errSpooled{p}
}

// skip reads past an overlong line and looks for its id on the way.
func (r *lineReader) skip(whole *chunks, part []byte, err error) error {
	var f idFinder
	for _, b := range whole.full {
		f.feed(b)
	}
	f.feed(whole.last)
	f.feed(part)
	*whole = chunks{}
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.br.ReadSlice('\n')
		f.feed(part)
	}
	if err != nil && err != io.EOF {
		return err
	}
	return &errOverlong{id: ID(f.found), identified: f.identified, method: f.method}
}

// An idFinder finds the id of a message that is too long to be kept, by
// watching its bytes go by: the scalar after the key "id" of the outermost
// object.
type idFinder struct {
	depth    int
	inString bool
	escaped  bool
	keyNext  bool   // the next string at depth 1 is a key
	text     []byte // the string or scalar being read, bounded
	key      string
	found    []byte
	method   bool

	identified bool // there is a member "id"
}

const maxIDLength = 256

func (f *idFinder) feed(b []byte) {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case !f.inString:
			f.byte(c)
		case f.depth == 1 || f.escaped || c == '\\':
			f.stringByte(c)
		default: // the text of a string inside is of no interest
			if i = rawjson.SkipPlain(b, i); i == len(b) {
				return
			}
			f.stringByte(b[i])
		}
	}
}

// complete reports whether every object and array that began has ended.
func (f *idFinder) complete() bool { return f.depth == 0 && !f.inString }

func (f *idFinder) stringByte(c byte) {
	f.keep(c)
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\':
		f.escaped = true
	case c == '"':
		f.inString = false
		if f.depth == 1 && f.keyNext {
			f.key, f.keyNext, f.text = string(f.text), false, f.text[:0]
			f.method = f.method || f.key == `"method"`
		}
	}
}

func (f *idFinder) byte(c byte) {
	switch c {
	case '"':
		f.inString = true
		f.keep(c)
	case '{', '[':
		f.depth++
		f.keyNext = f.depth == 1
		f.text = f.text[:0]
	case '}', ']':
		f.endValue()
		f.depth--
	case ',':
		f.endValue()
		f.keyNext = f.depth == 1
	case ':', ' ', '\t', '\r', '\n':
	default:
		f.keep(c)
	}
}

func (f *idFinder) keep(c byte) {
	if f.depth == 1 && len(f.text) < maxIDLength {
		f.text = append(f.text, c)
	}
}

func (f *idFinder) endValue() {
	if f.depth != 1 {
		return
	}
	if f.key == `"id"` {
		f.found = validID(f.text)
		if f.identified { // twice
			f.found = nil
		}
		f.identified, f.key = true, ""
	}
	f.text = f.text[:0]
}

// validID returns a copy of text if it is the JSON of an id and was kept whole.
func validID(text []byte) []byte {
	kind := rawjson.KindOf(text)
	if len(text) >= maxIDLength || kind != rawjson.KindString && kind != rawjson.KindNumber || !rawjson.Valid(text) {
		return nil
	}
	return bytes.Clone(text)
}
