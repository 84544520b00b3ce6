// Command eval measures how well tools are found: it reads a corpus of tool lists and labelled queries, asks an
// index each query, and prints recall and mean reciprocal rank for each kind of query.
//
//	go run ./tools/search/eval [-corpus DIR] [-queries FILE] [-plain] [-fail N] [-md]
//
// A corpus is a folder with tools-list/*.json, each what an MCP server answers to tools/list, and
// search-queries.jsonl, whose lines are {"q": query, "want": [names], "kind": kind}. A name is that of the file,
// an underscore, and the tool's name. Without -corpus the folder is that of the environment variable
// TOOLCRIB_CORPUS, or else the one in tools/search/testdata/corpus.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.corpus, "corpus", os.Getenv("TOOLCRIB_CORPUS"), "folder of the corpus")
	flag.StringVar(&o.queries, "queries", "", "file of queries; empty is search-queries.jsonl in the corpus")
	flag.IntVar(&o.fail, "fail", 0, "print so many queries whose answer is not among the first -within hits")
	flag.IntVar(&o.within, "within", 10, "how many hits count as found for -fail")
	flag.BoolVar(&o.plain, "plain", false, "measure textbook BM25 instead")
	flag.BoolVar(&o.markdown, "md", false, "print Markdown")
	flag.Parse()
	if o.corpus == "" {
		o.corpus = filepath.Join("tools", "search", "testdata", "corpus")
	}
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

type options struct {
	corpus, queries string
	fail, within    int
	plain, markdown bool
	out             io.Writer
}

func run(o *options) error {
	c, err := readCorpus(o.corpus)
	if err != nil {
		return err
	}
	if o.queries == "" {
		o.queries = filepath.Join(o.corpus, "search-queries.jsonl")
	}
	queries, err := readQueries(o.queries)
	if err != nil {
		return err
	}
	v := c.visible()
	find := method(v, o.plain)
	answers := make([]answer, len(queries))
	for i, q := range queries {
		names, err := find(q.Text)
		if err != nil {
			return err
		}
		answers[i] = answer{query: q, got: c.labels(names)}
	}
	fmt.Fprintf(o.out, "%d queries over %d tools\n", len(queries), v.Len())
	table(o, answers)
	failures(o, answers)
	return nil
}

// depth is how many hits are asked for.
const depth = 10

// method returns what finds the names of tools for a query.
func method(v *tools.VisibleSet, plain bool) func(query string) ([]string, error) {
	if plain {
		p := newPlain(v)
		return func(query string) ([]string, error) { return p.find(query, depth), nil }
	}
	index := search.New(nil)
	return func(query string) ([]string, error) {
		return index.SearchVisible(context.Background(), v, query, nil, depth)
	}
}
