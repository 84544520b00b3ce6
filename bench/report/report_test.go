package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBenchmarksAreRead(t *testing.T) {
	r := results{}
	for _, output := range []string{
		"BenchmarkInProcess/door-2  \t 1000\t 12158 ns/op\t 2.209 x-floor\t 2419 B/op\t 24 allocs/op\nPASS\n",
		"BenchmarkInProcess/door \t 900\t 99.5 ns/op\t 3.5 x-floor\t 2419 B/op\t 25 allocs/op\nBenchmarkOther-2 \t 5\t 7 ns/op\n",
	} {
		r.read(output)
	}
	if len(r) != 1 {
		t.Fatalf("read %d benchmarks, expected 1", len(r))
	}
	door := r["InProcess/door"]
	if door == nil || len(door.ratios) != 2 || door.ratios[0] != 2.209 || door.ratios[1] != 3.5 || door.allocs != "25" {
		t.Errorf("read %+v", door)
	}
}

func TestMissingBenchmarkIsAnError(t *testing.T) {
	if _, err := processTable(results{}); err == nil {
		t.Error("a table without results")
	}
}

func TestTablesAreReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + tablesBegin + "old\n" + tablesEnd + "\nafter\n")
	if err := replaceTables(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "before\n" + tablesBegin + "new\n" + tablesEnd + "\nafter\n"; err != nil || string(got) != want {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
	write("no marks")
	if replaceTables(file, "new\n") == nil {
		t.Error("a document without marks was accepted")
	}
}

func TestRelayTable(t *testing.T) {
	p := &program{}
	ms := func(n int) []time.Duration { return []time.Duration{time.Duration(n) * time.Millisecond} }
	field := []*contender{
		{name: nameDirect, times: ms(1), rates: []float64{400}},
		{name: nameBare, run: p, calls: 10, cpu: time.Millisecond, times: ms(2), rates: []float64{200}},
		{name: nameToolcrib, run: p, calls: 10, cpu: 2 * time.Millisecond, times: ms(4), rates: []float64{100}},
		{name: nameHub, out: os.ErrNotExist},
	}
	table := relayTable(field)
	for _, want := range []string{
		"| direct, nothing in between | – | – | – | – | 400 | 2.00 |",
		"| `toolcrib serve` | 200 µs | 2.00 | 3000 µs | 3.00 | 100 | 0.50 |",
		"| left out: file does not exist |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

func TestCallParams(t *testing.T) {
	list := `{"jsonrpc":"2.0","id":"l","result":{"tools":[{"name":"other"},{"name":"up_echo"}]}}`
	for _, answer := range []string{list, "event: message\ndata: " + list + "\n\n"} {
		params, err := callParams([]byte(answer))
		if err != nil || !strings.Contains(string(params), `"name":"up_echo"`) {
			t.Errorf("%v: %.80s", err, params)
		}
	}
	if _, err := callParams([]byte(`{"result":{"tools":[]}}`)); err == nil {
		t.Error("a list without the tool was accepted")
	}
}
