package turn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/turn"
)

// The tests of the files rules_*_test.go are named after the rules of the published
// design of a harness's tool feature, and stand in its order within each file.

func TestRegisterNamedTools(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil).add(tools.Tool{Name: "b"}, nil)
	if got := c.begin(caller(), nil).Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("declared %q", got)
	}
}

func TestToolNamesAreRejected(t *testing.T) {
	c := newCrib(t, tools.WithStrictNames()).add(tools.Tool{Name: "taken"}, nil)
	for why, name := range map[string]string{
		"empty": "", "duplicate": "taken", "spaces": "two words", "too long": strings.Repeat("n", 65), "provider escaping": "a/b", "not snake case": "getWeather",
	} {
		if c.cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: name}, Invoke: echo}) == nil {
			t.Errorf("%s: %q was registered", why, name)
		}
	}
	if got := c.begin(caller(), nil).Names(); !slices.Equal(got, []string{"taken"}) {
		t.Errorf("declared %q", got)
	}
}

// Events name the tool as the catalog does, whatever a provider was shown.
func TestCanonicalNamesInEvents(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "weather.get_current"}, nil)
	c.execute(nil, call("1", "weather.get_current", `{}`))
	if got := story(c.heard()); !slices.Equal(got, []string{"tool.invoked weather.get_current", "tool.completed weather.get_current"}) {
		t.Errorf("events %q", got)
	}
}

type findArgs struct {
	Query  string `json:"query"`
	Tenant string `json:"tenant"`
	Run    string `json:"run"`
	Key    string `json:"api_key"`
	Store  string `json:"store"`
}

type secrets map[string]string

func (s secrets) Secret(_ context.Context, name string) (string, error) { return s[name], nil }

// hidingCrib has a tool with every kind of hidden argument, which keeps what it
// was given.
func hidingCrib(t *testing.T) (*crib, *findArgs) {
	t.Helper()
	c := newCrib(t, tools.WithStages(tools.Stages{Secrets: secrets{"SEARCH_KEY": "hunter2"}}))
	got := new(findArgs)
	err := inproc.RegisterFunc(c.cat, "find", func(_ context.Context, in findArgs) (struct{}, error) { *got = in; return struct{}{}, nil },
		tools.WithInjected(
			tools.Injected{Arg: "tenant", From: tools.InjectTenant}, tools.Injected{Arg: "run", From: tools.InjectRun},
			tools.Injected{Arg: "api_key", From: "secret:SEARCH_KEY"},
			tools.Injected{Arg: "store", Value: func(context.Context) (any, error) { return "handle", nil }}))
	if err != nil {
		t.Fatal(err)
	}
	return c, got
}

func TestHiddenValuesNeverAppearInTheSchema(t *testing.T) {
	c, _ := hidingCrib(t)
	tn := c.begin(caller(), nil)
	shown := []byte(tn.Tools()[0].ArgsSchema)
	for _, p := range adapter.Providers() {
		a, err := adapter.New(p, nil)
		must(t, err)
		shown = append(shown, tn.Declare(a).JSON()...)
	}
	for _, hidden := range []string{"tenant", "run", "api_key", "SEARCH_KEY", "hunter2", "store"} {
		if bytes.Contains(shown, []byte(`"`+hidden)) || bytes.Contains(shown, []byte(hidden+`"`)) {
			t.Errorf("%q is shown: %s", hidden, shown)
		}
	}
	if !bytes.Contains(shown, []byte("query")) {
		t.Errorf("the argument that a model chooses is missing: %s", shown)
	}
}

func TestHiddenValuesNeverAppearInTheDefinition(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: object(`"tenant":{"type":"string"}`), Definition: json.RawMessage(`{"name":"a","inputSchema":{"properties":{"tenant":{}}}}`),
		Injected: []tools.Injected{{Arg: "tenant", From: tools.InjectTenant}}}, nil)
	var chosen []tools.Tool
	opts := &turn.Options{Select: func(_ context.Context, list []tools.Tool) ([]string, error) { chosen = list; return []string{"a"}, nil }}
	for _, list := range [][]tools.Tool{c.begin(caller(), opts).Tools(), chosen} {
		if len(list) != 1 || len(list[0].Definition) > 0 || len(list[0].Injected) > 0 {
			t.Errorf("shown: %+v", list)
		}
	}
}

