package httptool

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
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/tools"
)

// DefaultMaxResponseBytes bounds an answer unless Network says otherwise.
const DefaultMaxResponseBytes = 64 << 20

// Network says how a source reaches its endpoints. The zero value reaches the
// public internet.
type Network struct {
	// AllowPrivate lets the source call loopback and private addresses, and
	// makes it use the proxy that the environment names. A link-local address,
	// at which clouds keep credentials, is called only where the configuration
	// itself names it: as the server, as where the document is, or in the
	// url_template of a manifest.
	// Otherwise such an address is refused when it is dialled, whatever name
	// stood for it, and no proxy is used, since behind one the addresses
	// could not be told.
	AllowPrivate bool
	// MaxResponseBytes bounds an answer in memory, after decompression; 0 means
	// DefaultMaxResponseBytes. A longer answer is an error that says so, and
	// is never cut.
	MaxResponseBytes int64
	// OffloadBytes is the size above which an answer is streamed to where the
	// caller keeps large results, if it keeps any: 0 means tools.OffloadBytes,
	// a negative number never. Such an answer is bounded by what the caller may
	// keep, and not checked against an output schema.
	OffloadBytes int64
	// Wrap, when not nil, surrounds the transport: for credentials that are
	// more than a fixed secret, for instance. What it returns sees only
	// requests to the origin of the call, and no redirect to another one. It
	// may ignore base; then the address guard is its own concern.
	Wrap func(base http.RoundTripper) http.RoundTripper
}

const (
	dialTimeout    = 10 * time.Second
	idleTimeout    = 90 * time.Second
	maxIdlePerHost = 32
	maxHeaderBytes = 1 << 20
	maxRedirects   = 5
	drainBytes     = 4 << 10
	userAgent      = "toolcrib"
)

// A caller sends requests. It is safe for concurrent use.
type caller struct {
	transport *http.Transport
	trusted   http.RoundTripper // with the credentials of Network.Wrap
	limit     int64
	offload   int64 // Network.OffloadBytes
	masks     masks
	private   bool  // Network.AllowPrivate
	named     named // link-local addresses that may be called all the same
}

func newCaller(n Network) *caller {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	c := &caller{transport: t, trusted: t, limit: n.MaxResponseBytes, private: n.AllowPrivate}
	dialer.Control = c.guard
	if n.AllowPrivate {
		t.Proxy = http.ProxyFromEnvironment
	}
	if c.limit <= 0 {
		c.limit = DefaultMaxResponseBytes
	}
	if c.offload = n.OffloadBytes; c.offload == 0 {
		c.offload = tools.OffloadBytes
	}
	if n.Wrap != nil {
		c.trusted = n.Wrap(t)
	}
	return c
}

func (c *caller) close() { c.transport.CloseIdleConnections() }

// An outgoing request of a tool.
type outgoing struct {
	label  string // names the operation in errors: method and path template
	method string
	url    *url.URL
	header http.Header
	body   []byte
	auth   credentials
	hidden []string // values that no error may show
	masks  *masks
	bare   bool // goes without the credentials of Network.Wrap
	acted  bool // a request of the call was answered as done, and the answer is fetched elsewhere
}

// A trip follows one request on its way.
type trip struct{ wrote atomic.Bool }

func (t *trip) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{WroteHeaders: func() { t.wrote.Store(true) }}
}

// delivery says what is known when no answer came: a request whose headers
// were not written cannot have been acted upon, unless the one before it was.
func (t *trip) delivery(out *outgoing) tools.Delivery {
	if t.wrote.Load() || out.acted {
		return tools.DeliveryUnknown
	}
	return tools.NotDelivered
}

// call sends a request and turns the answer into a result.
func (c *caller) call(ctx context.Context, out *outgoing) (tools.ToolResult, error) {
	resp, err := c.send(ctx, out)
	if err != nil {
		return tools.ToolResult{}, err
	}
	defer resp.Body.Close()
	return c.answer(ctx, out, resp)
}

