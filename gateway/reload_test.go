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
		"listen: 0.0.0.0:1": "other machines",
		"tools: {built_in: [clock.now], entries: [{name: x, approval: {policy: gated}}]}":     "not available",
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

const (
	brokenKid = "tools: {mcp_servers: [{name: kid, command: [./not-there]}]}"
	// hungKid never answers.
	hungKid = "tools: {mcp_servers: [{name: kid, command: [sleep, '1000']}]}"
)

func reload(t *testing.T, g *gateway.Gateway, text string) {
	t.Helper()
	if err := g.Reload(bounded(t), parse(t, text)); err != nil {
		t.Fatal(err)
	}
}

// awaitState waits until the only source has the state, with an error or
// without.
func awaitState(t *testing.T, g *gateway.Gateway, state string, failed bool) {
	t.Helper()
	await(t, g, func() bool {
		s := g.Sources()[0]
		return s.State == state && (s.Error != "") == failed
	})
}

// A source whose replacement fails serves on, whether the replacement fails at
// once or never ends, until one succeeds.
func TestReloadKeepsWhatServes(t *testing.T) {
	book := &logbook{}
	g := open(t, parse(t, "tools: {mcp_servers: ["+child("kid")+"]}"), &gateway.Options{Logger: book.logger()})
	before, process := names(t, g), call(t, g, "kid_process", `{}`)
	for _, next := range []struct {
		text   string
		failed bool
	}{{brokenKid, true}, {hungKid, false}, {brokenKid, true}} {
		reload(t, g, next.text)
		awaitState(t, g, gateway.SourceReplacing, next.failed)
		if got := g.Sources()[0].Tools; got != len(before) {
			t.Errorf("%s: counts %d tools, want those that serve, %d", next.text, got, len(before))
		}
		if got := call(t, g, "kid_process", `{}`); got != process {
			t.Errorf("%s: answers %s, want %s", next.text, got, process)
		}
	}
	if !strings.Contains(book.String(), "serves as before") {
		t.Errorf("the log does not say that the source serves as before:\n%s", book)
	}
	reload(t, g, "tools: {mcp_servers: ["+child("kid")+"]}")
	awaitState(t, g, gateway.SourceReady, false)
	if got := call(t, g, "kid_process", `{}`); got == process {
		t.Error("the source was not replaced by the one that works")
	}
	if diff := cmp.Diff(before, names(t, g)); diff != "" {
		t.Error(diff)
	}
}

// Removing a source takes the tools that serve, whoever brought them.
func TestReloadRemovesAtOnce(t *testing.T) {
	for name, steps := range map[string][]string{
		"good":                      nil,
		"good, then hung":           {hungKid},
		"good, then broken":         {brokenKid},
		"good, then hung, then bad": {hungKid, brokenKid},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, parse(t, "tools: {mcp_servers: ["+child("kid")+"]}"), nil)
			for _, text := range steps {
				reload(t, g, text)
			}
			if got := names(t, g); len(got) != 3 {
				t.Fatalf("tools = %v before the removal", got)
			}
			reload(t, g, "")
			if got := names(t, g); len(got) != 0 || len(g.Sources()) != 0 {
				t.Errorf("tools = %v, sources = %v after the removal", got, g.Sources())
			}
		})
	}
}

// A source that never worked has nothing to keep.
func TestReloadFromADownSource(t *testing.T) {
	g := open(t, parse(t, brokenKid), nil)
	awaitState(t, g, gateway.SourceDown, true)
	reload(t, g, hungKid)
	awaitState(t, g, gateway.SourceConnecting, false)
	reload(t, g, brokenKid)
	awaitState(t, g, gateway.SourceDown, true)
}

// What is set back to what runs waits for no start.
func TestReloadBackNeedsNoRestart(t *testing.T) {
	book := &logbook{}
	g := open(t, parse(t, "listen: 127.0.0.1:1"), &gateway.Options{Logger: book.logger()})
	for _, port := range []string{"2", "1", "1"} {
		reload(t, g, "listen: 127.0.0.1:"+port)
	}
	if n := strings.Count(book.String(), "key=listen"); n != 1 {
		t.Errorf("the log speaks of listen %d times, want once:\n%s", n, book)
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
