package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ours is the corpus in testdata.
var ours = filepath.Join("..", "testdata", "corpus")

func answersOf(t *testing.T, dir string, plain bool) []answer {
	t.Helper()
	c, err := readCorpus(dir)
	if err != nil {
		t.Fatal(err)
	}
	queries, err := readQueries(filepath.Join(dir, "search-queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	find := method(c.visible(), plain)
	var out []answer
	for _, q := range queries {
		names, err := find(q.Text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, answer{q, c.labels(names)})
	}
	return out
}

// The bounds are a little below what is reached, so that a change that loses quality is seen.
func TestQualityOnOurCorpus(t *testing.T) {
	all := answersOf(t, ours, false)
	hold(t, all, "", figures{recall: [4]float64{0.38, 0.56, 0.60, 0.68}, mrr: 0.49})
	hold(t, all, "typo", figures{recall: [4]float64{0.80, 0.90, 0.90, 0.90}, mrr: 0.85})
	base := measure(answersOf(t, ours, true), "")
	if f := measure(all, ""); f.recall[2] < base.recall[2]+0.15 {
		t.Errorf("R@5 is %.2f, that of plain BM25 %.2f", f.recall[2], base.recall[2])
	}
}

// The corpus that TOOLCRIB_CORPUS names is of other servers' tools; these are the bounds that a release holds.
func TestQualityOnCorpusOfServers(t *testing.T) {
	dir := os.Getenv("TOOLCRIB_CORPUS")
	if dir == "" {
		t.Skip("TOOLCRIB_CORPUS names no corpus")
	}
	all := answersOf(t, dir, false)
	hold(t, all, "", figures{recall: [4]float64{0.45, 0.64, 0.69, 0.75}, mrr: 0.55})
	hold(t, all, "task", figures{recall: [4]float64{0, 0, 0.50, 0}})
	hold(t, all, "typo", figures{recall: [4]float64{0, 0, 0.87, 0}})
}

func hold(t *testing.T, answers []answer, kind string, least figures) {
	t.Helper()
	f := measure(answers, kind)
	for k, r := range least.recall {
		if f.recall[k] < r {
			t.Errorf("%s R@%d is %.3f; at least %.2f is held", kind, depths[k], f.recall[k], r)
		}
	}
	if f.mrr < least.mrr {
		t.Errorf("%s MRR is %.3f; at least %.2f is held", kind, f.mrr, least.mrr)
	}
}

func TestTableIsPrinted(t *testing.T) {
	for _, markdown := range []bool{false, true} {
		var out strings.Builder
		if err := run(&options{corpus: ours, fail: 1, within: 10, markdown: markdown, out: &out}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"137 queries over 635 tools", "R@10", "task", "want "} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the output lacks %q:\n%s", want, out.String())
			}
		}
	}
	if err := run(&options{corpus: t.TempDir(), out: io.Discard}); err == nil {
		t.Error("an empty corpus gives no error")
	}
}

func TestRanks(t *testing.T) {
	answers := []answer{
		{query{Want: []string{"a"}, Kind: "x"}, []string{"a", "b"}},
		{query{Want: []string{"b", "c"}, Kind: "x"}, []string{"a", "d", "c", "b"}},
		{query{Want: []string{"z"}, Kind: "y"}, nil},
	}
	f := measure(answers, "")
	if f.n != 3 || f.recall != [4]float64{1.0 / 3, 2.0 / 3, 2.0 / 3, 2.0 / 3} || f.mrr != (1+1.0/3)/3 {
		t.Errorf("measured %+v", f)
	}
	if f = measure(answers, "y"); f.n != 1 || f.mrr != 0 {
		t.Errorf("measured %+v", f)
	}
}
