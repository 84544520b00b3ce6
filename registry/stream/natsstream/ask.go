package natsstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// asks are the requests of a client that wait for their answers, which come to
// one subscription. Unlike those of the connection they end when it breaks.
type asks struct {
	conn   *nats.Conn
	prefix string // of the subjects of answers

	mu      sync.Mutex
	waiting map[string]question
}

// question waits for its answer.
type question struct {
	subject  string
	answered chan answer
}

type answer struct {
	msg *nats.Msg
	err error
}

func newAsks(conn *nats.Conn) (*asks, error) {
	a := &asks{conn: conn, prefix: newInbox(conn) + ".", waiting: map[string]question{}}
	before := conn.LastError()
	sub, err := conn.Subscribe(a.prefix+"*", a.receive)
	if err != nil {
		return nil, err
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	conn.FlushTimeout(closeTimeout) //nolint:errcheck // Without a connection the server has yet to hear of it.
	return a, deniedSince(conn, before, sub.Subject)
}

// newInbox returns a subject for answers that nobody guesses who is not told it: one
// of the library's follows from those before it.
func newInbox(conn *nats.Conn) string { return conn.NewInbox() + rand.Text() }

// ask sends a message and waits for the answer. Its errors are ErrNoResponder
// and ErrForbidden, which say that nobody got the message, and what leaves that
// open: ErrClosed, ErrUnavailable, and the context's.
func (a *asks) ask(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	id, answered := a.begin(msg.Subject)
	defer a.end(id)
	msg.Reply = a.prefix + id
	if err := a.conn.PublishMsg(msg); err != nil {
		return nil, sendError(err)
	}
	select {
	case got := <-answered:
		return got.msg, got.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: no answer: %w", stream.ErrUnavailable, ctx.Err())
	}
}

func (a *asks) begin(subject string) (string, chan answer) {
	answered := make(chan answer, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	id := rand.Text() // Nobody answers who did not get the question.
	a.waiting[id] = question{subject, answered}
	return id, answered
}

func (a *asks) end(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
}

func (a *asks) receive(msg *nats.Msg) {
	id := strings.TrimPrefix(msg.Subject, a.prefix)
	got := answer{msg: msg}
	if statusOf(msg) == statusNobody {
		got = answer{err: stream.ErrNoResponder}
	}
	a.mu.Lock()
	asked, waits := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if waits {
		asked.answered <- got
	}
}

// refuse ends the requests to a subject to which the server let nothing be sent.
func (a *asks) refuse(subject string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, asked := range a.waiting {
		if asked.subject == subject {
			delete(a.waiting, id)
			asked.answered <- answer{err: err}
		}
	}
}

// fail ends all requests that wait.
func (a *asks) fail(err error) {
	a.mu.Lock()
	waiting := a.waiting
	a.waiting = map[string]question{}
	a.mu.Unlock()
	for _, asked := range waiting {
		asked.answered <- answer{err: err}
	}
}

// Status headers of messages by which the server itself speaks.
const (
	statusHeartbeat = "100"
	statusNobody    = "503"
)

func statusOf(msg *nats.Msg) string {
	if len(msg.Data) > 0 || len(msg.Header) == 0 {
		return ""
	}
	return msg.Header.Get("Status")
}

// isContext reports whether an error is that of a context which ended.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
