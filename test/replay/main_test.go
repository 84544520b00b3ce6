package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `{
  "serverInfo": {"name": "sample", "version": "9", "extra": true},
  "protocolVersion": "2025-06-18",
  "capabilities": {"tools": {"listChanged": true}},
  "tools": [
    {"name": "first tool (odd)", "inputSchema": {"maximum": 9007199254740993}, "unknown": [1]},
    {"name": "second"},
    {"name": "third"}
  ]
}`

func run(t *testing.T, page int, requests ...string) []map[string]json.RawMessage {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.json")
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	dump, err := readDump(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := &server{dump: dump, page: page, out: &out}
	if err := s.serve(strings.NewReader(strings.Join(requests, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
	var answers []map[string]json.RawMessage
	for line := range strings.Lines(out.String()) {
		var answer map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		answers = append(answers, answer)
	}
	return answers
}

func TestReplay(t *testing.T) {
	answers := run(t, 2,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"2"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":"five","method":"tools/call","params":{"name":"second","arguments":{"n":9007199254740993}}}`,
		`{"jsonrpc":"2.0","id":6,"method":"server/discover"}`,
	)
	want := []struct{ member, contains string }{
		{"result", `"extra":true`},
		{"result", `{"maximum":9007199254740993},"unknown":[1]}`},
		{"result", `{"tools":[{"name":"third"}]}`},
		{"error", `unknown cursor`},
		{"result", `{\"n\":9007199254740993}`},
		{"error", `-32601`},
	}
	if len(answers) != len(want) {
		t.Fatalf("%d answers, want %d", len(answers), len(want))
	}
	for i, w := range want {
		if got := string(answers[i][w.member]); !strings.Contains(got, w.contains) {
			t.Errorf("answer %d: %s = %s, want it to contain %s", i, w.member, got, w.contains)
		}
	}
	if next := string(answers[1]["result"]); !strings.Contains(next, `"nextCursor":"2"`) {
		t.Errorf("first page has no cursor: %s", next)
	}
}
