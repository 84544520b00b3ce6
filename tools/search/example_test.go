package search_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

func Example() {
	cat := tools.NewCatalog(tools.WithSearchCache(search.New(nil)))
	for name, description := range map[string]string{
		"tracker.create_issue": "Create a new issue in a project.",
		"tracker.list_issues":  "List the issues of a project.",
		"chat.post_message":    "Post a message to a channel.",
	} {
		err := cat.Register(tools.ToolDescriptor{
			Tool:   tools.Tool{Name: name, Description: description},
			Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil },
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	for _, tool := range cat.Search(context.Background(), "open a ticket", nil, 1) {
		fmt.Println(tool.Name)
	}
	// Output: tracker.create_issue
}

func ExampleIndex_Find() {
	index := search.New(nil)
	cat := tools.NewCatalog(tools.WithSearchCache(index)).(tools.LiveCatalog)
	err := cat.Register(tools.ToolDescriptor{
		Tool:   tools.Tool{Name: "weather.get_forecast", Description: "Get the weather forecast of a city."},
		Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil },
	})
	if err != nil {
		fmt.Println(err)
	}
	ctx := context.Background()
	visible := cat.Snapshot().Visible(tools.FilterFrom(ctx))
	found, err := index.Find(ctx, visible, search.Query{Text: "wether forcast", Limit: 3})
	if err != nil {
		fmt.Println(err)
	}
	for _, hit := range found.Hits {
		fmt.Println(hit.Name, "exact:", hit.Exact, "weak:", hit.Weak, "for:", hit.Matched)
	}
	fmt.Println(found.Repairs)
	// Output:
	// weather.get_forecast exact: false weak: false for: [wether forcast]
	// [{wether weather} {forcast forecast}]
}