// send makes the request and follows redirects. To the origin that was asked
// for it goes with its headers and credentials; to another one goes a bare GET.
func (c *caller) send(ctx context.Context, out *outgoing) (*http.Response, error) {
	req, err := c.first(ctx, out)
	if err != nil {
		return nil, refuse(out.label, err)
	}
	trusted := !out.bare
	for hop := 0; ; hop++ {
		resp, err := c.trip(req, out, trusted)
		if err != nil {
			return nil, err
		}
		location := redirect(resp)
		if location == nil {
			return resp, nil
		}
		discard(resp)
		if hop == maxRedirects {
			return nil, rejected(out, resp.StatusCode, fmt.Sprintf("more than %d redirects", maxRedirects))
		}
		if err := c.checkLinkLocal(location); err != nil {
			return nil, rejected(out, resp.StatusCode, "redirected: "+err.Error())
		}
		trusted = trusted && netguard.Origin(location) == netguard.Origin(req.URL)
		out.acted = out.acted || resp.StatusCode <= 303 && !safeMethod(req.Method)
		if req, err = follow(req, out, resp.StatusCode, location, trusted); err != nil {
			return nil, rejected(out, resp.StatusCode, err.Error())
		}
	}
}

func (c *caller) first(ctx context.Context, out *outgoing) (*http.Request, error) {
	req := newRequest(ctx, out.method, out.url, out.body)
	req.Header = out.header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("User-Agent", userAgent)
	if key := tools.CallFrom(ctx); key != nil && key.IdempotencyKey != "" && !safeMethod(out.method) {
		if !httpguts.ValidHeaderFieldValue(key.IdempotencyKey) {
			return nil, errors.New("the idempotency key holds control characters")
		}
		req.Header.Set("Idempotency-Key", key.IdempotencyKey)
	}
	out.masks = &c.masks
	hidden, err := out.auth.apply(req)
	if err != nil {
		return nil, err
	}
	out.hidden = append(out.hidden, hidden...)
	return req, nil
}

func newRequest(ctx context.Context, method string, u *url.URL, body []byte) *http.Request {
	target := *u
	req := (&http.Request{
		Method: method, URL: &target, Host: target.Host, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return req
}

func safeMethod(m string) bool {
	return m == http.MethodGet || m == http.MethodHead || m == http.MethodOptions || m == http.MethodTrace || m == "QUERY"
}

func (c *caller) trip(req *http.Request, out *outgoing, trusted bool) (*http.Response, error) {
	var t trip
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), t.trace()))
	via := c.trusted
	if !trusted {
		via = c.transport
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return nil, failure(req, out, err, &t)
	}
	return resp, nil
}

// redirect returns where an answer sends the caller, or nil.
func redirect(resp *http.Response) *url.URL {
	switch resp.StatusCode {
	case 301, 302, 303, 307, 308:
	default:
		return nil
	}
	location, err := resp.Location()
	if err != nil {
		return nil
	}
	location.User, location.Fragment = nil, ""
	return location
}

// follow makes the request that a redirect asks for.
func follow(prev *http.Request, out *outgoing, status int, to *url.URL, trusted bool) (*http.Request, error) {
	if to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return nil, errors.New("redirected to something that is not HTTP")
	}
	method, body := prev.Method, out.body
	if !safeMethod(method) && status <= 303 {
		method, body = http.MethodGet, nil
	}
	if !safeMethod(method) && !trusted {
		return nil, fmt.Errorf("redirected to another origin, %s, to which a %s is not repeated", netguard.Origin(to), method)
	}
	if !trusted {
		body = nil
	}
	next := newRequest(prev.Context(), method, to, body)
	if !trusted {
		next.Header.Set("User-Agent", userAgent)
		next.Header.Set("Accept", prev.Header.Get("Accept"))
		return next, nil
	}
	next.Header = prev.Header.Clone()
	if body == nil {
		next.Header.Del("Content-Type")
	}
	return next, out.reapply(next)
}

// reapply adds the credentials of the query, which a redirect's URL lacks.
func (o *outgoing) reapply(req *http.Request) error {
	for _, a := range o.auth {
		if a.Query == "" || req.URL.Query().Has(a.Query) {
			continue
		}
		if _, err := a.Apply(req); err != nil {
			return err
		}
	}
	return nil
}

func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	_ = resp.Body.Close()
}
