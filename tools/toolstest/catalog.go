package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// RunCatalog runs the suite that every tools.ToolCatalog passes. newCatalog
// returns an empty one that demands nothing more of a call than a full identity.
// The optional interfaces of package tools are tested where the catalog has them.
func RunCatalog(t *testing.T, newCatalog func() tools.ToolCatalog) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, tools.ToolCatalog)
	}{
		{"Register", testRegister},
		{"Resolve", testResolve},
		{"List", testList},
		{"Visibility", testVisibility},
		{"Road", testRoad},
		{"Policy", testPolicy},
		{"Search", testSearch},
		{"Concurrent", testConcurrent},
		{"Replacer", testReplacer},
		{"Registrar", testRegistrar},
		{"Deregisterer", testDeregisterer},
		{"SourceSwapper", testSourceSwapper},
		{"Quarantiner", testQuarantiner},
		{"Watcher", testWatcher},
		{"StageSwapper", testStageSwapper},
		{"Caller", testCaller},
		{"Snapshotter", testSnapshotter},
		{"Amender", testAmender},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCatalog()) })
	}
}

const textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

var hello = json.RawMessage(`{"text":"hello"}`)

// texter is a tool that takes a text and follows the script.
func texter(s *Script, name string, opts ...tools.DescriptorOption) tools.ToolDescriptor {
	d := s.Descriptor(name, opts...)
	d.Tool.ArgsSchema = json.RawMessage(textSchema)
	return d
}

func register(t *testing.T, cat tools.ToolCatalog, list ...tools.ToolDescriptor) {
	t.Helper()
	for _, d := range list {
		if err := cat.Register(d); err != nil {
			t.Fatalf("Register %s: %v", d.Tool.Name, err)
		}
	}
}

func plain(names ...string) []tools.ToolDescriptor {
	var list []tools.ToolDescriptor
	for _, name := range names {
		list = append(list, texter(NewScript(), name))
	}
	return list
}

// as returns a context whose caller holds the scopes.
func as(t *testing.T, tenant string, scopes ...string) context.Context {
	t.Helper()
	return identity.With(t.Context(), identity.Identity{TenantID: tenant, UserID: "ada", SessionID: "s1"}, scopes...)
}

// invoke calls a tool the way that is open to every catalog.
func invoke(ctx context.Context, t *testing.T, cat tools.ToolCatalog, name string) (tools.ToolResult, error) {
	t.Helper()
	d, ok := cat.Resolve(name)
	if !ok {
		t.Fatalf("there is no tool %s", name)
	}
	return d.Invoke(ctx, hello)
}

func names(list []tools.Tool) []string {
	out := []string{}
	for _, tool := range list {
		out = append(out, tool.Name)
	}
	return out
}

func everything() tools.CatalogFilter {
	return tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingAlways, tools.LoadingDeferred}}
}

func expectNames(t *testing.T, cat tools.ToolCatalog, want ...string) {
	t.Helper()
	if got := names(cat.List(everything())); !slices.Equal(got, want) {
		t.Errorf("the catalog holds %v, want %v", got, want)
	}
}

func expectError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error = %v, want %v", err, want)
	}
}

func testRegister(t *testing.T, cat tools.ToolCatalog) {
	register(t, cat, plain("b", "a.c")...)
	badSchema := texter(NewScript(), "schema")
	badSchema.Tool.ArgsSchema = json.RawMessage(`{"type":"nothing that exists"}`)
	badOutput := texter(NewScript(), "output")
	badOutput.Tool.OutSchema = json.RawMessage(`{`)
	example := texter(NewScript(), "example", tools.WithExamples(tools.ToolExample{Args: map[string]any{"tetx": ""}}))
	for title, refused := range map[string]struct {
		d    tools.ToolDescriptor
		want error
	}{
		"the name again":   {texter(NewScript(), "b"), tools.ErrToolDuplicateName},
		"no name":          {texter(NewScript(), ""), tools.ErrToolInvalid},
		"a space":          {texter(NewScript(), "a b"), tools.ErrToolInvalid},
		"a long name":      {texter(NewScript(), strings.Repeat("n", 129)), tools.ErrToolInvalid},
		"no driver":        {tools.ToolDescriptor{Tool: tools.Tool{Name: "driver"}}, tools.ErrToolInvalid},
		"a bad schema":     {badSchema, tools.ErrToolInvalid},
		"a bad output":     {badOutput, tools.ErrToolInvalid},
		"a wrong example":  {example, tools.ErrToolExampleInvalid},
		"an unknown class": {texter(NewScript(), "class", tools.WithPolicy(tools.ToolPolicy{RetryOn: []tools.ErrorClass{"4xx"}})), tools.ErrToolInvalid},
	} {
		t.Run(title, func(t *testing.T) {
			expectError(t, cat.Register(refused.d), refused.want)
			expectNames(t, cat, "a.c", "b")
		})
	}
	register(t, cat, texter(NewScript(), strings.Repeat("n", 128)))
}

