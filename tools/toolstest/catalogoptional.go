package toolstest

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

// ability returns the catalog as one of the optional interfaces, or skips.
func ability[T any](t *testing.T, cat tools.ToolCatalog) T {
	t.Helper()
	a, ok := cat.(T)
	if !ok {
		t.Skipf("the catalog is no %T", (*T)(nil))
	}
	return a
}

func testReplacer(t *testing.T, cat tools.ToolCatalog) {
	r := ability[tools.CatalogReplacer](t, cat)
	register(t, cat, plain("a", "b")...)
	expectError(t, r.Replace([]tools.ToolDescriptor{texter(NewScript(), "a", tools.WithDescription("New.")), texter(NewScript(), "c")}),
		tools.ErrToolNotFound)
	if d, _ := cat.Resolve("a"); d.Tool.Description == "New." {
		t.Error("half of a replacement was done")
	}
	second := NewScript()
	if err := r.Replace([]tools.ToolDescriptor{texter(second, "a", tools.WithDescription("New."))}); err != nil {
		t.Fatal(err)
	}
	d, _ := cat.Resolve("a")
	if _, err := d.Invoke(as(t, "acme"), hello); err != nil || d.Tool.Description != "New." || len(second.Attempts()) != 1 {
		t.Errorf("after Replace: %+v, %v", d.Tool, err)
	}
	wrapped := tools.Wrap(d, func(next tools.Invoker) tools.Invoker { return next })
	if err := r.Replace([]tools.ToolDescriptor{wrapped}); err != nil {
		t.Fatal(err)
	}
	if res, err := invoke(as(t, "acme"), t, cat, "a"); err != nil || res.Attempts != 1 || len(second.Attempts()) != 2 {
		t.Errorf("a wrapped tool: %+v, %v, ran %d times", res, err, len(second.Attempts()))
	}
	expectNames(t, cat, "a", "b")
}

func testRegistrar(t *testing.T, cat tools.ToolCatalog) {
	r := ability[tools.BatchRegistrar](t, cat)
	register(t, cat, plain("m")...)
	expectError(t, r.RegisterAll(plain("a", "m", "z")), tools.ErrToolDuplicateName)
	expectNames(t, cat, "m")
	if err := r.RegisterAll(plain("z", "a")); err != nil {
		t.Fatal(err)
	}
	if err := r.RegisterAll(nil); err != nil {
		t.Fatal(err)
	}
	expectNames(t, cat, "a", "m", "z")
}

// Calls that a removed tool runs go on.
func testDeregisterer(t *testing.T, cat tools.ToolCatalog) {
	r := ability[tools.Deregisterer](t, cat)
	entered, release := make(chan struct{}), make(chan struct{})
	slow := NewScript(func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		close(entered)
		<-release
		return Echo()(ctx, args)
	})
	register(t, cat, texter(slow, "a"))
	d, _ := cat.Resolve("a")
	done := make(chan error, 1)
	go func() {
		_, err := d.Invoke(as(t, "acme"), hello)
		done <- err
	}()
	receive(t, entered, "the tool did not begin")
	if err := r.Deregister("a"); err != nil {
		t.Fatal(err)
	}
	expectError(t, r.Deregister("a"), tools.ErrToolNotFound)
	expectNames(t, cat)
	close(release)
	if err := <-done; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	register(t, cat, plain("a")...)
}

func testSourceSwapper(t *testing.T, cat tools.ToolCatalog) {
	s := ability[tools.SourceSwapper](t, cat)
	register(t, cat, plain("mine")...)
	if ch := s.SwapSource("one", plain("a", "b", "mine", "not a name")); !slices.Equal(ch.Added, []string{"a", "b"}) || len(ch.Refused) != 2 {
		t.Errorf("the first set: %+v", ch)
	}
	if ch := s.SwapSource("two", plain("b", "c")); !slices.Equal(ch.Added, []string{"c"}) || len(ch.Refused) != 1 {
		t.Errorf("a second source: %+v", ch)
	}
	changed := texter(NewScript(), "a", tools.WithDescription("New."))
	ch := s.SwapSource("one", append(plain("d"), changed))
	if !slices.Equal(ch.Added, []string{"d"}) || !slices.Equal(ch.Updated, []string{"a"}) || !slices.Equal(ch.Removed, []string{"b"}) {
		t.Errorf("the second set: %+v", ch)
	}
	if ch := s.SwapSource("one", append(plain("d"), changed)); ch.Unchanged != 2 || len(ch.Updated)+len(ch.Added)+len(ch.Removed) > 0 {
		t.Errorf("the same set again: %+v", ch)
	}
	if d, _ := cat.Resolve("a"); d.Tool.Source != "one" {
		t.Errorf("its source is %q", d.Tool.Source)
	}
	s.SwapSource("one", nil)
	expectNames(t, cat, "c", "mine")
}

