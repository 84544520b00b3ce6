package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// The published names of the package with their published types. A name that
// is missing, or of another type, does not compile.
var (
	_ events.EventType = tools.EventTypeToolInvoked
	_ events.EventType = tools.EventTypeToolCompleted
	_ events.EventType = tools.EventTypeToolFailed
	_ events.EventType = tools.EventTypeToolInvalidArgs
	_ events.EventType = tools.EventTypeToolPolicyExhausted

	_ error = tools.ErrToolNotFound
	_ error = tools.ErrToolInvalidArgs
	_ error = tools.ErrToolPolicyExhausted
	_ error = tools.ErrToolDuplicateName
	_ error = tools.ErrToolExampleInvalid

	_ func(tools.ToolCatalog, tools.CatalogFilter) []string          = tools.VisibleNames
	_ func(context.Context, tools.ToolCatalog) context.Context       = tools.WithCatalog
	_ func(context.Context) (tools.ToolCatalog, bool)                = tools.Catalog
	_ func(context.Context) tools.ToolCatalog                        = tools.MustCatalog
	_ func(...tools.CatalogOption) tools.ToolCatalog                 = tools.NewCatalog
	_ func(tools.ToolSearchCache) tools.CatalogOption                = tools.WithSearchCache
	_ func(error, bool) tools.ErrorClass                             = tools.ClassifyError
	_ func() tools.ToolPolicy                                        = tools.DefaultPolicy
	_ func(...tools.DescriptorOption) tools.ResolvedDescriptorConfig = tools.ResolveOptions
	_ func(tools.ToolCatalog, tools.CatalogFilter) tools.PlannerView = tools.NewPlannerView
	_ func(tools.PlannerView) []tools.Tool                           = tools.PlannerView.List
	_ func(tools.PlannerView, string) (tools.Tool, bool)             = tools.PlannerView.Resolve
	_ func(tools.CatalogFilter) bool                                 = tools.CatalogFilter.HasFullTriple
	_ func(tools.Tool, string) bool                                  = tools.Tool.MatchesMIME
	_ func(...string) tools.DescriptorOption                         = tools.WithAuthScopes
	_ func(events.EventBus) tools.DescriptorOption                   = tools.WithBus
	_ func(string) tools.DescriptorOption                            = tools.WithCostHint
	_ func(string) tools.DescriptorOption                            = tools.WithDescription
	_ func(...tools.ToolExample) tools.DescriptorOption              = tools.WithExamples
	_ func(time.Duration) tools.DescriptorOption                     = tools.WithLatencyHint
	_ func(tools.LoadingMode) tools.DescriptorOption                 = tools.WithLoading
	_ func(tools.ToolPolicy) tools.DescriptorOption                  = tools.WithPolicy
	_ func(string) tools.DescriptorOption                            = tools.WithSafetyNotes
	_ func(tools.SideEffect) tools.DescriptorOption                  = tools.WithSideEffect
	_ func(tools.ToolSourceID) tools.DescriptorOption                = tools.WithSource
	_ func(...string) tools.DescriptorOption                         = tools.WithTags
	_ func(context.Context, json.RawMessage, func(context.Context, json.RawMessage) (tools.ToolResult, error), func(json.RawMessage) error,
		func(tools.ToolResult) error, tools.ToolPolicy) (tools.ToolResult, error) = tools.RunWithPolicy
	_ func(context.Context, json.RawMessage, func(context.Context, json.RawMessage) (tools.ToolResult, error), func(json.RawMessage) error,
		func(tools.ToolResult) error, tools.ToolPolicy, ...tools.InvokeHooks) (tools.ToolResult, error) = tools.RunWithPolicyHooked

	_ tools.CatalogReplacer = replacer(nil)
	_ tools.ToolCatalog     = foreignCatalog{}
	_ tools.ToolProvider    = foreignProvider{}
	_ tools.ToolSearchCache = (*index)(nil)
)