// What goes in and what comes out belongs to the caller, who may write into it.
func testResolve(t *testing.T, cat tools.ToolCatalog) {
	if _, ok := cat.Resolve("nothing"); ok {
		t.Error("a tool that nobody registered is there")
	}
	d := texter(NewScript(), "a", tools.WithTags("one", "two"), tools.WithDescription("Says so."))
	register(t, cat, d)
	spoil(&d.Tool)
	got, ok := cat.Resolve("a")
	if !ok || got.Tool.Description != "Says so." || !slices.Contains(got.Tool.Tags, "two") {
		t.Fatalf("Resolve: %+v, %v", got.Tool, ok)
	}
	spoil(&got.Tool)
	spoil(&cat.List(everything())[0])
	again, _ := cat.Resolve("a")
	if !slices.Contains(again.Tool.Tags, "one") || string(again.Tool.ArgsSchema) != textSchema {
		t.Errorf("what was given out leads into the catalog: %+v", again.Tool)
	}
	if _, err := again.Invoke(as(t, "acme"), hello); err != nil {
		t.Errorf("its call: %v", err)
	}
}

func spoil(tool *tools.Tool) {
	for i := range tool.Tags {
		tool.Tags[i] = "spoilt"
	}
	for i := range tool.ArgsSchema {
		tool.ArgsSchema[i] = ' '
	}
	tool.Description = "spoilt"
}

func testList(t *testing.T, cat tools.ToolCatalog) {
	if got := cat.List(everything()); len(got) != 0 {
		t.Errorf("an empty catalog lists %v", names(got))
	}
	register(t, cat, plain("z", "a.b", "m")...)
	register(t, cat, texter(NewScript(), "later", tools.WithLoading(tools.LoadingDeferred)),
		texter(NewScript(), "now", tools.WithLoading(tools.LoadingAlways)))
	for title, c := range map[string]struct {
		filter tools.CatalogFilter
		want   []string
	}{
		"no mode":  {tools.CatalogFilter{}, []string{"a.b", "m", "now", "z"}},
		"both":     {everything(), []string{"a.b", "later", "m", "now", "z"}},
		"deferred": {tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingDeferred}}, []string{"later"}},
		"by name":  {tools.CatalogFilter{NameRegex: regexp.MustCompile(`^[am]`)}, []string{"a.b", "m"}},
	} {
		if got := names(cat.List(c.filter)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", title, got, c.want)
		}
	}
	if got := tools.VisibleNames(cat, tools.CatalogFilter{}); !slices.Equal(got, []string{"a.b", "later", "m", "now", "z"}) {
		t.Errorf("VisibleNames: %v", got)
	}
}

// A tool is there for whoever holds every one of its scopes, and for nobody else.
func testVisibility(t *testing.T, cat tools.ToolCatalog) {
	script := NewScript()
	register(t, cat, texter(NewScript(), "open"), texter(script, "secret", tools.WithAuthScopes("read", "write")))
	for _, c := range []struct {
		scopes []string
		sees   bool
	}{{nil, false}, {[]string{"read"}, false}, {[]string{"write", "other"}, false}, {[]string{"other", "write", "read"}, true}} {
		ctx := as(t, "acme", c.scopes...)
		if got := slices.Contains(names(cat.List(tools.FilterFrom(ctx))), "secret"); got != c.sees {
			t.Errorf("with %v: listed is %v", c.scopes, got)
		}
		_, err := tools.Invoke(ctx, cat, "secret", hello)
		if c.sees && err != nil || !c.sees && !errors.Is(err, tools.ErrToolNotFound) {
			t.Errorf("with %v: %v", c.scopes, err)
		}
	}
	if n := len(script.Attempts()); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	_, hidden := tools.Invoke(as(t, "acme"), cat, "secret", hello)
	_, absent := tools.Invoke(as(t, "acme"), cat, "sacred", hello)
	if got := strings.ReplaceAll(fmt.Sprint(hidden), "secret", "sacred"); got != fmt.Sprint(absent) {
		t.Errorf("a hidden tool says %q, and one that is not there %q", hidden, absent)
	}
}

