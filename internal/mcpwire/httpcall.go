package mcpwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

const (
	// maxAnswerError bounds the body of an error status that may hold a
	// JSON-RPC error.
	maxAnswerError = 1 << 20
	// maxResumes bounds how often in a row a stream is resumed without having
	// brought anything new.
	maxResumes  = 5
	resumeDelay = time.Second
	// tailWait is how long the end of a stream is waited for once it has
	// brought the answer, so that its connection can be used again.
	tailWait = time.Second
)

func (l *httpLink) call(ctx context.Context, k *call, msg []byte) (Delivery, error) {
	c := l.client
	callCtx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	c.calls.onEnd(k, cancel)
	h := l.postHeader(l.requestHeader(k.opts.Header), k.method, routedName(k.method, k.params))
	resp, delivery, err := l.do(callCtx, http.MethodPost, msg, h)
	if err == nil {
		delivery, err = l.readAnswer(callCtx, cancel, k, resp)
	} else {
		cancel()
	}
	if k.finished() {
		return Answered, nil
	}
	if err == nil {
		err = ErrNoAnswer
	}
	return delivery, c.asCallCause(ctx, err)
}

// routedName is the member of the params that names what a request is for, and
// that the stateless era repeats in a header.
func routedName(method string, params []byte) string {
	key := ""
	switch method {
	case "tools/call", "prompts/get":
		key = "name"
	case "resources/read":
		key = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		key = "taskId"
	default:
		return ""
	}
	raw, _ := rawjson.Get(params, key)
	name, _ := rawjson.Unquote(raw)
	return name
}

// readAnswer takes in the response to a request. It ends ctx by cancel once
// nothing more is read.
func (l *httpLink) readAnswer(ctx context.Context, cancel context.CancelFunc, k *call, resp *http.Response) (Delivery, error) {
	if k.method == MethodInitialize && resp.StatusCode < 300 {
		id := resp.Header.Get(HeaderSession)
		l.session.Store(&id)
	}
	switch {
	case resp.StatusCode >= 300:
		defer cancel()
		return l.refused(k, resp)
	case mediaType(resp.Header) == contentSSE:
		return l.readStream(ctx, cancel, k, resp)
	}
	defer cancel()
	body, long, err := l.client.readBody(resp)
	if err != nil {
		return MaybeDelivered, err
	}
	if long != nil {
		l.client.receiveLong(long, k)
		return MaybeDelivered, nil
	}
	if len(body) == 0 {
		return MaybeDelivered, fmt.Errorf("%w: HTTP %d without a body", ErrNoAnswer, resp.StatusCode)
	}
	if mt := mediaType(resp.Header); mt != contentJSON {
		return MaybeDelivered, fmt.Errorf("%w: the response is %q", ErrNoAnswer, boundText([]byte(mt)))
	}
	l.client.receiveBytes(body, k)
	return MaybeDelivered, nil
}

// refused takes in a response with an error status: a JSON-RPC error in its
// body is the answer, and 404 to a session means that it is gone.
func (l *httpLink) refused(k *call, resp *http.Response) (Delivery, error) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswerError))
	_ = resp.Body.Close()
	if l.sessionGone(resp, body) {
		l.client.fail(ErrSessionLost)
		return NotDelivered, ErrSessionLost
	}
	f, err := ScanFrame(body)
	if err == nil && f.Kind == KindError && (f.ID == "" || l.client.calls.find(f.ID) == k) {
		l.client.receive(f, k)
		return Answered, nil
	}
	he := newHTTPError(resp, body)
	return he.delivery(), he
}

// sessionGone recognizes a server that does not know the session id it was
// sent: 404, as the protocol says, or the 400 of servers modelled on an example
// of the TypeScript SDK.
func (l *httpLink) sessionGone(resp *http.Response, body []byte) bool {
	if l.sessionID() == "" || l.peer.Load().Era != EraStateful || l.peer.Load().Version == "" {
		return false
	}
	if resp.StatusCode == http.StatusNotFound {
		return true
	}
	if resp.StatusCode != http.StatusBadRequest {
		return false
	}
	code, _ := rawjson.Get(body, "error", "code")
	message, _ := rawjson.Get(body, "error", "message")
	return string(code) == "-32000" && bytes.Contains(bytes.ToLower(message), []byte("session"))
}

