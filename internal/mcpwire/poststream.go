package mcpwire

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

func newSessionID() string { return rand.Text() }

// A postStream is the response to a POST. It is JSON, unless something is sent
// before the answer, which makes it an event stream. In the stateful era the
// events are remembered, so that a client which lost the connection can resume
// the stream.
type postStream struct {
	server  *Server
	w       http.ResponseWriter
	session *Session // nil in the stateless era
	batch   bool

	mu       sync.Mutex
	started  bool // it is an event stream
	finished bool
	broken   bool // the connection is gone
	stream   int  // its number in the session's log
}

// send puts a message before the answer.
func (p *postStream) send(_ context.Context, msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return ErrClosed
	}
	if !p.started {
		p.start()
	}
	return p.write(len(msg), msg)
}

// start turns the response into an event stream.
func (p *postStream) start() {
	p.started = true
	startEvents(p.w)
	if p.session == nil {
		return
	}
	p.stream = p.session.log.openStream()
	if p.session.version >= Version20251125 {
		p.put(appendPriming(nil, eventID(p.stream, p.session.log.next()), 0))
	}
}

func startEvents(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", contentSSE)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// write writes one message, which comes in parts.
func (p *postStream) write(size int, parts ...[]byte) error {
	id := ""
	if p.session != nil {
		var seq int64
		if log := p.session.log; size <= log.maxSize {
			seq = log.add(p.stream, bytes.Join(parts, nil))
		} else {
			seq = log.next()
		}
		id = eventID(p.stream, seq)
	}
	event := [][]byte{appendEventHead(make([]byte, 0, 64), id)}
	for _, part := range parts {
		event = append(event, oneLine(part))
	}
	p.put(append(event, eventTail)...)
	if p.broken && p.session == nil {
		return ErrClosed
	}
	return nil
}

// put writes bytes, for as long as the connection takes them.
func (p *postStream) put(b ...[]byte) {
	if !p.broken && writeEvents(p.w, p.server.opts.WriteTimeout, b...) != nil {
		p.broken = true
	}
}

func writeEvents(w http.ResponseWriter, timeout time.Duration, parts ...[]byte) error {
	rc := http.NewResponseController(w)
	if timeout > 0 { // a writer without deadlines is used without them
		_ = rc.SetWriteDeadline(time.Now().Add(timeout))
		defer func() { _ = rc.SetWriteDeadline(time.Time{}) }()
	}
	for _, b := range parts {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return rc.Flush()
}

var keepAlive = []byte(": keep-alive\n\n")

// stayAlive has a comment written to the stream from time to time, once it has
// begun, until the returned function is called.
func (p *postStream) stayAlive(every time.Duration) (stop func()) {
	if every <= 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.comment()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

func (p *postStream) comment() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started && !p.finished {
		p.put(keepAlive)
	}
}

// finish sends the answers and ends the stream. The status counts where nothing
// was sent before.
func (p *postStream) finish(status int, answers ...*answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
	switch {
	case p.started:
		for _, a := range answers {
			_ = p.write(a.size(), a.parts()...)
		}
		if p.session != nil {
			p.session.log.closeStream(p.stream)
		}
	case p.batch:
		writeJSON(p.w, status, joinArray(answers))
	default:
		writeJSON(p.w, status, answers[0].parts()...)
	}
}

// finishEnded, when deferred, answers in place of a handler that left no answer
// a. It flushes, as the goroutine of the request ends and with it the connection.
func (p *postStream) finishEnded(f *Frame, a *answer) {
	if a != nil {
		return
	}
	p.server.orEnded(f, &a)
	p.w.Header().Set("Connection", "close") // or the client would use it once more
	p.finish(http.StatusOK, a)
	_ = http.NewResponseController(p.w).Flush()
}

func joinArray(answers []*answer) []byte {
	out := []byte{'['}
	for i, a := range answers {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, a.bytes()...)
	}
	return append(out, ']')
}

// disconnected ends a request whose client is gone and could not get the answer
// by resuming the stream.
func (p *postStream) disconnected(cancel context.CancelCauseFunc) {
	p.mu.Lock()
	resumable := p.started && p.session != nil
	p.broken = true
	p.mu.Unlock()
	if !resumable {
		cancel(context.Canceled)
	}
}
