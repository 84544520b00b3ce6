package mcpwire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Connect opens a transport and performs the handshake, which ctx bounds. The
// connection then lives until Close, or until the server ends it.
func Connect(ctx context.Context, t Transport, opts *ClientOptions) (*Client, error) {
	if opts != nil && opts.Version != "" && !knownVersion(opts.Version) {
		return nil, fmt.Errorf("mcpwire: protocol version %q is unknown; known are %v", opts.Version, Versions())
	}
	c, err := openClient(ctx, t, opts)
	if err != nil {
		return nil, err
	}
	err = c.handshake(ctx)
	if err == nil {
		c.link.ready()
		return c, nil
	}
	reopen := c.opts.Version == "" && errors.Is(err, errDiedOnProbe)
	_ = c.Close()
	if !reopen || ctx.Err() != nil {
		return nil, err
	}
	// Some servers end when the first request is none they know.
	if c, err = openClient(ctx, t, opts); err != nil {
		return nil, err
	}
	if err := c.initialize(ctx, LatestStateful); err != nil {
		_ = c.Close()
		return nil, err
	}
	c.link.ready()
	return c, nil
}

var errDiedOnProbe = errors.New("mcpwire: the server ended on server/discover")

func openClient(ctx context.Context, t Transport, opts *ClientOptions) (*Client, error) {
	c := newClient(opts)
	l, err := t.open(ctx, c)
	if err != nil {
		c.fail(err)
		c.work.Wait()
		return nil, err
	}
	c.link = l
	return c, nil
}

func (c *Client) handshake(ctx context.Context) error {
	switch {
	case c.opts.Version == "" && c.sessionsOnly:
		return c.initialize(ctx, LatestStateful)
	case c.opts.Version == "":
		return c.negotiate(ctx)
	case EraOf(c.opts.Version) == EraStateful:
		return c.initialize(ctx, c.opts.Version)
	}
	return c.discover(ctx, c.opts.Version)
}

// negotiate tries the stateless era, then the stateful one.
func (c *Client) negotiate(ctx context.Context) error {
	probe, cancel := context.WithTimeout(ctx, c.opts.ProbeTimeout)
	defer cancel()
	err := c.discover(probe, LatestStateless)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case c.ctx.Err() != nil:
		return errors.Join(errDiedOnProbe, err)
	case !isRefusal(err) && probe.Err() == nil:
		return err
	}
	return c.initialize(ctx, LatestStateful)
}

// isRefusal reports whether a failed server/discover may come from a server of
// the stateful era, which answers it with some error or other. A server that
// cannot be reached, or that wants credentials, is not one.
func isRefusal(err error) bool {
	var he *HTTPError
	if errors.As(err, &he) {
		switch he.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return false
		}
		return true
	}
	var je *Error
	return errors.As(err, &je) || errors.Is(err, errNoCommonVersion) || errors.Is(err, ErrNoAnswer)
}

var errNoCommonVersion = errors.New("mcpwire: no protocol version in common")

// discover asks what the server is, in the stateless era. A server that names
// the versions it speaks is asked once more with one of them.
func (c *Client) discover(ctx context.Context, version string) error {
	raw, err := c.discoverOnce(ctx, version)
	var je *Error
	if errors.As(err, &je) && je.Code == CodeUnsupportedVersion {
		supported, _ := rawjson.Get(je.Data, "supported")
		if common := commonStateless(supported); common != "" {
			version = common
			raw, err = c.discoverOnce(ctx, version)
		}
	}
	if err != nil {
		return err
	}
	versions, _ := rawjson.Get(raw, "supportedVersions")
	common := commonStateless(versions)
	if common == "" {
		return fmt.Errorf("%w: the server speaks %s", errNoCommonVersion, boundText(versions))
	}
	c.accept(Peer{Version: common, Era: EraStateless}, raw)
	return nil
}

func (c *Client) discoverOnce(ctx context.Context, version string) (json.RawMessage, error) {
	as := Peer{Version: version, Era: EraStateless}
	c.link.established(as)
	return c.callAs(ctx, MethodDiscover, nil, &CallOptions{}, as)
}

// commonStateless returns the newest stateless revision in a JSON array of
// revisions that this package speaks too, or "".
func commonStateless(raw json.RawMessage) string {
	var theirs []string
	if json.Unmarshal(raw, &theirs) != nil {
		return ""
	}
	for _, v := range Versions() {
		if EraOf(v) == EraStateless && slices.Contains(theirs, v) {
			return v
		}
	}
	return ""
}

// initialize opens a session in the stateful era.
func (c *Client) initialize(ctx context.Context, version string) error {
	asked, _ := json.Marshal(version)
	params := slices.Concat([]byte(`{"protocolVersion":`), asked,
		[]byte(`,"capabilities":`), c.opts.Capabilities, []byte(`,"clientInfo":`), c.opts.Info, []byte(`}`))
	c.link.established(Peer{})
	raw, err := c.callAs(ctx, MethodInitialize, params, &CallOptions{}, Peer{})
	if err != nil {
		return err
	}
	answer, _ := rawjson.Get(raw, "protocolVersion")
	got, _ := rawjson.Unquote(answer)
	if !knownVersion(got) || EraOf(got) != EraStateful {
		return fmt.Errorf("%w: the server answered initialize with %s", errNoCommonVersion, boundText(answer))
	}
	if c.opts.Version != "" && got != version {
		return fmt.Errorf("%w: %s was asked for and the server answered %s", errNoCommonVersion, version, got)
	}
	c.accept(Peer{Version: got, Era: EraStateful}, raw)
	return c.Notify(ctx, NotifyInitialized, nil)
}

// accept keeps what the server said of itself.
func (c *Client) accept(p Peer, raw json.RawMessage) {
	p.Raw = raw
	p.Capabilities, _ = rawjson.Get(raw, "capabilities")
	p.Info, _ = rawjson.Get(raw, "serverInfo")
	if p.Info == nil {
		p.Info, _ = rawjson.Get(raw, "_meta", MetaServerInfo)
	}
	instructions, _ := rawjson.Get(raw, "instructions")
	p.Instructions, _ = rawjson.Unquote(instructions)
	c.server.Store(&p)
	c.link.established(p)
}

func boundText(raw json.RawMessage) string {
	if len(raw) > 128 {
		return string(raw[:128]) + "…"
	}
	if len(raw) == 0 {
		return "nothing"
	}
	return string(raw)
}
