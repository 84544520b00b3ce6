package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/tools"
)

// caller is a tool that calls others by name.
func caller(name string, opts ...tools.DescriptorOption) tools.ToolDescriptor {
	opts = append(opts, tools.WithKind(tools.KindMeta), tools.WithRedirect(
		func(_ context.Context, args json.RawMessage) (string, json.RawMessage, error) {
			var in struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"args"`
			}
			if err := json.Unmarshal(args, &in); err != nil {
				return "", nil, errors.New("args cannot be read")
			}
			if in.Name == "boom" {
				panic("boom")
			}
			return in.Name, in.Args, nil
		}))
	d := plain(name, returning(tools.ToolResult{}, errors.New("must not run")), opts...)
	d.Tool.ArgsSchema = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"args":{"type":"object"}},"required":["name"]}`)
	return d
}

func TestRedirectIsTheCallOfItsTarget(t *testing.T) {
	var seen []string
	note := func(next tools.Invoker) tools.Invoker {
		return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
			seen = append(seen, tools.CallFrom(ctx).ID+" "+string(args))
			return next(ctx, args)
		}
	}
	st := &stage{}
	w := watch(t, []tools.CatalogOption{tools.WithMiddleware(note), tools.WithStages(tools.Stages{Recorder: st})},
		caller("tool_call"), plain("target", echo))
	ctx := tools.WithEntrance(adaCtx(), tools.Entrance{CallID: "c1"})
	res, err := w.Call(ctx, "tool_call", json.RawMessage(`{"name":"target","args":{"a":1}}`))
	if err != nil || res.CallID != "c1" || res.Tool != "target" {
		t.Fatalf("%+v, %v", res, err)
	}
	if !slices.Equal(seen, []string{`c1 {"a":1}`}) {
		t.Errorf("middleware saw %q", seen)
	}
	if len(st.records) != 1 || st.records[0].Tool.Name != "target" {
		t.Errorf("recorded %+v", st.records)
	}
	for _, e := range collect(w) {
		if name := toolNameOf(e); name != "target" {
			t.Errorf("%s names the tool %q", e.Type, name)
		}
	}
}

func toolNameOf(e events.Event) string {
	return reflect.ValueOf(e.Payload).FieldByName("ToolName").String()
}

// What cannot be called through a redirect is answered as if it had been called
// by its own name.
func TestRedirectToWhatCannotBeCalled(t *testing.T) {
	w := watch(t, nil, caller("tool_call"), caller("tool_call2"), plain("hidden", echo, tools.WithAuthScopes("s")))
	for _, target := range []string{"hidden", "absent", "tool_call", "tool_call2"} {
		args, _ := json.Marshal(map[string]any{"name": target, "args": map[string]any{"name": "absent"}})
		_, err := w.Call(adaCtx(), "tool_call", args)
		_, direct := w.Call(adaCtx(), "absent", nil)
		var e *tools.Error
		if !errors.As(err, &e) || !errors.Is(err, tools.ErrToolNotFound) || e.Tool != target ||
			strings.ReplaceAll(err.Error(), target, "absent") != direct.Error() {
			t.Errorf("%s: %v, want as %v", target, err, direct)
		}
		if got := w.drain(); !slices.Equal(got, []string{"tool.unknown", "tool.unknown"}) {
			t.Errorf("%s: %v", target, got)
		}
	}
}

func TestRedirectThatRefuses(t *testing.T) {
	w := watch(t, nil, caller("tool_call"), caller("hidden_call", tools.WithAuthScopes("s")), plain("target", echo))
	for _, test := range []struct {
		tool, args string
		want       error
		event      string
	}{
		{"tool_call", `{}`, tools.ErrToolInvalidArgs, "tool.invalid_args"},
		{"tool_call", `{"name":"target","name":"target"}`, tools.ErrToolInvalidArgs, "tool.invalid_args"},
		{"tool_call", `{"name":"target","args":[]}`, tools.ErrToolInvalidArgs, "tool.invalid_args"},
		{"tool_call", `{"name":"boom"}`, nil, "tool.failed:permanent:0"},
		{"hidden_call", `{"name":"target"}`, tools.ErrToolNotFound, "tool.unknown"},
	} {
		_, err := w.Call(adaCtx(), test.tool, json.RawMessage(test.args))
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s %s: %v, want %v", test.tool, test.args, err, test.want)
		}
		if got := w.drain(); !slices.Equal(got, []string{test.event}) {
			t.Errorf("%s %s: events %v, want %s", test.tool, test.args, got, test.event)
		}
	}
	strict := newCatalog(t, []tools.CatalogOption{tools.WithRequiredIdentity()}, caller("tool_call"), plain("target", echo))
	if _, err := strict.Call(context.Background(), "tool_call", json.RawMessage(`{"name":"target"}`)); !errors.Is(err, tools.ErrIdentityRequired) {
		t.Errorf("without an identity: %v", err)
	}
}

func TestRedirectSurvivesReplaceAndAmend(t *testing.T) {
	cat := newCatalog(t, nil, caller("tool_call"), plain("target", echo))
	d, _ := cat.Resolve("tool_call")
	if err := cat.Replace([]tools.ToolDescriptor{tools.Wrap(d)}); err != nil {
		t.Fatal(err)
	}
	if err := cat.Amend(func(tool *tools.Tool) { tool.Category = "x" }); err != nil {
		t.Fatal(err)
	}
	if _, err := cat.Call(adaCtx(), "tool_call", json.RawMessage(`{"name":"target"}`)); err != nil {
		t.Error(err)
	}
}
