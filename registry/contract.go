package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// MaxContractTools bounds how many tools a toolset has.
const MaxContractTools = 4096

// Contract is what a toolset's workers promise to serve.
type Contract struct {
	// Toolset is its name: 1 to 64 of A–Z, a–z, 0–9, underscore, dot and dash.
	Toolset string `json:"toolset"`
	// Description says what the toolset is for.
	Description string `json:"description,omitzero"`
	// Tools are its tools, each with schemas of its arguments and its result.
	Tools []ToolSpec `json:"tools"`
}

// ToolSpec is one tool of a contract. Fields mean what they mean in tools.Tool.
type ToolSpec struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`
	// ArgsSchema and ResultSchema are required. A schema of {} says that
	// anything is allowed; a result then need not be structured.
	ArgsSchema   json.RawMessage   `json:"args_schema"`
	ResultSchema json.RawMessage   `json:"result_schema"`
	SideEffects  tools.SideEffect  `json:"side_effects,omitzero"`
	Safety       *SafetySpec       `json:"safety,omitzero"`
	Tags         []string          `json:"tags,omitzero"`
	AuthScopes   []string          `json:"auth_scopes,omitzero"`
	Tenants      []string          `json:"tenants,omitzero"`
	CostHint     string            `json:"cost_hint,omitzero"`
	LatencyMS    int64             `json:"latency_hint_ms,omitzero"`
	SafetyNotes  string            `json:"safety_notes,omitzero"`
	Loading      tools.LoadingMode `json:"loading,omitzero"`
	Examples     []ExampleSpec     `json:"examples,omitzero"`
	HandlesMIME  []string          `json:"handles_mime,omitzero"`
	Namespace    string            `json:"namespace,omitzero"`
	Category     string            `json:"category,omitzero"`
	Version      string            `json:"version,omitzero"`
	Exclusive    bool              `json:"exclusive,omitzero"`
	Definition   json.RawMessage   `json:"definition,omitzero"`
	Kind         tools.Kind        `json:"kind,omitzero"`
	SourceName   string            `json:"source_name,omitzero"`
	Policy       *PolicySpec       `json:"policy,omitzero"`
}

// ExampleSpec is tools.ToolExample as JSON.
type ExampleSpec struct {
	Args        json.RawMessage `json:"args"`
	Description string          `json:"description,omitzero"`
	Tags        []string        `json:"tags,omitzero"`
}

// SafetySpec is tools.Safety as JSON: flags that are not set are absent.
type SafetySpec struct {
	ReadOnly          *bool  `json:"read_only,omitzero"`
	Destructive       *bool  `json:"destructive,omitzero"`
	Idempotent        *bool  `json:"idempotent,omitzero"`
	OpenWorld         *bool  `json:"open_world,omitzero"`
	Filesystem        *bool  `json:"filesystem,omitzero"`
	Process           *bool  `json:"process,omitzero"`
	Spend             *bool  `json:"spend,omitzero"`
	NeedsConfirmation *bool  `json:"needs_confirmation,omitzero"`
	WorkspaceRoot     string `json:"workspace_root,omitzero"`
	Redaction         string `json:"redaction,omitzero"`
}

// PolicySpec is tools.ToolPolicy as JSON.
type PolicySpec struct {
	TimeoutMS     int                 `json:"timeout_ms,omitzero"`
	MaxRetries    int                 `json:"max_retries,omitzero"`
	BackoffBaseMS int64               `json:"backoff_base_ms,omitzero"`
	BackoffMult   float64             `json:"backoff_mult,omitzero"`
	BackoffMaxMS  int64               `json:"backoff_max_ms,omitzero"`
	Jitter        bool                `json:"jitter,omitzero"`
	RetryOn       *[]tools.ErrorClass `json:"retry_on,omitzero"`
	Validate      tools.ValidateMode  `json:"validate,omitzero"`
}

// Check returns ErrInvalid, with the tool and what is wrong, for a contract
// that cannot be served.
func (c *Contract) Check() error {
	if err := CheckToolset(c.Toolset); err != nil {
		return err
	}
	if len(c.Tools) == 0 || len(c.Tools) > MaxContractTools {
		return fmt.Errorf("%w: the contract of %q has 1 to %d tools, not %d", ErrInvalid, c.Toolset, MaxContractTools, len(c.Tools))
	}
	seen := make(map[string]bool, len(c.Tools))
	for i := range c.Tools {
		t := &c.Tools[i]
		if err := t.check(); err != nil {
			return fmt.Errorf("%w: toolset %q: tool %q: %w", ErrInvalid, c.Toolset, t.Name, err)
		}
		if seen[t.Name] {
			return fmt.Errorf("%w: toolset %q has two tools named %q", ErrInvalid, c.Toolset, t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

func (t *ToolSpec) check() error {
	if err := tools.CheckName(t.Name); err != nil {
		return err
	}
	if err := checkSchema("args_schema", t.ArgsSchema); err != nil {
		return err
	}
	return checkSchema("result_schema", t.ResultSchema)
}

// checkSchema only makes sure that there is one: the catalog compiles it.
func checkSchema(field string, schema json.RawMessage) error {
	switch {
	case len(schema) == 0 || string(rawjson.Trim(schema)) == "null":
		return fmt.Errorf("%s is missing; {} allows anything", field)
	case !rawjson.Valid(schema):
		return fmt.Errorf("%s is not JSON", field)
	}
	return nil
}

// Fingerprint returns the SHA-256, in hex, of what the contract says. The order
// of its tools, and how its JSON is written, do not matter.
func (c *Contract) Fingerprint() (string, error) {
	sorted := *c
	sorted.Tools = slices.Clone(c.Tools)
	slices.SortFunc(sorted.Tools, func(a, b ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	return fingerprint(c.Toolset, &sorted)
}

// Fingerprint returns the SHA-256, in hex, of what the contract says of the
// tool, as far as a call that was checked against it may be another call by
// something else: not of how the tool is described and listed.
func (t *ToolSpec) Fingerprint() (string, error) {
	of := *t
	of.Title, of.Description, of.Examples, of.Definition = "", "", nil, nil
	of.CostHint, of.LatencyMS, of.Loading = "", 0, ""
	return fingerprint(t.Name, &of)
}

func fingerprint(name string, of any) (string, error) {
	enc, err := json.Marshal(of)
	canonical := jsontext.Value(enc)
	if err == nil {
		err = canonical.Canonicalize()
	}
	if err != nil {
		return "", fmt.Errorf("%w: the contract of %q cannot be encoded: %w", ErrInvalid, name, err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// SpecOf returns the specification of a catalog's tool. A tool that declares no
// schema of its arguments or its result allows anything there.
func SpecOf(t tools.Tool) ToolSpec {
	return ToolSpec{
		Name: t.Name, Title: t.Title, Description: t.Description,
		ArgsSchema: orAnything(t.ArgsSchema), ResultSchema: orAnything(t.OutSchema),
		SideEffects: t.SideEffects, Safety: safetySpec(t.Safety), Tags: t.Tags, AuthScopes: t.AuthScopes, Tenants: t.Tenants,
		CostHint: t.CostHint, LatencyMS: t.LatencyHint.Milliseconds(), SafetyNotes: t.SafetyNotes, Loading: t.Loading,
		Examples: exampleSpecs(t.Examples), HandlesMIME: t.HandlesMIME, Namespace: t.Namespace, Category: t.Category, Version: t.Version,
		Exclusive: t.Exclusive, Definition: t.Definition, Kind: t.Kind, SourceName: t.SourceName, Policy: policySpec(t.Policy),
	}
}

func orAnything(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage("{}")
	}
	return schema
}

// tool returns the catalog's view of the tool.
func (t *ToolSpec) tool(toolset string) tools.Tool {
	out := tools.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, ArgsSchema: t.ArgsSchema,
		SideEffects: t.SideEffects, Safety: t.Safety.safety(), Tags: t.Tags, AuthScopes: t.AuthScopes, Tenants: t.Tenants,
		CostHint: t.CostHint, LatencyHint: milliseconds(t.LatencyMS), SafetyNotes: t.SafetyNotes,
		Loading: t.Loading, Examples: t.examples(), HandlesMIME: t.HandlesMIME, Namespace: t.Namespace, Category: t.Category,
		Version: t.Version, Exclusive: t.Exclusive, Definition: t.Definition, Kind: t.Kind, SourceName: t.SourceName,
		Policy: t.Policy.policy(), Transport: tools.TransportWorker, Source: SourceID, SourcePart: toolset,
	}
	if out.Namespace == "" && !strings.Contains(t.Name, ".") {
		out.Namespace = toolset
	}
	if out.SourceName == "" {
		out.SourceName = t.Name
	}
	if compact, err := rawjson.Compact(t.ResultSchema); err == nil && string(compact) != "{}" && string(compact) != "true" {
		out.OutSchema = t.ResultSchema
	}
	return out
}

// harmless reports whether a second run of the tool has no further effect.
func (t *ToolSpec) harmless() bool {
	s := t.Safety.safety()
	declared := t.SideEffects == tools.SideEffectPure || t.SideEffects == tools.SideEffectRead
	if s.Idempotent == tools.Yes || s.ReadOnly == tools.Yes {
		return true
	}
	return declared && s.ReadOnly != tools.No && s.Destructive != tools.Yes
}

// exampleSpecs leaves out examples that cannot be JSON.
func exampleSpecs(list []tools.ToolExample) []ExampleSpec {
	var out []ExampleSpec
	for _, e := range list {
		if args, err := json.Marshal(e.Args); err == nil {
			out = append(out, ExampleSpec{Args: args, Description: e.Description, Tags: e.Tags})
		}
	}
	return out
}

// examples leaves out what is no object, which no example can be.
func (t *ToolSpec) examples() []tools.ToolExample {
	var out []tools.ToolExample
	for _, e := range t.Examples {
		example := tools.ToolExample{Description: e.Description, Tags: e.Tags}
		numbers := json.NewDecoder(bytes.NewReader(e.Args))
		numbers.UseNumber()
		if numbers.Decode(&example.Args) == nil {
			out = append(out, example)
		}
	}
	return out
}

func safetySpec(s tools.Safety) *SafetySpec {
	if s == (tools.Safety{}) {
		return nil
	}
	return &SafetySpec{ReadOnly: fact(s.ReadOnly), Destructive: fact(s.Destructive), Idempotent: fact(s.Idempotent),
		OpenWorld: fact(s.OpenWorld), Filesystem: fact(s.Filesystem), Process: fact(s.Process), Spend: fact(s.Spend),
		NeedsConfirmation: fact(s.NeedsConfirmation), WorkspaceRoot: s.WorkspaceRoot, Redaction: s.Redaction}
}

func (s *SafetySpec) safety() tools.Safety {
	if s == nil {
		return tools.Safety{}
	}
	return tools.Safety{ReadOnly: flag(s.ReadOnly), Destructive: flag(s.Destructive), Idempotent: flag(s.Idempotent),
		OpenWorld: flag(s.OpenWorld), Filesystem: flag(s.Filesystem), Process: flag(s.Process), Spend: flag(s.Spend),
		NeedsConfirmation: flag(s.NeedsConfirmation), WorkspaceRoot: s.WorkspaceRoot, Redaction: s.Redaction}
}

func fact(f tools.Flag) *bool {
	if f == tools.Unset {
		return nil
	}
	yes := f == tools.Yes
	return &yes
}

func flag(b *bool) tools.Flag {
	if b == nil {
		return tools.Unset
	}
	return tools.FlagOf(*b)
}

// policySpec leaves out the default, so that a contract does not change with it.
func policySpec(p tools.ToolPolicy) *PolicySpec {
	s := PolicySpec{TimeoutMS: p.TimeoutMS, MaxRetries: p.MaxRetries, BackoffBaseMS: p.BackoffBase.Milliseconds(),
		BackoffMult: p.BackoffMult, BackoffMaxMS: p.BackoffMax.Milliseconds(), Jitter: p.Jitter, Validate: p.Validate}
	if s == (PolicySpec{}) && p.RetryOn == nil {
		return nil
	}
	if p.RetryOn != nil {
		s.RetryOn = &p.RetryOn
	}
	return &s
}

func (s *PolicySpec) policy() tools.ToolPolicy {
	if s == nil {
		return tools.ToolPolicy{}
	}
	p := tools.ToolPolicy{TimeoutMS: s.TimeoutMS, MaxRetries: s.MaxRetries, BackoffBase: milliseconds(s.BackoffBaseMS),
		BackoffMult: s.BackoffMult, BackoffMax: milliseconds(s.BackoffMaxMS), Jitter: s.Jitter, Validate: s.Validate}
	if s.RetryOn != nil {
		p.RetryOn = *s.RetryOn
	}
	return p
}
