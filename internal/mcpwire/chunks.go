package mcpwire

import "io"

const (
	// minChunk and maxChunk bound the pieces in which a message of unknown
	// length is kept while it arrives.
	minChunk = 512
	maxChunk = 4 << 20
	// readChunk is the first piece of a body of unknown length.
	readChunk = 8 << 10
	// trustedSize is how much memory is set aside for what a peer announces
	// before it has sent anything. Then it is eight times what has come.
	trustedSize = 64 << 10
)

// chunks are the bytes of a message that is still arriving. What has come is
// never copied to make room for more, so that a long message takes twice its
// length at most, and that only while it is joined.
type chunks struct {
	full [][]byte
	last []byte // has room where cap exceeds len
	size int
}

// write adds a copy of b.
func (c *chunks) write(b []byte) {
	for len(b) > 0 {
		n := copy(c.room(len(b)), b)
		c.wrote(n)
		b = b[n:]
	}
}

// keep adds b itself.
func (c *chunks) keep(b []byte) {
	if len(c.last) > 0 {
		c.full = append(c.full, c.last)
	}
	c.last = b[:len(b):len(b)]
	c.size += len(b)
}

// room returns free memory behind what there is, at least one byte and, where
// it had to be got, at least want of them up to maxChunk.
func (c *chunks) room(want int) []byte {
	if len(c.last) == cap(c.last) {
		if len(c.last) > 0 {
			c.full = append(c.full, c.last)
		}
		c.last = make([]byte, 0, min(max(want, c.size, minChunk), maxChunk))
	}
	return c.last[len(c.last):cap(c.last)]
}

// wrote says that n bytes of the room were filled.
func (c *chunks) wrote(n int) {
	c.last = c.last[:len(c.last)+n]
	c.size += n
}

// take returns everything in one piece, the caller's to keep, and starts anew.
func (c *chunks) take() []byte {
	out := c.last
	if len(c.full) > 0 {
		out = make([]byte, 0, c.size)
		for _, b := range c.full {
			out = append(out, b...)
		}
		out = append(out, c.last...)
	}
	*c = chunks{}
	return out
}

// readSized reads all of r, which announced size bytes, or -1, and may have up
// to max.
func readSized(r io.Reader, size, max int64) ([]byte, error) {
	if size > max {
		return nil, ErrTooLarge
	}
	if size < 0 {
		return readUnsized(r, max)
	}
	body, have := make([]byte, min(size, trustedSize)), 0
	for {
		n, err := io.ReadFull(r, body[have:])
		if have += n; err != nil || int64(have) == size {
			return body[:have], noEOF(err)
		}
		body = append(make([]byte, 0, min(size, 8*int64(have))), body...)
		body = body[:cap(body)]
	}
}

func readUnsized(r io.Reader, max int64) ([]byte, error) {
	var c chunks
	for {
		n, err := r.Read(c.room(readChunk))
		c.wrote(n)
		switch {
		case int64(c.size) > max:
			return nil, ErrTooLarge
		case err == io.EOF:
			return c.take(), nil
		case err != nil:
			return nil, err
		}
	}
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
