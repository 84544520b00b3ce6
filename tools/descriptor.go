package tools

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/toolcrib/toolcrib/events"
)

// Invoker runs a tool: it takes the arguments as JSON and gives the result.
type Invoker = func(ctx context.Context, args json.RawMessage) (ToolResult, error)

// Middleware surrounds an Invoker. It may change the arguments or the result,
// answer by itself, or refuse with an error.
type Middleware func(next Invoker) Invoker

// ToolDescriptor is a tool and the way to run it.
//
// A driver fills in Invoke with its innermost step: one attempt at one call,
// without validation, retries or events. The catalog binds it: the Invoke of a
// descriptor that Resolve returned is the whole road of a call.
type ToolDescriptor struct {
	Tool Tool
	// Invoke runs the tool.
	Invoke func(ctx context.Context, args json.RawMessage) (ToolResult, error)
	// Validate, when not nil, checks the arguments in addition to
	// Tool.ArgsSchema. It runs once for each call, before the first attempt.
	// Its error must not quote argument values.
	Validate func(args json.RawMessage) error
	// Companion, when not nil, answers what clients of MCP ask around a tool
	// without calling it.
	Companion Companion

	bus      events.EventBus
	inline   bool
	redirect Redirect
	bound    *binding
}

// Companion answers what clients of MCP ask around the tools of one source
// without calling them. Whoever asks it has made sure that the caller sees the
// tool. It is safe for concurrent use.
type Companion interface {
	// Complete answers completion/complete, whose params name a prompt or a
	// resource template as the source does. What the source says before it
	// answers goes to the Peer of the Entrance on ctx.
	Complete(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
	// Subscribe has updated called with the params of each
	// notifications/resources/updated about uri, until stop is called. ctx
	// bounds the subscribing alone. updated must not block.
	Subscribe(ctx context.Context, uri string, updated func(params json.RawMessage)) (stop func(), err error)
}

// TaskKeeper is a Companion whose tools may give a task of MCP in place of a
// result (ToolResult.TaskID), when the call says that its caller takes one.
// Whoever uses it has made sure that the task is the caller's.
type TaskKeeper interface {
	Companion
	// Task passes tasks/get, tasks/result, tasks/update or tasks/cancel on,
	// whose params name the task as the source does. The Entrance on ctx says
	// who asks; what the source says and asks meanwhile goes to its Peer.
	Task(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// WatchTask has updated called with the params of each notifications/tasks
	// about a task, until stop is called. ctx bounds the subscribing alone.
	// updated must not block.
	WatchTask(ctx context.Context, id string, updated func(params json.RawMessage)) (stop func(), err error)
}

// DescriptorOption configures a tool at registration. Every driver takes the
// same options.
type DescriptorOption func(*descriptorConfig)

type descriptorConfig struct{ ResolvedDescriptorConfig }

// ResolvedDescriptorConfig is what a list of options comes to.
type ResolvedDescriptorConfig struct {
	Policy      ToolPolicy
	Description string
	Tags        []string
	AuthScopes  []string
	Examples    []ToolExample
	SideEffect  SideEffect
	Loading     LoadingMode
	CostHint    string
	LatencyHint time.Duration
	SafetyNotes string
	Source      ToolSourceID
	Bus         events.EventBus

	Title       string
	HandlesMIME []string
	Namespace   string
	Category    string
	Version     string
	SourceName  string
	Safety      Safety
	Injected    []Injected
	Exclusive   bool
	Tenants     []string
	Inline      bool
	Kind        Kind
	Redirect    Redirect
}

// ResolveOptions applies options in order; a later one wins, except that
// WithTags, WithAuthScopes, WithExamples, WithInjected, WithTenants and
// WithHandlesMIME add up.
func ResolveOptions(opts ...DescriptorOption) ResolvedDescriptorConfig {
	var c descriptorConfig
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	return c.ResolvedDescriptorConfig
}

// Descriptor returns a descriptor of t with what the options say laid over it,
// ready to be registered.
func (c ResolvedDescriptorConfig) Descriptor(t Tool, invoke Invoker) ToolDescriptor {
	overlay(&t.Description, c.Description)
	overlay(&t.SideEffects, c.SideEffect)
	overlay(&t.Loading, c.Loading)
	overlay(&t.CostHint, c.CostHint)
	overlay(&t.LatencyHint, c.LatencyHint)
	overlay(&t.SafetyNotes, c.SafetyNotes)
	overlay(&t.Source, c.Source)
	overlay(&t.Title, c.Title)
	overlay(&t.Namespace, c.Namespace)
	overlay(&t.Category, c.Category)
	overlay(&t.Version, c.Version)
	overlay(&t.SourceName, c.SourceName)
	overlay(&t.Safety, c.Safety)
	overlay(&t.Exclusive, c.Exclusive)
	overlay(&t.Kind, c.Kind)
	t.Tags = slices.Concat(t.Tags, c.Tags)
	t.AuthScopes = slices.Concat(t.AuthScopes, c.AuthScopes)
	t.Examples = slices.Concat(t.Examples, c.Examples)
	t.HandlesMIME = slices.Concat(t.HandlesMIME, c.HandlesMIME)
	t.Injected = slices.Concat(t.Injected, c.Injected)
	t.Tenants = slices.Concat(t.Tenants, c.Tenants)
	if !c.Policy.isZero() {
		t.Policy = c.Policy
	}
	return ToolDescriptor{Tool: t, Invoke: invoke, bus: c.Bus, inline: c.Inline, redirect: c.Redirect}
}

func overlay[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}

// WithDescription sets what the tool does, for whoever chooses among tools.
func WithDescription(s string) DescriptorOption {
	return func(c *descriptorConfig) { c.Description = s }
}

// WithTitle sets a short name for people.
func WithTitle(s string) DescriptorOption { return func(c *descriptorConfig) { c.Title = s } }

// WithTags adds tags.
func WithTags(tags ...string) DescriptorOption {
	return func(c *descriptorConfig) { c.Tags = append(c.Tags, tags...) }
}

// WithAuthScopes adds scopes that a caller must hold to see and call the tool.
func WithAuthScopes(scopes ...string) DescriptorOption {
	return func(c *descriptorConfig) { c.AuthScopes = append(c.AuthScopes, scopes...) }
}

// WithExamples adds argument shapes that work.
func WithExamples(examples ...ToolExample) DescriptorOption {
	return func(c *descriptorConfig) { c.Examples = append(c.Examples, examples...) }
}

// WithSideEffect declares the effect of a call.
func WithSideEffect(s SideEffect) DescriptorOption {
	return func(c *descriptorConfig) { c.SideEffect = s }
}

// WithLoading says when the tool is declared to a model.
func WithLoading(m LoadingMode) DescriptorOption { return func(c *descriptorConfig) { c.Loading = m } }

// WithCostHint sets a free-form cost annotation.
func WithCostHint(s string) DescriptorOption { return func(c *descriptorConfig) { c.CostHint = s } }

// WithLatencyHint says how long a call usually takes.
func WithLatencyHint(d time.Duration) DescriptorOption {
	return func(c *descriptorConfig) { c.LatencyHint = d }
}

// WithSafetyNotes sets text shown beside the description.
func WithSafetyNotes(s string) DescriptorOption {
	return func(c *descriptorConfig) { c.SafetyNotes = s }
}

// WithSource names the provider that the tool came from.
func WithSource(id ToolSourceID) DescriptorOption { return func(c *descriptorConfig) { c.Source = id } }

// WithPolicy sets the reliability shell. The zero policy means DefaultPolicy;
// in a policy that sets any field, TimeoutMS 0 means no limit for an attempt.
func WithPolicy(p ToolPolicy) DescriptorOption {
	return func(c *descriptorConfig) {
		if !p.isZero() && p.TimeoutMS == 0 {
			p.TimeoutMS = -1
		}
		c.Policy = p
	}
}

// WithBus publishes the tool's events on bus, in addition to the catalog's own
// bus if that is another one. Without an identity on the call's context
// nothing is published.
func WithBus(bus events.EventBus) DescriptorOption { return func(c *descriptorConfig) { c.Bus = bus } }

// WithHandlesMIME adds MIME types that the tool can consume.
func WithHandlesMIME(mimes ...string) DescriptorOption {
	return func(c *descriptorConfig) { c.HandlesMIME = append(c.HandlesMIME, mimes...) }
}

// WithNamespace sets the group that the tool belongs to.
func WithNamespace(s string) DescriptorOption { return func(c *descriptorConfig) { c.Namespace = s } }

// WithCategory sets a free label for grouping.
func WithCategory(s string) DescriptorOption { return func(c *descriptorConfig) { c.Category = s } }

// WithVersion sets the tool's own version.
func WithVersion(s string) DescriptorOption { return func(c *descriptorConfig) { c.Version = s } }

// WithSourceName keeps the tool's name at its source.
func WithSourceName(s string) DescriptorOption { return func(c *descriptorConfig) { c.SourceName = s } }

// WithSafety sets what is known about the effects of a call.
func WithSafety(s Safety) DescriptorOption { return func(c *descriptorConfig) { c.Safety = s } }

// WithInjected adds hidden arguments. They are removed from the schema that a
// model sees, stripped from what a model sends, and filled in for each attempt.
func WithInjected(args ...Injected) DescriptorOption {
	return func(c *descriptorConfig) { c.Injected = append(c.Injected, args...) }
}

// WithExclusive runs the calls of this tool within one turn one after the
// other.
func WithExclusive() DescriptorOption { return func(c *descriptorConfig) { c.Exclusive = true } }

// WithTenants adds tenants; once there is one, no other tenant sees the tool.
func WithTenants(ids ...string) DescriptorOption {
	return func(c *descriptorConfig) { c.Tenants = append(c.Tenants, ids...) }
}

// WithKind says that the tool is a resource, a resource template, a prompt, or a
// tool about tools.
func WithKind(k Kind) DescriptorOption { return func(c *descriptorConfig) { c.Kind = k } }

// WithInline declares that the function is cooperative: it returns soon after
// its context ends. It then runs on the caller's goroutine, which is faster;
// the time limit only ends its context.
func WithInline() DescriptorOption { return func(c *descriptorConfig) { c.Inline = true } }
