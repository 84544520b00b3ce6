package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// check returns every fault that needs nothing but the Config to be seen.
func (c *Config) check() ConfigErrors {
	k := &checker{cfg: c}
	k.walk(reflect.ValueOf(c).Elem(), "")
	if c.Listen != "" {
		k.listen(c.Listen)
	}
	if e := c.Search.Embeddings; e != nil {
		k.httpSource("search.embeddings", nil, e.Headers)
	}
	t := &c.Tools
	k.unique("tools.entries", len(t.Entries), func(i int) string { return t.Entries[i].Name })
	k.unique("tools.oauth_providers", len(t.OAuthProviders), func(i int) string { return t.OAuthProviders[i].Name })
	k.entries(t)
	k.oauth(t)
	k.sourceNames(t)
	k.toolsets(c.Toolsets)
	k.workers(c.Workers)
	k.builtIns(t.BuiltIn)
	if c.Artifacts.TTL > Duration(artifacts.DefaultMaxTTL) {
		k.fault("artifacts.ttl", "is too large", "at most 720h")
	}
	for i := range t.MCPServers {
		k.mcpServer(&t.MCPServers[i], fmt.Sprintf("tools.mcp_servers[%d]", i))
	}
	for i, s := range t.OpenAPI {
		at := fmt.Sprintf("tools.openapi[%d]", i)
		k.httpSource(at, s.Auth, s.Headers)
		for name, scheme := range s.Auths {
			k.credential(join(at+".auths", name), Auth(scheme))
		}
		k.filters(at, s.Prefix, s.Include, s.Exclude)
		k.document(at+".document", s.Document)
	}
	for i, s := range t.A2APeers {
		k.httpSource(fmt.Sprintf("tools.a2a_peers[%d]", i), s.Auth, nil)
	}
	for i, s := range t.UTCP {
		at := fmt.Sprintf("tools.utcp[%d]", i)
		k.httpSource(at, s.Auth, s.Headers)
		k.filters(at, s.Prefix, s.Include, s.Exclude)
		k.document(at+".manual", s.Manual)
	}
	return k.faults
}

func (c *checker) listen(addr string) {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		c.fault("listen", "is not an address", "host:port, such as "+DefaultListen)
	}
}

// unique refuses a name that stands twice in a list.
func (c *checker) unique(list string, n int, name func(int) string) {
	first := map[string]int{}
	for i := range n {
		if j, taken := first[name(i)]; taken && name(i) != "" {
			c.fault(fmt.Sprintf("%s[%d].name", list, i), fmt.Sprintf("%q is the name of %s[%d] too", clip(name(i)), list, j), "another name")
			continue
		}
		first[name(i)] = i
	}
}

// sourceNames refuses a name that two sources share, of whatever kind: tools
// are kept by the source that they came from.
func (c *checker) sourceNames(t *Tools) {
	owner := map[string]string{}
	for _, s := range t.sourceNames() {
		if s.name == "" {
			continue
		}
		if other, taken := owner[s.name]; taken {
			c.fault(s.path+".name", fmt.Sprintf("%q is the name of %s too", clip(s.name), other), "another name")
			continue
		}
		owner[s.name] = s.path
	}
}

type sourceName struct{ name, path string }

func (t *Tools) sourceNames() []sourceName {
	var out []sourceName
	add := func(list string, i int, name string) {
		out = append(out, sourceName{name, fmt.Sprintf("tools.%s[%d]", list, i)})
	}
	for i, s := range t.MCPServers {
		add("mcp_servers", i, s.Name)
	}
	for i, s := range t.OpenAPI {
		add("openapi", i, s.Name)
	}
	for i, s := range t.HTTPManifests {
		add("http_manifests", i, s.sourceName())
	}
	for i, s := range t.UTCP {
		add("utcp", i, s.Name)
	}
	for i, s := range t.A2APeers {
		add("a2a_peers", i, s.sourceName())
	}
	return out
}

// sourceName is the name, or the file's name without folder and ending.
func (m HTTPManifest) sourceName() string {
	if m.Name != "" || m.File == "" {
		return m.Name
	}
	base := path.Base(strings.ReplaceAll(m.File, `\`, "/"))
	base = strings.TrimSuffix(base, path.Ext(base))
	return notNameRun().ReplaceAllString(base, "_")
}

var notNameRun = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^A-Za-z0-9_.-]+`)
})

func (c *checker) entries(t *Tools) {
	for i, e := range t.Entries {
		if e.OAuth == nil || e.OAuth.Provider == "" {
			continue
		}
		known := func(p OAuthProvider) bool { return p.Name == e.OAuth.Provider }
		if !slices.ContainsFunc(t.OAuthProviders, known) {
			c.fault(fmt.Sprintf("tools.entries[%d].oauth.provider", i), fmt.Sprintf("%q is not a provider", clip(e.OAuth.Provider)), "a name of tools.oauth_providers")
		}
	}
}

func (c *checker) builtIns(names []string) {
	known := append(append(builtin.Names(), builtin.SkillNames()...), builtin.FetchName)
	slices.Sort(known)
	for i, name := range names {
		at := fmt.Sprintf("tools.built_in[%d]", i)
		if !slices.Contains(known, name) {
			c.fault(at, fmt.Sprintf("unknown built-in tool %q", clip(name)), oneOf(known))
		} else if slices.Index(names, name) < i {
			c.fault(at, fmt.Sprintf("%q stands twice", name), "it once")
		}
	}
}

