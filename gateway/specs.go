package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
	"github.com/toolcrib/toolcrib/tools/mcptool"
)

// The kinds of sources.
const (
	kindMCP      = "mcp"
	kindOpenAPI  = "openapi"
	kindManifest = "http_manifest"
)

// specs collects how to make the sources of a configuration, and what keeps
// one from being made.
type specs struct {
	cfg      *Config
	opts     Options
	resolver *resolver
	list     []sourceSpec
	faults   ConfigErrors
}

// sourceSpecs resolves every reference of the configuration and returns its
// sources, in its order, and what keeps others from being made.
func (c *Config) sourceSpecs(opts Options) ([]sourceSpec, ConfigErrors) {
	s := &specs{cfg: c, opts: opts, resolver: newResolver(c.dir)}
	for i := range c.Tools.MCPServers {
		s.mcpServer(&c.Tools.MCPServers[i], fmt.Sprintf("tools.mcp_servers[%d]", i))
	}
	for i := range c.Tools.OpenAPI {
		s.openAPI(&c.Tools.OpenAPI[i], fmt.Sprintf("tools.openapi[%d]", i))
	}
	for i := range c.Tools.UTCP {
		s.utcp(&c.Tools.UTCP[i], fmt.Sprintf("tools.utcp[%d]", i))
	}
	for i := range c.Tools.HTTPManifests {
		s.manifest(&c.Tools.HTTPManifests[i], fmt.Sprintf("tools.http_manifests[%d]", i))
	}
	for i := range c.Tools.A2APeers {
		s.a2aPeer(&c.Tools.A2APeers[i], fmt.Sprintf("tools.a2a_peers[%d]", i))
	}
	s.composed()
	s.workers(c.Workers)
	return s.list, s.faults
}

// secret returns what the references in text name. What is missing becomes a
// fault at path.
func (s *specs) secret(text, path string) string {
	value, err := s.resolver.resolve(text)
	if err != nil {
		s.faults = append(s.faults, s.cfg.faultAt(path, err.Error(), "the secret to be there when the gateway starts"))
	}
	return value
}

func (s *specs) secrets(texts map[string]string, path string) map[string]string {
	if texts == nil {
		return nil
	}
	out := make(map[string]string, len(texts))
	for key, text := range texts {
		out[key] = s.secret(text, join(path, key))
	}
	return out
}

func (s *specs) mcpServer(m *MCPServer, at string) {
	cfg := mcptool.Config{
		Name:          m.Name,
		TransportMode: mcptool.TransportMode(m.TransportMode),
		Command:       m.Command,
		Env:           s.secrets(m.Env, at+".env"),
		Dir:           s.cfg.dir,
		URL:           m.URL,
		Headers:       s.secrets(m.Headers, at+".headers"),
		ClientInfo:    implementation(s.opts.Version),
		Self:          s.opts.instance,
		Prefix:        prefix(m.Prefix),
		Include:       m.Include,
		Exclude:       m.Exclude,
		Session:       m.session(),
		Policy:        m.Policy.toolPolicy(),
		ToolPolicies:  toolPolicies(m.ToolPolicies),
		KeepAlive:     time.Duration(m.KeepAlive),

		MaxMessageBytes: s.cfg.Limits.MaxMessageBytes,
	}
	cfg.ConnectTimeout = s.cfg.Limits.connectTimeout()
	if _, err := mcptool.New(&cfg); err != nil {
		s.faults = append(s.faults, s.cfg.faultAt(at, err.Error(), ""))
		return
	}
	spec := sourceSpec{name: m.Name, kind: kindMCP, at: at, settings: cfg, health: mcpHealth, loading: m.LoadingMode,
		prefixes: m.prefixes(), unmatched: m.unmatched,
		open: func(log *slog.Logger) (tools.ToolProvider, error) {
			own := cfg
			own.Logger, own.Nursery, own.Scratch = log, s.opts.nursery, s.opts.scratch
			return mcptool.New(&own)
		}}
	if m.OAuth != nil {
		upstream, settings := s.oauth(m, at)
		if upstream == nil {
			return
		}
		spec.withTokens(cfg, upstream, settings)
	}
	s.list = append(s.list, spec)
}

// mcpHealth says why a server that had been reached has no connection now.
func mcpHealth(p tools.ToolProvider) string {
	server, ok := p.(*mcptool.Server)
	if !ok {
		return ""
	}
	if st := server.Status(); !st.Connected {
		return st.LastError
	}
	return ""
}

// implementation is the MCP object by which the gateway introduces itself.
func implementation(version string) json.RawMessage {
	out, err := json.Marshal(map[string]string{"name": "toolcrib", "version": version})
	if err != nil {
		panic(err) // two texts always encode
	}
	return out
}

