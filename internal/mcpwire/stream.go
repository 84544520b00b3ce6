package mcpwire

import (
	"context"
	"errors"
	"io"
)

// StreamTransport reaches a server over a pipe that carries one message on
// each line. Closing the client closes the Writer, then the Reader, where they
// are io.Closers; a read or write that this does not end is waited for.
type StreamTransport struct {
	Reader io.Reader
	Writer io.Writer
}

func (t *StreamTransport) open(_ context.Context, c *Client) (link, error) {
	l := &streamLink{client: c, in: t.Reader, lines: newLineConn(t.Writer)}
	l.start()
	return l, nil
}

// A streamLink is the client's side of a pair of pipes.
type streamLink struct {
	client *Client
	in     io.Reader
	lines  *lineConn
	cause  func(error) error // finds a better reason for the end, or nil
	heard  func()            // called for each message, or nil
}

func (l *streamLink) start() {
	l.client.goWork(l.lines.run)
	l.client.goWork(l.read)
}

// read takes in messages until the pipe ends, and then ends the connection.
func (l *streamLink) read() {
	c := l.client
	r := newLineReader(l.in, c.opts.MaxMessageBytes)
	r.spill, r.above = c.spill, c.opts.LongBytes
	for {
		line, err := r.next()
		var overlong *errOverlong
		var spooled *errSpooled
		switch {
		case errors.As(err, &spooled):
			l.stir()
			c.receiveLong(spooled.message, nil)
		case errors.As(err, &overlong):
			l.client.overlong(overlong)
		case err != nil:
			l.end(err)
			return
		case line[0] != '{' && line[0] != '[':
			c.noise.Add(1)
			c.opts.Logger.Debug("noise on the stream", "bytes", len(line))
		default:
			l.stir()
			c.receiveBytes(line, nil)
		}
	}
}

func (l *streamLink) stir() {
	if l.heard != nil {
		l.heard()
	}
}

func (l *streamLink) end(err error) {
	if l.cause != nil {
		err = l.cause(err)
	}
	if err == io.EOF {
		err = ErrClosed
	} else {
		err = &closedError{err}
	}
	l.client.fail(err)
	l.lines.close(err)
}

// overlong fails the call whose answer was too large.
func (c *Client) overlong(e *errOverlong) {
	c.noise.Add(1)
	c.opts.Logger.Warn("message beyond the size limit skipped", "limit", c.opts.MaxMessageBytes)
	if k := c.calls.find(e.id); k != nil && !e.method {
		c.calls.fail(k, &CallError{Method: k.method, Delivery: MaybeDelivered, Err: &LimitError{c.opts.MaxMessageBytes}})
	}
}

func (l *streamLink) call(ctx context.Context, k *call, msg []byte) (Delivery, error) {
	line, err := l.lines.enqueue(ctx, msg)
	if err != nil {
		return NotDelivered, l.client.asCallCause(ctx, err)
	}
	return l.wait(ctx, k, line)
}

// wait delivers the call's notifications until it is done.
func (l *streamLink) wait(ctx context.Context, k *call, line *outLine) (Delivery, error) {
	var signal <-chan struct{}
	if k.mail != nil {
		signal = k.mail.signal
		defer k.mail.drain()
	}
	for {
		select {
		case <-k.done:
			return Answered, nil
		case <-signal:
			k.mail.drain()
		case <-ctx.Done():
			return line.delivery(), ctx.Err()
		case <-l.lines.stop:
			return l.stopped(k, line)
		}
	}
}

// stopped: the connection ended, perhaps just after the answer came.
func (l *streamLink) stopped(k *call, line *outLine) (Delivery, error) {
	if k.finished() {
		return Answered, nil
	}
	return line.delivery(), l.lines.err
}

func (l *streamLink) send(ctx context.Context, _ string, msg []byte) error {
	return l.lines.send(ctx, msg)
}

func (l *streamLink) ready()                {}
func (l *streamLink) established(Peer)      {}
func (l *streamLink) cancelByMessage() bool { return true }
func (l *streamLink) queuesMail() bool      { return true }
func (l *streamLink) sessionID() string     { return "" }

func (l *streamLink) close() error {
	l.lines.close(ErrClosed)
	err := closeIfCloser(l.lines.w)
	return errors.Join(err, closeIfCloser(l.in))
}

func closeIfCloser(v any) error {
	if c, ok := v.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