func TestHiddenValuesAreInjectedAtExecution(t *testing.T) {
	c, got := hidingCrib(t)
	ctx := identity.WithQuadruple(context.Background(), identity.Quadruple{Identity: identity.Identity{TenantID: "acme", UserID: "u", SessionID: "s"}, RunID: "r1"})
	results, err := c.begin(ctx, nil).Execute(ctx, []turn.Call{call("1", "find", `{"query":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, results, turn.StatusCompleted)
	if diff := cmp.Diff(findArgs{Query: "x", Tenant: "acme", Run: "r1", Key: "hunter2", Store: "handle"}, *got); diff != "" {
		t.Error(diff)
	}
}

func TestForgedHiddenArgumentsAreNotExecuted(t *testing.T) {
	c, got := hidingCrib(t)
	results := c.execute(nil, call("1", "find", `{"query":"x","tenant":"other"}`))
	want(t, results, turn.StatusInvalid)
	if *got != (findArgs{}) {
		t.Error("the tool ran")
	}
	if got := story(c.heard()); !slices.Equal(got, []string{"tool.forged_args find", "tool.invalid_args find"}) {
		t.Errorf("events %q", got)
	}
	if text := results[0].Text(); strings.Contains(text, "other") {
		t.Errorf("the message repeats the value: %s", text)
	}
}

func TestValidateToolNameExists(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "get_weather"}, nil)
	results := c.execute(nil, call("1", "get_wether", `{}`))
	want(t, results, turn.StatusUnknown)
	if r := results[0]; !errors.Is(r.Err, tools.ErrToolNotFound) || !r.IsError || !strings.Contains(r.Text(), `Did you mean "get_weather"?`) {
		t.Errorf("%v: %s", r.Err, r.Text())
	}
	if got := story(c.heard()); !slices.Equal(got, []string{"tool.unknown get_wether"}) {
		t.Errorf("events %q", got)
	}
}

func TestValidateArgumentsAgainstTheInputSchema(t *testing.T) {
	ran := 0
	c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			ran++
			return tools.ToolResult{}, nil
		})
	results := c.execute(nil, call("1", "a", `{"n":"secret text"}`), call("2", "a", `{}`), call("3", "a", `{"n":1}`))
	want(t, results, turn.StatusInvalid, turn.StatusInvalid, turn.StatusCompleted)
	if r := results[0]; ran != 1 || !errors.Is(r.Err, tools.ErrToolInvalidArgs) || strings.Contains(r.Text(), "secret text") || !strings.Contains(r.Text(), "/n") {
		t.Errorf("ran %d: %s", ran, r.Text())
	}
}

// A tool that the caller may see and that was not declared in this turn is as
// unknown as one that does not exist, also to a model that remembers it.
func TestValidateAgainstTheToolsAdvertisedInThisTurn(t *testing.T) {
	ran := 0
	count := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		ran++
		return tools.ToolResult{}, nil
	}
	c := newCrib(t).add(tools.Tool{Name: "first"}, count)
	tn := c.begin(caller(), nil)
	c.add(tools.Tool{Name: "later"}, count).add(tools.Tool{Name: "hidden", AuthScopes: []string{"admin"}}, count)
	results, err := tn.Execute(caller(), []turn.Call{call("1", "later", `{}`), call("2", "hidden", `{}`), call("3", "nothing", `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, results, turn.StatusUnknown, turn.StatusUnknown, turn.StatusUnknown)
	if ran != 0 {
		t.Error("a tool ran that was not declared")
	}
	for i, name := range []string{"later", "hidden", "nothing"} {
		if got := strings.ReplaceAll(results[i].Text(), name, "X"); got != `There is no tool "X" in this turn.` {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := countTerminal(c.heard()); got != 3 {
		t.Errorf("%d terminal events for 3 calls", got)
	}
}

func TestWhatWasAdvertisedIsCheckedAgainAtExecution(t *testing.T) {
	ran := 0
	count := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		ran++
		return tools.ToolResult{}, nil
	}
	c := newCrib(t)
	for _, name := range []string{"same", "gone", "changed", "quarantined"} {
		c.add(tools.Tool{Name: name, Description: "as declared"}, count)
	}
	tn := c.begin(caller(), nil)
	must(t, c.cat.Deregister("gone"))
	must(t, c.cat.Quarantine("quarantined", true))
	must(t, c.cat.Replace([]tools.ToolDescriptor{{Tool: tools.Tool{Name: "changed", Description: "otherwise"}, Invoke: count}}))
	results, err := tn.Execute(caller(), []turn.Call{call("1", "same", `{}`), call("2", "gone", `{}`), call("3", "changed", `{}`), call("4", "quarantined", `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, results, turn.StatusCompleted, turn.StatusUnknown, turn.StatusNotRun, turn.StatusUnknown)
	if ran != 1 || !strings.Contains(results[2].Text(), "changed since it was declared") {
		t.Errorf("ran %d: %s", ran, results[2].Text())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
