package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/tools"
)

// TransportMode says how a server is reached.
type TransportMode string

// The TransportMode values. Empty is TransportAuto: stdio when there is a
// command; when there is a URL, streamable HTTP, and HTTP+SSE where a server
// refuses that with status 400, 404 or 405. TransportSSE is HTTP+SSE, the
// transport of revision 2024-11-05.
const (
	TransportAuto           TransportMode = "auto"
	TransportStdio          TransportMode = "stdio"
	TransportStreamableHTTP TransportMode = "streamable_http"
	TransportSSE            TransportMode = "sse"
)

// NoPrefix is the Config.Prefix that leaves the server's own tool names as they
// are.
const NoPrefix = "none"

// A Nursery ends, on Linux, what children start and what then leaves them, with
// a session of its own and without a parent. Without one such a process outlives
// its child.
type Nursery = mcpwire.Nursery

// NewNursery makes this process the parent of all its descendants that lose
// theirs. It is for programs that start no process in another session
// themselves, and wait for those that they start.
func NewNursery() *Nursery { return mcpwire.NewNursery() }

// A Scratch is where answers that are too long for memory wait on the disk until
// they are where their caller keeps such things. One serves all servers of a
// process.
type Scratch = mcpwire.Scratch

// ScratchOptions bound what a Scratch takes in.
type ScratchOptions = mcpwire.ScratchOptions

// NewScratch returns a scratch; nil options are the defaults: up to 2 GiB for one
// answer, and 16 GiB for all, in the system's folder for temporary files.
func NewScratch(opts *ScratchOptions) *Scratch { return mcpwire.NewScratch(opts) }

// Config describes one MCP server.
type Config struct {
	// Name identifies the server, in tool names, logs and errors: 1 to 64
	// characters of A–Z, a–z, 0–9, underscore, dot and dash.
	Name string
	// TransportMode says how the server is reached.
	TransportMode TransportMode

	// Self, when not empty, is the name under which the program itself answers
	// handshakes, the member "toolcrib/instance" of their _meta: a server that gives it is refused.
	Self string

	// Command is the program to start, and its arguments.
	Command []string
	// Env is what the child's environment has beside PATH, HOME, LANG and
	// TMPDIR, which it takes from this process unless they stand here too. It
	// has nothing else.
	Env map[string]string
	// Dir is the child's working directory; empty is that of this process.
	Dir string
	// Nursery, when not nil, finds what the child started and left behind; it is
	// one for all servers of a process.
	Nursery *Nursery

	// URL is the endpoint of a server that is reached over HTTP.
	URL string
	// Headers are added to every HTTP request.
	Headers map[string]string
	// HTTP sends the requests, and adds credentials where they are needed; it is
	// closed with the server if it is an io.Closer. A request says on its context
	// in whose name it is made (package identity), unless it is the server's own
	// business, such as reading lists. An error with AuthorizationURL and Await
	// methods, as of package tools/auth, lets the caller of a tool be asked to
	// authorize it. Nil is a transport of the server's own.
	HTTP http.RoundTripper
	// Hide, when not nil, returns a text without the credentials that HTTP adds;
	// it is for texts that repeat what the server said. It is called by many
	// goroutines at once.
	Hide func(text string) string

	// Version pins the protocol revision, such as "2025-06-18". Empty
	// negotiates the newest that both sides speak.
	Version string
	// ClientInfo is what the server is told of this client: an MCP
	// Implementation object. Empty names Toolcrib.
	ClientInfo json.RawMessage

	// Prefix stands before each tool's name. Nil is Name and an underscore;
	// NoPrefix and the empty text are none.
	Prefix *string
	// Include lists the tools to take, by the server's own names; "*" stands
	// for any characters and "?" for one. Empty takes all. A resource stands
	// here as "resource_" and its name, a resource template as
	// "resource_template_" and its name, a prompt as "prompt_" and its name,
	// and the tool that reads what is listed nowhere as "read_resource".
	Include []string
	// Exclude lists tools to leave out, in the same form. It wins over Include.
	Exclude []string
	// Policy is the reliability shell of every tool.
	Policy tools.ToolPolicy
	// ToolPolicies replaces Policy for single tools, by the server's own names.
	ToolPolicies map[string]tools.ToolPolicy
	// Session says who shares a connection. Empty is SessionShared.
	Session Session
	// MaxSessions bounds the connections beside the shared one; 0 means 256.
	// A call that would need one more is refused with ErrOverloaded.
	MaxSessions int
	// SessionIdle is how long a connection beside the shared one is kept
	// without a call; 0 means 10 minutes.
	SessionIdle time.Duration
	// Loading is set on every tool; empty sets nothing.
	Loading tools.LoadingMode
	// Options are laid over every tool, last.
	Options []tools.DescriptorOption

	// MaxMessageBytes bounds one message of the server in memory; a longer one is
	// an error of the call that it answers. 0 means 64 MiB.
	MaxMessageBytes int64
	// OffloadBytes is the size above which an answer goes to where the caller
	// keeps large results, if it keeps any, without passing through memory whole:
	// 0 means tools.OffloadBytes, a negative number never. Such an answer is
	// bounded by Scratch, and by what the caller may keep.
	OffloadBytes int64
	// Scratch is where such answers wait. Nil is one of the server's own.
	Scratch *Scratch

	// ConnectTimeout bounds one attempt to connect, from the start of the
	// child to the end of the handshake. 0 means 60 seconds.
	ConnectTimeout time.Duration
	// KeepAlive is how often a connection is asked for a sign of life. One
	// that gives none while no call runs is made anew. 0 asks never.
	KeepAlive time.Duration
	// LogLevel is the least level of log messages that a server is asked to
	// send, a syslog word; they reach the caller whose call they belong to.
	// Empty means "info", and less as soon as a caller wants less. Servers of
	// the stateless era take the level from each call instead.
	LogLevel string
	// Logger hears of the connection's life, and the child's standard error.
	// Nil is silent.
	Logger *slog.Logger

	levelSet bool // LogLevel was given
}

