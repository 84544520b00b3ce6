package natsstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// denial is what the server's permissions do not let this client do. The server
// says so without saying which message it was about, but for its subject.
type denial struct {
	action  string // "publish" or "subscribe"
	subject string
}

// denialOf reads an error of the connection. It returns nil for another error.
func denialOf(err error) *denial {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	for _, kind := range [...]struct{ before, action string }{
		{`Subscription to "`, "subscribe"}, {`Publish to "`, "publish"}, {`Reply of "`, "publish"}} {
		if _, rest, found := strings.Cut(err.Error(), kind.before); found {
			subject, _, _ := strings.Cut(rest, `"`)
			return &denial{kind.action, subject}
		}
	}
	return nil
}

// Error says what to permit.
func (d *denial) Error() string {
	return fmt.Sprintf("the NATS server does not let this user %s to %q; permit it with permissions.%s.allow of the user, or connect as another",
		d.action, d.subject, d.action)
}

// Unwrap makes it a [stream.ErrForbidden].
func (d *denial) Unwrap() error { return stream.ErrForbidden }

// deniedSince returns the denial that made a subscription to a subject fail, if
// the connection learned of one after its error was before.
func deniedSince(conn *nats.Conn, before error, subject string) error {
	last := conn.LastError()
	if last == before { //nolint:errorlint // Another error of the same kind is news.
		return nil
	}
	if d := denialOf(last); d != nil && d.action == "subscribe" && d.subject == subject {
		return d
	}
	return nil
}

// deny tells whoever waits for what the server did not permit, and the log. Of a
// request to make a stream only who sent it knows whether the right is missing.
func (h *hooks) deny(d *denial) {
	client := h.client.Load()
	told := client != nil && d.action == "publish" && client.tries.refuse(d)
	if making := strings.HasPrefix(d.subject, createStream); !(making && told) && h.denied.due(*d, time.Now()) {
		h.log.Error("the stream server does not permit what this process needs", "action", d.action, "subject", d.subject, "error", d)
	}
	if client == nil || d.action != "publish" {
		return
	}
	if !strings.HasPrefix(d.subject, createStream) {
		client.denials.Tell(client.denialOn(d))
	}
	client.asks.refuse(d.subject, d)
	client.mu.Lock()
	defer client.mu.Unlock()
	for part := range client.open {
		if s, is := part.(*sink); is && s.next == d.subject {
			s.refused()
		}
	}
}

// denialOn says which stream or subject a denial is about.
func (c *Client) denialOn(d *denial) stream.Denial {
	out := stream.Denial{Err: d}
	tokens := strings.Split(d.subject, ".")
	if tokens[0] != c.prefix {
		for _, token := range tokens { // of JetStream's own subjects one is the stream
			if inside, own := strings.CutPrefix(token, c.prefix+"~"); own {
				out.Stream, _ = FromToken(inside)
			}
		}
		return out
	}
	if len(tokens) < 4 {
		return out
	}
	parts := tokens[2 : len(tokens)-1]
	for i, token := range parts {
		parts[i], _ = FromToken(token) // The token of nothing is none.
	}
	switch name := strings.Join(parts, ":"); tokens[1] {
	case "stream":
		out.Stream = name
	case "bus", "ask":
		out.Subject = name
	}
	return out
}

// reminders keep a denial that comes again and again from filling the log.
type reminders struct {
	mu   sync.Mutex
	said map[denial]time.Time
}

// remindEvery is how often a denial is logged, and maxReminders how many different
// ones are remembered.
const (
	remindEvery  = time.Minute
	maxReminders = 1000
)

// due reports whether to log a denial.
func (r *reminders) due(d denial, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, said := r.said[d]; said && now.Sub(last) < remindEvery {
		return false
	}
	if r.said == nil || len(r.said) >= maxReminders {
		r.said = map[denial]time.Time{}
	}
	r.said[d] = now
	return true
}

// tries are the requests to the server that wait for their answers and are about a
// JetStream stream.
type tries struct {
	mu    sync.Mutex
	under map[*try]struct{}
}

type try struct {
	inside string // the name of the JetStream stream
	cancel context.CancelCauseFunc
}

// run calls attempt, and ends its context when the server does not permit a request
// about the stream.
func (t *tries) run(ctx context.Context, inside string, attempt func(context.Context) error) error {
	if inside == "" {
		return attempt(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	mine := &try{inside, cancel}
	t.mu.Lock()
	t.under[mine] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.under, mine)
	}()
	err := attempt(ctx)
	var denied *denial
	if err != nil && errors.As(context.Cause(ctx), &denied) {
		return denied
	}
	return err
}

// createStream begins the subjects of requests to make a stream.
const createStream = "$JS.API.STREAM.CREATE."

// refuse reports whether somebody waited for what the server does not permit.
func (t *tries) refuse(d *denial) (told bool) {
	rest, found := strings.CutPrefix(d.subject, "$JS.API.")
	if !found || strings.HasPrefix(rest, "CONSUMER.MSG.NEXT.") {
		return false
	}
	tokens := strings.Split(rest, ".")
	t.mu.Lock()
	defer t.mu.Unlock()
	for one := range t.under {
		if len(tokens) > 2 && tokens[2] == one.inside {
			one.cancel(d)
			told = true
		}
	}
	return told
}

// refused notes that the server does not let the sink ask for events. It asks again
// after a pause, since permissions can change.
func (s *sink) refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = 0
	select {
	case s.broken <- struct{}{}:
	default:
	}
}
