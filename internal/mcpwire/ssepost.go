package mcpwire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// A posting is a request on its way to the server. Its answer may come on the
// stream before the server has said that it accepts the request.
type posting struct {
	cancel context.CancelFunc

	done     chan struct{} // closed when there is a response, or none will come
	delivery Delivery      // how far it got; this and err are valid once done is closed
	err      error         // why it was not accepted
}

func (l *sseLink) call(ctx context.Context, k *call, msg []byte) (Delivery, error) {
	p := l.post(ctx, k, msg)
	var signal <-chan struct{}
	if k.mail != nil {
		signal = k.mail.signal
		defer k.mail.drain()
	}
	for posted := p.done; ; {
		select {
		case <-k.done:
			p.leave()
			return Answered, nil
		case <-signal:
			k.mail.drain()
		case <-posted:
			if p.err != nil {
				return p.failed(k)
			}
			posted = nil
		case <-ctx.Done():
			p.cancel()
			<-p.done
			return p.delivery, ctx.Err()
		case <-l.ended:
			return l.cut(k, p)
		}
	}
}

// post sends the request of a call from a goroutine of its own.
func (l *sseLink) post(ctx context.Context, k *call, msg []byte) *posting {
	h := l.http.postHeader(l.http.requestHeader(k.opts.Header), k.method, "")
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(l.ctx, cancel)
	p := &posting{cancel: cancel, done: make(chan struct{})}
	end := func() {
		stop()
		cancel()
		close(p.done)
	}
	l.client.goWorkOr(func() {
		defer end()
		p.delivery, p.err = l.deliver(ctx, k, msg, h)
	}, func() {
		defer end()
		p.delivery, p.err = NotDelivered, l.client.Err()
	})
	return p
}

// leave lets the server finish its response to a request that is answered, so
// that the connection can be used again, without anybody waiting.
func (p *posting) leave() {
	select {
	case <-p.done:
	default:
		time.AfterFunc(tailWait, p.cancel)
	}
}

// failed is for a request that was not accepted, unless it is answered all the
// same.
func (p *posting) failed(k *call) (Delivery, error) {
	if k.finished() {
		return Answered, nil
	}
	return p.delivery, p.err
}

// cut is for a call whose stream ended. A request that is still on its way may
// yet learn for certain that it did not arrive.
func (l *sseLink) cut(k *call, p *posting) (Delivery, error) {
	limit := time.AfterFunc(tailWait, p.cancel)
	<-p.done
	limit.Stop()
	if k.finished() {
		return Answered, nil
	}
	return p.delivery, l.err
}

// deliver posts a message, of the call k or, when k is nil, of none.
func (l *sseLink) deliver(ctx context.Context, k *call, msg []byte, h http.Header) (Delivery, error) {
	resp, delivery, err := l.http.do(ctx, http.MethodPost, msg, h)
	switch {
	case err != nil && l.ctx.Err() != nil:
		return delivery, ErrClosed
	case err != nil:
		return delivery, err
	}
	if resp.StatusCode < 300 {
		discard(resp)
		return MaybeDelivered, nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswerError))
	_ = resp.Body.Close()
	return l.refused(k, resp, body)
}

// refused takes in a response with an error status. A JSON-RPC error in its
// body is the answer; otherwise a status below 500 says that the message was
// not taken in, as what is taken in is answered on the stream.
func (l *sseLink) refused(k *call, resp *http.Response, body []byte) (Delivery, error) {
	if l.forgotten(resp.StatusCode, body) {
		l.client.fail(ErrSessionLost)
		return NotDelivered, ErrSessionLost
	}
	f, err := ScanFrame(body)
	if k != nil && err == nil && f.Kind == KindError && (f.ID == "" || l.client.calls.find(f.ID) == k) {
		l.client.receive(f, k)
		return Answered, nil
	}
	he := newHTTPError(resp, body)
	if he.Status < 500 {
		return NotDelivered, he
	}
	return he.delivery(), he
}

// forgotten recognizes a server that does not know the session of an endpoint
// that it named before: by 404, or by 400 with a word about the session, as
// the SDKs' servers answer.
func (l *sseLink) forgotten(status int, body []byte) bool {
	if l.http.peer.Load().Version == "" {
		return false
	}
	return status == http.StatusNotFound ||
		status == http.StatusBadRequest && bytes.Contains(bytes.ToLower(body), []byte("session"))
}

// send posts a notification or an answer.
func (l *sseLink) send(ctx context.Context, method string, msg []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	h := l.http.postHeader(l.http.requestHeader(nil), method, "")
	delivery, err := l.deliver(ctx, nil, msg, h)
	if err == nil || delivery == Answered {
		return nil
	}
	return &CallError{Method: method, Delivery: delivery, Err: err}
}
