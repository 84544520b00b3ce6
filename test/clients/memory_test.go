//go:build peers

package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// A server that keeps state between calls must be one child for all of them, its structured results must
// come through whole, and a neighbour that cannot start must not be in its way.
func TestMemoryServerKeepsItsState(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "toolcrib.yaml")
	text := fmt.Sprintf(`tools:
  mcp_servers:
    - name: memory
      transport_mode: stdio
      command: [%q, %q]
      env:
        MEMORY_FILE_PATH: %q
    - name: broken
      transport_mode: stdio
      command: [%q]
`, peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/server-memory/dist/index.js"),
		filepath.Join(dir, "memory.json"), filepath.Join(dir, "no-such-program"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := peertest.Start(t, exec.Command(peertest.Build(t, "./cmd/toolcrib"),
		"serve", "-c", config, "--listen", "127.0.0.1:0", "--data", t.TempDir()))
	at := endpoint{url: serve.Line(t, `^listening on (http://\S+)`)[1] + "/mcp"}

	entity := map[string]any{"name": "ada", "entityType": "person", "observations": []string{"counts to 9007199254740993"}}
	writer := mcporter()
	writer.result(t, at, "memory_create_entities", map[string]any{"entities": []any{entity}})
	for _, reader := range clients() {
		graph := reader.result(t, at, "memory_read_graph", map[string]any{})
		if got := string(graph.StructuredContent); !strings.Contains(got, "9007199254740993") {
			t.Errorf("%s: structuredContent = %q, want the entity written before", reader.name, got)
		}
		if !reader.bare && len(graph.Content) != 1 {
			t.Errorf("%s: %d content blocks, want the text beside the structured result", reader.name, len(graph.Content))
		}
	}
}
