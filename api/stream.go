package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// notePeer passes what a tool says to a function, one note at a time.
type notePeer struct {
	mu    sync.Mutex
	notes func(Note)
}

func (p *notePeer) tell(n Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes(n)
}

func (p *notePeer) Progress(_ context.Context, n tools.ProgressNote) error {
	p.tell(noteOfProgress(n))
	return nil
}

func (p *notePeer) Log(_ context.Context, n tools.LogNote) error {
	p.tell(noteOfLog(n))
	return nil
}

func (p *notePeer) Ask(_ context.Context, q tools.Question) (tools.Answer, error) {
	return tools.Answer{}, errCannotAsk(q)
}

// The events of a stream, beside the kinds of notes.
const (
	eventResult = "result"
	eventError  = "error"
)

const (
	// noteBacklog bounds the notes that wait for a slow reader; further ones
	// are dropped, because a note only says how far a call is.
	noteBacklog = 64
	// keepAlive is how often a silent stream shows that it lives.
	keepAlive = 15 * time.Second
)

// errEnded says that a tool ended its goroutine instead of returning.
var errEnded = newError(CodeInternal, "the tool ended without an answer")

// outcome is how a call ended.
type outcome struct {
	resp *CallResponse
	err  error
}

// streamCall runs a call and sends what the tool says as server-sent events,
// then the result or the error. A call that fails before it said anything is
// answered as it would be without a stream.
func (s *Server) streamCall(w http.ResponseWriter, r *http.Request, req CallRequest) {
	notes := make(chan Note, noteBacklog)
	req.Notes = func(n Note) {
		select {
		case notes <- n:
		default:
		}
	}
	done := make(chan outcome, 1)
	go func() {
		end := outcome{err: errEnded}
		defer func() { done <- end }() // also when the tool ends the goroutine
		resp, err := s.Call(r.Context(), req)
		end = outcome{resp, err}
	}()
	stream := &eventStream{w: w, ctl: http.NewResponseController(w)}
	stream.relay(r.Context(), notes, done)
}

// eventStream writes server-sent events. It belongs to one goroutine.
type eventStream struct {
	w     http.ResponseWriter
	ctl   *http.ResponseController
	begun bool
}

// relay sends notes until the call has ended, then its outcome. It does not
// wait for a call beyond the end of ctx.
func (s *eventStream) relay(ctx context.Context, notes <-chan Note, done <-chan outcome) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case n := <-notes:
			s.note(n)
		case <-tick.C:
			s.write(": alive\n\n")
		case end := <-done:
			for len(notes) > 0 {
				s.note(<-notes)
			}
			s.finish(end)
			return
		case <-ctx.Done():
			s.finish(endOr(done, outcome{err: ctx.Err()}))
			return
		}
	}
}

// endOr returns how the call ended if it has, and otherwise end.
func endOr(done <-chan outcome, end outcome) outcome {
	select {
	case end = <-done:
	default:
	}
	return end
}

func (s *eventStream) note(n Note) {
	if body, err := json.Marshal(n); err == nil {
		s.event(n.Kind, body)
	}
}

func (s *eventStream) finish(end outcome) {
	switch {
	case end.err == nil:
		s.event(eventResult, end.resp.AppendJSON(nil))
	case !s.begun:
		WriteError(s.w, end.err)
	default:
		body, _ := json.Marshal(errorBody{ErrorFrom(end.err)}) // strings and numbers always encode
		s.event(eventError, body)
	}
}

// lineBreaks turns every line break of an event's data into a new data line.
var lineBreaks = strings.NewReplacer("\r\n", "\ndata: ", "\n", "\ndata: ", "\r", "\ndata: ")

func (s *eventStream) event(kind string, data []byte) {
	text := string(data)
	if strings.ContainsAny(text, "\r\n") {
		text = lineBreaks.Replace(text)
	}
	s.write("event: " + kind + "\ndata: " + text + "\n\n")
}

// write sends text. An error means that nobody reads any more, which the
// request's context tells the call.
func (s *eventStream) write(text string) {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.WriteHeader(http.StatusOK)
	}
	_, _ = s.w.Write([]byte(text))
	_ = s.ctl.Flush()
}
