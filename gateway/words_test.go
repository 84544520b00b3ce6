package gateway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/gateway"
)

// Why a source is down is said in words that belong to the reader's world, and
// logged once.
func TestWhyASourceIsDown(t *testing.T) {
	book := &logbook{}
	g := open(t, parse(t, `
tools:
  mcp_servers:
    - {name: gone, command: [/no/such/program]}
    - {name: nowhere, command: [no-such-program]}
    - {name: killed, command: [sh, -c, 'read line; kill -9 $$']}
    - {name: broken, command: [sh, -c, 'read line; exit 3']}
  openapi:
    - {name: pets, document: nope.yaml}
`), &gateway.Options{Logger: book.logger()})
	want := map[string]string{
		"gone":    `MCP server "gone": connecting failed: starting /no/such/program: no such file or directory`,
		"nowhere": `MCP server "nowhere": connecting failed: starting no-such-program: executable file not found in $PATH`,
		"killed":  `MCP server "killed": connecting failed: connection closed: the server process was killed (signal 9)`,
		"broken":  `MCP server "broken": connecting failed: connection closed: the server process ended: exit status 3`,
		"pets":    `list its tools: nope.yaml: cannot read the document: no such file or directory`,
	}
	got := map[string]string{}
	for _, s := range g.Sources() {
		got[s.Name] = s.Error
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	log := book.String()
	for _, word := range []string{"mcpwire:", "fork/exec", "tools: call failed", "gateway:"} {
		if strings.Contains(log, word) {
			t.Errorf("the log speaks of %s\n%s", word, log)
		}
	}
	if n := strings.Count(log, "level=WARN"); n != len(want) {
		t.Errorf("the log warns %d times, want %d\n%s", n, len(want), log)
	}
}
