// Command eval measures how well tools are found: it reads a corpus of tool lists and labelled queries, asks an
// index each query, and prints recall and mean reciprocal rank for each kind of query.
//
//	go run ./tools/search/eval [-corpus DIR] [-queries FILE] [-fail N] [-md]
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

	"github.com/toolcrib/toolcrib/tools/search"
)

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.corpus, "corpus", os.Getenv("TOOLCRIB_CORPUS"), "folder of the corpus")
	flag.StringVar(&o.queries, "queries", "", "file of queries; empty is search-queries.jsonl in the corpus")
	flag.IntVar(&o.fail, "fail", 0, "print so many queries whose answer is not among the first -within hits")
	flag.IntVar(&o.within, "within", 10, "how many hits count as found for -fail")
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
	markdown        bool
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
	index := search.New(nil)
	v := c.visible()
	answers := make([]answer, len(queries))
	for i, q := range queries {
		found, err := index.Find(context.Background(), v, search.Query{Text: q.Text, Limit: 10})
		if err != nil {
			return err
		}
		answers[i] = answer{query: q, got: c.labels(found)}
	}
	fmt.Fprintf(o.out, "%d queries over %d tools\n", len(queries), v.Len())
	table(o, answers)
	failures(o, answers)
	return nil
}
