package a2atool

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/tools"
)

// The defaults of a Config.
const (
	DefaultCardTTL          = 10 * time.Minute
	DefaultMaxResponseBytes = 64 << 20
)

// shortestCardTTL bounds how often a card is read.
const shortestCardTTL = time.Second

// Config describes one agent.
type Config struct {
	// Name identifies the agent in tool names, logs and errors: 1 to 64
	// characters of A–Z, a–z, 0–9, underscore, dot and dash. Empty takes the
	// name that the agent's card gives when it is first read.
	Name string
	// URL is where the agent is: the URL of its card when the path ends with
	// ".json", and otherwise the folder below which the card stands at
	// .well-known/agent-card.json.
	URL string
	// TrustTier is how far the operator trusts the agent, from 1, trusted most,
	// to 5, or 0 when nothing was said. It becomes a tag of every tool.
	TrustTier int
	// Latency is how long a call usually takes, as a hint for planners.
	Latency time.Duration
	// CardTTL is how long a card is taken for true before it is read again. 0
	// means DefaultCardTTL; a negative value reads it once.
	CardTTL time.Duration

	// AllowInsecureLoopback allows plain HTTP to this machine, and no other
	// address by it.
	AllowInsecureLoopback bool
	// AllowPrivate allows private, link-local and loopback addresses, over
	// TLS, and makes the peer use the proxy that the environment names.
	AllowPrivate bool
	// Auth is the credential, or nil.
	Auth *Auth
	// Wrap, when not nil, surrounds the transport of requests to the origin of
	// URL: for credentials that are more than a fixed secret, for instance. It
	// may ignore base; then the guard of addresses is its own concern. It is
	// not used for gRPC.
	Wrap func(base http.RoundTripper) http.RoundTripper
	// MaxResponseBytes bounds one answer, a whole stream included, after
	// decompression. 0 means DefaultMaxResponseBytes.
	MaxResponseBytes int64

	// Policy is the reliability shell of every tool.
	Policy tools.ToolPolicy
	// ToolPolicies replaces Policy for single skills, by their ids.
	ToolPolicies map[string]tools.ToolPolicy
	// Options are laid over every tool, last.
	Options []tools.DescriptorOption
	// Logger hears of the card's life. Nil is silent.
	Logger *slog.Logger
}

const maxAgentName = 64

// resolved returns a copy of c with its defaults and the parsed URL, or
// everything that is wrong with it.
func (c Config) resolved() (Config, *url.URL, error) {
	c.ToolPolicies = maps.Clone(c.ToolPolicies)
	if c.CardTTL == 0 {
		c.CardTTL = DefaultCardTTL
	}
	if c.CardTTL > 0 {
		c.CardTTL = max(c.CardTTL, shortestCardTTL)
	}
	if c.MaxResponseBytes <= 0 {
		c.MaxResponseBytes = DefaultMaxResponseBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	u, err := c.parseURL()
	return c, u, errors.Join(c.checkName(), err, c.checkTier(), c.checkAuth())
}

func (c *Config) checkName() error {
	if c.Name == "" || len(c.Name) <= maxAgentName && tools.CheckName(c.Name) == nil {
		return nil
	}
	return fmt.Errorf("a2atool: name %q: expected 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'", bound(c.Name, 80))
}

func (c *Config) checkTier() error {
	if c.TrustTier >= 0 && c.TrustTier <= 5 {
		return nil
	}
	return fmt.Errorf("a2atool: trust tier %d: expected 1 to 5", c.TrustTier)
}

func (c *Config) checkAuth() error {
	if err := c.Auth.Check(); err != nil {
		return fmt.Errorf("a2atool: %w", err)
	}
	return nil
}

// parseURL never quotes the URL, which may hold a secret.
func (c *Config) parseURL() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("a2atool: url: expected an absolute https URL")
	}
	if u.User != nil {
		return nil, errors.New("a2atool: url: it holds a user name or password: give credentials by auth")
	}
	if err := c.admits(u); err != nil {
		return nil, fmt.Errorf("a2atool: url: %w", err)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.Fragment = ""
	return u, nil
}

// admits says why a URL can never be called, or nil. The guard of the dialler
// judges what names come to.
func (c *Config) admits(u *url.URL) error {
	kind := netguard.HostKind(u.Hostname())
	switch u.Scheme {
	case "https":
		if err := c.policy().Host(u.Hostname()); err != nil {
			return fmt.Errorf("the host %w: set allow_private to call it", err)
		}
		return nil
	case "http":
		switch {
		case kind != "loopback":
			return fmt.Errorf("plain http to %s is refused: use https", bound(u.Hostname(), 80))
		case !c.AllowInsecureLoopback:
			return errors.New("plain http is refused: use https, or set allow_insecure_loopback for an agent on this machine")
		}
		return nil
	}
	return fmt.Errorf("the scheme %q: expected https", bound(u.Scheme, 20))
}

// policy is what may be dialled over TLS.
func (c *Config) policy() netguard.Policy {
	return netguard.Policy{Loopback: c.AllowInsecureLoopback, Private: c.AllowPrivate}
}

// sourceID is "a2a:" and the name, or host and path where there is no name.
func (c *Config) sourceID(u *url.URL) tools.ToolSourceID {
	if c.Name != "" {
		return tools.ToolSourceID("a2a:" + c.Name)
	}
	return tools.ToolSourceID("a2a:" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"))
}

// bound cuts foreign text to at most n bytes.
func bound(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
