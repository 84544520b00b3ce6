package search_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

func invoke(context.Context, json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{}, nil
}

func described(name, description string, tags ...string) tools.ToolDescriptor {
	return tools.ToolDescriptor{Tool: tools.Tool{Name: name, Description: description, Tags: tags}, Invoke: invoke}
}

func catalog(t testing.TB, index *search.Index, list ...tools.ToolDescriptor) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog(tools.WithSearchCache(index)).(tools.LiveCatalog)
	if err := cat.RegisterAll(list); err != nil {
		t.Fatal(err)
	}
	return cat
}

func names(list []tools.Tool) []string {
	out := make([]string, len(list))
	for i, tool := range list {
		out[i] = tool.Name
	}
	return out
}

var shop = []tools.ToolDescriptor{
	described("tracker.create_issue", "Create a new issue in a project.", "tracker"),
	described("tracker.close_issue", "Close an issue.", "tracker"),
	described("tracker.list_issues", "List the issues of a project.", "tracker"),
	described("chat.post_message", "Post a message to a channel.", "chat"),
	described("shell.run_command", "Run a command in a shell.", "dev"),
	described("weather.get_forecast", "Get the weather forecast of a city."),
}

func TestCatalogSearches(t *testing.T) {
	cat := catalog(t, search.New(nil), shop...)
	for _, c := range []struct{ query, want string }{
		{"create an issue", "tracker.create_issue"},
		{"createIssue", "tracker.create_issue"},
		{"weather forecast", "weather.get_forecast"},
		{"wether forcast", "weather.get_forecast"},
		{"chat.post_message", "chat.post_message"},
		{"CHAT_POST_MESSAGE", "chat.post_message"},
		{"messages", "chat.post_message"},
	} {
		got := names(cat.Search(t.Context(), c.query, nil, 3))
		if len(got) == 0 || got[0] != c.want {
			t.Errorf("%q found %v; want %s first", c.query, got, c.want)
		}
	}
}

func TestTagsAreDemanded(t *testing.T) {
	cat := catalog(t, search.New(nil), shop...)
	if got := names(cat.Search(t.Context(), "issue message", []string{"chat"}, 10)); !slices.Equal(got, []string{"chat.post_message"}) {
		t.Errorf("found %v", got)
	}
	want := []string{"tracker.close_issue", "tracker.create_issue", "tracker.list_issues"}
	if got := names(cat.Search(t.Context(), "", []string{"tracker"}, 10)); !slices.Equal(got, want) {
		t.Errorf("without a text found %v; want %v", got, want)
	}
}

func TestSearchFollowsChanges(t *testing.T) {
	cat := catalog(t, search.New(nil), shop...)
	find := func() []string { return names(cat.Search(t.Context(), "translate a text", nil, 5)) }
	if got := find(); slices.Contains(got, "translate") {
		t.Fatalf("found %v", got)
	}
	if err := cat.Register(described("translate", "Translate a text into another language.")); err != nil {
		t.Fatal(err)
	}
	if got := find(); len(got) == 0 || got[0] != "translate" {
		t.Fatalf("after Register found %v", got)
	}
	if err := cat.Deregister("translate"); err != nil {
		t.Fatal(err)
	}
	if got := find(); slices.Contains(got, "translate") {
		t.Fatalf("after Deregister found %v", got)
	}
}
