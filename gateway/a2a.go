package gateway

import (
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/a2atool"
)

const kindA2A = "a2a"

// sourceName is the name, or the host and path of the agent.
func (p A2APeer) sourceName() string {
	if p.Name != "" {
		return p.Name
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return ""
	}
	return u.Host + strings.TrimSuffix(u.EscapedPath(), "/")
}

func (s *specs) a2aPeer(p *A2APeer, at string) {
	cfg := a2atool.Config{
		Name:                  p.Name,
		URL:                   p.URL,
		TrustTier:             p.TrustTier,
		Latency:               time.Duration(p.LatencyTierMS) * time.Millisecond,
		CardTTL:               time.Duration(p.AgentCardTTL),
		AllowInsecureLoopback: p.AllowInsecureLoopback,
		AllowPrivate:          p.AllowPrivate,
		MaxResponseBytes:      s.cfg.Limits.MaxMessageBytes,
		Policy:                p.Policy.toolPolicy(),
		ToolPolicies:          toolPolicies(p.ToolPolicies),
	}
	settings := a2aSettings{A2APeer: *p}
	if p.Auth != nil {
		settings.secret = s.secret(p.Auth.Secret, at+".auth.secret")
		cfg.Auth = s.auth(p.Auth)
	}
	if _, err := a2atool.New(cfg); err != nil {
		s.faults = append(s.faults, s.cfg.faultAt(at, err.Error(), ""))
		return
	}
	s.list = append(s.list, sourceSpec{name: p.sourceName(), kind: kindA2A, at: at, settings: settings, health: a2aHealth, loading: p.LoadingMode,
		prefixes: p.prefixes(), unmatched: p.unmatched,
		open: func(log *slog.Logger) (tools.ToolProvider, error) {
			own := cfg
			own.Logger = log
			return a2atool.New(own)
		}})
}

// a2aSettings is what an agent's source is made from, with its reference
// resolved.
type a2aSettings struct {
	A2APeer
	secret string
}

// a2aHealth says why the card of an agent that had been reached cannot be read
// now.
func a2aHealth(p tools.ToolProvider) string {
	if peer, ok := p.(*a2atool.Peer); ok {
		return peer.Status().LastError
	}
	return ""
}
