package gateway_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
)

func TestReload(t *testing.T) {
	book := &logbook{}
	g := open(t, parse(t, "tools: {built_in: [text.echo], mcp_servers: ["+child("kept")+", "+child("gone")+", "+child("changed")+"]}"),
		&gateway.Options{Logger: book.logger()})
	kept, changed := call(t, g, "kept_process", `{}`), call(t, g, "changed_process", `{}`)

	next := parse(t, `
listen: 127.0.0.1:1
tools:
  built_in: [clock.now]
  granted_scopes: [x]
  entries: [{name: clock.now, tags: [time], auth_scopes: [x]}]
  mcp_servers: [`+strings.TrimSuffix(child("changed"), "}")+", exclude: [grow]}, "+child("kept")+", "+child("new")+"]")
	if err := g.Reload(bounded(t), next); err != nil {
		t.Fatal(err)
	}
	want := []string{"changed_echo", "changed_process", "clock.now", "kept_echo", "kept_grow", "kept_process", "new_echo", "new_grow", "new_process"}
	await(t, g, func() bool { return slices.Equal(want, names(t, g)) })
	if got := call(t, g, "kept_process", `{}`); got != kept {
		t.Errorf("a source that did not change was restarted: %s, then %s", kept, got)
	}
	if got := call(t, g, "changed_process", `{}`); got == changed {
		t.Error("a source that changed was not restarted")
	}
	var order []string
	for _, s := range g.Sources() {
		order = append(order, s.Name)
	}
	if diff := cmp.Diff([]string{"changed", "kept", "new"}, order); diff != "" {
		t.Error(diff)
	}
	if d, _ := g.Catalog().Resolve("clock.now"); !slices.Contains(d.Tool.Tags, "time") {
		t.Errorf("the entry was not applied: %v", d.Tool.Tags)
	}
	if !strings.Contains(book.String(), "key=listen") {
		t.Errorf("the log does not say what needs a restart:\n%s", book)
	}
}

func TestReloadRefusesWhatIsWrong(t *testing.T) {
	g := open(t, parse(t, "tools: {built_in: [text.echo], mcp_servers: ["+child("kid")+"]}"),
		&gateway.Options{Register: []func(tools.ToolCatalog) error{registerGreet}})
	before, process := names(t, g), call(t, g, "kid_process", `{}`)
	for text, want := range map[string]string{
		"listen: 0.0.0.0:1":                        "other machines",
		"tools: {built_in: [clock.now, tool_get]}": "not available",
		"tools: {openapi: [{name: a, document: d, headers: {A: '${GATEWAY_TEST_NOT_SET}'}}]}": "GATEWAY_TEST_NOT_SET",
	} {
		if err := g.Reload(bounded(t), parse(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if diff := cmp.Diff(before, names(t, g)); diff != "" {
		t.Error(diff)
	}
	if got := call(t, g, "kid_process", `{}`); got != process {
		t.Errorf("the child was restarted: %s, then %s", process, got)
	}
}

// The tools of a source that changed and does not come up again are gone.
func TestReloadToADownSource(t *testing.T) {
	g := open(t, parse(t, "tools: {mcp_servers: ["+child("kid")+"]}"), nil)
	down := parse(t, "tools: {mcp_servers: [{name: kid, command: [./not-there]}]}")
	if err := g.Reload(bounded(t), down); err != nil {
		t.Fatal(err)
	}
	await(t, g, func() bool { return len(names(t, g)) == 0 })
	if err := g.Ready(bounded(t)); err != nil || g.Sources()[0].State != gateway.SourceDown {
		t.Errorf("%v, %+v", err, g.Sources())
	}
}

func TestReloadAfterClose(t *testing.T) {
	g := open(t, nil, nil)
	if err := errors.Join(g.Close(bounded(t)), g.Close(bounded(t))); err != nil {
		t.Error(err)
	}
	if err := g.Reload(bounded(t), nil); !errors.Is(err, gateway.ErrClosed) {
		t.Errorf("err = %v", err)
	}
}
