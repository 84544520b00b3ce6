package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

func TestValidationFailuresAreModelConsumable(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: object(`"n":{"type":"integer"}`)}, nil)
	for _, bad := range []turn.Call{call("1", "a", `{"n":true}`), call("1", "a", `{"n":`), call("1", "b", `{}`)} {
		results, err := c.begin(caller(), nil).Execute(caller(), []turn.Call{bad})
		if err != nil || len(results) != 1 || !results[0].IsError || results[0].Text() == "" {
			t.Errorf("%s: %v %+v", bad.Args, err, results)
		}
	}
}

func TestValidationFailuresAreHardWhenPolicyForbidsRepair(t *testing.T) {
	deny := []turn.Middleware{turn.Deny(turn.Named("denied"))}
	for _, bad := range []turn.Call{call("1", "a", `{"n":true}`), call("1", "a", `{"n":`), call("1", "b", `{}`), call("1", "denied", `{}`)} {
		c := newCrib(t).add(tools.Tool{Name: "a", ArgsSchema: object(`"n":{"type":"integer"}`)}, nil).add(tools.Tool{Name: "denied"}, nil)
		tn := c.begin(caller(), &turn.Options{BadCalls: turn.Fail, Concurrency: 1, Middleware: deny})
		results, err := tn.Execute(caller(), []turn.Call{call("0", "a", `{}`), bad, call("2", "a", `{}`)})
		if !errors.Is(err, turn.ErrBadCall) || len(results) != 3 {
			t.Errorf("%s %s: %v", bad.Name, bad.Args, err)
		}
		want(t, results, turn.StatusCompleted, results[1].Status, turn.StatusNotRun)
		if !slices.Contains([]turn.Status{turn.StatusInvalid, turn.StatusUnknown, turn.StatusDenied}, results[1].Status) {
			t.Errorf("status %s", results[1].Status)
		}
		if got := countTerminal(c.heard()); got != 3 {
			t.Errorf("%d terminal events for 3 calls", got)
		}
	}
}

func TestMalformedArgumentsAreNotReplacedWithEmptyDefaults(t *testing.T) {
	ran := map[string]int{}
	counting := func(name string) tools.Invoker {
		return func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			ran[name]++
			return tools.ToolResult{}, nil
		}
	}
	all := object(`"force":{"type":"boolean"}`)
	for _, policy := range []turn.BadCalls{turn.ReturnError, turn.Normalize} {
		clear(ran)
		c := newCrib(t).
			add(tools.Tool{Name: "delete_all", SideEffects: tools.SideEffectWrite, ArgsSchema: all}, counting("delete_all")).
			add(tools.Tool{Name: "unclassified", ArgsSchema: all}, counting("unclassified")).
			add(tools.Tool{Name: "list_all", SideEffects: tools.SideEffectRead, ArgsSchema: all}, counting("list_all")).
			add(tools.Tool{Name: "reset", SideEffects: tools.SideEffectWrite, ArgsSchema: object("")}, counting("reset"))
		opts := &turn.Options{BadCalls: policy, Concurrency: 1}
		for _, args := range []string{`{"force":`, `{force:true}`, `{}{}`, `{"force":true,"force":false}`, `nil`, `"{\"force\":true}"`, `[]`} {
			results := c.execute(opts, call("1", "delete_all", args), call("2", "unclassified", args))
			want(t, results, turn.StatusInvalid, turn.StatusInvalid)
		}
		for _, none := range []string{"", "null", " "} {
			results := c.execute(opts, call("1", "delete_all", none), call("2", "unclassified", none), call("3", "list_all", none), call("4", "reset", none))
			want(t, results, turn.StatusInvalid, turn.StatusInvalid, turn.StatusCompleted, turn.StatusCompleted)
		}
		if diff := cmp.Diff(map[string]int{"list_all": 3, "reset": 3}, ran); diff != "" {
			t.Errorf("%s: %s", policy, diff)
		}
	}
}