// The Invoke of what Resolve returns is the whole road of a call.
func testRoad(t *testing.T, cat tools.ToolCatalog) {
	script := NewScript()
	boom := NewScript(func(context.Context, json.RawMessage) (tools.ToolResult, error) { panic("boom: 4711") })
	wrong := texter(NewScript(Answer(map[string]any{"n": "seven"})), "wrong")
	wrong.Tool.OutSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	register(t, cat, texter(script, "a"), texter(boom, "boom"), wrong)
	d, _ := cat.Resolve("a")
	for _, args := range []string{`{}`, `{"text":7}`, `{"text":"x","more":1}`, `[`, `{"text":"a","text":"b"}`} {
		_, err := d.Invoke(as(t, "acme"), json.RawMessage(args))
		if !errors.Is(err, tools.ErrToolInvalidArgs) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if n := len(script.Attempts()); n != 0 {
		t.Errorf("invalid arguments reached the tool %d times", n)
	}
	res, err := d.Invoke(as(t, "acme"), hello)
	if err != nil || res.CallID == "" || res.Attempts != 1 || !strings.Contains(holds(t, res), "hello") {
		t.Errorf("a good call: %+v, %v", res, err)
	}
	if _, err := invoke(as(t, "acme"), t, cat, "boom"); tools.ClassifyError(err, false) != tools.ErrClassPermanent ||
		strings.Contains(err.Error(), "4711") || len(boom.Attempts()) != 1 {
		t.Errorf("a tool that panics: %v after %d attempts", err, len(boom.Attempts()))
	}
	_, err = invoke(as(t, "acme"), t, cat, "wrong")
	expectError(t, err, tools.ErrToolInvalidOutput)
}

func testPolicy(t *testing.T, cat tools.ToolCatalog) {
	fault := &tools.Error{Class: tools.ErrClassTransient, Delivery: tools.NotDelivered, Message: "down"}
	policy := tools.ToolPolicy{MaxRetries: 2, BackoffBase: 1, TimeoutMS: 60_000}
	recovers, never := NewScript(Fail(fault), Fail(fault), Echo()), NewScript(Fail(fault))
	final := NewScript(Fail(&tools.Error{Class: tools.ErrClassPermanent, Message: "no"}))
	slow := NewScript(Park())
	register(t, cat, texter(recovers, "recovers", tools.WithPolicy(policy)), texter(never, "never", tools.WithPolicy(policy)),
		texter(final, "final", tools.WithPolicy(policy)), texter(slow, "slow", tools.WithPolicy(tools.ToolPolicy{TimeoutMS: 20, MaxRetries: -1})))
	if res, err := invoke(as(t, "acme"), t, cat, "recovers"); err != nil || res.Attempts != 3 {
		t.Errorf("a tool that recovers: %+v, %v", res, err)
	}
	_, err := invoke(as(t, "acme"), t, cat, "never")
	expectError(t, err, tools.ErrToolPolicyExhausted)
	if n := len(never.Attempts()); n != 3 {
		t.Errorf("%d attempts of a policy with two retries", n)
	}
	if _, err := invoke(as(t, "acme"), t, cat, "final"); err == nil || errors.Is(err, tools.ErrToolPolicyExhausted) || len(final.Attempts()) != 1 {
		t.Errorf("a permanent failure: %v after %d attempts", err, len(final.Attempts()))
	}
	_, err = invoke(as(t, "acme"), t, cat, "slow")
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassTimeout {
		t.Errorf("a tool past its limit: %v", err)
	}
	gone, cancel := context.WithCancel(as(t, "acme"))
	cancel()
	before := len(slow.Attempts())
	_, err = invoke(gone, t, cat, "slow")
	expectError(t, err, context.Canceled)
	if n := len(slow.Attempts()); n != before {
		t.Error("a call that was cancelled before it began ran")
	}
}

// Search may find nothing; what it finds is visible, and no more than was asked.
func testSearch(t *testing.T, cat tools.ToolCatalog) {
	register(t, cat, texter(NewScript(), "weather.today", tools.WithTags("w")), texter(NewScript(), "weather.later", tools.WithTags("w")),
		texter(NewScript(), "weather.secret", tools.WithTags("w"), tools.WithAuthScopes("s")))
	for _, limit := range []int{-1, 0, 1, 10} {
		found := names(cat.Search(as(t, "acme"), "weather", []string{"w"}, limit))
		if len(found) > max(limit, 0) || slices.Contains(found, "weather.secret") {
			t.Errorf("at most %d: %v", limit, found)
		}
	}
}

func testConcurrent(t *testing.T, cat tools.ToolCatalog) {
	ctx := as(t, "acme")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("t%d.%d", i, j)
				if err := cat.Register(texter(NewScript(), name)); err != nil {
					t.Error(err)
				}
				if _, err := tools.Invoke(ctx, cat, name, hello); err != nil {
					t.Error(err)
				}
				if !slices.IsSorted(names(cat.List(everything()))) {
					t.Error("a list is not sorted")
				}
				cat.Search(ctx, "text", nil, 3)
			}
		})
	}
	wg.Wait()
	if n := len(cat.List(everything())); n != 160 {
		t.Errorf("%d tools of 160", n)
	}
}
