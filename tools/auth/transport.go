package auth

import (
	"bytes"
	"io"
	"net/http"
	"net/url"

	"github.com/toolcrib/toolcrib/internal/netguard"
)

const (
	// maxAnswers bounds how often one request is sent again: once for want of a
	// token, and once because its scopes did not suffice.
	maxAnswers = 2
	// maxNonces bounds how often it is sent again for the nonce of its proof.
	maxNonces = 2
	// maxRefusal bounds what is kept of the body of a refusal.
	maxRefusal = 64 << 10
)

// Transport returns the http.RoundTripper by which a driver reaches the service.
// It is an io.Closer that closes the idle connections of base. A nil base is a
// transport of its own.
func (u *Upstream) Transport(base http.RoundTripper) http.RoundTripper {
	t := &transport{upstream: u, base: base, origin: originOf(u.cfg.Resource)}
	if t.base == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConns, own.MaxIdleConnsPerHost = 128, 128
		own.DisableCompression = true
		t.base = own
	}
	return t
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return netguard.Origin(u)
}

type transport struct {
	upstream *Upstream
	base     http.RoundTripper
	origin   string
}

// Close implements io.Closer.
func (t *transport) Close() error {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	return nil
}

// RoundTrip implements http.RoundTripper. A request to another origin than that
// of the service goes out as it is, without a token, and its answer comes back
// as it is.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if netguard.Origin(req.URL) != t.origin {
		return t.base.RoundTrip(req)
	}
	ctx := req.Context()
	key, err := t.upstream.keyFor(ctx)
	if err != nil {
		return nil, refused(req, err)
	}
	for answers, nonces, resent := 0, 0, false; ; resent = true {
		token, err := t.upstream.token(ctx, key)
		if err != nil {
			return nil, refused(req, err)
		}
		next, again, err := t.upstream.withToken(req, token, resent)
		if err != nil {
			return nil, refused(req, err)
		}
		resp, err := t.base.RoundTrip(next)
		if err != nil {
			return nil, err
		}
		fresh := t.upstream.net.nonces.heard(req.URL, resp)
		c, challenged := challengeOf(resp)
		if !challenged || !again || answers >= maxAnswers {
			return resp, nil
		}
		setAside(resp)
		if c.nonce && fresh && nonces < maxNonces {
			nonces++
			continue
		}
		answers++
		if again, err = t.upstream.answer(ctx, key, token, c); err != nil {
			return nil, refused(nil, err)
		}
		if !again {
			return resp, nil
		}
	}
}

// refused closes the body of a request that is not sent, as a RoundTripper must.
func refused(req *http.Request, err error) error {
	if req != nil && req.Body != nil {
		_ = req.Body.Close()
	}
	return err
}

// withToken returns the request as it is sent: with the token, if there is one,
// and with a new body if the first is used up. It reports whether the request
// could be sent once more after that.
func (u *Upstream) withToken(req *http.Request, token *Token, resent bool) (next *http.Request, again bool, err error) {
	next = req.Clone(req.Context())
	again = req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
	if resent && req.GetBody != nil {
		if next.Body, err = req.GetBody(); err != nil {
			return nil, false, err
		}
	}
	if token == nil {
		return next, again, nil
	}
	u.sent.note(token.AccessToken)
	switch {
	case token.proving():
		err = u.prove(next, token)
	default:
		next.Header.Set("Authorization", "Bearer "+token.AccessToken)
	}
	return next, again, err
}

// prove adds a token that is bound to its key.
func (u *Upstream) prove(req *http.Request, token *Token) error {
	key, err := parseProofKey(token.Server.ProofKey)
	if err != nil {
		return err
	}
	proof, err := key.proof(req.Method, req.URL, token.AccessToken, u.net.nonces.of(req.URL))
	if err != nil {
		return refuse("the proof cannot be signed")
	}
	req.Header.Set("Authorization", proofHeader+" "+token.AccessToken)
	req.Header.Set(proofHeader, proof)
	return nil
}

// setAside keeps the beginning of a refusal's body, so that its connection is
// free and the refusal can still be returned.
func setAside(resp *http.Response) {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
}
