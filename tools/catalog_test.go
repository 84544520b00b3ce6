package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

const echoSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

func echo(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{Value: slices.Clone(args)}, nil
}

func descriptor(name string, opts ...tools.DescriptorOption) tools.ToolDescriptor {
	return tools.ResolveOptions(opts...).Descriptor(tools.Tool{Name: name, Description: "Repeats its arguments.",
		ArgsSchema: json.RawMessage(echoSchema), OutSchema: json.RawMessage(echoSchema)}, echo)
}

func newCatalog(t testing.TB, opts []tools.CatalogOption, list ...tools.ToolDescriptor) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog(opts...).(tools.LiveCatalog)
	for _, d := range list {
		if err := cat.Register(d); err != nil {
			t.Fatal(err)
		}
	}
	return cat
}

func ExampleNewCatalog() {
	cat := tools.NewCatalog()
	err := cat.Register(tools.ToolDescriptor{
		Tool: tools.Tool{Name: "text.echo", ArgsSchema: json.RawMessage(echoSchema)},
		Invoke: func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{Value: args}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := tools.Invoke(context.Background(), cat, "text.echo", json.RawMessage(`{"text":"hello"}`))
	fmt.Println(string(res.Structured), err)
	_, err = tools.Invoke(context.Background(), cat, "text.echo", json.RawMessage(`{"text":7}`))
	fmt.Println(err)
	// Output:
	// {"text":"hello"} <nil>
	// tools: invalid arguments: "text.echo": /text: expected string, got number
}

func TestRegisterRefuses(t *testing.T) {
	cases := map[string]struct {
		d    tools.ToolDescriptor
		want error
	}{
		"duplicate":     {descriptor("a"), tools.ErrToolDuplicateName},
		"empty name":    {descriptor(""), tools.ErrToolInvalid},
		"space":         {descriptor("a b"), tools.ErrToolInvalid},
		"long name":     {descriptor(string(make([]byte, 129))), tools.ErrToolInvalid},
		"no invoke":     {tools.ToolDescriptor{Tool: tools.Tool{Name: "b"}}, tools.ErrToolInvalid},
		"bad schema":    {tools.ToolDescriptor{Tool: tools.Tool{Name: "b", ArgsSchema: json.RawMessage(`{"type":5}`)}, Invoke: echo}, tools.ErrToolInvalid},
		"not a schema":  {tools.ToolDescriptor{Tool: tools.Tool{Name: "b", OutSchema: json.RawMessage(`{`)}, Invoke: echo}, tools.ErrToolInvalid},
		"example":       {descriptor("b", tools.WithExamples(tools.ToolExample{Args: map[string]any{"txet": "x"}})), tools.ErrToolExampleInvalid},
		"side effect":   {descriptor("b", tools.WithSideEffect("maybe")), tools.ErrToolInvalid},
		"loading":       {descriptor("b", tools.WithLoading("sometimes")), tools.ErrToolInvalid},
		"error class":   {descriptor("b", tools.WithPolicy(tools.ToolPolicy{RetryOn: []tools.ErrorClass{"4xx"}})), tools.ErrToolInvalid},
		"validate mode": {descriptor("b", tools.WithPolicy(tools.ToolPolicy{Validate: "some"})), tools.ErrToolInvalid},
		"injected":      {descriptor("b", tools.WithInjected(tools.Injected{Arg: "x", From: "moon"})), tools.ErrToolInvalid},
		"empty scope":   {descriptor("b", tools.WithAuthScopes("")), tools.ErrToolInvalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cat := newCatalog(t, nil, descriptor("a"))
			if err := cat.Register(c.d); !errors.Is(err, c.want) {
				t.Errorf("Register: %v, want %v", err, c.want)
			}
			if got := tools.VisibleNames(cat, tools.CatalogFilter{}); !slices.Equal(got, []string{"a"}) {
				t.Errorf("catalog holds %v", got)
			}
		})
	}
	strict := newCatalog(t, []tools.CatalogOption{tools.WithStrictNames()}, descriptor("good.name_1"))
	for _, name := range []string{"Bad", "a-b", "a..b", "1a", "a." + string(make([]byte, 70))} {
		if err := strict.Register(descriptor(name)); !errors.Is(err, tools.ErrToolInvalid) {
			t.Errorf("strict %q: %v", name, err)
		}
	}
}

// full is a descriptor in which everything that can be shared is set.
func full() tools.ToolDescriptor {
	return descriptor("full",
		tools.WithTags("b", "a"), tools.WithAuthScopes("s"), tools.WithHandlesMIME("image/*"), tools.WithTenants("acme"),
		tools.WithExamples(tools.ToolExample{Args: map[string]any{"text": []any{"deep"}}, Tags: []string{"t"}}),
		tools.WithPolicy(tools.ToolPolicy{RetryOn: []tools.ErrorClass{tools.ErrClass5xx}}),
		tools.WithInjected(tools.Injected{Arg: "run", From: tools.InjectRun}))
}

// spoil changes everything that a tool value reaches.
func spoil(t *tools.Tool) {
	t.Name = "spoilt"
	t.Tags[0], t.AuthScopes[0], t.HandlesMIME[0], t.Tenants[0] = "x", "x", "x", "x"
	t.Examples[0].Args["text"].([]any)[0] = "x"
	t.Examples[0].Tags[0] = "x"
	t.Policy.RetryOn[0] = "x"
	t.Injected[0].Arg = "x"
	for _, raw := range []json.RawMessage{t.ArgsSchema, t.OutSchema, t.Definition} {
		for i := range raw {
			raw[i] = 'x'
		}
	}
	_ = append(t.Tags, "y")
	_ = append(t.ArgsSchema, 'y')
}

func TestNothingIsShared(t *testing.T) {
	d := full()
	d.Tool.Definition = json.RawMessage(`{"name":"full"}`)
	t.Run("apart", func(t *testing.T) { nothingIsShared(t, d) })

	t.Run("one inside another", func(t *testing.T) { nothingIsShared(t, fullInside()) })
	t.Run("amended", func(t *testing.T) { nothingIsShared(t, fullInside(), tools.WithAmend(func(*tools.Tool) {})) })
}

// fullInside is full with schemas that are a part of the definition.
func fullInside() tools.ToolDescriptor {
	d := full()
	args := len(d.Tool.ArgsSchema)
	d.Tool.Definition = json.RawMessage(`{"inputSchema":` + string(d.Tool.ArgsSchema) + `,"outputSchema":{}}`)
	d.Tool.ArgsSchema = d.Tool.Definition[len(`{"inputSchema":`):][:args]
	d.Tool.OutSchema = d.Tool.Definition[len(d.Tool.Definition)-3:][:2]
	return d
}

func nothingIsShared(t *testing.T, d tools.ToolDescriptor, opts ...tools.CatalogOption) {
	t.Helper()
	cat := newCatalog(t, opts, d)
	filter := tools.CatalogFilter{GrantedScopes: []string{"s"}}
	want := cat.List(filter)
	spoil(&d.Tool)
	got, _ := cat.Resolve("full")
	spoil(&got.Tool)
	spoil(&cat.List(filter)[0])
	spoil(&cat.Snapshot().Visible(filter).Page(0, 1)[0])
	seen, _ := tools.NewPlannerView(cat, filter).Resolve("full")
	spoil(&seen)
	cat.Snapshot().Visible(filter).Names()[0] = "spoilt"
	if diff := cmp.Diff(want, cat.List(filter)); diff != "" {
		t.Errorf("the catalog changed:\n%s", diff)
	}
	again, _ := cat.Resolve("full")
	if !reflect.DeepEqual(again.Tool, want[0]) {
		t.Errorf("Resolve after: %+v", again.Tool)
	}
	if want[0].Tags[0] != "a" || want[0].Injected[0].Arg != "run" {
		t.Errorf("not what was registered: %+v", want[0])
	}
}

func TestVisibility(t *testing.T) {
	cat := newCatalog(t, nil, descriptor("open"), descriptor("later", tools.WithLoading(tools.LoadingDeferred)),
		descriptor("scoped", tools.WithAuthScopes("a", "b")), descriptor("theirs", tools.WithTenants("acme")))
	acme := identity.With(context.Background(), identity.Identity{TenantID: "acme", UserID: "u", SessionID: "s"}, "a")
	both := identity.With(context.Background(), identity.Identity{TenantID: "other", UserID: "u", SessionID: "s"}, "a", "b")
	cases := map[string]struct {
		filter tools.CatalogFilter
		want   []string
	}{
		"zero filter":      {tools.CatalogFilter{}, []string{"open", "theirs"}},
		"both modes":       {tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingAlways, tools.LoadingDeferred}}, []string{"later", "open", "theirs"}},
		"deferred":         {tools.CatalogFilter{LoadingModes: []tools.LoadingMode{tools.LoadingDeferred}}, []string{"later"}},
		"acme":             {tools.FilterFrom(acme), []string{"later", "open", "theirs"}},
		"other":            {tools.FilterFrom(both), []string{"later", "open", "scoped"}},
		"bare context":     {tools.FilterFrom(context.Background()), []string{"later", "open"}},
		"scopes one short": {tools.CatalogFilter{GrantedScopes: []string{"b"}}, []string{"open", "theirs"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, tool := range cat.List(c.filter) {
				got = append(got, tool.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("List: %v, want %v", got, c.want)
			}
		})
	}
	if err := cat.Quarantine("open", true); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Invoke(acme, cat, "open", json.RawMessage(`{"text":""}`)); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("quarantined: %v", err)
	}
	if slices.Contains(tools.VisibleNames(cat, tools.CatalogFilter{}), "open") {
		t.Error("a quarantined tool is listed")
	}
	if err := cat.Quarantine("open", false); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Invoke(acme, cat, "open", json.RawMessage(`{"text":""}`)); err != nil {
		t.Errorf("shown again: %v", err)
	}
}

