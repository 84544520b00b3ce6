package mcpwire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// readBody reads the request body, or answers why it cannot be used. The body
// does not count as a request in progress: it is given up when the server
// shuts down, and when nothing more of it comes.
func (x *exchange) readBody() ([]byte, bool) {
	s := x.server
	in := &bodyReader{from: x.r.Body, conn: http.NewResponseController(x.w), idle: s.opts.BodyTimeout}
	stop := context.AfterFunc(s.gate.open, in.giveUp)
	body, err := readSized(in, x.r.ContentLength, s.opts.MaxMessageBytes)
	stop()
	if givenUp := in.release(err == nil); givenUp {
		x.w.Header().Set("Connection", "close")
		x.refuseLate()
		return nil, false
	}
	if err == nil {
		return body, true
	}
	x.refuseBody(err)
	return nil, false
}

// refuseBody says why a body was not read to its end.
func (x *exchange) refuseBody(err error) {
	opts := &x.server.opts
	x.w.Header().Set("Connection", "close")
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrTooLarge):
		writeError(x.w, http.StatusRequestEntityTooLarge, "", Errorf(CodeInvalidRequest, "message exceeds %d bytes", opts.MaxMessageBytes))
	case errors.As(err, &timeout) && timeout.Timeout():
		writeError(x.w, http.StatusRequestTimeout, "", Errorf(CodeParseError, "nothing more of the request body came for %v", opts.BodyTimeout))
	default:
		x.refuseMessage("", Errorf(CodeParseError, "the request body could not be read"))
	}
}

// A bodyReader reads a request body for as long as more of it comes. Where the
// connection has no deadlines, it waits.
type bodyReader struct {
	from io.Reader
	conn *http.ResponseController
	idle time.Duration

	mu       sync.Mutex
	givenUp  bool
	released bool
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if !b.extend() {
		return 0, ErrClosed
	}
	return b.from.Read(p)
}

// extend puts the deadline off, and reports whether anything is to be read
// still.
func (b *bodyReader) extend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.givenUp && b.idle > 0 {
		_ = b.conn.SetReadDeadline(time.Now().Add(b.idle))
	}
	return !b.givenUp
}

// giveUp ends a read that is waiting, and those to come.
func (b *bodyReader) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.released {
		b.givenUp = true
		_ = b.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// release ends the reading, takes the deadline away from what follows a body
// that was read whole, and reports whether the body was given up.
func (b *bodyReader) release(whole bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released = true
	if whole && !b.givenUp && b.idle > 0 {
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return b.givenUp
}