// readStream takes in the events of a response until the call is answered, and
// resumes the stream where it breaks and the server allows that.
func (l *httpLink) readStream(ctx context.Context, cancel context.CancelFunc, k *call, resp *http.Response) (Delivery, error) {
	var pos streamPosition
	for failures := 0; ; {
		before := pos.last
		err := l.readEvents(resp, k, &pos)
		if k.finished() {
			l.leave(resp, cancel)
			return Answered, nil
		}
		_ = resp.Body.Close()
		if ctx.Err() != nil || pos.last == "" || l.peer.Load().Era == EraStateless || errors.Is(err, ErrTooLarge) {
			cancel()
			return MaybeDelivered, streamEnd(err)
		}
		if pos.last != before {
			failures = 0
		}
		resp, err = l.resume(ctx, &pos, &failures)
		if err != nil {
			cancel()
			return MaybeDelivered, err
		}
	}
}

func streamEnd(err error) error {
	if err == nil || err == io.EOF {
		return ErrNoAnswer
	}
	return fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

// A streamPosition is where a stream of events stands.
type streamPosition struct {
	last  string // id of the last event that had one
	retry time.Duration
}

func (p *streamPosition) delay(failures int) time.Duration {
	if p.retry > 0 {
		return p.retry
	}
	return min(resumeDelay<<min(failures, 5), 30*time.Second)
}

// readEvents takes in the events of one response until the call k, if not nil,
// is done. The error is why the stream ended.
func (l *httpLink) readEvents(resp *http.Response, k *call, pos *streamPosition) error {
	r := NewEventReader(resp.Body, l.client.opts.MaxMessageBytes)
	r.spill, r.above = l.client.spill, l.client.opts.LongBytes
	defer r.Release()
	for {
		ev, err := r.Next()
		if err != nil {
			return err
		}
		if ev.ID != "" {
			pos.last = ev.ID
		}
		if ev.HasRetry {
			pos.retry = ev.Retry
		}
		l.client.receiveEvent(&ev, k)
		if k != nil && k.finished() {
			return nil
		}
	}
}

// leave reads the rest of a stream that has brought its answer, without the
// caller waiting for it.
func (l *httpLink) leave(resp *http.Response, cancel context.CancelFunc) {
	l.client.goWorkOr(func() {
		timer := time.AfterFunc(tailWait, cancel)
		discard(resp)
		timer.Stop()
		cancel()
	}, func() {
		cancel()
		_ = resp.Body.Close()
	})
}

// resume asks for the rest of a stream after the delay that the server wants.
func (l *httpLink) resume(ctx context.Context, pos *streamPosition, failures *int) (*http.Response, error) {
	for {
		if err := sleep(ctx, pos.delay(*failures)); err != nil {
			return nil, err
		}
		*failures++
		resp, err := l.get(ctx, pos.last)
		if err == nil {
			return resp, nil
		}
		var he *HTTPError
		if errors.As(err, &he) && he.Status < 500 || *failures >= maxResumes {
			return nil, fmt.Errorf("%w: the stream cannot be resumed: %w", ErrNoAnswer, err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send posts a notification or an answer.
func (l *httpLink) send(ctx context.Context, method string, msg []byte) error {
	resp, delivery, err := l.do(ctx, http.MethodPost, msg, l.postHeader(l.requestHeader(nil), method, ""))
	if err != nil {
		return &CallError{Method: method, Delivery: delivery, Err: err}
	}
	if resp.StatusCode < 300 {
		discard(resp)
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	if l.sessionGone(resp, body) {
		l.client.fail(ErrSessionLost)
		return ErrSessionLost
	}
	return newHTTPError(resp, body)
}