func TestVisibilityClasses(t *testing.T) {
	cat := newCatalog(t, nil, descriptor("scoped", tools.WithAuthScopes("a")), descriptor("theirs", tools.WithTenants("acme")))
	s := cat.Snapshot()
	set := func(f tools.CatalogFilter) *tools.VisibleSet { return s.Visible(f) }
	ctxOf := func(tenant string, scopes ...string) tools.CatalogFilter {
		return tools.FilterFrom(identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: "u", SessionID: tenant + "s"}, scopes...))
	}
	if set(ctxOf("x", "z")) != set(ctxOf("y", "q")) {
		t.Error("callers who see the same do not share a set")
	}
	for _, pair := range [][2]tools.CatalogFilter{{ctxOf("x"), ctxOf("x", "a")}, {ctxOf("x"), ctxOf("acme")}, {ctxOf("x"), {}}} {
		if set(pair[0]).Class() == set(pair[1]).Class() {
			t.Errorf("%v and %v share class %q", pair[0], pair[1], set(pair[0]).Class())
		}
	}
	v := set(ctxOf("acme", "a"))
	built := 0
	for range 3 {
		v.Memo("k", func() any { built++; return built })
	}
	if built != 1 {
		t.Errorf("Memo built %d times", built)
	}
	if v.Index("sd") != 1 || !v.Has("theirs") || v.Has("thei") || len(v.Page(1, 9)) != 1 || len(v.Page(7, 1)) != 0 || len(v.Page(-1, -1)) != 0 {
		t.Error("places in the set are wrong")
	}
}

