package mcpwire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// ready starts to listen for what belongs to no call, in the era that has a
// stream for it.
func (l *httpLink) ready() {
	if l.noListen || l.peer.Load().Era != EraStateful {
		return
	}
	asked := make(chan struct{})
	l.client.goWork(func() { l.listen(l.client.ctx, sync.OnceFunc(func() { close(asked) })) })
	wait := time.NewTimer(listenWait)
	defer wait.Stop()
	select {
	case <-asked:
	case <-wait.C:
	}
}

// listenWait is how long a new connection waits for its stream to be open, so
// that nothing the first calls cause is missed. Some servers send no headers
// before the first event.
const listenWait = 200 * time.Millisecond

// listen keeps a GET stream open for as long as the connection lives. A server
// that offers none is left alone. asked is called when the server has answered.
func (l *httpLink) listen(ctx context.Context, asked func()) {
	defer asked()
	var pos streamPosition
	opened := false
	for failures := 0; ; failures++ {
		resp, err := l.get(ctx, pos.last)
		asked()
		var he *HTTPError
		switch {
		case err == nil:
			opened = true
			before := pos.last
			_ = l.readEvents(resp, nil, &pos)
			_ = resp.Body.Close()
			if pos.last != before {
				failures = 0
			}
		case errors.As(err, &he) && he.Status < 500:
			if opened && he.Status == http.StatusNotFound && l.sessionID() != "" {
				l.client.fail(ErrSessionLost)
			}
			return
		}
		if sleep(ctx, pos.delay(failures)) != nil {
			return
		}
	}
}

// get opens an event stream, from after the event last if that is not empty.
func (l *httpLink) get(ctx context.Context, last string) (*http.Response, error) {
	h := l.requestHeader(nil)
	h["Accept"] = []string{contentSSE}
	if last != "" {
		h["Last-Event-Id"] = []string{last}
	}
	resp, _, err := l.do(ctx, http.MethodGet, nil, h)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && mediaType(resp.Header) == contentSSE {
		return resp, nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	_ = resp.Body.Close()
	return nil, newHTTPError(resp, body)
}