func testQuarantiner(t *testing.T, cat tools.ToolCatalog) {
	q := ability[tools.Quarantiner](t, cat)
	expectError(t, q.Quarantine("a", true), tools.ErrToolNotFound)
	register(t, cat, plain("a", "b")...)
	if err := q.Quarantine("a", true); err != nil {
		t.Fatal(err)
	}
	expectNames(t, cat, "b")
	_, err := tools.Invoke(as(t, "acme"), cat, "a", hello)
	expectError(t, err, tools.ErrToolNotFound)
	if err := q.Quarantine("a", false); err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Invoke(as(t, "acme"), cat, "a", hello); err != nil {
		t.Errorf("shown again: %v", err)
	}
}

func testWatcher(t *testing.T, cat tools.ToolCatalog) {
	w := ability[tools.Watcher](t, cat)
	generations, stop := w.Watch()
	idle, stopIdle := w.Watch()
	register(t, cat, plain("a")...)
	first := <-generations
	for i := range 5 { // nobody reads, and nobody waits
		register(t, cat, plain(string(rune('b'+i)))...)
	}
	if last := <-generations; last <= first {
		t.Errorf("generation %d after %d", last, first)
	}
	if got := <-idle; got <= first {
		t.Errorf("who reads late is told of generation %d, and not of the newest", got)
	}
	for range 2 {
		stop()
		stopIdle()
	}
	if _, open := <-generations; open {
		t.Error("the channel stays open")
	}
	register(t, cat, plain("z")...)
}

// denyAll is a safety policy.
type denyAll struct{}

func (denyAll) Decide(context.Context, *tools.Tool, json.RawMessage) (tools.Verdict, string, error) {
	return tools.Deny, "closed today", nil
}

func testStageSwapper(t *testing.T, cat tools.ToolCatalog) {
	s := ability[tools.StageSwapper](t, cat)
	var rec Recorder
	register(t, cat, plain("a")...)
	s.SwapStages(tools.Stages{Recorder: &rec})
	if _, err := tools.Invoke(as(t, "acme"), cat, "a", hello); err != nil {
		t.Fatal(err)
	}
	s.SwapStages(tools.Stages{Recorder: &rec, Safety: denyAll{}})
	_, err := tools.Invoke(as(t, "acme"), cat, "a", hello)
	expectError(t, err, tools.ErrToolDenied)
	records := rec.Records()
	if len(records) != 2 || records[0].Err != nil || records[0].Result == nil || records[1].Err == nil || records[0].Identity.TenantID != "acme" {
		t.Errorf("records: %+v", records)
	}
}

func testCaller(t *testing.T, cat tools.ToolCatalog) {
	c := ability[tools.Caller](t, cat)
	register(t, cat, plain("a")...)
	if _, err := c.Call(as(t, "acme"), "a", hello); err != nil {
		t.Error(err)
	}
	_, err := c.Call(as(t, "acme"), "b", hello)
	expectError(t, err, tools.ErrToolNotFound)
}

// A snapshot never changes.
func testSnapshotter(t *testing.T, cat tools.ToolCatalog) {
	s := ability[tools.Snapshotter](t, cat)
	register(t, cat, plain("b", "a")...)
	before := s.Snapshot()
	register(t, cat, plain("c")...)
	after := s.Snapshot()
	if before.Len() != 2 || after.Len() != 3 || after.Generation() <= before.Generation() {
		t.Errorf("%d tools in generation %d, then %d in %d", before.Len(), before.Generation(), after.Len(), after.Generation())
	}
	visible := before.Visible(tools.FilterFrom(as(t, "acme")))
	if !slices.Equal(visible.Names(), []string{"a", "b"}) || visible.Has("c") || len(visible.Page(1, 5)) != 1 {
		t.Errorf("the old set: %v", visible.Names())
	}
}

func testAmender(t *testing.T, cat tools.ToolCatalog) {
	a := ability[tools.Amender](t, cat)
	register(t, cat, plain("a")...)
	amend := func(tool *tools.Tool) { tool.Description = "Amended." }
	if err := a.Amend(amend); err != nil {
		t.Fatal(err)
	}
	register(t, cat, plain("b")...)
	for _, tool := range cat.List(everything()) {
		if tool.Description != "Amended." {
			t.Errorf("%s: %s", tool.Name, tool.Description)
		}
	}
	if err := a.Amend(func(tool *tools.Tool) { tool.ArgsSchema = []byte(`{"type":1}`) }); err == nil {
		t.Error("an amendment that spoils a schema was taken")
	}
	if d, _ := cat.Resolve("a"); d.Tool.Description != "Amended." || string(d.Tool.ArgsSchema) != textSchema {
		t.Errorf("after it was refused: %+v", d.Tool)
	}
	if err := a.Amend(nil); err != nil {
		t.Fatal(err)
	}
	if d, _ := cat.Resolve("a"); d.Tool.Description == "Amended." {
		t.Error("the amendment cannot be taken back")
	}
}
