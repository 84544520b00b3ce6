package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/auth"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// newBroker returns what keeps the tokens of the gateway. Lists are read, and
// resources watched, in the name of the local caller.
func (g *Gateway) newBroker() *auth.Broker {
	return auth.NewBroker(&auth.Options{
		RedirectURL: g.redirectURL,
		Self:        identity.Identity{TenantID: localName, UserID: localName, SessionID: localName},
		Operates:    operates,
		Authorized:  g.authorized,
		Logger:      g.log,
	})
}

// ServedAt says at which address the Handler is reached, such as
// "http://127.0.0.1:7711", for the browsers of people who authorize a source.
// Without it, that is Config.Listen.
func (g *Gateway) ServedAt(address string) {
	fixed := func() string { return address }
	g.address.Store(&fixed)
}

// ServeBrowsers lets those browsers reach the gateway at a port of this machine
// that is opened when one is needed, for a program that does not serve the
// Handler. Close ends it.
func (g *Gateway) ServeBrowsers() {
	opened := sync.OnceValue(g.openBrowsers)
	g.address.Store(&opened)
}

func (g *Gateway) openBrowsers() string {
	if g.life.Err() != nil {
		return ""
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.log.Warn("no browser can come back here", "error", err)
		return ""
	}
	mux := http.NewServeMux()
	mux.Handle("/oauth/", g.oauthPages())
	server := &http.Server{Handler: g.guard(mux), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(g.life, func() { _ = server.Close() })
	g.retiring.Go(func() { _ = server.Serve(listener) })
	return "http://" + listener.Addr().String()
}

// redirectURL is where browsers come back to; empty when nobody serves them.
func (g *Gateway) redirectURL() string {
	if address := g.address.Load(); address != nil {
		if at := (*address)(); at != "" {
			return strings.TrimSuffix(at, "/") + auth.CallbackPath
		}
		return ""
	}
	if g.opened.Listen == "" || strings.HasSuffix(g.opened.Listen, ":0") {
		return ""
	}
	u := url.URL{Scheme: "http", Host: g.opened.Listen, Path: auth.CallbackPath}
	return u.String()
}

// authorized lets a source try again at once that a person has authorized.
func (g *Gateway) authorized(name string) {
	for _, s := range g.running() {
		if s.spec.name == name {
			s.poke()
		}
	}
}

// oauthPages serves the browsers of people who authorize: of the local caller, unless
// a program has said that a request is from another.
func (g *Gateway) oauthPages() http.Handler {
	pages := g.opts.broker.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, named := identity.From(r.Context()); !named {
			r = r.WithContext(g.local(r.Context(), localName))
		}
		pages.ServeHTTP(w, r)
	})
}

// authorizationURL is where the caller on ctx can authorize a source that waits
// for it, or empty.
func (s *source) authorizationURL(ctx context.Context) string {
	if s.spec.upstream == nil {
		return ""
	}
	return s.spec.upstream.AuthorizationURL(ctx)
}

// oauthSettings is what the tokens of a server depend on, with references
// resolved.
type oauthSettings struct {
	server   ServerOAuth
	provider OAuthProvider
	secrets  [5]string
}

// mcpSettings is what an MCP server that wants tokens is made from.
type mcpSettings struct {
	mcptool.Config
	oauth oauthSettings
}