type replacer interface {
	Replace(wrapped []tools.ToolDescriptor) error
}

// foreignCatalog has the published methods of a catalog and no others.
type foreignCatalog struct{ list []tools.ToolDescriptor }

func (foreignCatalog) Register(tools.ToolDescriptor) error { return nil }
func (c foreignCatalog) Resolve(name string) (tools.ToolDescriptor, bool) {
	for _, d := range c.list {
		if d.Tool.Name == name {
			return d, true
		}
	}
	return tools.ToolDescriptor{}, false
}
func (c foreignCatalog) List(tools.CatalogFilter) (out []tools.Tool) {
	for _, d := range c.list {
		out = append(out, d.Tool)
	}
	return out
}
func (foreignCatalog) Search(context.Context, string, []string, int) []tools.Tool { return nil }

// foreignProvider has the published methods of a provider and no others.
type foreignProvider struct{}

func (foreignProvider) Connect(context.Context) error                            { return nil }
func (foreignProvider) Discover(context.Context) ([]tools.ToolDescriptor, error) { return nil, nil }
func (foreignProvider) Close(context.Context) error                              { return nil }
func (foreignProvider) SourceID() tools.ToolSourceID                             { return "" }

func TestPublishedConstants(t *testing.T) {
	for got, want := range map[string]string{
		string(tools.EventTypeToolInvoked):         "tool.invoked",
		string(tools.EventTypeToolCompleted):       "tool.completed",
		string(tools.EventTypeToolFailed):          "tool.failed",
		string(tools.EventTypeToolInvalidArgs):     "tool.invalid_args",
		string(tools.EventTypeToolPolicyExhausted): "tool.policy_exhausted",
		string(tools.ErrClassTransient):            "transient",
		string(tools.ErrClassTimeout):              "timeout",
		string(tools.ErrClass5xx):                  "5xx",
		string(tools.ErrClassPermanent):            "permanent",
		string(tools.LoadingAlways):                "always",
		string(tools.LoadingDeferred):              "deferred",
		string(tools.SideEffectPure):               "pure",
		string(tools.SideEffectRead):               "read",
		string(tools.SideEffectWrite):              "write",
		string(tools.SideEffectExternal):           "external",
		string(tools.SideEffectStateful):           "stateful",
		string(tools.TransportInProcess):           "inprocess",
		string(tools.TransportHTTP):                "http",
		string(tools.TransportMCP):                 "mcp",
		string(tools.TransportA2A):                 "a2a",
		string(tools.TransportFlow):                "flow",
		string(tools.ValidateBoth):                 "both",
		string(tools.ValidateIn):                   "in",
		string(tools.ValidateOut):                  "out",
		string(tools.ValidateNone):                 "none",
	} {
		if got != want {
			t.Errorf("%q should be %q", got, want)
		}
	}
}

// field is a published struct field.
type field struct {
	name string
	kind reflect.Type
}

func f[T any](name string) field { return field{name, reflect.TypeFor[T]()} }

