package mcpwire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// A Scratch is where answers that are too long for memory wait on the disk, from
// their first byte to the end of the call. Nothing of them is left afterwards;
// where the system allows it, their files have no name. It is safe for
// concurrent use, and one serves all connections of a process.
type Scratch struct {
	dir            string
	message, total int64
	used           atomic.Int64
}

// ScratchOptions bound what a [Scratch] takes in. The zero value serves.
type ScratchOptions struct {
	// Dir is the folder of the files, which is made when it is needed; the
	// system's folder for temporary files by default.
	Dir string
	// MaxMessageBytes limits one answer; 2 GiB by default.
	MaxMessageBytes int64
	// MaxTotalBytes limits all of them together; 16 GiB by default.
	MaxTotalBytes int64
}

const (
	defaultScratchMessage = 2 << 30
	defaultScratchTotal   = 16 << 30
	// spoolBuffer is how much of a message is gathered before it is written.
	spoolBuffer = 64 << 10
	// scratchPrefix begins the names of the files.
	scratchPrefix = "toolcrib-message-"
)

// NewScratch returns a scratch; nil options are the defaults.
func NewScratch(opts *ScratchOptions) *Scratch {
	s := &Scratch{message: defaultScratchMessage, total: defaultScratchTotal}
	if opts == nil {
		return s
	}
	s.dir = opts.Dir
	if opts.MaxMessageBytes > 0 {
		s.message = opts.MaxMessageBytes
	}
	if opts.MaxTotalBytes > 0 {
		s.total = opts.MaxTotalBytes
	}
	return s
}

// ErrNoRoom: an answer was too long for memory, and could not be kept on the
// disk either.
var ErrNoRoom = errors.New("mcpwire: no room on the disk for a long answer")

// A LimitError says which limit a message exceeds. It is [ErrTooLarge].
type LimitError struct{ Limit int64 }

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("mcpwire: message exceeds the size limit of %d bytes", e.Limit)
}

// Unwrap returns [ErrTooLarge].
func (e *LimitError) Unwrap() error { return ErrTooLarge }

// A spool is one message on the disk. A fault does not end it: the rest of the
// message passes by, so that what comes after it can be read.
type spool struct {
	scratch *Scratch
	file    *os.File
	named   bool // the file has to be removed
	out     *bufio.Writer
	size    int64
	fault   error // ErrNoRoom or a *LimitError
	finder  idFinder
}

// Clear removes what processes that were killed have left in the folder. It takes
// nothing else away, and nothing of the system's folder, which is for others to
// clear.
func (s *Scratch) Clear() {
	if s.dir == "" {
		return
	}
	left, _ := os.ReadDir(s.dir) // there may be no folder yet
	for _, file := range left {
		if strings.HasPrefix(file.Name(), scratchPrefix) {
			_ = os.Remove(filepath.Join(s.dir, file.Name())) // one that is in use has its reader still
		}
	}
}

// Used returns how many bytes are on the disk.
func (s *Scratch) Used() int64 { return s.used.Load() }

// begin opens a spool.
func (s *Scratch) begin() *spool {
	p := &spool{scratch: s}
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			p.fail(err)
			return p
		}
	}
	file, err := os.CreateTemp(s.dir, scratchPrefix+"*")
	if err != nil {
		p.fail(err)
		return p
	}
	p.file, p.named = file, os.Remove(file.Name()) != nil
	p.out = bufio.NewWriterSize(file, spoolBuffer)
	return p
}

func (p *spool) fail(err error) {
	if p.fault == nil {
		p.fault = fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
}

// write takes in more of the message.
func (p *spool) write(b []byte) {
	p.finder.feed(b)
	if p.fault != nil {
		return
	}
	p.size += int64(len(b))
	used := p.scratch.used.Add(int64(len(b)))
	switch {
	case p.size > p.scratch.message:
		p.fault = &LimitError{p.scratch.message}
	case used > p.scratch.total:
		p.fail(fmt.Errorf("all of them may have %d bytes", p.scratch.total))
	default:
		if _, err := p.out.Write(b); err != nil {
			p.fail(err)
		}
	}
}

// readFrom takes in the rest of the message, or as much of it as there is room
// for.
func (p *spool) readFrom(r io.Reader) error {
	buf := make([]byte, scanBuffer)
	for p.fault == nil {
		n, err := r.Read(buf)
		p.write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	p.end()
	return nil
}

// end says that the message is complete.
func (p *spool) end() {
	if p.fault == nil {
		if err := p.out.Flush(); err != nil {
			p.fail(err)
		}
	}
	p.out = nil
}

// id is the id of the message, as far as it can be told before it is checked.
func (p *spool) id() ID { return ID(p.finder.found) }

// section reads a part of the message.
func (p *spool) section(from, to int64) *io.SectionReader {
	return io.NewSectionReader(p.file, from, to-from)
}

// load reads the whole message into memory, if it has at most max bytes.
func (p *spool) load(max int64) ([]byte, error) {
	if p.fault != nil {
		return nil, p.fault
	}
	if p.size > max {
		return nil, &LimitError{max}
	}
	msg := make([]byte, p.size)
	if _, err := io.ReadFull(p.section(0, p.size), msg); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return msg, nil
}

// close leaves nothing of the message. It may be called more than once, and on
// nil.
func (p *spool) close() {
	if p == nil {
		return
	}
	p.scratch.used.Add(-p.size)
	p.size, p.out = 0, nil
	if p.file == nil {
		return
	}
	_ = p.file.Close()
	if p.named {
		_ = os.Remove(p.file.Name())
	}
	p.file = nil
}

// startsObject reports whether a message can be an answer, judged by its first
// byte.
func startsObject(b []byte) bool {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '{'
		}
	}
	return false
}
