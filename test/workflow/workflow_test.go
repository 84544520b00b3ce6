//go:build peers

// Package workflow runs the skill and the flow of examples/workflow over the MCP server from npm, as a Go program, on the
// command line, and as a client of MCP.
package workflow

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

const (
	quote = `"pen: The sum of 3 and 4 is 7."`
	free  = `{"answer":"Echo: 2 items, sent for free","items":[{"item":"pen","price":3},{"item":"lamp","price":60}]}`
	paid  = `{"answer":"Echo: 2 items, pen: The sum of 3 and 5 is 8.","items":[{"item":"pen","price":3},{"item":"paper","price":7}]}`
)

// example copies the example, so that it uses an address that is free and the installed server.
func example(t *testing.T) (config, address string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(peertest.Root(t), "examples", "workflow"))); err != nil {
		t.Fatal(err)
	}
	address = peertest.FreeAddr(t)
	for name, change := range map[string][2]string{
		"prices.yaml": {"127.0.0.1:7782", address},
		"toolcrib.yaml": {`[npx, --yes, "@modelcontextprotocol/server-everything@` + peertest.Pinned(t, "@modelcontextprotocol/server-everything") + `"]`,
			fmt.Sprintf("[%q, %q]", peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/server-everything/dist/index.js"))},
	} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), change[0]) {
			t.Fatalf("%s has no %s: %v", name, change[0], err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "toolcrib.yaml"), address
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

func TestTheProgram(t *testing.T) {
	config, address := example(t)
	if got := output(t, peertest.Build(t, "./examples/workflow"), "-c", config, "-listen", address); got != quote+"\n"+free+"\n"+paid {
		t.Errorf("got\n%s", got)
	}
}

func TestTheCommandLineAndMCP(t *testing.T) {
	config, address := example(t)
	peertest.Start(t, exec.Command(peertest.Build(t, "./examples/workflow"), "-api", "-listen", address)).Line(t, `listening on`)
	binary := peertest.Build(t, "./cmd/toolcrib")
	if got := output(t, binary, "validate", config); !strings.HasSuffix(got, ": valid") {
		t.Errorf("validate: %s", got)
	}
	if got := output(t, binary, "skills", "run", "shop_quote", `{"item":"pen","shipping":4}`, "-c", config); got != quote {
		t.Errorf("got %s", got)
	}
	serve := peertest.Start(t, exec.Command(binary, "serve", "-c", config, "--listen", "127.0.0.1:0", "--data", t.TempDir()))
	url := serve.Line(t, `^listening on (http://\S+)`)[1]
	if got := output(t, binary, "flows", "run", "shop_order", `{"items":["pen","lamp"]}`, "--server", url); got != free {
		t.Errorf("got %s", got)
	}
	if got := output(t, binary, "call", "shop_order", `{"items":["pen","paper"]}`, "--server", url, "--toolset", "shop"); got != paid {
		t.Errorf("got %s", got)
	}
	for _, path := range []string{"/mcp", "/mcp/shop"} {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "shop_order", Arguments: map[string]any{"items": []string{"pen", "paper"}}})
		if err != nil || res.IsError {
			t.Fatalf("%s: got %+v, %v", path, res, err)
		}
		if got, err := json.Marshal(res.StructuredContent); err != nil || string(got) != paid {
			t.Errorf("%s: got %s, %v", path, got, err)
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := output(t, binary, "flows", "runs", "--server", url, "-o", "json"); strings.Count(got, `"status": "done"`) != 4 {
		t.Errorf("got %s", got)
	}
}
