package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inProcess runs the Go benchmarks, all of them once in every round, so that
// what is compared ran side by side.
func inProcess(ctx context.Context, o *options, b *bench) (string, error) {
	seen := results{}
	for range o.rounds {
		cmd := exec.CommandContext(ctx, b.path("bench.test"), "-test.run=^$", "-test.bench="+measured(), "-test.benchtime=50ms")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w\n%s", err, out)
		}
		seen.read(string(out))
	}
	return processTable(seen)
}

// measured selects the benchmarks of the table.
func measured() string {
	var names []string
	for _, row := range rows() {
		name, _, _ := strings.Cut(row.name, "/")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "^Benchmark(" + strings.Join(names, "|") + ")$"
}

// result is what was measured of one benchmark: in each round how many times as
// long as its floor it took, and its allocations.
type result struct {
	ratios []float64
	allocs string
}

// results holds them by name, such as "InProcess/door".
type results map[string]*result

var benchLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s.*?\s([\d.]+) x-floor\s.*?\s(\d+) allocs/op`)

func (r results) read(output string) {
	for _, m := range benchLine.FindAllStringSubmatch(output, -1) {
		ratio, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			continue
		}
		if r[m[1]] == nil {
			r[m[1]] = &result{}
		}
		r[m[1]].ratios, r[m[1]].allocs = append(r[m[1]].ratios, ratio), m[3]
	}
}

// row is a row of the table: a benchmark and what its floor is.
type row struct{ what, name, floor, target string }

func rows() []row {
	return []row{
		{"call without a door", "InProcess/floor", "decode, call, encode (encoding/json)", ""},
		{"call through the whole door", "InProcess/door", "the same", "≤ 2.2, ≤ 40 allocations"},
		{"the same, tool declared inline", "InProcess/inline", "the same", "≤ 1.4"},
		{"the same, nobody listens to events", "InProcess/unheard", "the same", ""},
		{"a turn of 8 calls", "Turn/door/at_once", "the 8 calls, at once", "≤ 1.3"},
		{"the same", "Turn/door/in_a_row", "the 8 calls, in a row", "≤ 1.3"},
		{"the same, tool declared inline", "Turn/inline/at_once", "the 8 calls, at once", ""},
		{"schema check of the arguments", "Schema/check", "santhosh-tekuri/jsonschema from the bytes", "< 1"},
		{"`Resolve`, which copies the tool", "Resolve/resolve", "atomic load and map look-up", "≤ 2"},
		{"the look-up and the same copy by hand", "Resolve/own", "atomic load and map look-up", ""},
		{"page of 50 of 10,000 tools", "ListPage/page", "copying 50 values", "≤ 5"},
		{"batch of 1,000 into a catalog of 10,000", "RegisterBatch/full", "into an empty catalog", "one snapshot"},
	}
}

func processTable(r results) (string, error) {
	var t strings.Builder
	t.WriteString("| inside one process | ratio | range | to the floor | allocations | target |\n|---|---|---|---|---|---|\n")
	for _, row := range rows() {
		m := r[row.name]
		if m == nil {
			return "", fmt.Errorf("the benchmark %s gave no result", row.name)
		}
		fmt.Fprintf(&t, "| %s | %.2f | %.2f–%.2f | %s | %s | %s |\n",
			row.what, median(m.ratios), slices.Min(m.ratios), slices.Max(m.ratios), row.floor, m.allocs, row.target)
	}
	return t.String(), nil
}
