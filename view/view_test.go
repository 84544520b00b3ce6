package view_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

func newCatalog(t *testing.T, names ...string) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, name := range names {
		register(t, cat, tools.Tool{Name: name})
	}
	return cat
}

func register(t *testing.T, cat tools.ToolCatalog, tool tools.Tool) {
	t.Helper()
	err := cat.Register(tools.ToolDescriptor{Tool: tool, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func caller(tenant string, scopes ...string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: tenant, UserID: "u", SessionID: tenant + "-session"}, scopes...)
}

func names() *view.Format {
	return &view.Format{Element: func(t tools.Tool) []byte { return []byte(`"` + t.Name + `"`) }, Head: "[", Tail: "]"}
}

func TestViewIsWhatTheCallerMaySee(t *testing.T) {
	cat := newCatalog(t, "b.open", "a.open")
	register(t, cat, tools.Tool{Name: "scoped", AuthScopes: []string{"s"}})
	register(t, cat, tools.Tool{Name: "owned", Tenants: []string{"acme"}})
	register(t, cat, tools.Tool{Name: "later", Loading: tools.LoadingDeferred})
	for _, test := range []struct {
		ctx  context.Context
		want []string
	}{
		{context.Background(), []string{"a.open", "b.open", "later"}},
		{caller("other"), []string{"a.open", "b.open", "later"}},
		{caller("other", "s"), []string{"a.open", "b.open", "later", "scoped"}},
		{caller("acme"), []string{"a.open", "b.open", "later", "owned"}},
	} {
		v := view.From(test.ctx, cat)
		if got := v.Names(); !slices.Equal(got, test.want) {
			t.Errorf("names = %v, want %v", got, test.want)
		}
		if v.Len() != len(test.want) || len(v.Tools()) != len(test.want) || !v.Has("a.open") || v.Has("nothing") {
			t.Errorf("the view of %v does not agree with itself", test.want)
		}
		if _, ok := v.Tool("scoped"); ok != slices.Contains(test.want, "scoped") {
			t.Errorf("Tool finds a tool that the caller may not see, or misses one that it may")
		}
	}
}

func TestZeroViewIsEmpty(t *testing.T) {
	var v view.View
	page, next, err := v.After("", 10)
	if v.Len() != 0 || v.Has("x") || v.Names() != nil || v.Tools() != nil || v.Page(0, 1) != nil || v.Class() != "" ||
		v.Generation() != 0 || page != nil || next != "" || err != nil {
		t.Error("the zero View holds something")
	}
	if got := string(names().List(v).Whole()); got != "[]" {
		t.Errorf("the list of nothing is %s", got)
	}
}

// Tenants must not share what is kept for one of them.
func TestClassesTellCallersApart(t *testing.T) {
	cat := newCatalog(t, "open")
	register(t, cat, tools.Tool{Name: "of.acme", Tenants: []string{"acme"}})
	register(t, cat, tools.Tool{Name: "of.zeta", Tenants: []string{"zeta"}})
	f := names()
	for tenant, want := range map[string]string{
		"acme": `["of.acme","open"]`, "zeta": `["of.zeta","open"]`, "nobody": `["open"]`,
	} {
		for range 2 { // the second comes from what was kept
			if got := string(f.List(view.From(caller(tenant), cat)).Whole()); got != want {
				t.Errorf("%s is shown %s, want %s", tenant, got, want)
			}
		}
	}
}

func TestListIsEncodedOnceForAClass(t *testing.T) {
	cat := newCatalog(t, "a", "b", "c")
	var encoded atomic.Int32
	f := &view.Format{Element: func(tools.Tool) []byte { encoded.Add(1); return []byte("0") }}
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() { f.List(view.From(caller(fmt.Sprint("tenant", i)), cat)) })
	}
	callers.Wait()
	if n := encoded.Load(); n != 3 {
		t.Errorf("three tools were encoded %d times", n)
	}
	register(t, cat, tools.Tool{Name: "d"})
	f.List(view.From(caller("x"), cat))
	if n := encoded.Load(); n != 3+4 {
		t.Errorf("after a change the encodings are %d, want 7", n)
	}
}

func TestElementNilLeavesToolOut(t *testing.T) {
	cat := newCatalog(t, "a", "b", "c")
	f := names()
	inner := f.Element
	f.Element = func(t tools.Tool) []byte {
		if t.Name == "b" {
			return nil
		}
		return inner(t)
	}
	if got := string(f.List(view.From(t.Context(), cat)).Whole()); got != `["a","c"]` {
		t.Error(got)
	}
}