func (c *checker) mcpServer(s *MCPServer, at string) {
	c.filters(at, s.Prefix, s.Include, s.Exclude)
	c.headers(at+".headers", s.Headers)
	c.env(at+".env", s.Env)
	switch s.mode() {
	case "stdio":
		c.stdioServer(s, at)
	case "streamable_http", "sse":
		c.httpServer(s, at)
	case "":
		problem := "has neither command nor url"
		if len(s.Command) > 0 {
			problem = "has both command and url"
		}
		c.fault(at, problem, "command for a stdio server or url for an HTTP server")
	}
}

// mode is the transport that the server's keys ask for, or empty when they do
// not say.
func (s *MCPServer) mode() string {
	if s.TransportMode != "" && s.TransportMode != "auto" {
		return s.TransportMode
	}
	switch {
	case len(s.Command) > 0 && s.URL == "":
		return "stdio"
	case len(s.Command) == 0 && s.URL != "":
		return "streamable_http"
	}
	return ""
}

func (c *checker) stdioServer(s *MCPServer, at string) {
	if len(s.Command) == 0 || s.Command[0] == "" {
		c.fault(at+".command", "missing", "the program of the stdio server and its arguments")
	}
	if s.URL != "" {
		c.fault(at+".url", "does not belong to a stdio server", "command alone")
	}
	if c.cfg.startsItself(s.Command) {
		c.fault(at+".command", "starts this program with this configuration, which would go on without end", "another program, or -c with another configuration")
	}
	if len(s.Headers) > 0 {
		c.fault(at+".headers", "do not belong to a stdio server", "env")
	}
}

func (c *checker) httpServer(s *MCPServer, at string) {
	if s.URL == "" {
		c.fault(at+".url", "missing", "the address of the HTTP server")
	}
	if len(s.Command) > 0 {
		c.fault(at+".command", "does not belong to an HTTP server", "url alone")
	}
	if len(s.Env) > 0 {
		c.fault(at+".env", "does not belong to an HTTP server", "headers")
	}
}

// document refuses an address that holds a reference or credentials. A file is
// looked for when it is needed.
func (c *checker) document(at, s string) {
	if strings.Contains(s, "://") {
		c.url(s, at)
	}
}

func (c *checker) httpSource(at string, auth *Auth, headers map[string]string) {
	c.headers(at+".headers", headers)
	if auth != nil {
		c.credential(at+".auth", *auth)
	}
}

func (c *checker) credential(at string, auth Auth) {
	if auth.Secret != "" && !isReference(auth.Secret) {
		c.fault(at+".secret", "is not a reference to a secret", "${NAME} of an environment variable, or file:PATH")
	}
	c.authPlace(at, &auth)
}

// authPlace checks that at most one place is named and that it suits the kind.
// An api_key without a place goes where the document says.
func (c *checker) authPlace(at string, auth *Auth) {
	places := 0
	for _, place := range []string{auth.Header, auth.Query, auth.Cookie} {
		if place != "" {
			places++
		}
	}
	switch {
	case places > 1:
		c.fault(at, "names more than one place", "at most one of header, query and cookie")
	case auth.Kind == "cookie" && auth.Cookie == "":
		c.fault(at+".cookie", "missing", "the name of the cookie")
	case (auth.Kind == "bearer" || auth.Kind == "basic") && (auth.Query != "" || auth.Cookie != ""):
		c.fault(at, "is sent in a header", "kind api_key for a query parameter or a cookie")
	}
}

// filters checks the prefix and the patterns of a source.
func (c *checker) filters(at, prefix string, include, exclude []string) {
	if prefix != "" && !sourcePattern.MatchString(prefix) {
		c.fault(at+".prefix", "is not a prefix", "a match of "+sourcePattern.String()+", or none")
	}
	for key, patterns := range map[string][]string{"include": include, "exclude": exclude} {
		if i := slices.Index(patterns, ""); i >= 0 {
			c.fault(fmt.Sprintf("%s.%s[%d]", at, key, i), "is empty", "a name in which * stands for anything")
		}
	}
}

// headers checks the names of headers, and that those which carry credentials
// by their name hold references.
func (c *checker) headers(at string, headers map[string]string) {
	for name, value := range headers {
		switch {
		case !headerName.MatchString(name):
			c.fault(join(at, name), "is not a header name", "letters, digits and dashes")
		case secretName.MatchString(name) && !hasReference(value):
			c.fault(join(at, name), "looks like the secret itself", `a reference to it, such as "${NAME}" or "Bearer ${NAME}"`)
		}
	}
}

func (c *checker) env(at string, env map[string]string) {
	for name, value := range env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			c.fault(join(at, name), "is not the name of a variable", "letters, digits and underscores")
		case secretName.MatchString(name) && value != "" && !hasReference(value):
			c.fault(join(at, name), "looks like the secret itself", "a reference to it: ${NAME} or file:PATH")
		}
	}
}

var (
	headerName = newPattern("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
	// secretName are the names of headers and variables that carry
	// credentials.
	secretName = newPattern(`(?i)^(proxy-)?authorization$|^(set-)?cookie$|(^|[-_])(token|secret|password|passwd|credentials?|api[-_]?key|access[-_]?key|private[-_]?key)$`)
)

// loopback reports whether an address is reached from this machine only.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
