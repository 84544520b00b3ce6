package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	exchangeLimit = 30 * time.Second // for one request to an authorization server
	metadataLimit = 1 << 20
	metadataHops  = 3
)

// A network reaches authorization servers. What it asks is named by others, so
// that addresses are judged when they are dialled.
type network struct {
	transport *http.Transport
	meta      *http.Client // for documents, which may be redirected to
	post      *http.Client // for credentials, which may not
	loopback  bool         // plain HTTP is permitted to this machine
	nonces    nonces
}

func newNetwork(policy netguard.Policy) *network {
	dialer := &net.Dialer{Timeout: exchangeLimit, Control: policy.Control}
	n := &network{loopback: permitsPlain(policy), transport: &http.Transport{
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        8,
		IdleConnTimeout:     30 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
	if policy.Private {
		n.transport.Proxy = http.ProxyFromEnvironment // which is in a private network as a rule
	}
	n.post = &http.Client{Transport: n.transport, Timeout: exchangeLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	n.meta = &http.Client{Transport: n.transport, Timeout: exchangeLimit, CheckRedirect: n.checkRedirect}
	return n
}

// policyFor permits the loopback addresses to a service that is on one.
func policyFor(cfg *Config) netguard.Policy {
	u, err := url.Parse(cfg.Resource)
	here := err == nil && netguard.HostKind(u.Hostname()) == "loopback"
	return netguard.Policy{Loopback: here, Private: cfg.AllowPrivate}
}

// permitsPlain reports whether an authorization server on this machine may be
// reached without TLS.
func permitsPlain(policy netguard.Policy) bool { return policy.Loopback || policy.Private }

func (n *network) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > metadataHops {
		return fmt.Errorf("more than %d redirects", metadataHops)
	}
	if req.URL.Scheme != via[0].URL.Scheme {
		return errors.New("a redirect to another scheme")
	}
	return n.check(req.URL.String())
}

// check refuses an address at which no authorization server may be.
func (n *network) check(address string) error { return checkAddress(address, n.loopback) }

// checkAddress refuses anything but HTTPS, unless it is on this machine and that
// is permitted.
func checkAddress(address string, loopback bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%.200q is not an address of an authorization server", address)
	case u.User != nil || strings.Contains(address, "#"):
		return fmt.Errorf("what is at %s is not an address of an authorization server: it holds a user name or a fragment", origin(address))
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && loopback && netguard.HostKind(u.Hostname()) == "loopback":
		return nil
	}
	return fmt.Errorf("%s is not served over HTTPS", origin(address))
}

// client puts the client for token requests on ctx, for package oauth2. With a
// key, each request carries a proof.
func (n *network) client(ctx context.Context, key []byte) (context.Context, error) {
	if len(key) == 0 {
		return context.WithValue(ctx, oauth2.HTTPClient, n.post), nil
	}
	parsed, err := parseProofKey(key)
	if err != nil {
		return nil, err
	}
	proving := *n.post
	proving.Transport = &provingTransport{base: n.transport, key: parsed, nonces: &n.nonces}
	return context.WithValue(ctx, oauth2.HTTPClient, &proving), nil
}

// firstJSON reads the first document that is found at one of the addresses into
// out, and reports false where there is none. What cannot be read for the moment
// is no document that is not there.
func (n *network) firstJSON(ctx context.Context, addresses []string, out any) (bool, error) {
	var failed error
	for _, address := range addresses {
		found, err := n.getJSON(ctx, address, out)
		if te, ok := errors.AsType[*tools.Error](err); found || ok && te.Class == tools.ErrClassPermanent {
			return found, err
		}
		if failed == nil {
			failed = err
		}
	}
	return false, failed
}

// getJSON reads a document into out. It reports false where there is none.
func (n *network) getJSON(ctx context.Context, address string, out any) (bool, error) {
	if err := n.check(address); err != nil {
		return false, refuse("%v", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, refuse("%s is not an address", origin(address))
	}
	req.Header.Set("Accept", "application/json")
	resp, err := n.meta.Do(req)
	if err != nil {
		return false, unreachable("the metadata", address, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, metadataLimit))
	switch {
	case err != nil:
		return false, unreachable("the metadata", address, err)
	case resp.StatusCode >= 500:
		return false, unreachable("the metadata", address, fmt.Errorf("HTTP %d", resp.StatusCode))
	case resp.StatusCode != http.StatusOK || !isJSON(resp.Header):
		return false, nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return false, refuse("the metadata at %s is not the JSON that it should be", origin(address))
	}
	return true, nil
}

// isJSON tells a document from the page that many servers show for any address.
func isJSON(h http.Header) bool {
	mt, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && mt == "application/json"
}
