package main

import (
	"fmt"
	"slices"
	"strings"
)

// answer is a query with the labels that were found, the best first.
type answer struct {
	query query
	got   []string
}

// rank returns the place of the first wanted label, from 1, or 0.
func (a *answer) rank() int {
	for i, name := range a.got {
		if slices.Contains(a.query.Want, name) {
			return i + 1
		}
	}
	return 0
}

// figures are the quality of some answers.
type figures struct {
	n      int
	recall [4]float64 // within 1, 3, 5 and 10
	mrr    float64
}

var depths = [4]int{1, 3, 5, 10}

func measure(answers []answer, kind string) figures {
	var f figures
	for i := range answers {
		if kind != "" && answers[i].query.Kind != kind {
			continue
		}
		f.n++
		r := answers[i].rank()
		if r == 0 {
			continue
		}
		f.mrr += 1 / float64(r)
		for k, depth := range depths {
			if r <= depth {
				f.recall[k]++
			}
		}
	}
	for k := range f.recall {
		f.recall[k] /= float64(max(f.n, 1))
	}
	f.mrr /= float64(max(f.n, 1))
	return f
}

func table(o *options, answers []answer) {
	var kinds []string
	for _, a := range answers {
		if !slices.Contains(kinds, a.query.Kind) {
			kinds = append(kinds, a.query.Kind)
		}
	}
	format := "%-9s %4d  %.3f  %.3f  %.3f  %.3f  %.3f\n"
	if o.markdown {
		fmt.Fprintln(o.out, "| queries | n | R@1 | R@3 | R@5 | R@10 | MRR |\n|---|--:|--:|--:|--:|--:|--:|")
		format = "| %s | %d | %.3f | %.3f | %.3f | %.3f | %.3f |\n"
	} else {
		fmt.Fprintf(o.out, "%-9s %4s  %-5s  %-5s  %-5s  %-5s  %-5s\n", "queries", "n", "R@1", "R@3", "R@5", "R@10", "MRR")
	}
	for _, kind := range append([]string{""}, kinds...) {
		f := measure(answers, kind)
		name := kind
		if name == "" {
			name = "all"
		}
		fmt.Fprintf(o.out, format, name, f.n, f.recall[0], f.recall[1], f.recall[2], f.recall[3], f.mrr)
	}
}

// failures prints queries whose answer was not found within the first hits.
func failures(o *options, answers []answer) {
	left := o.fail
	for i := range answers {
		a := &answers[i]
		if r := a.rank(); left == 0 || r > 0 && r <= o.within {
			continue
		}
		left--
		fmt.Fprintf(o.out, "rank %d: %q\n  want %s\n  got  %s\n", a.rank(), a.query.Text, strings.Join(a.query.Want, ", "),
			strings.Join(a.got[:min(5, len(a.got))], ", "))
	}
}