// prefix returns what the file says, or nil for the driver's default.
func prefix(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func toolPolicies(in map[string]Policy) map[string]tools.ToolPolicy {
	out := make(map[string]tools.ToolPolicy, len(in))
	for name, p := range in {
		out[name] = p.toolPolicy()
	}
	return out
}

func (s *specs) openAPI(o *OpenAPI, at string) {
	cfg := httptool.OpenAPIConfig{
		Name:      o.Name,
		Document:  s.cfg.location(o.Document),
		ServerURL: o.ServerURL,
		Headers:   s.secrets(o.Headers, at+".headers"),
		Include:   o.Include,
		Exclude:   o.Exclude,
		Prefix:    o.Prefix,
		Policy:    o.Policy.toolPolicy(),
		Responses: responses(o.Responses),
		Network:   s.network(o.AllowPrivate),

		ServerVariables: o.Variables,
	}
	settings := httpSettings{OpenAPI: *o, headers: cfg.Headers, document: stamp(cfg.Document), secrets: map[string]string{}}
	if o.Auth != nil {
		settings.secret = s.secret(o.Auth.Secret, at+".auth.secret")
		cfg.Auth = s.auth(o.Auth)
	}
	for name, scheme := range o.Auths {
		auth := Auth(scheme)
		settings.secrets[name] = s.secret(auth.Secret, join(at+".auths", name)+".secret")
		if cfg.Auths == nil {
			cfg.Auths = map[string]*httptool.Auth{}
		}
		cfg.Auths[name] = s.auth(&auth)
	}
	if _, err := httptool.NewOpenAPI(cfg); err != nil {
		s.faults = append(s.faults, s.cfg.faultAt(at, err.Error(), ""))
		return
	}
	spec := sourceSpec{name: o.Name, kind: kindOpenAPI, at: at, document: at + ".document", settings: settings, loading: o.LoadingMode,
		prefixes: prefixesOf(o.Prefix, o.Name), unmatched: unmatchedPatterns,
		open: func(*slog.Logger) (tools.ToolProvider, error) { return httptool.NewOpenAPI(cfg) }}
	if !strings.Contains(cfg.Document, "://") {
		spec.check, spec.local = checkOpenAPI(cfg), surveyOpenAPI(cfg)
	}
	s.list = append(s.list, spec)
}

func checkOpenAPI(cfg httptool.OpenAPIConfig) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := httptool.NewOpenAPI(cfg)
		if err != nil {
			return err
		}
		return errors.Join(p.Check(ctx), p.Close(ctx))
	}
}

// httpSettings is what an OpenAPI source is made from, with its references
// resolved and the state of its document if that is a file.
type httpSettings struct {
	OpenAPI
	headers  map[string]string
	secret   string
	secrets  map[string]string // by security scheme
	document fileStamp
}

// responses is the mode that a word of the configuration stands for.
func responses(word string) httptool.ResponseMode {
	if word == "shown" {
		return httptool.ResponsesShown
	}
	return httptool.ResponseMode(word)
}

func (s *specs) network(allowPrivate bool) httptool.Network {
	return httptool.Network{AllowPrivate: allowPrivate, MaxResponseBytes: s.cfg.Limits.MaxMessageBytes}
}

// auth returns the credential. Its reference is resolved again for each
// request, so that a file whose secret was rotated takes effect.
func (s *specs) auth(a *Auth) *httptool.Auth {
	resolver, text := s.resolver, a.Secret
	return &httptool.Auth{Kind: httptool.AuthKind(a.Kind), Header: a.Header, Query: a.Query, Cookie: a.Cookie,
		Secret: func(context.Context) (string, error) { return resolver.resolve(text) }}
}

// location is a document's address, or its file as seen from the folder of the
// configuration.
func (c *Config) location(document string) string {
	if strings.Contains(document, "://") {
		return document
	}
	return absolute(c.dir, document)
}

func (s *specs) manifest(m *HTTPManifest, at string) {
	cfg := httptool.ManifestConfig{
		Name:    m.sourceName(),
		File:    absolute(s.cfg.dir, m.File),
		Secret:  s.resolver.resolve,
		Policy:  m.Policy.toolPolicy(),
		Network: s.network(m.AllowPrivate),
	}
	if _, err := httptool.NewManifest(cfg); err != nil {
		s.documentFaults(err, at+".file")
		return
	}
	settings := manifestSettings{HTTPManifest: *m, document: stamp(cfg.File)}
	s.list = append(s.list, sourceSpec{name: cfg.Name, kind: kindManifest, at: at, document: at + ".file", settings: settings, loading: m.LoadingMode,
		local: surveyManifest(cfg),
		open:  func(*slog.Logger) (tools.ToolProvider, error) { return httptool.NewManifest(cfg) }})
}

type manifestSettings struct {
	HTTPManifest
	document fileStamp
}

// documentFaults adds the faults of a file that the configuration names: those
// that have a place in that file there, others at path.
func (s *specs) documentFaults(err error, path string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			s.documentFaults(err, path)
		}
		return
	}
	var fault *httptool.DocumentError
	if !errors.As(err, &fault) || fault.Line == 0 {
		s.faults = append(s.faults, s.cfg.faultAt(path, err.Error(), ""))
		return
	}
	problem := fault.Message
	if fault.Pointer != "" {
		problem += " (at #" + fault.Pointer + ")"
	}
	s.faults = append(s.faults, &ConfigError{File: fault.Document, Line: fault.Line, Column: fault.Column, Problem: problem})
}

// fileStamp tells one state of a file from another.
type fileStamp struct {
	size    int64
	changed time.Time
}

// stamp returns the state of a file, or nothing when there is none.
func stamp(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime()}
}
