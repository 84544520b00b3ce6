package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/view"
)

// crib is a catalog with the meta-tools and a memory.
type crib struct {
	tools.LiveCatalog
	memory view.Memory
}

func newCrib(t testing.TB, list ...tools.Tool) *crib {
	t.Helper()
	c := &crib{tools.NewCatalog().(tools.LiveCatalog), view.NewMemory(nil)}
	if err := builtin.RegisterMeta(c, &builtin.MetaOptions{Memory: c.memory}); err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		c.add(t, tool)
	}
	return c
}

func (c *crib) add(t testing.TB, tool tools.Tool) {
	t.Helper()
	err := c.Register(tools.ToolDescriptor{Tool: tool, Invoke: func(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: json.RawMessage(args)}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// ask calls a meta-tool and reads its answer, which is the same for a model as for
// a program.
func ask[A any](t testing.TB, ctx context.Context, c tools.ToolCatalog, name string, args any) A {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tools.Invoke(ctx, c, name, raw)
	if err != nil {
		t.Fatalf("%s %s: %v", name, raw, err)
	}
	var out A
	if err := json.Unmarshal([]byte(res.Text()), &out); err != nil {
		t.Fatalf("%s: %v", res.Text(), err)
	}
	value, _ := res.JSON()
	var same A
	if err := json.Unmarshal(value, &same); err != nil || fmt.Sprintf("%+v", out) != fmt.Sprintf("%+v", same) {
		t.Errorf("a model reads %+v and a program %+v (%v)", out, same, err)
	}
	return out
}

func find(t testing.TB, ctx context.Context, c tools.ToolCatalog, query string) builtin.SearchResult {
	t.Helper()
	return ask[builtin.SearchResult](t, ctx, c, "tool_search", map[string]any{"query": query})
}

func foundNames(r builtin.SearchResult) []string {
	var names []string
	for _, f := range r.Tools {
		names = append(names, f.Name)
	}
	return names
}

func as(tenant string, scopes ...string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: "u", SessionID: "s"}, scopes...)
}

func trade() []tools.Tool {
	return []tools.Tool{
		{Name: "issues_create", Source: "mcp:tracker", Namespace: "tracker", Description: "Open a new ticket for a bug or a task.", Tags: []string{"write"}},
		{Name: "issues_list", Source: "mcp:tracker", Namespace: "tracker", Description: "List the tickets of a project.", Tags: []string{"read"}},
		{Name: "mail_send", Source: "mcp:mail", Namespace: "mail", Description: "Send an e-mail to somebody.",
			ArgsSchema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`), SafetyNotes: "It cannot be called back."},
		{Name: "weather.get_current", Description: "Return the current temperature of a city."},
		{Name: "vault_open", Source: "mcp:vault", Namespace: "vault", Description: "Open a vault.", AuthScopes: []string{"vault"}},
	}
}

func TestSearchFindsByWhatToolsDo(t *testing.T) {
	c := newCrib(t, trade()...)
	for query, want := range map[string]string{
		"file a bug report":                         "issues_create",
		"send an email":                             "mail_send",
		"weather.get_current":                       "weather.get_current",
		"how warm is it in a city, the temperature": "weather.get_current",
	} {
		if got := foundNames(find(t, as("acme"), c, query)); len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %v, want %s first", query, got, want)
		}
	}
}

// The two-turn rule: what a search or a look shows is what the caller is declared
// from then on.
func TestWhatIsShownIsRemembered(t *testing.T) {
	c := newCrib(t, trade()...)
	got := foundNames(find(t, as("acme"), c, "ticket"))
	ask[builtin.GetResult](t, as("acme"), c, "tool_get", map[string]any{"name": "mail_send"})
	ask[builtin.GetResult](t, as("acme"), c, "tool_get", map[string]any{"name": "vault_open"})
	ask[builtin.GetResult](t, as("acme"), c, "tool_get", map[string]any{"name": "tool_call"})
	want := slices.Sorted(slices.Values(append(got, "mail_send")))
	kept, err := c.memory.Found(as("acme"))
	if err != nil || !slices.Equal(kept, want) {
		t.Errorf("kept %v, want %v (%v)", kept, want, err)
	}
	if kept, _ := c.memory.Found(as("zeta")); len(kept) > 0 {
		t.Errorf("another caller's memory holds %v", kept)
	}
	own := view.NewMemory(nil)
	find(t, view.WithMemory(as("zeta"), own), c, "mail")
	if kept, _ := own.Found(as("zeta")); !slices.Contains(kept, "mail_send") {
		t.Errorf("the memory on the context holds %v", kept)
	}
	if kept, _ := c.memory.Found(as("zeta")); len(kept) > 0 {
		t.Errorf("beside the memory on the context, the other holds %v", kept)
	}
}

func TestExactNameWins(t *testing.T) {
	c := newCrib(t, trade()...)
	for i := range 50 {
		c.add(t, tools.Tool{Name: fmt.Sprintf("noise_%d", i), Description: "mail send mail send an e-mail mail_send"})
	}
	if got := foundNames(find(t, as("acme"), c, "mail_send")); got[0] != "mail_send" {
		t.Errorf("found %v", got)
	}
}

func TestOneLargeSourceDoesNotFloodTheHits(t *testing.T) {
	c := newCrib(t, tools.Tool{Name: "desk_ticket_open", Source: "mcp:desk", Namespace: "desk", Description: "Open a ticket."})
	for i := range 300 {
		c.add(t, tools.Tool{Name: fmt.Sprintf("huge_ticket_open_%d", i), Source: "mcp:huge", Namespace: "huge", Description: "Open a ticket."})
	}
	if got := foundNames(find(t, as("acme"), c, "open a ticket")); !slices.Contains(got, "desk_ticket_open") {
		t.Errorf("found %v", got)
	}
}

func TestWeakHitsSayWhatElseToDo(t *testing.T) {
	c := newCrib(t, trade()...)
	for _, query := range []string{"xylophone quartet", "zzzqqq"} {
		r := find(t, as("acme"), c, query)
		for _, f := range r.Tools {
			if !f.Weak {
				t.Errorf("%q: %s is not marked weak", query, f.Name)
			}
		}
		if !strings.Contains(r.Hint, "tracker (2)") || strings.Contains(r.Hint, "vault") {
			t.Errorf("%q: the hint is %q", query, r.Hint)
		}
	}
	if r := find(t, as("acme"), c, "send an email"); r.Hint != "" || r.Tools[0].Weak {
		t.Errorf("a good hit has a hint, or is weak: %+v", r)
	}
}

// What is no more than a guess, and no tool at its source, is left out beside
// something better.
func TestGuessesOfOtherKindsAreLeftOut(t *testing.T) {
	c := newCrib(t, trade()...)
	for i := range 3 {
		c.add(t, tools.Tool{Name: fmt.Sprintf("desk_resource_%d", i), Kind: tools.KindResource, SourceName: fmt.Sprint("x://", i),
			Description: "An old mail to somebody about the sending of something else that is long past."})
	}
	some := find(t, as("acme"), c, "send an email to somebody")
	all := ask[builtin.SearchResult](t, as("acme"), c, "tool_search", map[string]any{"query": "send an email to somebody", "limit": 10})
	weak := func(r builtin.SearchResult) (n int) {
		for _, f := range r.Tools {
			if f.Weak && strings.HasPrefix(f.Name, "desk_") {
				n++
			}
		}
		return n
	}
	if weak(some) > 0 || weak(all) != all.Count-some.Count || some.Tools[0].Name != "mail_send" {
		t.Errorf("without a limit %+v, with one %+v", some, all)
	}
}

func TestSourcesCanBeListed(t *testing.T) {
	c := newCrib(t, trade()...)
	list := func(ctx context.Context, args map[string]any) builtin.SearchResult {
		return ask[builtin.SearchResult](t, ctx, c, "tool_search", args)
	}
	for _, test := range []struct {
		ctx  context.Context
		args map[string]any
		want []string
		hint string
	}{
		{as("acme"), map[string]any{"source": "tracker"}, []string{"issues_create", "issues_list"}, "tool_get"},
		{as("acme"), map[string]any{"source": "Tracker", "limit": 1}, []string{"issues_create"}, `1 more: add a query, or give after: "issues_create"`},
		{as("acme"), map[string]any{"source": "tracker", "after": "issues_create"}, []string{"issues_list"}, "tool_get"},
		{as("acme"), map[string]any{"tags": []string{"read"}}, []string{"issues_list"}, "tool_get"},
		{as("acme"), map[string]any{"source": "vault"}, nil, "There is no such source. Sources: tracker (2), mail (1), weather (1)."},
		{as("acme"), map[string]any{"source": "nothing"}, nil, "There is no such source. Sources: tracker (2), mail (1), weather (1)."},
		{as("acme", "vault"), map[string]any{"source": "vault"}, []string{"vault_open"}, "tool_get"},
		{as("acme"), map[string]any{"source": "mail", "query": "ticket"}, nil, "Nothing was found"},
	} {
		got := list(test.ctx, test.args)
		if !slices.Equal(foundNames(got), test.want) || !strings.Contains(got.Hint, test.hint) || got.Count != len(test.want) {
			t.Errorf("%v: %+v, want %v and %q", test.args, got, test.want, test.hint)
		}
	}
	if kept, _ := c.memory.Found(as("acme")); len(kept) > 0 {
		t.Errorf("what was only listed is remembered: %v", kept)
	}
	_, err := tools.Invoke(as("acme"), c, "tool_search", nil)
	if !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("neither query nor source: %v", err)
	}
}

func TestLimits(t *testing.T) {
	c := newCrib(t)
	for i := range 80 {
		c.add(t, tools.Tool{Name: fmt.Sprintf("ticket_%d", i), Description: "Open a ticket."})
	}
	for limit, want := range map[int]int{0: 10, 5: 5, 50: 50} {
		args := map[string]any{"query": "ticket"}
		if limit > 0 {
			args["limit"] = limit
		}
		if got := ask[builtin.SearchResult](t, as("acme"), c, "tool_search", args); got.Count != want {
			t.Errorf("limit %d gives %d", limit, got.Count)
		}
	}
	if _, err := tools.Invoke(as("acme"), c, "tool_search", json.RawMessage(`{"query":"x","limit":51}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("limit 51: %v", err)
	}
}

// An answer is part of every turn that follows, so it is small however long the
// descriptions are.
func TestFiveHitsAreSmall(t *testing.T) {
	c := newCrib(t)
	for i := range 20 {
		tag := strings.Repeat("t", 30)
		c.add(t, tools.Tool{Name: fmt.Sprintf("ticket_%d_%s", i, strings.Repeat("x", 60)), Tags: []string{tag + "1", tag + "2"},
			Description: strings.Repeat(`Open a "ticket" – `, 500), Source: tools.ToolSourceID(fmt.Sprint("mcp:", i))})
	}
	res, err := tools.Invoke(as("acme"), c, "tool_search", json.RawMessage(`{"query":"ticket","limit":5}`))
	if err != nil || len(res.Text()) > 2<<10 || strings.Count(res.Text(), `"name"`) != 5 {
		t.Errorf("%d bytes: %s, %v", len(res.Text()), res.Text(), err)
	}
}

func TestGetShowsATool(t *testing.T) {
	c := newCrib(t, trade()...)
	got := ask[builtin.GetResult](t, as("acme"), c, "tool_get", map[string]any{"name": "mail_send"})
	if !got.Found || got.Name != "mail_send" || got.Description != "Send an e-mail to somebody.\n\nIt cannot be called back." ||
		string(got.ArgsSchema) != `{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}` || got.Error != "" {
		t.Errorf("%+v", got)
	}
	hidden := ask[builtin.GetResult](t, as("acme"), c, "tool_get", map[string]any{"name": "vault_open"})
	without := newCrib(t, trade()[:4]...)
	absent := ask[builtin.GetResult](t, as("acme"), without, "tool_get", map[string]any{"name": "vault_open"})
	if hidden.Found || fmt.Sprint(hidden) != fmt.Sprint(absent) {
		t.Errorf("a hidden tool is answered %+v, one that does not exist %+v", hidden, absent)
	}
	near := ask[builtin.GetResult](t, as("acme"), c, "tool_get", map[string]any{"name": "send_mail"})
	if near.Found || !strings.Contains(near.Error, "mail_send") {
		t.Errorf("a name that is nearly right: %+v", near)
	}
}

func TestCallReachesTheToolItself(t *testing.T) {
	c := newCrib(t, trade()...)
	res, err := tools.Invoke(as("acme"), c, "tool_call", json.RawMessage(`{"name":"mail_send","args":{"to":"x"}}`))
	if raw, _ := res.JSON(); err != nil || string(raw) != `{"to":"x"}` {
		t.Errorf("%s, %v", raw, err)
	}
	_, err = tools.Invoke(as("acme"), c, "tool_call", json.RawMessage(`{"name":"mail_send"}`))
	if !errors.Is(err, tools.ErrToolInvalidArgs) || !strings.Contains(err.Error(), "mail_send") {
		t.Errorf("arguments that the target refuses: %v", err)
	}
	_, hidden := tools.Invoke(as("acme"), c, "tool_call", json.RawMessage(`{"name":"vault_open"}`))
	_, absent := tools.Invoke(as("acme"), c, "vault_shut", nil)
	if strings.ReplaceAll(hidden.Error(), "vault_open", "vault_shut") != absent.Error() {
		t.Errorf("a hidden target is answered %q, an unknown tool %q", hidden, absent)
	}
}

// What a call of MCP names its arguments is understood, and nothing is lost.
func TestCallTakesArgumentsByBothNames(t *testing.T) {
	c := newCrib(t, trade()...)
	for args, want := range map[string]string{
		`{"name":"mail_send","args":{"to":"x"}}`:                    "",
		`{"name":"mail_send","arguments":{"to":"x"}}`:               "",
		`{"name":"mail_send","args":{},"arguments":{"to":"x"}}`:     "args and arguments are the same",
		`{"name":"mail_send","arguments":"to"}`:                     "arguments: expected an object",
		`{"name":"mail_send","to":"x"}`:                             `unexpected property "to"; expected name and args`,
		`{"name":"mail_send","args":{"to":"x"},"Args":{"to":"y"}}`:  `unexpected property "Args"`,
		`{"name":"mail_send","args":{"to":"x"},"parameters":{}}`:    `unexpected property "parameters"`,
		`{"name":"mail_send","arguments":{"to":"x"},"arguments":1}`: "arguments",
	} {
		res, err := tools.Invoke(as("acme"), c, "tool_call", json.RawMessage(args))
		if raw, _ := res.JSON(); want == "" && (err != nil || string(raw) != `{"to":"x"}` || res.Tool != "mail_send") {
			t.Errorf("%s: %s of %s, %v", args, raw, res.Tool, err)
		}
		if want != "" && (!errors.Is(err, tools.ErrToolInvalidArgs) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestRegisterOffersMetaToolsAlways(t *testing.T) {
	cat := tools.NewCatalog()
	if err := builtin.Register(cat, "tool_search", "tool_get", "tool_call"); err != nil {
		t.Fatal(err)
	}
	for _, name := range builtin.MetaNames() {
		if d, _ := cat.Resolve(name); d.Tool.Loading != tools.LoadingAlways || d.Tool.Kind != tools.KindMeta {
			t.Errorf("%s: %+v", name, d.Tool)
		}
	}
	if err := builtin.RegisterMeta(cat.(tools.LiveCatalog), nil, "text.echo"); !errors.Is(err, builtin.ErrUnknown) {
		t.Errorf("a tool that is none about tools: %v", err)
	}
}