func TestPublishedFields(t *testing.T) {
	payload := []field{f[identity.Quadruple]("Identity"), f[string]("ToolName"), f[tools.TransportKind]("Transport"), f[events.SafeSealed]("SafeSealed")}
	common := []field{f[tools.ToolPolicy]("Policy"), f[string]("Description"), f[[]string]("Tags"), f[[]string]("AuthScopes"), f[[]tools.ToolExample]("Examples"),
		f[tools.LoadingMode]("Loading"), f[string]("CostHint"), f[time.Duration]("LatencyHint"), f[string]("SafetyNotes"), f[tools.ToolSourceID]("Source")}
	for of, fields := range map[reflect.Type][]field{
		reflect.TypeFor[tools.Tool](): append([]field{f[string]("Name"), f[json.RawMessage]("ArgsSchema"), f[json.RawMessage]("OutSchema"),
			f[tools.SideEffect]("SideEffects"), f[tools.TransportKind]("Transport"), f[[]string]("HandlesMIME")}, common...),
		reflect.TypeFor[tools.ResolvedDescriptorConfig](): append([]field{f[tools.SideEffect]("SideEffect"), f[events.EventBus]("Bus")}, common...),
		reflect.TypeFor[tools.ToolDescriptor](): {f[tools.Tool]("Tool"), f[func(json.RawMessage) error]("Validate"),
			f[func(context.Context, json.RawMessage) (tools.ToolResult, error)]("Invoke")},
		reflect.TypeFor[tools.CatalogFilter](): {f[string]("TenantID"), f[string]("UserID"), f[string]("SessionID"), f[[]string]("GrantedScopes"),
			f[[]tools.LoadingMode]("LoadingModes"), f[*regexp.Regexp]("NameRegex")},
		reflect.TypeFor[tools.ToolPolicy](): {f[int]("TimeoutMS"), f[int]("MaxRetries"), f[time.Duration]("BackoffBase"), f[float64]("BackoffMult"),
			f[time.Duration]("BackoffMax"), f[[]tools.ErrorClass]("RetryOn"), f[tools.ValidateMode]("Validate")},
		reflect.TypeFor[tools.ToolResult]():                 {f[any]("Value"), f[map[string]any]("Meta")},
		reflect.TypeFor[tools.ToolExample]():                {f[map[string]any]("Args"), f[string]("Description"), f[[]string]("Tags")},
		reflect.TypeFor[tools.InvokeHooks]():                {f[func(int, error)]("OnAttempt")},
		reflect.TypeFor[tools.ToolInvokedPayload]():         append([]field{f[time.Time]("StartedAt")}, payload...),
		reflect.TypeFor[tools.ToolCompletedPayload]():       append([]field{f[int]("Attempts"), f[int64]("DurationMS")}, payload...),
		reflect.TypeFor[tools.ToolFailedPayload]():          append([]field{f[int]("Attempts"), f[tools.ErrorClass]("ErrorClass"), f[string]("ErrorMessage")}, payload...),
		reflect.TypeFor[tools.ToolInvalidArgsPayload]():     append([]field{f[string]("ValidationError")}, payload...),
		reflect.TypeFor[tools.ToolPolicyExhaustedPayload](): append([]field{f[int]("Attempts"), f[tools.ErrorClass]("LastClass"), f[string]("LastError")}, payload...),
	} {
		for _, want := range fields {
			got, ok := of.FieldByName(want.name)
			if !ok || got.Type != want.kind {
				t.Errorf("%v.%s is a %v (present: %v), published as %v", of, want.name, got.Type, ok, want.kind)
			}
		}
	}
}

func TestForeignCatalogsWork(t *testing.T) {
	cat := foreignCatalog{list: []tools.ToolDescriptor{descriptor("b"), descriptor("a")}}
	if got := tools.VisibleNames(cat, tools.CatalogFilter{}); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("VisibleNames: %v", got)
	}
	if _, err := tools.Invoke(context.Background(), cat, "a", json.RawMessage(`{}`)); err != nil {
		t.Errorf("Invoke: %v", err)
	}
	if _, err := tools.Invoke(context.Background(), cat, "zzz", nil); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("an unknown tool: %v", err)
	}
	if v := tools.NewPlannerView(cat, tools.CatalogFilter{}); len(v.List()) != 2 {
		t.Errorf("PlannerView: %v", v.List())
	}
	if tools.VisibleNames(nil, tools.CatalogFilter{}) != nil {
		t.Error("a nil catalog gives names")
	}
	if got, ok := tools.Catalog(tools.WithCatalog(context.Background(), cat)); !ok || len(got.List(tools.CatalogFilter{})) != 2 {
		t.Error("the catalog on a context is not found")
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, tools.ErrToolNotFound) {
			t.Errorf("MustCatalog panics with %v", err)
		}
	}()
	tools.MustCatalog(context.Background())
}
