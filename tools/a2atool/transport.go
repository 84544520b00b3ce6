package a2atool

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	dialTimeout    = 10 * time.Second
	idleTimeout    = 90 * time.Second
	maxIdlePerHost = 32
	maxHeaderBytes = 1 << 20
	userAgent      = "toolcrib"
)

// A network sends the requests of one peer. It is safe for concurrent use.
type network struct {
	cfg     *Config
	origin  string            // the only one that is given credentials
	secure  *http.Transport   // for https
	plain   *http.Transport   // for http, to this machine alone
	trusted http.RoundTripper // either of them, within Config.Wrap
}

func newNetwork(cfg *Config, u *url.URL) *network {
	n := &network{cfg: cfg, origin: netguard.Origin(u)}
	n.secure = newTransport(cfg.policy().Control)
	n.plain = newTransport(netguard.LoopbackOnly)
	if cfg.AllowPrivate {
		n.secure.Proxy = http.ProxyFromEnvironment
	}
	n.trusted = roundTripper(n.byScheme)
	if cfg.Wrap != nil {
		n.trusted = cfg.Wrap(n.trusted)
	}
	return n
}

func newTransport(control dialControl) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Control: control}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (n *network) byScheme(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" {
		return n.plain.RoundTrip(req)
	}
	return n.secure.RoundTrip(req)
}

func (n *network) close() {
	n.secure.CloseIdleConnections()
	n.plain.CloseIdleConnections()
}

// client returns the client of calls. It follows no redirect: a message is not
// repeated elsewhere.
func (n *network) client() *http.Client {
	return &http.Client{Transport: n, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// cardClient returns the client that reads cards. It follows a few redirects,
// each of which is held to the same rules.
func (n *network) cardClient() *http.Client {
	return &http.Client{Transport: n, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return errors.New("more than 5 redirects")
		}
		return nil
	}}
}

// RoundTrip sends one request under the rules of the peer, and notes on the
// context's trip what becomes of it.
func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	t := tripFrom(req.Context())
	if err := n.cfg.admits(req.URL); err != nil {
		return nil, &refusedError{err}
	}
	req = req.Clone(httptrace.WithClientTrace(req.Context(), t.trace()))
	req.Header.Set("User-Agent", userAgent)
	via := http.RoundTripper(roundTripper(n.byScheme))
	if netguard.Origin(req.URL) == n.origin {
		via = n.trusted
		if err := n.authorize(req, t); err != nil {
			return nil, &refusedError{err}
		}
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.answered(resp)
	return n.adapt(req, resp, t)
}

func (n *network) authorize(req *http.Request, t *trip) error {
	hidden, err := n.cfg.Auth.Apply(req)
	t.hide(hidden)
	return err
}

// A refusedError says why a request was not sent.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// A trip follows one request on its way. It is safe for concurrent use.
type trip struct {
	mu         sync.Mutex
	wrote      bool
	status     int
	retryAfter time.Duration
	bodyErr    error // why the body could not be read to its end
	hidden     []string
	code       codes.Code // of gRPC
	said       string     // with the code
}

type tripKey struct{}

// withTrip returns a context whose request is followed by the returned trip.
func withTrip(ctx context.Context) (context.Context, *trip) {
	t := &trip{}
	return context.WithValue(ctx, tripKey{}, t), t
}

// tripFrom never returns nil.
func tripFrom(ctx context.Context) *trip {
	if t, ok := ctx.Value(tripKey{}).(*trip); ok {
		return t
	}
	return &trip{}
}

func (t *trip) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{WroteHeaders: t.sent}
}

func (t *trip) sent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrote = true
}

func (t *trip) answered(resp *http.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrote, t.status, t.retryAfter = true, resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"))
}

func (t *trip) broke(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bodyErr = err
}

// failedWith notes the status of a call of gRPC that failed.
func (t *trip) failedWith(err error) {
	if err == nil {
		return
	}
	s := status.Convert(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.code, t.said = s.Code(), s.Message()
}

func (t *trip) hide(values []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hidden = values
}

// known is what a trip has seen.
type known struct {
	status     int
	retryAfter time.Duration
	bodyErr    error
	hidden     []string
	delivery   tools.Delivery
	code       codes.Code
	said       string
}

// known returns what is known now. A request whose headers were not written
// cannot have been acted upon.
func (t *trip) known() known {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := known{status: t.status, retryAfter: t.retryAfter, bodyErr: t.bodyErr, hidden: t.hidden, code: t.code, said: t.said}
	if !t.wrote {
		k.delivery = tools.NotDelivered
	}
	return k
}

// maxRetryAfter bounds what is believed of a Retry-After.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header of either form; 0 is none.
func retryAfter(v string) time.Duration {
	if s, err := strconv.Atoi(v); err == nil && s >= 0 {
		return min(time.Duration(min(s, 1<<20))*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter)
	}
	return 0
}
