package mcpwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// HTTPTransport reaches a server over streamable HTTP.
type HTTPTransport struct {
	// URL is the server's MCP endpoint.
	URL string
	// RoundTripper sends the requests; it carries the credentials.
	// http.DefaultTransport by default. Redirects are followed only within the
	// origin of URL, and only those that keep method and body (307 and 308).
	RoundTripper http.RoundTripper
	// Header is added to every request.
	Header http.Header
	// NoListen leaves out the GET stream on which a server of the stateful era
	// sends what belongs to no call.
	NoListen bool
}

const (
	acceptBoth   = "application/json, text/event-stream"
	contentJSON  = "application/json"
	contentSSE   = "text/event-stream"
	maxErrorBody = 4 << 10
	maxRedirects = 3
	deleteWait   = 3 * time.Second
)

// An httpLink is the client's side of streamable HTTP.
type httpLink struct {
	client   *Client
	rt       http.RoundTripper
	traced   bool // rt calls the hooks of httptrace
	header   http.Header
	noListen bool

	endpoint atomic.Pointer[url.URL] // changes when the server redirects
	session  atomic.Pointer[string]
	peer     atomic.Pointer[Peer]
}

func (t *HTTPTransport) open(_ context.Context, c *Client) (link, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("mcpwire: the URL of an HTTP transport must be absolute and http or https")
	}
	l := &httpLink{client: c, rt: t.RoundTripper, header: http.Header{}, noListen: t.NoListen}
	if l.rt == nil {
		l.rt = http.DefaultTransport
	}
	_, l.traced = l.rt.(*http.Transport)
	for k, v := range t.Header {
		l.header[http.CanonicalHeaderKey(k)] = v
	}
	l.endpoint.Store(u)
	l.session.Store(new(string))
	l.peer.Store(&Peer{})
	return l, nil
}

func (l *httpLink) established(p Peer) {
	l.peer.Store(&p)
	if p.Version == "" {
		l.session.Store(new(string))
	}
}

func (l *httpLink) sessionID() string     { return *l.session.Load() }
func (l *httpLink) queuesMail() bool      { return false }
func (l *httpLink) cancelByMessage() bool { return l.peer.Load().Era == EraStateful }

// close deletes the session, if there is one that the server still knows.
func (l *httpLink) close() error {
	if l.sessionID() == "" || errors.Is(l.client.Err(), ErrSessionLost) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteWait)
	defer cancel()
	resp, _, err := l.do(ctx, http.MethodDelete, nil, l.requestHeader(nil))
	if err != nil {
		return fmt.Errorf("mcpwire: deleting the session: %w", err)
	}
	discard(resp)
	return nil
}

// requestHeader returns the header of a request, which the caller may change.
func (l *httpLink) requestHeader(extra http.Header) http.Header {
	h := make(http.Header, len(l.header)+len(extra)+8)
	for k, v := range l.header {
		h[k] = v
	}
	for k, v := range extra {
		h[http.CanonicalHeaderKey(k)] = v
	}
	if v := l.peer.Load().Version; v != "" {
		h[HeaderVersion] = []string{v}
	}
	if id := l.sessionID(); id != "" {
		h[HeaderSession] = []string{id}
	}
	return h
}

// postHeader adds to a header what a POST of a message carries.
func (l *httpLink) postHeader(h http.Header, method, name string) http.Header {
	h["Content-Type"] = []string{contentJSON}
	h["Accept"] = []string{acceptBoth}
	if l.peer.Load().Era == EraStateless && method != "" {
		h[HeaderMethod] = []string{encodeHeader(method)}
		if name != "" {
			h[HeaderName] = []string{encodeHeader(name)}
		}
	}
	return h
}

// A parcel is the body of a request, which knows whether any of it may have left.
// A request whose body nobody asked for cannot have been processed.
type parcel struct {
	body    []byte
	touched atomic.Bool
}

// attach gives the body to req. A traced request has a body of a type that
// net/http knows, which it then writes together with the header; any other
// http.RoundTripper may not know of traces, so that its body is watched.
func (p *parcel) attach(req *http.Request, traced bool) *http.Request {
	open := func() (io.ReadCloser, error) { return &watchedBody{bytes.NewReader(p.body), p}, nil }
	if traced {
		open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.body)), nil }
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			WroteHeaders: func() { p.touched.Store(true) },
		}))
	}
	req.Body, _ = open()
	req.GetBody = open
	req.ContentLength = int64(len(p.body))
	return req
}

type watchedBody struct {
	*bytes.Reader
	parcel *parcel
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.parcel.touched.Store(true)
	return b.Reader.Read(p)
}

func (b *watchedBody) WriteTo(w io.Writer) (int64, error) {
	b.parcel.touched.Store(true)
	return b.Reader.WriteTo(w)
}

func (b *watchedBody) Close() error { return nil }

// do sends one request and follows redirects. On an error it says how far the
// request got.
func (l *httpLink) do(ctx context.Context, method string, body []byte, h http.Header) (*http.Response, Delivery, error) {
	u := l.endpoint.Load()
	for range maxRedirects + 1 {
		resp, delivery, err := l.roundTrip(ctx, method, u, body, h)
		if err != nil {
			return nil, delivery, err
		}
		if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return resp, Answered, nil
		}
		next, err := u.Parse(resp.Header.Get("Location"))
		discard(resp)
		if err != nil || next.Scheme != u.Scheme || next.Host != u.Host {
			return nil, NotDelivered, errors.New("mcpwire: the server redirects to another origin, which is not followed")
		}
		u = next
		l.endpoint.Store(u)
	}
	return nil, NotDelivered, fmt.Errorf("mcpwire: more than %d redirects", maxRedirects)
}

func (l *httpLink) roundTrip(ctx context.Context, method string, u *url.URL, body []byte, h http.Header) (*http.Response, Delivery, error) {
	sent := parcel{body: body}
	req := (&http.Request{
		Method: method, URL: u, Host: u.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		req = sent.attach(req, l.traced)
	}
	resp, err := l.rt.RoundTrip(req)
	if err == nil {
		return resp, Answered, nil
	}
	if !sent.touched.Load() || NeverConnected(err) {
		return nil, NotDelivered, err
	}
	return nil, MaybeDelivered, err
}

// NeverConnected reports whether there was no connection to send anything on.
func NeverConnected(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns)
}

// discard ends a response whose body is of no interest, in a way that lets the
// connection be used again if little is left of it.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody)
	_ = resp.Body.Close()
}

func newHTTPError(resp *http.Response, body []byte) *HTTPError {
	if len(body) > maxErrorBody {
		body = body[:maxErrorBody]
	}
	e := &HTTPError{Status: resp.StatusCode, Header: resp.Header, Body: body}
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"))
	return e
}

// retryAfter reads a Retry-After header: seconds, or a date.
func retryAfter(v string) time.Duration {
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseUint(strings.TrimSpace(v), 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

func mediaType(h http.Header) string {
	v, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(v))
}
