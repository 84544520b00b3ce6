package mcpwire

import (
	"net/http"
	"time"
)

// get serves an event stream: that of the session itself, or, with a
// Last-Event-ID, the rest of the stream which that event was on.
func (x *exchange) get() {
	if _, stream := accepts(x.r.Header); !stream {
		refuse(x.w, &Refusal{Status: http.StatusNotAcceptable, Message: "Accept must contain text/event-stream"})
		return
	}
	if !x.knownVersion() {
		return
	}
	sess := x.session()
	if sess == nil {
		return
	}
	f := &follower{server: x.server, session: sess, w: x.w, done: x.r.Context().Done()}
	if last := x.r.Header.Get("Last-Event-ID"); last != "" {
		var ok bool
		if f.stream, f.seq, ok = parseEventID(last); !ok {
			x.refuseMessage("", Errorf(CodeInvalidRequest, "bad request: unknown Last-Event-ID"))
			return
		}
	}
	sess.use.begin()
	defer sess.use.end()
	f.run()
}

// A follower writes what a session's log has for one stream.
type follower struct {
	server  *Server
	session *Session
	w       http.ResponseWriter
	done    <-chan struct{}
	stream  int
	seq     int64 // the last event written
}

func (f *follower) run() {
	replaced := f.takeOver()
	defer f.giveUp(replaced)
	startEvents(f.w)
	if writeEvents(f.w, f.server.opts.WriteTimeout, []byte(": open\n\n")) != nil {
		return
	}
	var tick <-chan time.Time
	if f.server.opts.KeepAlive > 0 {
		t := time.NewTicker(f.server.opts.KeepAlive)
		defer t.Stop()
		tick = t.C
	}
	for {
		more, wake := f.writeNew()
		if !more {
			return
		}
		select {
		case <-wake:
		case <-tick:
			if writeEvents(f.w, f.server.opts.WriteTimeout, keepAlive) != nil {
				return
			}
		case <-replaced:
			return
		case <-f.done:
			return
		case <-f.session.ctx.Done():
			return
		case <-f.server.gate.open.Done():
			return
		}
	}
}

// takeOver makes this the one connection on which the stream is written. For
// the stream of the session itself, it goes on where the connection before it
// stopped, unless the client said where.
func (f *follower) takeOver() (replaced <-chan struct{}) {
	log := f.session.log
	log.mu.Lock()
	defer log.mu.Unlock()
	if old := log.readers[f.stream]; old != nil {
		close(old)
	}
	mine := make(chan struct{})
	if log.readers == nil {
		log.readers = make(map[int]chan struct{})
	}
	log.readers[f.stream] = mine
	if f.stream == 0 && f.seq == 0 {
		f.seq = log.written
	}
	return mine
}

// giveUp forgets this connection, unless another has taken over.
func (f *follower) giveUp(mine <-chan struct{}) {
	log := f.session.log
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.readers[f.stream] == mine {
		delete(log.readers, f.stream)
	}
}

// writeNew writes what there is and returns whether more can come, and a
// channel that says so.
func (f *follower) writeNew() (more bool, wake <-chan struct{}) {
	events, open, wake := f.session.log.after(f.stream, f.seq)
	for _, e := range events {
		b := appendEvent(make([]byte, 0, len(e.msg)+64), eventID(e.stream, e.seq), e.msg)
		if writeEvents(f.w, f.server.opts.WriteTimeout, b) != nil {
			return false, nil
		}
		f.seq = e.seq
		if f.stream == 0 {
			f.session.log.wrote(e.seq)
		}
	}
	return open, wake
}
