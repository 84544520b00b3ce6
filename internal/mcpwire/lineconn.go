package mcpwire

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// A lineConn writes messages to a pipe, one on each line, from a goroutine of
// its own, so that a peer that does not read holds up only whoever waits.
type lineConn struct {
	w    io.Writer
	out  chan *outLine
	stop chan struct{} // closed when nothing is written any more

	once sync.Once
	err  error // why, valid once stop is closed
}

// The states of an outLine.
const (
	lineQueued int32 = iota
	lineWithdrawn
	lineWriting
	lineUnsent  // the write failed before the message was complete
	lineWritten // the message left
)

type outLine struct {
	msg   []byte
	state atomic.Int32
	done  chan struct{} // closed in the states lineUnsent and lineWritten
}

func newLineConn(w io.Writer) *lineConn {
	return &lineConn{w: w, out: make(chan *outLine, 64), stop: make(chan struct{})}
}

// enqueue hands a message to the writer. The error is ctx's or that of the
// connection; in both cases nothing was sent.
func (c *lineConn) enqueue(ctx context.Context, msg []byte) (*outLine, error) {
	line := &outLine{msg: append(oneLine(msg), '\n'), done: make(chan struct{})}
	select {
	case <-c.stop:
		return nil, c.err
	default:
	}
	select {
	case c.out <- line:
		return line, nil
	case <-c.stop:
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send writes a message and waits until it left.
func (c *lineConn) send(ctx context.Context, msg []byte) error {
	line, err := c.enqueue(ctx, msg)
	if err != nil {
		return err
	}
	select {
	case <-line.done:
		if line.state.Load() == lineUnsent {
			return c.failure()
		}
		return nil
	case <-c.stop:
		return c.err
	case <-ctx.Done():
		line.state.CompareAndSwap(lineQueued, lineWithdrawn)
		return ctx.Err()
	}
}

// delivery tells what became of a line whose sender gives up now.
func (l *outLine) delivery() Delivery {
	if l.state.CompareAndSwap(lineQueued, lineWithdrawn) {
		return NotDelivered
	}
	switch l.state.Load() {
	case lineWithdrawn, lineUnsent:
		return NotDelivered
	}
	return MaybeDelivered
}

// run writes until the connection is stopped.
func (c *lineConn) run() {
	for {
		select {
		case line := <-c.out:
			if line.state.CompareAndSwap(lineQueued, lineWriting) {
				c.write(line)
			}
		case <-c.stop:
			return
		}
	}
}

func (c *lineConn) write(line *outLine) {
	n, err := c.w.Write(line.msg)
	if n < len(line.msg)-1 {
		line.state.Store(lineUnsent)
	} else {
		line.state.Store(lineWritten)
	}
	if err != nil {
		c.close(&closedError{err})
	}
	close(line.done)
}

// close stops the writer for the given reason; the first reason stays.
func (c *lineConn) close(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.stop)
	})
}

func (c *lineConn) failure() error {
	<-c.stop
	return c.err
}

// closedError is [ErrClosed] with the reason.
type closedError struct{ err error }

func (e *closedError) Error() string   { return ErrClosed.Error() + ": " + e.err.Error() }
func (e *closedError) Unwrap() []error { return []error{ErrClosed, e.err} }
