//go:build peers

package workers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// crib is a gateway that serves examples/worker.
type crib struct {
	binary, url   string
	stream, token string
}

func serve(t *testing.T) *crib {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(peertest.Root(t), "examples", "worker", "toolcrib.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "toolcrib.yaml")
	if err := os.WriteFile(config, append(text, "  listen: 127.0.0.1:0\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &crib{binary: peertest.Build(t, "./cmd/toolcrib")}
	p := peertest.Start(t, exec.Command(c.binary, "serve", "-c", config, "--listen", "127.0.0.1:0"))
	c.url = p.Line(t, `^listening on (http://\S+)`)[1]
	start := p.Line(t, `worker --toolset NAME --connect (\S+) --token-file (\S+) `)
	c.stream, c.token = start[1], start[2]
	return c
}

func (c *crib) run(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(peertest.Run(t, exec.Command(c.binary, append(args, "--server", c.url)...)))
}

// memory starts a worker of npm's memory server that keeps its notes in a file.
func (c *crib) memory(t *testing.T, file string) *peertest.Process {
	t.Helper()
	cmd := exec.Command(c.binary, "worker", "--toolset", "notes", "--connect", c.stream, "--token-file", c.token, "--env", "MEMORY_FILE_PATH",
		"--", peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/server-memory/dist/index.js"))
	cmd.Env = append(os.Environ(), "MEMORY_FILE_PATH="+file)
	p := peertest.Start(t, cmd)
	p.Line(t, `^serving toolset notes with \d+ tools`)
	p.Line(t, `the worker serves`)
	return p
}

func TestTheExample(t *testing.T) {
	c := serve(t)
	notes := filepath.Join(t.TempDir(), "notes.json")
	first := c.memory(t, notes)
	c.memory(t, notes)
	post := peertest.Start(t, exec.Command(peertest.Build(t, "./examples/worker"), "-connect", c.stream, "-token-file", c.token))
	post.Line(t, `^serving toolset post`)
	c.until(t, "post.postage")

	if got := c.run(t, "call", "post.postage", `{"grams":700,"to":"home"}`); got != `{"cents":230}` {
		t.Errorf("got %s", got)
	}
	made := c.run(t, "call", "notes_create_entities", `{"entities":[{"name":"ada","entityType":"person","observations":["likes tea"]}]}`)
	if !strings.Contains(made, "likes tea") {
		t.Errorf("got %s", made)
	}
	var told struct {
		Toolsets []struct {
			Name    string
			Up      bool
			Workers []struct{ Up bool }
		}
	}
	if err := json.Unmarshal([]byte(c.run(t, "workers", "-o", "json")), &told); err != nil || len(told.Toolsets) != 2 ||
		told.Toolsets[0].Name != "notes" || len(told.Toolsets[0].Workers) != 2 || !told.Toolsets[0].Up || !told.Toolsets[1].Up {
		t.Errorf("workers: %+v, %v", told, err)
	}

	// The other worker goes on alone, and its tools are served over MCP.
	if err := first.Terminate(t); err != nil {
		t.Errorf("a worker that was asked to end: %v\n%s", err, first.Output())
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: c.url + "/mcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "notes_read_graph", Arguments: map[string]any{}})
	if err != nil || res.IsError {
		t.Fatalf("got %+v, %v", res, err)
	}
	if text, _ := json.Marshal(res); !strings.Contains(string(text), "likes tea") {
		t.Errorf("got %s", text)
	}
	res, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "post.postage", Arguments: map[string]any{"grams": 1, "to": "moon"}})
	if err == nil && !res.IsError {
		t.Errorf("wrong arguments gave %+v", res)
	}
}

// until waits until a tool is listed.
func (c *crib) until(t *testing.T, name string) {
	t.Helper()
	for ctx := peertest.Bounded(t); ctx.Err() == nil; {
		if strings.Contains(c.run(t, "list", "-o", "json"), `"`+name+`"`) {
			return
		}
	}
	t.Fatalf("%s is not listed", name)
}