// oauth describes the tokens of an MCP server to the broker. It returns nil when
// the configuration has a fault.
func (s *specs) oauth(m *MCPServer, at string) (*auth.Upstream, oauthSettings) {
	p := s.cfg.Tools.oauthProvider(m.OAuth.Provider)
	r := &references{specs: s, at: s.providerPath(m.OAuth.Provider, at)}
	cfg := &auth.Config{
		Source:            m.Name,
		Resource:          m.URL,
		Binding:           auth.Binding(m.OAuth.BindingScope),
		Grant:             auth.Grant(p.Grant),
		Issuer:            p.Issuer,
		ClientMetadataURL: p.MetadataURL,
		Scopes:            p.Scopes,
		AuthURL:           p.AuthURL,
		TokenURL:          p.TokenURL,
		RedirectURL:       p.RedirectURL,
		Extra:             p.Extra,
		AllowPrivate:      p.AllowPrivate,
	}
	cfg.Client = auth.Client{ID: r.variable("client_id_env", p.ClientIDEnv), Secret: r.variable("client_secret_env", p.ClientSecretEnv), Method: p.AuthMethod}
	cfg.Client.Key = r.signingKey(p)
	cfg.Assertion = r.reread("assertion", p.Assertion)
	if idp := p.IdentityProvider; idp != nil {
		cfg.Identity = &auth.IdentityProvider{TokenURL: idp.TokenURL, Subject: r.reread("identity_provider.identity_token", idp.IdentityToken),
			Client: auth.Client{ID: r.variable("identity_provider.client_id_env", idp.ClientIDEnv),
				Secret: r.variable("identity_provider.client_secret_env", idp.ClientSecretEnv)}}
	}
	broker := s.opts.broker
	if broker == nil { // the configuration is only checked
		broker = auth.NewBroker(nil)
	}
	upstream, err := broker.Upstream(cfg)
	if err != nil && !r.failed {
		s.faults = append(s.faults, r.fault(err, at+".oauth"))
	}
	return upstream, oauthSettings{*m.OAuth, *p, r.values}
}

// references reads the secrets of a provider, and notes the faults.
type references struct {
	*specs
	at     string
	n      int
	values [5]string // in the order in which they were asked for
	failed bool
}

// fault is what is wrong with the tokens of the server at a place: in the
// provider, where the error names a part of it.
func (r *references) fault(err error, server string) *ConfigError {
	if field, ok := errors.AsType[*auth.FieldError](err); ok {
		return r.cfg.faultAt(join(r.at, field.Field), field.Problem, "")
	}
	return r.cfg.faultAt(server, err.Error(), "")
}

// variable returns the value of an environment variable, empty without a name.
func (r *references) variable(key, name string) string {
	if name == "" {
		r.n++
		return ""
	}
	return r.value(key, "${"+name+"}")
}

func (r *references) value(key, text string) string {
	before := len(r.faults)
	value := r.secret(text, r.at+"."+key)
	r.failed = r.failed || len(r.faults) > before
	r.values[r.n] = value
	r.n++
	return value
}

func (r *references) signingKey(p *OAuthProvider) *auth.SigningKey {
	if p.PrivateKey == "" {
		r.n++
		return nil
	}
	text := r.value("private_key", p.PrivateKey)
	if r.failed {
		return nil
	}
	key, err := auth.ParseSigningKey(text, p.SigningAlgorithm, p.KeyID)
	if err != nil {
		r.faults = append(r.faults, r.cfg.faultAt(r.at+".private_key", err.Error(), ""))
		r.failed = true
	}
	return key
}

// reread returns a secret that is read again for each use, as a platform replaces
// it from time to time. It must be there at the start.
func (r *references) reread(key, text string) auth.Secret {
	if text == "" {
		return nil
	}
	before := len(r.faults)
	r.secret(text, r.at+"."+key)
	r.failed = r.failed || len(r.faults) > before
	resolver := r.resolver
	return func(context.Context) (string, error) { return resolver.resolve(text) }
}

// providerPath is the place of a provider in the configuration; of none, that of
// the server that has none.
func (s *specs) providerPath(name, at string) string {
	for i, p := range s.cfg.Tools.OAuthProviders {
		if p.Name == name && name != "" {
			return "tools.oauth_providers" + fmt.Sprintf("[%d]", i)
		}
	}
	return at + ".oauth"
}

// withTokens completes the specification of a server that wants tokens.
func (spec *sourceSpec) withTokens(cfg mcptool.Config, upstream *auth.Upstream, settings oauthSettings) {
	spec.upstream, spec.settings = upstream, mcpSettings{cfg, settings}
	spec.open = func(log *slog.Logger) (tools.ToolProvider, error) {
		own := cfg
		own.Logger, own.HTTP, own.Hide = log, upstream.Transport(nil), upstream.Hide
		return mcptool.New(&own)
	}
}