func TestPagesCoverTheListInOrder(t *testing.T) {
	var all []string
	for i := range 25 {
		all = append(all, fmt.Sprintf("tool%02d", i))
	}
	cat := newCatalog(t, all...)
	for limit := range 30 {
		var fromList, fromView []string
		list := names().List(view.From(t.Context(), cat))
		for cursor := ""; ; {
			page, err := list.Page(cursor, limit)
			if err != nil {
				t.Fatal(err)
			}
			var part []string
			if err := json.Unmarshal(slices.Concat([]byte("["), page.Elements, []byte("]")), &part); err != nil {
				t.Fatal(err)
			}
			if len(part) != page.Len {
				t.Fatalf("a page of %d says that it has %d", len(part), page.Len)
			}
			fromList = append(fromList, part...)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		for cursor := ""; limit > 0; {
			page, next, err := view.From(t.Context(), cat).After(cursor, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range page {
				fromView = append(fromView, tool.Name)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if !slices.Equal(fromList, all) || limit > 0 && !slices.Equal(fromView, all) {
			t.Errorf("limit %d: %v and %v", limit, fromList, fromView)
		}
	}
}

// A catalog that changes between two pages neither repeats nor skips a tool
// that was there all the time, also when the tool that the page ended with went.
func TestCursorSurvivesChanges(t *testing.T) {
	cat := newCatalog(t, "b", "d", "f", "h")
	f := names()
	first, err := f.List(view.From(t.Context(), cat)).Page("", 2)
	if err != nil || string(first.Elements) != `"b","d"` {
		t.Fatalf("%s, %v", first.Elements, err)
	}
	if err := cat.Deregister("d"); err != nil {
		t.Fatal(err)
	}
	register(t, cat, tools.Tool{Name: "a"})
	register(t, cat, tools.Tool{Name: "e"})
	second, err := f.List(view.From(t.Context(), cat)).Page(first.Next, 10)
	if err != nil || string(second.Elements) != `"e","f","h"` || second.Next != "" {
		t.Errorf("%s, next %q, %v", second.Elements, second.Next, err)
	}
	page, _, err := view.From(t.Context(), cat).After(first.Next, 1)
	if err != nil || len(page) != 1 || page[0].Name != "e" {
		t.Errorf("%v, %v", page, err)
	}
}

func TestCursorBeyondTheEnd(t *testing.T) {
	cat := newCatalog(t, "a", "z")
	f := names()
	page, err := f.List(view.From(t.Context(), cat)).Page("", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Deregister("z"); err != nil {
		t.Fatal(err)
	}
	rest, err := f.List(view.From(t.Context(), cat)).Page(page.Next, 1)
	if err != nil || rest.Len != 0 || len(rest.Elements) != 0 || rest.Next != "" {
		t.Errorf("%+v, %v", rest, err)
	}
}

func TestBadCursors(t *testing.T) {
	list := names().List(view.From(t.Context(), newCatalog(t, "a", "b")))
	for _, cursor := range []string{
		"x", "a", "!!!!", "AAAAAA", base64.RawURLEncoding.EncodeToString([]byte("\x00\x00\x00\x00a")),
		base64.RawURLEncoding.EncodeToString([]byte("\x00\x00\x00\x00")), strings.Repeat("A", 4096), "0", "2",
	} {
		if _, err := list.Page(cursor, 1); !errors.Is(err, view.ErrCursor) {
			t.Errorf("cursor %.20q: %v", cursor, err)
		}
		if _, _, err := view.From(t.Context(), newCatalog(t, "a")).After(cursor, 1); !errors.Is(err, view.ErrCursor) {
			t.Errorf("cursor %.20q: %v", cursor, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for _, name := range []string{"a", "b", "c"} {
		_ = cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: name}, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{}, nil
		}})
	}
	list := names().List(view.From(context.Background(), cat))
	page, _ := list.Page("", 1)
	f.Add(page.Next)
	f.Add("")
	f.Fuzz(func(t *testing.T, cursor string) {
		page, err := list.Page(cursor, 2)
		if (err == nil) == errors.Is(err, view.ErrCursor) {
			t.Fatalf("%v", err)
		}
		if err == nil && !bytes.Contains(list.Whole(), page.Elements) {
			t.Fatalf("a page that the list does not have: %q", page.Elements)
		}
	})
}

func TestShownReportsADifferenceOnce(t *testing.T) {
	cat := newCatalog(t, "open")
	f := names()
	lists := func(scopes ...string) *view.List { return f.List(view.From(caller("acme", scopes...), cat)) }
	var plain, scoped, none view.Shown
	plain.Show(lists())
	scoped.Show(lists("s"))

	register(t, cat, tools.Tool{Name: "scoped", AuthScopes: []string{"s"}})
	if plain.Changed(lists()) {
		t.Error("a caller hears of a change that it does not see")
	}
	if !scoped.Changed(lists("s")) {
		t.Error("a caller does not hear of a change that it sees")
	}
	if scoped.Changed(lists("s")) {
		t.Error("a change is reported twice")
	}
	if none.Changed(lists("s")) {
		t.Error("who was shown nothing has seen a change")
	}
}

func TestShownKnowsWhatWasListedSince(t *testing.T) {
	cat := newCatalog(t, "a")
	f := names()
	var s view.Shown
	old := f.List(view.From(t.Context(), cat))
	s.Show(old)
	register(t, cat, tools.Tool{Name: "b"})
	now := f.List(view.From(t.Context(), cat))
	s.Show(now)
	if s.Changed(now) {
		t.Error("a caller that listed the new tools hears of them again")
	}
	s.Show(old) // an answer that was slower than the one after it
	if s.Changed(now) {
		t.Error("an older list counts for newer than it is")
	}
	if err := cat.Deregister("b"); err != nil {
		t.Fatal(err)
	}
	if !s.Changed(f.List(view.From(t.Context(), cat))) {
		t.Error("a tool that went is no change")
	}
}

func TestMemoIsKeptByKey(t *testing.T) {
	v := view.From(t.Context(), newCatalog(t, "a", "b"))
	length := func(v view.View) int { return v.Len() }
	if got := view.Memo(v, "n", length); got != 2 {
		t.Error(got)
	}
	if got := view.Memo(v, "n", func(view.View) int { return 99 }); got != 2 {
		t.Error("built twice:", got)
	}
	if got := view.Memo(v, "other", func(view.View) int { return 99 }); got != 99 {
		t.Error(got)
	}
}