const (
	defaultConnectTimeout = 60 * time.Second
	defaultMaxMessage     = 64 << 20
	maxServerName         = 64
)

// resolved returns a copy of c with its defaults, or everything that is wrong
// with it.
func (c *Config) resolved() (*Config, error) {
	if c == nil {
		return nil, errors.New("mcptool: a server needs a configuration")
	}
	out := *c
	if len(c.Name) > maxServerName || tools.CheckName(c.Name) != nil {
		return nil, fmt.Errorf("mcptool: server name %q: expected 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'", bound(c.Name, 80))
	}
	out.Command, out.Env, out.Headers = slices.Clone(c.Command), maps.Clone(c.Env), maps.Clone(c.Headers)
	out.ToolPolicies = maps.Clone(c.ToolPolicies)
	if out.ConnectTimeout <= 0 {
		out.ConnectTimeout = defaultConnectTimeout
	}
	if out.MaxMessageBytes <= 0 {
		out.MaxMessageBytes = defaultMaxMessage
	}
	switch {
	case out.OffloadBytes < 0:
		out.Scratch = nil
	case out.Scratch == nil:
		out.Scratch = NewScratch(nil)
	}
	if out.OffloadBytes == 0 {
		out.OffloadBytes = tools.OffloadBytes
	}
	out.levelSet = c.LogLevel != ""
	if out.LogLevel == "" {
		out.LogLevel = "info"
	}
	if out.MaxSessions <= 0 {
		out.MaxSessions = defaultMaxSessions
	}
	if out.SessionIdle <= 0 {
		out.SessionIdle = defaultSessionIdle
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	out.Logger = out.Logger.With("server", c.Name)
	if len(out.ClientInfo) == 0 {
		out.ClientInfo = json.RawMessage(`{"name":"toolcrib","version":"1"}`)
	}
	var wrong []error
	for _, check := range []func() error{out.resolveTransport, out.checkEnv, out.checkVersion, out.checkClientInfo, out.checkLogLevel, out.checkSession} {
		if err := check(); err != nil {
			wrong = append(wrong, fmt.Errorf("mcptool: server %q: %w", c.Name, err))
		}
	}
	return &out, errors.Join(wrong...)
}

// resolveTransport settles which transport is meant and checks what it needs.
func (c *Config) resolveTransport() error {
	mode := c.TransportMode
	if mode == "" || mode == TransportAuto {
		switch {
		case len(c.Command) > 0 && c.URL != "":
			return errors.New("both command and url are set: set one of them, or transport_mode")
		case len(c.Command) > 0:
			mode = TransportStdio
		default:
			mode = TransportStreamableHTTP
		}
	}
	c.TransportMode = mode
	switch {
	case mode != TransportStdio && mode != TransportStreamableHTTP && mode != TransportSSE:
		return fmt.Errorf("transport_mode %q: expected auto, stdio, streamable_http or sse", bound(string(mode), 40))
	case mode == TransportStdio && (len(c.Command) == 0 || c.Command[0] == ""):
		return errors.New("command is empty: transport_mode stdio needs the program to start")
	case mode == TransportSSE && c.URL == "":
		return errors.New("url is empty: transport_mode sse needs the address of the event stream")
	case mode == TransportSSE && c.Version != "" && mcpwire.EraOf(c.Version) == mcpwire.EraStateless:
		return fmt.Errorf("protocol version %q is not spoken over transport_mode sse: expected %s or an older one", bound(c.Version, 40), mcpwire.LatestStateful)
	case mode != TransportStdio && c.URL == "":
		return errors.New("neither command nor url is set: one of them says how to reach the server")
	case mode != TransportStdio:
		return c.checkHTTP()
	}
	return nil
}

// checkHTTP never quotes the URL, which may hold a secret.
func (c *Config) checkHTTP() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("url: expected an absolute http or https URL")
	}
	for k, v := range c.Headers {
		if k == "" || strings.ContainsAny(k, " :\r\n\t") || strings.ContainsAny(v, "\r\n") {
			return fmt.Errorf("headers: %q is no valid header", bound(k, 80))
		}
	}
	return nil
}