func TestToolCallIDsArePreserved(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	calls := []turn.Call{call("x", "a", `{"n":1}`), call("x", "a", `{"n":2}`), call("", "a", `{"n":3}`), call("", "no", `{}`), call("x", "no", `{}`), call("x", "a", `{`)}
	results := c.execute(nil, calls...)
	if len(results) != len(calls) {
		t.Fatalf("%d results for %d calls", len(results), len(calls))
	}
	for i, r := range results {
		if r.ID != calls[i].ID || r.Name != calls[i].Name {
			t.Errorf("result %d is of %q %q, the call was %q %q", i, r.ID, r.Name, calls[i].ID, calls[i].Name)
		}
	}
	for i := range 3 {
		if string(results[i].Structured) != string(calls[i].Args) {
			t.Errorf("result %d is %s", i, results[i].Structured)
		}
	}
	ids := map[string]bool{}
	for _, e := range c.heard() {
		if e.Type == tools.EventTypeToolCompleted {
			ids[e.CallID] = true
		}
	}
	if len(ids) != 3 || !ids["x"] {
		t.Errorf("events name the calls %v", ids)
	}
}

func TestAllowlistViolationsEmitEventsAndAppendRepairableResults(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "read", Safety: readOnly}, nil).add(tools.Tool{Name: "write"}, nil)
	only := &turn.Options{Select: turn.Only(turn.Is(turn.ReadOnly))}
	tn := c.begin(caller(), only)
	if got := tn.Names(); !slices.Equal(got, []string{"read"}) {
		t.Errorf("declared %q", got)
	}
	results := c.execute(only, call("1", "write", `{}`), call("2", "read", `{}`))
	want(t, results, turn.StatusUnknown, turn.StatusCompleted)
	heard := c.heard()
	denied := slices.IndexFunc(heard, func(e events.Event) bool { return e.Type == tools.EventTypeToolDenied })
	if denied < 0 || heard[denied].Payload.(tools.ToolDeniedPayload).Stage != "entrance" || heard[denied].Tool != "write" {
		t.Errorf("events %q", story(heard))
	}
}

func TestToolSelectionMiddlewareAndDynamicExposure(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil).add(tools.Tool{Name: "b"}, nil).add(tools.Tool{Name: "c"}, nil)
	keep := []string{"b", "nowhere"}
	run := turn.New(c.cat, &turn.Options{Select: func(context.Context, []tools.Tool) ([]string, error) { return keep, nil }}).NewRun(turn.Usage{})
	for _, now := range [][]string{{"b", "nowhere"}, {"c", "a"}, nil} {
		keep = now
		tn, err := run.Begin(caller())
		must(t, err)
		var shown []string
		for _, tool := range tn.Tools() {
			shown = append(shown, tool.Name)
		}
		var kept []string
		for _, name := range []string{"a", "b", "c"} {
			if slices.Contains(now, name) {
				kept = append(kept, name)
			}
			if tn.Has(name) != slices.Contains(now, name) {
				t.Errorf("%v: Has(%q)", now, name)
			}
		}
		if !slices.Equal(shown, kept) || !slices.Equal(tn.Names(), kept) {
			t.Errorf("%v: shown %q, names %q", now, shown, tn.Names())
		}
	}
	fails := errors.New("no")
	if _, err := turn.New(c.cat, &turn.Options{Select: func(context.Context, []tools.Tool) ([]string, error) { return nil, fails }}).Begin(caller()); !errors.Is(err, fails) {
		t.Error(err)
	}
}

