// Package httpbody reads the bodies of HTTP requests from clients that may stop
// in the middle of one.
package httpbody

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrGivenUp is the error of a read that was ended because its context did.
var ErrGivenUp = errors.New("httpbody: the body was given up")

// Slowest is how many bytes of a body must come each second, on the whole, beside
// the time allowed for nothing to come.
const Slowest = 1 << 10

// Reader reads the body of a request for as long as more of it comes. A read
// that gets nothing for the time allowed, or belongs to a body that comes more
// slowly than Slowest, fails with an error whose method Timeout returns true.
// Where the connection has no deadlines, it waits. Reader is for one goroutine.
type Reader struct {
	from  io.Reader
	conn  *http.ResponseController
	idle  time.Duration
	stop  func() bool
	limit time.Time // for what has come so far

	mu       sync.Mutex // against the end of the context
	givenUp  bool
	released bool
}

// New returns a reader of the body of r, each read of which may take the time
// idle, or any if that is not positive. When ctx ends the body is given up. The
// caller closes the reader before the request has been served.
func New(ctx context.Context, w http.ResponseWriter, r *http.Request, idle time.Duration) *Reader {
	b := &Reader{from: r.Body, conn: http.NewResponseController(w), idle: idle, limit: time.Now().Add(idle)}
	b.stop = context.AfterFunc(ctx, b.giveUp)
	return b
}

// Read reads what has come. At the end of the body the connection has no time
// limit any more.
func (b *Reader) Read(p []byte) (int, error) {
	if !b.extend() {
		return 0, ErrGivenUp
	}
	n, err := b.from.Read(p)
	b.limit = b.limit.Add(time.Duration(n) * time.Second / Slowest)
	switch {
	case err == io.EOF:
		b.Done()
	case err != nil && b.ended():
		err = ErrGivenUp
	}
	return n, err
}

// Done says that all that is wanted of the body was read, so that the
// connection has no time limit any more.
func (b *Reader) Done() {
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.released && !b.givenUp && b.idle > 0 {
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	b.released = true
}

// Close ends the reading. What the body still holds is left to the server, with
// the time limit of the last read.
func (b *Reader) Close() error {
	b.stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released = true
	return nil
}

// extend puts the time limit off, and reports whether the body is still to be
// read.
func (b *Reader) extend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.givenUp {
		return false
	}
	if !b.released && b.idle > 0 {
		next := time.Now().Add(b.idle)
		if b.limit.Before(next) {
			next = b.limit
		}
		_ = b.conn.SetReadDeadline(next)
	}
	return true
}

func (b *Reader) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.givenUp
}

// giveUp ends a read that is waiting, and those to come.
func (b *Reader) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.released {
		b.givenUp = true
		_ = b.conn.SetReadDeadline(time.Unix(1, 0))
	}
}