func TestReplace(t *testing.T) {
	cat := newCatalog(t, nil, descriptor("a"), descriptor("b"))
	bad := descriptor("b", tools.WithExamples(tools.ToolExample{Args: map[string]any{"nope": 1}}))
	for name, list := range map[string][]tools.ToolDescriptor{
		"unknown": {descriptor("a", tools.WithTags("new")), descriptor("zzz")},
		"example": {descriptor("a", tools.WithTags("new")), bad},
		"twice":   {descriptor("a", tools.WithTags("new")), descriptor("a")},
	} {
		if err := cat.Replace(list); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if d, _ := cat.Resolve("a"); len(d.Tool.Tags) != 0 {
			t.Errorf("%s: half applied", name)
		}
	}
	if err := cat.Replace([]tools.ToolDescriptor{descriptor("zzz")}); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if err := cat.Replace([]tools.ToolDescriptor{descriptor("a", tools.WithTags("new"))}); err != nil {
		t.Fatal(err)
	}
	if d, _ := cat.Resolve("a"); len(d.Tool.Tags) != 1 {
		t.Error("not replaced")
	}
}

func TestRegisterAllIsWhole(t *testing.T) {
	cat := newCatalog(t, nil, descriptor("c"))
	before := cat.Snapshot().Generation()
	if err := cat.RegisterAll([]tools.ToolDescriptor{descriptor("a"), descriptor("c")}); !errors.Is(err, tools.ErrToolDuplicateName) {
		t.Errorf("duplicate: %v", err)
	}
	if cat.Snapshot().Len() != 1 || cat.Snapshot().Generation() != before {
		t.Error("half applied")
	}
	if err := cat.RegisterAll([]tools.ToolDescriptor{descriptor("a"), descriptor("b")}); err != nil || cat.Snapshot().Len() != 3 {
		t.Errorf("%v, %d tools", err, cat.Snapshot().Len())
	}
	if got := cat.Snapshot().Generation(); got != before+1 {
		t.Errorf("a batch made %d generations", got-before)
	}
}

