package tools

import (
	"encoding/json"
	"strings"
	"time"
)

// Tool describes one tool, wherever it lives. It is a value: nothing in it is
// changed after registration, and it holds no state of a call.
type Tool struct {
	// Name is the canonical name and the catalog's key: 1 to 128 characters
	// of A–Z, a–z, 0–9, underscore, dot and dash. Dots group names.
	Name string
	// Title is a short name for people. Empty means Name.
	Title string
	// Description says what the tool does, for whoever chooses among tools.
	Description string
	// ArgsSchema is the JSON Schema of the arguments as a model may send
	// them. Empty means any arguments.
	ArgsSchema json.RawMessage
	// OutSchema is the JSON Schema of the structured result. Empty means that
	// the result is not checked.
	OutSchema json.RawMessage
	// SideEffects classifies what a call changes. It agrees with Safety: what
	// one of them leaves open is derived from the other at registration.
	SideEffects SideEffect
	// Tags are for filtering and search.
	Tags []string
	// AuthScopes are the scopes that a caller must all hold to see and call
	// the tool.
	AuthScopes []string
	// CostHint is free text such as "cheap"; nothing is enforced from it.
	CostHint string
	// LatencyHint is how long a call usually takes; nothing is enforced from
	// it.
	LatencyHint time.Duration
	// SafetyNotes is text shown beside the description.
	SafetyNotes string
	// Loading says whether the tool is declared to a model from the start.
	// Empty means that nobody set it; it counts as LoadingAlways.
	Loading LoadingMode
	// Examples are argument shapes that work. Every key of one must be a
	// property of ArgsSchema.
	Examples []ToolExample
	// Source identifies the provider that the tool came from, or is empty.
	Source ToolSourceID
	// SourcePart names the part of the source that has the tool, such as the toolset
	// of workers that serves it. Empty where a source has no parts.
	SourcePart string
	// Transport says how the tool is reached.
	Transport TransportKind
	// Policy is the reliability shell of a call. The zero value means
	// DefaultPolicy.
	Policy ToolPolicy
	// HandlesMIME lists the MIME types that the tool can consume; "image/*"
	// covers every image type.
	HandlesMIME []string

	// Namespace groups tools: an MCP server's name, else what stands before
	// the last dot of Name. It is derived at registration when empty.
	Namespace string
	// Category is a free label for grouping.
	Category string
	// Version is the tool's own version, or empty.
	Version string
	// SourceName is the tool's name at its source, before it was mapped to a
	// canonical name. Empty means Name.
	SourceName string
	// Safety holds what is known about the effects of a call.
	Safety Safety
	// Injected lists arguments that are hidden from every model and filled in
	// by the door for each attempt.
	Injected []Injected
	// Exclusive says that calls of this tool within one turn run one after
	// the other, in call order.
	Exclusive bool
	// Tenants, when not empty, lists the only tenants that see the tool.
	Tenants []string
	// DefinitionDigest is the SHA-256, in hex, of what a caller relies on:
	// name, description, both schemas, safety and injected names. It is
	// computed at registration.
	DefinitionDigest string
	// Definition is the tool object as its source published it, whole, so
	// that an MCP entrance can show fields that this struct does not name.
	// Empty when the source publishes none. For a Kind other than KindTool it
	// is the resource, template or prompt object.
	Definition json.RawMessage
	// Kind says what the tool is at its source. The zero value is a tool.
	Kind Kind
}

// Kind says what a tool is at its source. Whatever it is, it is called like a
// tool; protocols that have lists of their own for a kind show it there.
type Kind string

// The Kind values.
const (
	// KindTool is a tool.
	KindTool Kind = ""
	// KindResource is one resource, whose URI is the tool's SourceName. It is
	// called without arguments.
	KindResource Kind = "resource"
	// KindResourceTemplate is a family of resources. SourceName is the URI
	// template, and the argument "uri" says which one to read. Without a
	// Definition it reads what its source lists nowhere.
	KindResourceTemplate Kind = "resource_template"
	// KindPrompt is a prompt template. Its arguments are those of the prompt.
	KindPrompt Kind = "prompt"
	// KindMeta is a tool about tools: one that finds others, shows them, or
	// calls them. Whoever decides what a model is told of declares it while
	// there is something to find, or always if its Loading says so.
	KindMeta Kind = "meta"
)

func (k Kind) known() bool {
	switch k {
	case KindTool, KindResource, KindResourceTemplate, KindPrompt, KindMeta:
		return true
	}
	return false
}

// MatchesMIME reports whether HandlesMIME covers the given type. Parameters
// such as "; charset=utf-8" and letter case are ignored.
func (t Tool) MatchesMIME(mime string) bool {
	mime = bareMIME(mime)
	if mime == "" {
		return false
	}
	for _, p := range t.HandlesMIME {
		p = bareMIME(p)
		if p == mime || p == "*/*" {
			return true
		}
		if prefix, ok := strings.CutSuffix(p, "/*"); ok && prefix != "" && strings.HasPrefix(mime, prefix+"/") {
			return true
		}
	}
	return false
}

func bareMIME(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// ToolExample is one working use of a tool.
type ToolExample struct {
	// Args is shown as JSON.
	Args map[string]any
	// Description says what the example is for.
	Description string
	// Tags are free labels.
	Tags []string
}

// ToolSourceID identifies the provider that produced a tool. It is empty for
// Go functions.
type ToolSourceID string

// TransportKind says how a tool is reached.
type TransportKind string

// The TransportKind values.
const (
	TransportInProcess TransportKind = "inprocess"
	TransportHTTP      TransportKind = "http"
	TransportMCP       TransportKind = "mcp"
	TransportA2A       TransportKind = "a2a"
	TransportFlow      TransportKind = "flow"
	TransportWorker    TransportKind = "worker"
)

// LoadingMode says when a tool is declared to a model.
type LoadingMode string

// The LoadingMode values: declared on every turn, or only once it was found by
// search.
const (
	LoadingAlways   LoadingMode = "always"
	LoadingDeferred LoadingMode = "deferred"
)

// SideEffect is the declared effect of a call.
type SideEffect string

// The SideEffect values, from the safest to the most consequential. The empty
// value means unclassified, which is never taken for safe.
const (
	SideEffectPure     SideEffect = "pure"
	SideEffectRead     SideEffect = "read"
	SideEffectWrite    SideEffect = "write"
	SideEffectExternal SideEffect = "external"
	SideEffectStateful SideEffect = "stateful"
)

// harmless reports whether a call may be repeated without a second effect.
func (s SideEffect) harmless() bool { return s == SideEffectPure || s == SideEffectRead }

func (s SideEffect) known() bool {
	switch s {
	case "", SideEffectPure, SideEffectRead, SideEffectWrite, SideEffectExternal, SideEffectStateful:
		return true
	}
	return false
}
