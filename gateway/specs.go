package gateway

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolcrib/toolcrib/tools"
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
// sources, in its order.
func (c *Config) sourceSpecs(opts Options) ([]sourceSpec, error) {
	s := &specs{cfg: c, opts: opts, resolver: newResolver(c.dir)}
	for i := range c.Tools.MCPServers {
		s.mcpServer(&c.Tools.MCPServers[i], fmt.Sprintf("tools.mcp_servers[%d]", i))
	}
	for i := range c.Tools.OpenAPI {
		s.openAPI(&c.Tools.OpenAPI[i], fmt.Sprintf("tools.openapi[%d]", i))
	}
	for i := range c.Tools.HTTPManifests {
		s.manifest(&c.Tools.HTTPManifests[i], fmt.Sprintf("tools.http_manifests[%d]", i))
	}
	if err := s.faults.sorted(); err != nil {
		return nil, err
	}
	return s.list, nil
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
		Prefix:        prefix(m.Prefix),
		Include:       m.Include,
		Exclude:       m.Exclude,
		Policy:        m.Policy.toolPolicy(),
		ToolPolicies:  toolPolicies(m.ToolPolicies),
		KeepAlive:     time.Duration(m.KeepAlive),
	}
	cfg.ConnectTimeout = s.cfg.Limits.connectTimeout()
	if _, err := mcptool.New(&cfg); err != nil {
		s.faults = append(s.faults, s.cfg.faultAt(at, err.Error(), ""))
		return
	}
	s.list = append(s.list, sourceSpec{name: m.Name, kind: kindMCP, settings: cfg, health: mcpHealth,
		open: func(log *slog.Logger) (tools.ToolProvider, error) {
			own := cfg
			own.Logger = log
			return mcptool.New(&own)
		}})
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
