package adapter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/adapter/subset"
)

// Provider names a provider's API.
type Provider string

// The providers.
const (
	// OpenAI is the Chat Completions API, which many other providers offer too.
	OpenAI Provider = "openai"
	// OpenAIResponses is the Responses API.
	OpenAIResponses Provider = "openai-responses"
	// Anthropic is the Messages API.
	Anthropic Provider = "anthropic"
	// Gemini is generateContent of the Gemini API and of Vertex AI.
	Gemini Provider = "gemini"
	// Bedrock is the Converse API.
	Bedrock Provider = "bedrock"
	// MCP is the Model Context Protocol.
	MCP Provider = "mcp"
)

// Providers returns all providers.
func Providers() []Provider {
	return []Provider{OpenAI, OpenAIResponses, Anthropic, Gemini, Bedrock, MCP}
}

// Options tune an adapter. The zero value serves.
type Options struct {
	// Strict asks OpenAI to hold models to the schema. Schemas are then compiled
	// into the subset that strict mode takes. The other providers ignore it.
	Strict bool
	// Serial asks for at most one call in an answer, where the provider can be
	// asked.
	Serial bool
	// NativeDeferral hands tools whose Loading is tools.LoadingDeferred to the
	// provider's own search: Anthropic's tool search and that of OpenAI's
	// Responses API. Adapter.Defers says whether a provider has one; the others
	// declare such tools like any.
	NativeDeferral bool
	// OpenAPISchemas makes Gemini take schemas in "parameters", the dialect of
	// OpenAPI 3.0, instead of "parametersJsonSchema".
	OpenAPISchemas bool
	// HeavyBytes is how large the text of one result may be, in bytes, before
	// Declarations.Results refuses it. 0 means DefaultHeavyBytes, and less than
	// that no limit.
	HeavyBytes int
}

// DefaultHeavyBytes is the size of the largest result that reaches a model
// whole, in bytes.
const DefaultHeavyBytes = 32 << 10

// Adapter is one provider's shape. It never changes and is safe for concurrent
// use; it remembers the schemas that it compiled.
type Adapter struct {
	provider Provider
	opts     Options
	profile  *subset.Profile
	names    nameRule
	wire     wire
	maxTools int // 0 is no limit
	forms    forms
}

// New returns the adapter of a provider. nil options are the defaults. The error
// names a provider that there is none of.
func New(p Provider, opts *Options) (*Adapter, error) {
	a := &Adapter{provider: p}
	if opts != nil {
		a.opts = *opts
	}
	switch p {
	case OpenAI, OpenAIResponses:
		a.setOpenAI()
	case Anthropic:
		a.setAnthropic()
	case Gemini:
		a.setGemini()
	case Bedrock:
		a.setBedrock()
	case MCP:
		a.setMCP()
	default:
		return nil, fmt.Errorf("adapter: unknown provider %q: expected one of %s", p, known())
	}
	return a, nil
}

func known() string {
	var names []string
	for _, p := range Providers() {
		names = append(names, string(p))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// NewMCPAdapter returns the adapter of MCP with the default options.
func NewMCPAdapter() *Adapter { return builtin(MCP) }

// NewOpenAIAdapter returns the adapter of OpenAI's Chat Completions with the
// default options.
func NewOpenAIAdapter() *Adapter { return builtin(OpenAI) }

// NewAnthropicAdapter returns the adapter of Anthropic with the default options.
func NewAnthropicAdapter() *Adapter { return builtin(Anthropic) }

// builtin returns the adapter of a provider that is known to exist.
func builtin(p Provider) *Adapter {
	a, err := New(p, nil)
	if err != nil {
		panic(err)
	}
	return a
}

// Provider returns the provider.
func (a *Adapter) Provider() Provider { return a.provider }

// Name returns the provider's name, and says when the form is the strict one.
func (a *Adapter) Name() string {
	if a.strict() {
		return string(a.provider) + "-strict"
	}
	return string(a.provider)
}

func (a *Adapter) strict() bool {
	return a.opts.Strict && (a.provider == OpenAI || a.provider == OpenAIResponses)
}

// Defers reports whether the adapter hands deferred tools to the provider's own
// search.
func (a *Adapter) Defers() bool {
	return a.opts.NativeDeferral && (a.provider == Anthropic || a.provider == OpenAIResponses)
}

func (a *Adapter) heavyBytes() int {
	if a.opts.HeavyBytes == 0 {
		return DefaultHeavyBytes
	}
	return a.opts.HeavyBytes
}