func TestResultsKeepStructuredOutputsAndArtifacts(t *testing.T) {
	full := tools.ToolResult{Content: []tools.Content{tools.TextContent("see the file"), tools.ImageContent([]byte{1}, "image/png")},
		Structured: json.RawMessage(`{"big":9007199254740993}`), Artifacts: []tools.ArtifactRef{{Ref: "art-1", MIME: "text/csv", SizeBytes: 5}},
		Provider: map[string]any{"http_status": 200}, Meta: map[string]any{"k": "v"}}
	c := newCrib(t).add(tools.Tool{Name: "a"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) { return full, nil })
	got := c.execute(nil, call("1", "a", `{}`))[0]
	if got.CallID == "" || got.Attempts != 1 || got.Elapsed < 0 || got.ID != "1" || got.Name != "a" || got.Tool != "a" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(full.Content, got.Content); diff != "" || string(got.Structured) != string(full.Structured) || !cmp.Equal(got.Artifacts, full.Artifacts) ||
		!cmp.Equal(got.Provider, full.Provider) || !cmp.Equal(got.Meta, full.Meta) {
		t.Errorf("%+v", got)
	}
}

// shelf is a Bounder that keeps what has more than 100 bytes.
type shelf struct{ kept map[string][]byte }

func (s *shelf) Bound(_ context.Context, tool *tools.Tool, res tools.ToolResult) (tools.ToolResult, error) {
	if tool.Name == "broken" {
		return tools.ToolResult{}, errors.New("the disk is full")
	}
	if len(res.Structured) <= 100 {
		return res, nil
	}
	s.kept["art-1"] = res.Structured
	return tools.ToolResult{Content: []tools.Content{tools.TextContent("a preview; see artifact_fetch art-1")},
		Artifacts: []tools.ArtifactRef{{Ref: "art-1", MIME: "application/json", SizeBytes: int64(len(res.Structured))}}, CallID: res.CallID}, nil
}

func TestLargeOutputsAreStoredAsArtifacts(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	give := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: large}, nil
	}
	c := newCrib(t).add(tools.Tool{Name: "large"}, give).add(tools.Tool{Name: "broken"}, give).add(tools.Tool{Name: "small"}, nil)
	s := &shelf{kept: map[string][]byte{}}
	results := c.execute(&turn.Options{Bounder: s, Concurrency: 1}, call("1", "large", `{}`), call("2", "small", `{}`), call("3", "broken", `{}`))
	want(t, results, turn.StatusCompleted, turn.StatusCompleted, turn.StatusFailed)
	if r := results[0]; len(r.Artifacts) != 1 || strings.Contains(r.Text(), "xxx") || string(s.kept["art-1"]) != string(large) {
		t.Errorf("%+v", r)
	}
	if text := results[2].Text(); strings.Contains(text, "xxx") || !strings.Contains(text, "the call was made") {
		t.Errorf("%s", text)
	}
}

func TestClassifyToolErrors(t *testing.T) {
	fail := func(err error) tools.Invoker {
		return func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, err }
	}
	c := newCrib(t).
		add(tools.Tool{Name: "retry"}, fail(&tools.Error{Class: tools.ErrClassTransient, Message: "busy", RetryAfter: 7 * time.Second})).
		add(tools.Tool{Name: "repair"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{IsError: true, Content: []tools.Content{tools.TextContent("no such city")}}, nil
		}).
		add(tools.Tool{Name: "hard"}, fail(&tools.Error{Class: tools.ErrClassPermanent, Message: "broken for good"})).
		add(tools.Tool{Name: "panics"}, func(context.Context, json.RawMessage) (tools.ToolResult, error) { panic("a secret") })
	results := c.execute(nil, call("1", "retry", `{}`), call("2", "repair", `{}`), call("3", "hard", `{}`), call("4", "panics", `{}`))
	want(t, results, turn.StatusFailed, turn.StatusCompleted, turn.StatusFailed, turn.StatusFailed)
	for i, text := range []string{`"retry" failed: busy. It may be called again after 7s.`, "no such city", `"hard" failed: broken for good.`, `"panics" failed: the tool panicked.`} {
		if results[i].Text() != text || !results[i].IsError {
			t.Errorf("%q, want %q", results[i].Text(), text)
		}
	}
	var e *tools.Error
	if !errors.As(results[0].Err, &e) || !e.Retryable || e.Class != tools.ErrClassTransient {
		t.Errorf("%+v", e)
	}
}
