package gateway

import (
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// DefaultListen is the address that serves when the configuration names none.
const DefaultListen = "127.0.0.1:7711"

// Config is what toolcrib.yaml says. The zero value is valid: nothing but what
// Options registers. A Config that was made in Go is checked by Open as one
// that was parsed; its errors then carry no position.
type Config struct {
	// Listen is the address of the network entrance. Empty means
	// DefaultListen for a program that listens at all.
	Listen string `yaml:"listen" doc:"Address of the network entrance, host:port."`
	// DataDir is the folder for state, made by Open when it is missing.
	DataDir string `yaml:"data_dir" doc:"Folder for state. Relative paths start at this file's folder."`
	// AllowedOrigins and AllowedHosts add to what a loopback entrance accepts
	// by itself.
	AllowedOrigins []string  `yaml:"allowed_origins" doc:"Browser origins that may call, beside those of this machine."`
	AllowedHosts   []string  `yaml:"allowed_hosts" doc:"Values of the Host header to accept, beside those of this machine."`
	Toolsets       []Toolset `yaml:"toolsets" doc:"Parts of the catalog that are served by themselves."`
	Skills         []Skill   `yaml:"skills" doc:"Workflows of steps, each of which is a tool."`
	Flows          []Flow    `yaml:"flows" doc:"Graphs of calls, each of which is a tool."`
	Tools          Tools     `yaml:"tools" doc:"The tools and where they come from."`
	MCP            MCP       `yaml:"mcp" doc:"The MCP entrance."`
	Search         Search    `yaml:"search" doc:"How tools are found."`
	Artifacts      Artifacts `yaml:"artifacts" doc:"Large results."`
	// Workers, when not nil, has tools run by worker processes.
	Workers *Workers `yaml:"workers" doc:"Tools that run in worker processes, which are reached over streams."`
	Planner Planner  `yaml:"planner" doc:"How a model's turn is run."`
	Limits  Limits   `yaml:"limits" doc:"Bounds of time and size."`

	file   string         // as given to Load or Parse
	dir    string         // where relative paths start
	places map[string]pos // of every value that the file holds, by path
}

// MCP is about the MCP entrance.
type MCP struct {
	// Discovery is which of the tools that a client may use it is listed. The
	// empty mode is auto.
	Discovery view.Mode `yaml:"discovery" rule:"enum=auto|full|search" doc:"Tools whose loading nobody set: full lists them, search lets clients find them, auto does that once the list is larger than the budget."`
	// Results is whether clients get large results whole. Empty is full where
	// Discovery is, and bounded otherwise.
	Results string `yaml:"results" rule:"enum=bounded|full" doc:"Whether large results are shown in part and kept as artifacts, or passed on whole; as discovery is full or not when absent."`
	// DiscoveryBudgetTokens is view.DefaultBudgetTokens when 0.
	DiscoveryBudgetTokens int `yaml:"discovery_budget_tokens" rule:"min=1" doc:"Largest list of tools that auto shows whole, in tokens of a model."`
	// MaxSessions is 10,000 when 0.
	MaxSessions int `yaml:"max_sessions" rule:"min=1" doc:"Most sessions that are open over HTTP; beyond it the one that is idle longest makes place."`
	// SessionIdle is 30 minutes when 0.
	SessionIdle Duration `yaml:"session_idle" doc:"How long a session over HTTP lives without a request or an open stream, such as 30m."`
}

// Search is about how tools are found.
type Search struct {
	// Embeddings, when not nil, is a service by which tools are found by meaning
	// as well.
	Embeddings *Embeddings `yaml:"embeddings" doc:"A service that speaks the embeddings protocol of OpenAI; tools are then found by meaning as well."`
}

// Embeddings is a service that speaks the embeddings protocol of OpenAI. It is
// told the descriptions of the tools, and the queries.
type Embeddings struct {
	URL        string            `yaml:"url" rule:"required,url" doc:"Address of the API, such as http://127.0.0.1:11434/v1."`
	Model      string            `yaml:"model" rule:"required" doc:"Name of the model."`
	Dimensions int               `yaml:"dimensions" rule:"min=1" doc:"Length of the vectors, where the model can shorten them."`
	Headers    map[string]string `yaml:"headers" rule:"secret" doc:"Headers of each request, such as Authorization; values may hold ${NAME} or be file:PATH."`
	Timeout    Duration          `yaml:"timeout" doc:"Time limit of one request, such as 10s; 30s when absent."`
}

// Tools is the tools section.
type Tools struct {
	Entries        []Entry         `yaml:"entries" doc:"What the operator says of single tools, by canonical name."`
	BuiltIn        []string        `yaml:"built_in" doc:"Tools that come with Toolcrib, by name."`
	MCPServers     []MCPServer     `yaml:"mcp_servers" doc:"MCP servers whose tools are offered."`
	OpenAPI        []OpenAPI       `yaml:"openapi" doc:"OpenAPI documents whose operations are offered."`
	HTTPManifests  []HTTPManifest  `yaml:"http_manifests" doc:"Files that describe HTTP endpoints as tools."`
	UTCP           []UTCP          `yaml:"utcp" doc:"UTCP manuals whose tools are offered."`
	A2APeers       []A2APeer       `yaml:"a2a_peers" doc:"A2A agents whose skills are offered."`
	OAuthProviders []OAuthProvider `yaml:"oauth_providers" doc:"How tokens for the services behind tools are obtained."`
	GrantedScopes  []string        `yaml:"granted_scopes" doc:"Scopes of the local caller, who needs no authentication."`
}

// Entry is what the operator says of one tool. What it leaves out stays as the
// tool's author or source has it.
type Entry struct {
	Name        string            `yaml:"name" rule:"required,name" doc:"Canonical name of the tool."`
	LoadingMode tools.LoadingMode `yaml:"loading_mode" rule:"enum=always|deferred" doc:"Whether a model is told of the tool from the start or finds it by search."`
	Description string            `yaml:"description" doc:"Replaces the description."`
	Tags        []string          `yaml:"tags" doc:"Added to the tool's tags."`
	AuthScopes  []string          `yaml:"auth_scopes" doc:"Scopes that a caller must hold as well."`
	SideEffect  tools.SideEffect  `yaml:"side_effect" rule:"enum=pure|read|write|external|stateful" doc:"What a call changes."`
	Safety      *Safety           `yaml:"safety" doc:"What is known about the effects of a call."`
	Policy      *Policy           `yaml:"policy" doc:"Attempts and time limits; each key that is set replaces that of the tool."`
	Category    string            `yaml:"category" doc:"A label for grouping."`
	Namespace   string            `yaml:"namespace" doc:"Replaces the group that the tool belongs to."`
	Exclusive   *bool             `yaml:"exclusive" doc:"Calls of one turn run one after the other."`
	Tenants     []string          `yaml:"tenants" doc:"The only tenants that see the tool."`
	Approval    *Approval         `yaml:"approval" doc:"Whether a person must agree to calls."`
	OAuth       *OAuthRequirement `yaml:"oauth" doc:"The token that a call needs."`
}

// Safety is what the operator knows about the effects of a call.
type Safety struct {
	ReadOnly          tools.Flag `yaml:"read_only" doc:"A call changes nothing."`
	Destructive       tools.Flag `yaml:"destructive" doc:"A call may overwrite or delete."`
	Idempotent        tools.Flag `yaml:"idempotent" doc:"Repeating a call has no further effect."`
	OpenWorld         tools.Flag `yaml:"open_world" doc:"A call reaches things outside the tool's own domain."`
	Filesystem        tools.Flag `yaml:"filesystem" doc:"A call reads or writes files."`
	Process           tools.Flag `yaml:"process" doc:"A call starts processes."`
	Spend             tools.Flag `yaml:"spend" doc:"A call may cost money."`
	NeedsConfirmation tools.Flag `yaml:"needs_confirmation" doc:"A person must agree to each call."`
	WorkspaceRoot     string     `yaml:"workspace_root" doc:"The only folder that a call may touch."`
	Redaction         string     `yaml:"redaction" doc:"Name of the redaction policy for results."`
}

// Policy is a reliability shell in the words of the file. Each key that is
// absent keeps its default.
type Policy struct {
	// MaxAttempts counts the first attempt too: 1 means no retry.
	MaxAttempts int `yaml:"max_attempts" rule:"min=1,max=100" doc:"Attempts in all, the first one included."`
	// TimeoutMS is for one attempt, in milliseconds; negative means no limit.
	TimeoutMS     int                `yaml:"timeout_ms" doc:"Time limit of one attempt in milliseconds; 0 is the default, negative is none."`
	RetryOn       []tools.ErrorClass `yaml:"retry_on" rule:"enum=transient|timeout|5xx|permanent" doc:"Kinds of failure to repeat; permanent never is."`
	BackoffBaseMS int                `yaml:"backoff_base_ms" rule:"min=0" doc:"Pause before the first retry in milliseconds."`
	BackoffMult   float64            `yaml:"backoff_mult" rule:"min=0" doc:"Factor from one pause to the next."`
	BackoffMaxMS  int                `yaml:"backoff_max_ms" rule:"min=0" doc:"Longest pause in milliseconds."`
	// Validate is what is checked against the tool's schemas.
	Validate tools.ValidateMode `yaml:"validate" rule:"enum=both|in|out|none" doc:"What is checked against the tool's schemas: arguments, results, both or nothing."`
}

// Approval says whether a person must agree to calls of a tool.
type Approval struct {
	Policy      string   `yaml:"policy" rule:"enum=auto|gated|denied" doc:"auto runs, gated asks a person, denied refuses."`
	Reason      string   `yaml:"reason" doc:"Shown to the person who decides."`
	RequireTags []string `yaml:"require_tags" doc:"Tags that who decides must have."`
}

// OAuthRequirement names the token that calls of a tool need.
type OAuthRequirement struct {
	Provider     string `yaml:"provider" rule:"required" doc:"Name of one of tools.oauth_providers."`
	BindingScope string `yaml:"binding_scope" rule:"enum=global|tenant|user|session" doc:"Whom a token belongs to."`
}

// MCPServer is one MCP server whose tools are offered.
type MCPServer struct {
	Name          string            `yaml:"name" rule:"required,source" doc:"Name of the source, and prefix of its tools."`
	TransportMode string            `yaml:"transport_mode" rule:"enum=auto|stdio|streamable_http|sse" doc:"How the server is reached; auto follows from command or url."`
	URL           string            `yaml:"url" rule:"url" doc:"Address of an HTTP server."`
	Command       []string          `yaml:"command" doc:"Program of a stdio server and its arguments."`
	Env           map[string]string `yaml:"env" rule:"secret" doc:"Environment of the program; values may hold ${NAME} or be file:PATH."`
	Headers       map[string]string `yaml:"headers" rule:"secret" doc:"Headers of each request; values may hold ${NAME} or be file:PATH."`
	KeepAlive     Duration          `yaml:"keep_alive" doc:"Pause between pings, such as 30s."`
	Prefix        string            `yaml:"prefix" doc:"What stands before the server's tool names; none for nothing."`
	Policy        *Policy           `yaml:"policy" doc:"Attempts and time limits of the server's tools."`
	ToolPolicies  map[string]Policy `yaml:"tool_policies" doc:"Attempts and time limits by the server's own tool name."`
	Include       []string          `yaml:"include" doc:"Patterns of the server's tool names to offer; all when absent."`
	Exclude       []string          `yaml:"exclude" doc:"Patterns of the server's tool names to leave out."`
	LoadingMode   tools.LoadingMode `yaml:"loading_mode" rule:"enum=always|deferred" doc:"Whether a model is told of the server's tools from the start or finds them by search; tools of which an entry says so are as that says."`
	Session       string            `yaml:"session" rule:"enum=shared|per_user|per_session" doc:"Who shares a connection to the server."`
	OAuth         *ServerOAuth      `yaml:"oauth" doc:"The server wants tokens, and this is how they are obtained."`
}

// OpenAPI is one OpenAPI document whose operations are offered.
type OpenAPI struct {
	Name         string            `yaml:"name" rule:"required,source" doc:"Name of the source, and prefix of its tools."`
	Document     string            `yaml:"document" rule:"required" doc:"File or URL of the document."`
	ServerURL    string            `yaml:"server_url" rule:"url" doc:"Replaces the server of the document."`
	Variables    map[string]string `yaml:"server_variables" doc:"Values for the variables of the document's servers."`
	Auth         *Auth             `yaml:"auth" doc:"Credential of each request, but those for which auths has one."`
	Auths        map[string]Scheme `yaml:"auths" doc:"Credentials by the names of the document's security schemes."`
	Headers      map[string]string `yaml:"headers" rule:"secret" doc:"Headers of each request; values may hold ${NAME} or be file:PATH."`
	Include      []string          `yaml:"include" doc:"Patterns of the operations to offer; all when absent."`
	Exclude      []string          `yaml:"exclude" doc:"Patterns of the operations to leave out."`
	Prefix       string            `yaml:"prefix" doc:"What stands before the operations' names; none for nothing."`
	AllowPrivate bool              `yaml:"allow_private" doc:"Permits addresses of private networks and of this machine."`
	Policy       *Policy           `yaml:"policy" doc:"Attempts and time limits of the operations."`
	LoadingMode  tools.LoadingMode `yaml:"loading_mode" rule:"enum=always|deferred" doc:"Whether a model is told of the operations from the start or finds them by search; tools of which an entry says so are as that says."`
	Responses    string            `yaml:"responses" rule:"enum=shown|checked|omitted" doc:"Whether the document's schemas of answers are shown, enforced, or left out."`
}

// HTTPManifest is one file that describes HTTP endpoints as tools.
type HTTPManifest struct {
	Name         string            `yaml:"name" rule:"source" doc:"Name of the source; the file's name when absent."`
	File         string            `yaml:"file" rule:"required" doc:"The manifest."`
	AllowPrivate bool              `yaml:"allow_private" doc:"Permits addresses of private networks and of this machine."`
	LoadingMode  tools.LoadingMode `yaml:"loading_mode" rule:"enum=always|deferred" doc:"Whether a model is told of the tools from the start or finds them by search; tools of which an entry says so are as that says."`
	Policy       *Policy           `yaml:"policy" doc:"Attempts and time limits of its tools."`
}

// UTCP is one UTCP manual whose tools are offered.
type UTCP struct {
	Name         string            `yaml:"name" rule:"required,source" doc:"Name of the source, and prefix of its tools."`
	Manual       string            `yaml:"manual" rule:"required" doc:"File or URL of the manual."`
	ServerURL    string            `yaml:"server_url" rule:"url" doc:"Replaces the server of the manual."`
	Auth         *Auth             `yaml:"auth" doc:"Credential of each request."`
	Headers      map[string]string `yaml:"headers" rule:"secret" doc:"Headers of each request."`
	Include      []string          `yaml:"include" doc:"Patterns of the tools to offer; all when absent."`
	Exclude      []string          `yaml:"exclude" doc:"Patterns of the tools to leave out."`
	Prefix       string            `yaml:"prefix" doc:"What stands before the tools' names; none for nothing."`
	AllowPrivate bool              `yaml:"allow_private" doc:"Permits addresses of private networks and of this machine."`
	AllowText    bool              `yaml:"allow_text" doc:"Admits tools that answer with a text of the manual or a file in its folder."`
	Policy       *Policy           `yaml:"policy" doc:"Attempts and time limits of the tools."`
	LoadingMode  tools.LoadingMode `yaml:"loading_mode" rule:"enum=always|deferred" doc:"Whether a model is told of the tools from the start or finds them by search; tools of which an entry says so are as that says."`
	Responses    string            `yaml:"responses" rule:"enum=shown|checked|omitted" doc:"Whether the manual's schemas of outputs are shown, enforced, or left out."`
}

// Auth is the credential of an HTTP source.
type Auth struct {
	Kind   string `yaml:"kind" rule:"required,enum=api_key|bearer|cookie|basic" doc:"How the credential is sent."`
	Header string `yaml:"header" doc:"Header of an api_key."`
	Query  string `yaml:"query" doc:"Query parameter of an api_key."`
	Cookie string `yaml:"cookie" doc:"Name of a cookie."`
	Secret string `yaml:"secret" rule:"required,secret" doc:"Reference to the secret: ${NAME} or file:PATH."`
}

// Scheme is the credential for one security scheme of an OpenAPI document,
// which says what is left out here.
type Scheme struct {
	Kind   string `yaml:"kind" rule:"enum=api_key|bearer|cookie|basic" doc:"How the credential is sent; as the document says when absent."`
	Header string `yaml:"header" doc:"Header of an api_key."`
	Query  string `yaml:"query" doc:"Query parameter of an api_key."`
	Cookie string `yaml:"cookie" doc:"Name of a cookie."`
	Secret string `yaml:"secret" rule:"required,secret" doc:"Reference to the secret: ${NAME} or file:PATH."`
}

// A2APeer is one A2A agent whose skills are offered.
type A2APeer struct {
	Name                  string            `yaml:"name" rule:"source" doc:"Name of the source, and prefix of its tools; the agent's own when absent."`
	URL                   string            `yaml:"url" rule:"required,url" doc:"Address of the agent, or of its card."`
	TrustTier             int               `yaml:"trust_tier" rule:"min=1,max=5" doc:"From 1, trusted most, to 5."`
	LatencyTierMS         int               `yaml:"latency_tier_ms" rule:"min=0" doc:"Usual time of an answer in milliseconds."`
	AllowInsecureLoopback bool              `yaml:"allow_insecure_loopback" doc:"Permits plain HTTP on this machine."`
	AllowPrivate          bool              `yaml:"allow_private" doc:"Permits addresses of private networks and of this machine over TLS."`
	AgentCardTTL          Duration          `yaml:"agent_card_ttl" doc:"How long the agent's card is kept, such as 10m."`
	Auth                  *Auth             `yaml:"auth" doc:"Credential of each request."`
	Policy                *Policy           `yaml:"policy" doc:"Attempts and time limits of the agent's tools."`
	LoadingMode           tools.LoadingMode `yaml:"loading_mode" rule:"enum=always|deferred" doc:"Whether a model is told of the agent's tools from the start or finds them by search; tools of which an entry says so are as that says."`
	ToolPolicies          map[string]Policy `yaml:"tool_policies" doc:"Attempts and time limits by the id of the skill."`
}

// Artifacts is about large results.
type Artifacts struct {
	HeavyOutputThresholdBytes int `yaml:"heavy_output_threshold_bytes" rule:"min=1024" doc:"Results above this size are kept aside, in bytes; 32768 when absent."`
	// TTL is how long an artifact is kept; 7 days when 0.
	TTL Duration `yaml:"ttl" doc:"How long large results are kept, such as 72h."`
	// MaxBytes bounds one artifact; 1 GiB when 0.
	MaxBytes int64 `yaml:"max_bytes" rule:"min=1" doc:"Largest single artifact, in bytes."`
	// TenantBytes and UserBytes bound what a tenant and each of its users keep;
	// 10 GiB and no bound when 0.
	TenantBytes int64 `yaml:"tenant_bytes" rule:"min=1" doc:"What one tenant keeps at most, in bytes."`
	UserBytes   int64 `yaml:"user_bytes" rule:"min=1" doc:"What each user keeps at most, in bytes."`
}

// Planner is about how a model's turn is run.
type Planner struct {
	ParallelToolCalls *bool `yaml:"parallel_tool_calls" doc:"Whether the calls of one turn are made at the same time. If not, only the first is made."`
}

// Limits are bounds of time and size. Zero means the default of each.
type Limits struct {
	// MaxMessageBytes bounds one message of a caller or MCP server, and one answer of an
	// HTTP endpoint, in bytes; 64 MiB when 0.
	MaxMessageBytes int64 `yaml:"max_message_bytes" rule:"min=1024,max=4294967296" doc:"Largest message of a caller and of an MCP server, and largest answer of an HTTP endpoint, in bytes."`
	// ConnectTimeoutMS bounds one attempt to reach a source; 60 s when 0.
	ConnectTimeoutMS int `yaml:"connect_timeout_ms" rule:"min=1" doc:"Time limit of one attempt to reach a source, in milliseconds."`
	// DrainTimeoutMS bounds how long calls may go on after the end was asked
	// for; 20 s when 0.
	DrainTimeoutMS int `yaml:"drain_timeout_ms" rule:"min=1" doc:"How long calls may go on after the end was asked for, in milliseconds."`
}

// Duration is a length of time, written as Go writes it: 30s, 10m.
type Duration time.Duration

// UnmarshalText accepts what time.ParseDuration does, without a sign.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return errNotDuration
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
