package mcpwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// SSETransport reaches a server over HTTP+SSE, the transport of revision
// 2024-11-05 that streamable HTTP took the place of. A GET opens a stream of
// events, whose first one names the URL that messages are posted to; every
// answer comes on the stream. When the stream ends, so does the connection.
// It carries revisions of the stateful era alone.
type SSETransport struct {
	// URL is where the stream is opened.
	URL string
	// RoundTripper sends the requests, as that of an [HTTPTransport] does. It
	// must not bound the time until the end of a response.
	RoundTripper http.RoundTripper
	// Header is added to every request.
	Header http.Header
	// EndpointTimeout bounds how long the first event is waited for, 15
	// seconds by default.
	EndpointTimeout time.Duration
}

// ErrNoEndpoint: what answered a GET is no stream of the HTTP+SSE transport,
// which would begin with an endpoint.
var ErrNoEndpoint = errors.New("mcpwire: no endpoint event")

const (
	defaultEndpointWait = 15 * time.Second
	// maxEndpoint bounds the events up to the one that names the endpoint.
	maxEndpoint = 8 << 10
	// maxPreamble is how many events without data may come before it.
	maxPreamble = 16
)

// An sseLink is the client's side of HTTP+SSE.
type sseLink struct {
	client *Client
	http   *httpLink // once the stream is open, its endpoint is that of messages
	stream io.ReadCloser
	events *EventReader

	ctx    context.Context // of the stream; ends with close
	cancel context.CancelFunc
	ended  chan struct{} // closed when the stream has ended
	err    error         // why, valid once ended is closed
}

func (t *SSETransport) open(ctx context.Context, c *Client) (link, error) {
	if v := c.opts.Version; v != "" && EraOf(v) == EraStateless {
		return nil, fmt.Errorf("mcpwire: revision %s is not spoken over HTTP+SSE; %s and older ones are", v, LatestStateful)
	}
	h, err := (&HTTPTransport{URL: t.URL, RoundTripper: t.RoundTripper, Header: t.Header}).open(ctx, c)
	if err != nil {
		return nil, err
	}
	c.sessionsOnly = true
	l := &sseLink{client: c, http: h.(*httpLink), ended: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.openStream(ctx, t.EndpointTimeout); err != nil {
		_ = l.close()
		return nil, &CallError{Method: MethodInitialize, Delivery: NotDelivered, Err: err}
	}
	c.goWork(l.read)
	return l, nil
}

// openStream opens the stream and reads its first event, which ctx and wait
// bound; the stream then lives until close.
func (l *sseLink) openStream(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		wait = defaultEndpointWait
	}
	bounded, stop := context.WithTimeout(ctx, wait)
	defer stop()
	bind := context.AfterFunc(bounded, l.cancel)
	err := l.begin()
	switch {
	case bind():
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w came within %v", ErrNoEndpoint, wait)
}

func (l *sseLink) begin() error {
	resp, err := l.http.get(l.ctx, "")
	var he *HTTPError
	if errors.As(err, &he) && he.Status < 300 {
		return fmt.Errorf("%w: the response is %q and no stream of events", ErrNoEndpoint, boundText([]byte(mediaType(he.Header))))
	}
	if err != nil {
		return err
	}
	l.stream = resp.Body
	l.events = NewEventReader(resp.Body, maxEndpoint)
	endpoint, err := l.readEndpoint()
	if err != nil {
		return err
	}
	l.http.endpoint.Store(endpoint)
	l.events.max = l.client.opts.MaxMessageBytes
	l.events.spill, l.events.above = l.client.spill, l.client.opts.LongBytes
	return nil
}

// readEndpoint takes the endpoint from the first event. Events without data
// that only set the position of the stream may come before it.
func (l *sseLink) readEndpoint() (*url.URL, error) {
	for range maxPreamble {
		ev, err := l.events.Next()
		switch {
		case err == io.EOF:
			return nil, fmt.Errorf("%w before the end of the stream", ErrNoEndpoint)
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrNoEndpoint, err)
		case ev.Name == "endpoint":
			return sameOrigin(l.http.endpoint.Load(), string(ev.Data))
		case len(ev.Data) > 0:
			return nil, fmt.Errorf("%w: the stream begins with an event %q", ErrNoEndpoint, boundText([]byte(ev.Name)))
		}
	}
	return nil, fmt.Errorf("%w among the first %d", ErrNoEndpoint, maxPreamble)
}

// sameOrigin resolves what an endpoint event says against the URL of its
// stream. Messages carry the credentials of that URL, so they go nowhere else.
// The endpoint may hold a session id and is not quoted.
func sameOrigin(base *url.URL, ref string) (*url.URL, error) {
	ref = strings.TrimSpace(ref)
	u, err := base.Parse(ref)
	if err != nil || ref == "" {
		return nil, errors.New("mcpwire: the endpoint event holds no URL")
	}
	if u.Scheme != base.Scheme || authority(u) != authority(base) {
		return nil, errors.New("mcpwire: the endpoint event names another origin, to which nothing is sent")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// authority is the host of an http or https URL with its port.
func authority(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// read takes in what comes on the stream, and ends the connection with it.
func (l *sseLink) read() {
	err := l.readEvents()
	l.events.Release()
	_ = l.stream.Close()
	switch {
	case l.ctx.Err() != nil || err == io.EOF:
		err = ErrClosed
	default:
		err = &closedError{err}
	}
	l.err = err
	l.client.fail(err)
	close(l.ended)
}

func (l *sseLink) readEvents() error {
	for {
		ev, err := l.events.Next()
		switch {
		case errors.Is(err, ErrTooLarge):
			id, err := l.events.skipEvent()
			if err != nil {
				return err
			}
			l.client.overlong(id)
		case err != nil:
			return err
		default:
			l.client.receiveEvent(&ev, nil)
		}
	}
}

func (l *sseLink) ready()                {}
func (l *sseLink) established(p Peer)    { l.http.established(p) }
func (l *sseLink) cancelByMessage() bool { return true }
func (l *sseLink) queuesMail() bool      { return true }
func (l *sseLink) sessionID() string     { return "" }

// close ends the stream, by which the server knows that the session is over.
func (l *sseLink) close() error {
	l.cancel()
	if l.stream != nil {
		_ = l.stream.Close()
	}
	return nil
}
