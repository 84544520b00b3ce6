// Command search finds tools by what they do, from Go: through the catalog, and through the index, which says more.
// With EMBEDDINGS_URL set to the base URL of an embeddings service, such as http://127.0.0.1:11434/v1, it ranks by
// meaning too.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	index := search.New(nil)
	if base := os.Getenv("EMBEDDINGS_URL"); base != "" {
		index = byMeaning(base)
	}
	defer index.Close()
	cat := tools.NewCatalog(tools.WithSearchCache(index))
	if err := register(cat); err != nil {
		return err
	}
	for _, tool := range cat.Search(ctx, "open a ticket", nil, 1) { // the best first
		fmt.Fprintln(out, tool.Name)
	}
	return explain(ctx, out, cat, index)
}

// explain shows what the index says of an answer.
func explain(ctx context.Context, out io.Writer, cat tools.ToolCatalog, index *search.Index) error {
	visible := cat.(tools.Snapshotter).Snapshot().Visible(tools.FilterFrom(ctx))
	found, err := index.Find(ctx, visible, search.Query{Text: "wether forcast", Limit: 3})
	if err != nil {
		return err
	}
	for _, hit := range found.Hits {
		fmt.Fprintln(out, hit.Name, "exact:", hit.Exact, "weak:", hit.Weak)
	}
	fmt.Fprintln(out, found.Matched, "match;", found.Repairs)
	return nil
}

// byMeaning is an index with the rank of an embeddings service beside that of words.
func byMeaning(base string) *search.Index {
	return search.New(&search.Options{
		Embedder: &search.OpenAIEmbedder{BaseURL: base, Name: "nomic-embed-text"},
		Vectors:  search.VectorDir("vectors"), // so that a restart embeds nothing again
	})
}

func register(cat tools.ToolCatalog) error {
	for _, tool := range []tools.Tool{
		{Name: "tracker.create_issue", Description: "Create a new issue in a project."},
		{Name: "tracker.list_issues", Description: "List the issues of a project."},
		{Name: "weather.get_forecast", Description: "Get the weather forecast of a city."},
	} {
		if err := cat.Register(tools.ToolDescriptor{Tool: tool, Invoke: answer}); err != nil {
			return err
		}
	}
	return nil
}

func answer(context.Context, json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{}, nil
}