func TestDeregister(t *testing.T) {
	cat := newCatalog(t, nil, descriptor("a"))
	d, _ := cat.Resolve("a")
	if err := cat.Deregister("a"); err != nil {
		t.Fatal(err)
	}
	if err := cat.Deregister("a"); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("again: %v", err)
	}
	if _, ok := cat.Resolve("a"); ok {
		t.Error("still there")
	}
	if _, err := d.Invoke(context.Background(), json.RawMessage(`{"text":"x"}`)); err != nil {
		t.Errorf("a descriptor in hand stopped working: %v", err)
	}
	if err := cat.Register(descriptor("a")); err != nil {
		t.Errorf("register again: %v", err)
	}
}

func TestSwapSource(t *testing.T) {
	bus := events.NewBus(nil)
	sub := bus.Subscribe(events.Filter{Types: []events.EventType{tools.EventTypeCatalogChanged}}, nil)
	cat := newCatalog(t, []tools.CatalogOption{tools.WithEvents(bus)}, descriptor("mine"))
	watch, stop := cat.Watch()
	first := cat.SwapSource("s", []tools.ToolDescriptor{descriptor("s_a"), descriptor("s_b"), descriptor("mine"), descriptor("s a"), descriptor("s_a")})
	if !slices.Equal(first.Added, []string{"s_a", "s_b"}) || len(first.Refused) != 3 {
		t.Fatalf("first swap: %+v", first)
	}
	for _, r := range first.Refused {
		if r.Name == "mine" && !errors.Is(r.Err, tools.ErrToolDuplicateName) {
			t.Errorf("refusal of %q: %v", r.Name, r.Err)
		}
	}
	second := cat.SwapSource("s", []tools.ToolDescriptor{descriptor("s_b", tools.WithDescription("new")), descriptor("s_c")})
	if !slices.Equal(second.Added, []string{"s_c"}) || !slices.Equal(second.Updated, []string{"s_b"}) || !slices.Equal(second.Removed, []string{"s_a"}) {
		t.Errorf("second swap: %+v", second)
	}
	for _, seen := range []tools.DescriptorOption{tools.WithTenants("acme"), tools.WithAuthScopes("mail"), tools.WithLoading(tools.LoadingDeferred)} {
		if ch := cat.SwapSource("s", []tools.ToolDescriptor{descriptor("s_b", tools.WithDescription("new"), seen), descriptor("s_c")}); !slices.Equal(ch.Updated, []string{"s_b"}) {
			t.Errorf("others see the tool: %+v", ch)
		}
	}
	cat.SwapSource("s", []tools.ToolDescriptor{descriptor("s_b", tools.WithDescription("new")), descriptor("s_c")})
	generation := cat.Snapshot().Generation()
	if third := cat.SwapSource("s", []tools.ToolDescriptor{descriptor("s_b", tools.WithDescription("new")), descriptor("s_c")}); third.Unchanged != 2 || len(third.Updated) != 0 {
		t.Errorf("third swap: %+v", third)
	}
	if got := <-watch; got != generation {
		t.Errorf("watch gave generation %d, want %d", got, generation)
	}
	stop()
	if _, ok := <-watch; ok {
		t.Error("the watch goes on after stop")
	}
	sub.Close()
	var seen []events.Payload
	for e := range sub.Events() {
		seen = append(seen, e.Payload)
	}
	if len(seen) != 7 || seen[2].(tools.CatalogChangedPayload).Removed != 1 {
		t.Errorf("events: %+v", seen)
	}
	if got := tools.VisibleNames(cat, tools.CatalogFilter{}); !slices.Equal(got, []string{"mine", "s_b", "s_c"}) {
		t.Errorf("catalog holds %v", got)
	}
}