func (c *Config) checkEnv() error {
	for k, v := range c.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return fmt.Errorf("env: %q is no valid environment variable", bound(k, 80))
		}
	}
	return nil
}

func (c *Config) checkVersion() error {
	if c.Version == "" || slices.Contains(mcpwire.Versions(), c.Version) {
		return nil
	}
	return fmt.Errorf("protocol version %q: expected one of %s", bound(c.Version, 40), strings.Join(mcpwire.Versions(), ", "))
}

func (c *Config) checkClientInfo() error {
	var info struct{ Name, Version string }
	if err := json.Unmarshal(c.ClientInfo, &info); err != nil || info.Name == "" {
		return errors.New("client info: expected an object with name and version")
	}
	return nil
}

func (c *Config) checkLogLevel() error {
	if slices.Contains(logLevels(), c.LogLevel) {
		return nil
	}
	return fmt.Errorf("log level %q: expected one of %s", bound(c.LogLevel, 40), strings.Join(logLevels(), ", "))
}

// logLevels are the words for the severity of a log message, from the least on.
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

func (c *Config) checkSession() error {
	switch c.Session {
	case "":
		c.Session = SessionShared
	case SessionShared, SessionPerUser, SessionPerSession:
	default:
		return fmt.Errorf("session %q: expected shared, per_user or per_session", bound(string(c.Session), 40))
	}
	return nil
}

// prefix returns what stands before each tool's name.
func (c *Config) prefix() string {
	switch {
	case c.Prefix == nil:
		return c.Name + "_"
	case *c.Prefix == NoPrefix:
		return ""
	}
	return *c.Prefix
}

// A filter decides which of a server's tools are taken.
type filter struct{ include, exclude []*regexp.Regexp }

func newFilter(c *Config) filter {
	return filter{include: globs(c.Include), exclude: globs(c.Exclude)}
}

func (f filter) takes(name string) bool {
	matches := func(re *regexp.Regexp) bool { return re.MatchString(name) }
	if slices.ContainsFunc(f.exclude, matches) {
		return false
	}
	return len(f.include) == 0 || slices.ContainsFunc(f.include, matches)
}

// globs compiles patterns in which "*" and "?" are special and nothing else.
func globs(patterns []string) []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, p := range patterns {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(p))
		out = append(out, regexp.MustCompile(`(?s)\A`+quoted+`\z`))
	}
	return out
}

// bound cuts foreign text to at most n bytes.
func bound(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