func TestAmend(t *testing.T) {
	cat := newCatalog(t, nil, descriptor("a"))
	tag := func(tag string) func(*tools.Tool) {
		return func(tool *tools.Tool) { tool.Tags = append(tool.Tags, tag); tool.Name = "renamed" }
	}
	for _, want := range []string{"x", "y"} {
		if err := cat.Amend(tag(want)); err != nil {
			t.Fatal(err)
		}
		if d, ok := cat.Resolve("a"); !ok || !slices.Equal(d.Tool.Tags, []string{want}) {
			t.Errorf("amended tool: %v %v", ok, d.Tool.Tags)
		}
	}
	if err := cat.Amend(func(tool *tools.Tool) { tool.Loading = "bad" }); !errors.Is(err, tools.ErrToolInvalid) {
		t.Errorf("a bad amendment: %v", err)
	}
	_ = cat.Register(descriptor("b"))
	if d, _ := cat.Resolve("b"); !slices.Equal(d.Tool.Tags, []string{"y"}) {
		t.Errorf("a later tool: %v", d.Tool.Tags)
	}
}

func TestCanonicalName(t *testing.T) {
	for _, c := range []struct{ prefix, source, want string }{
		{"fs_", "read_file", "fs_read_file"},
		{"", "weather.get-1", "weather.get-1"},
		{"s_", "", ""},
	} {
		if got := tools.CanonicalName(c.prefix, c.source); got != c.want {
			t.Errorf("CanonicalName(%q, %q) = %q", c.prefix, c.source, got)
		}
	}
	seen := map[string]string{}
	for _, source := range []string{"greet (structured)", "greet [structured]", "grüße", "a b", "a_b", "日本", string(make([]byte, 300)), string(make([]byte, 301))} {
		got := tools.CanonicalName("s_", source)
		if err := tools.CheckName(got); err != nil {
			t.Errorf("%q: %v", source, err)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are both %q", source, other, got)
		}
		seen[got] = source
		if got != tools.CanonicalName("s_", source) {
			t.Errorf("%q is not stable", source)
		}
	}
}

func TestMatchesMIME(t *testing.T) {
	tool := tools.Tool{HandlesMIME: []string{"image/*", "application/pdf"}}
	for mime, want := range map[string]bool{"image/png": true, "IMAGE/WEBP; q=1": true, "application/pdf": true, "application/json": false, "": false, "imagery/png": false} {
		if got := tool.MatchesMIME(mime); got != want {
			t.Errorf("MatchesMIME(%q) = %v", mime, got)
		}
	}
	if (tools.Tool{HandlesMIME: []string{"/*"}}).MatchesMIME("/x") {
		t.Error("an empty type matches")
	}
}

type index struct {
	synced [][]tools.Tool
	found  []string
}

func (i *index) Search(_ context.Context, _ string, _ []string, limit int) ([]tools.Tool, error) {
	var out []tools.Tool
	for _, n := range i.found[:min(limit, len(i.found))] {
		out = append(out, tools.Tool{Name: n})
	}
	return out, nil
}
func (i *index) Sync(_ context.Context, list []tools.Tool) error {
	i.synced = append(i.synced, list)
	return nil
}
func (i *index) Close() error { return nil }

func TestSearchShowsOnlyWhatIsVisible(t *testing.T) {
	ix := &index{found: []string{"secret1", "secret2", "open", "gone", "also"}}
	cat := newCatalog(t, []tools.CatalogOption{tools.WithSearchCache(ix)}, descriptor("open"), descriptor("also"),
		descriptor("secret1", tools.WithAuthScopes("s")), descriptor("secret2", tools.WithAuthScopes("s")))
	for range 2 {
		var got []string
		for _, tool := range cat.Search(context.Background(), "q", nil, 2) {
			got = append(got, tool.Name)
		}
		if !slices.Equal(got, []string{"open", "also"}) {
			t.Errorf("Search: %v", got)
		}
	}
	if len(ix.synced) != 1 || len(ix.synced[0]) != 4 {
		t.Errorf("the index was synced %d times", len(ix.synced))
	}
	if got := newCatalog(t, nil, descriptor("a")).Search(context.Background(), "a", nil, 5); len(got) != 0 {
		t.Errorf("without an index: %v", got)
	}
}
