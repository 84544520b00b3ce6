//go:build peers

package clients

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// The bare fixture shows that the clients are driven and read rightly, whatever toolcrib does.
func TestClientsReachTheFixture(t *testing.T) {
	binary := peertest.BuildTool(t, peertest.Fixture)
	addr := strings.Replace(peertest.FreeAddr(t), "127.0.0.1", "localhost", 1)
	peertest.Start(t, exec.Command(binary, "-http="+addr)).Line(t, `listening at`)
	for transport, at := range map[string]endpoint{
		"http":  {url: "http://" + addr + "/mcp"},
		"stdio": {command: []string{binary}},
	} {
		for _, c := range clients() {
			t.Run(transport+"/"+c.name, func(t *testing.T) {
				if _, ok := c.tools(t, at)["test_simple_text"]; !ok {
					t.Error("test_simple_text is not listed")
				}
				if got := c.result(t, at, "test_simple_text", map[string]any{}).text(); !strings.Contains(got, "simple text response") {
					t.Errorf("test_simple_text answered %q", got)
				}
			})
		}
	}
}

// probe is one call that a client makes, and what the answer must contain.
type probe struct {
	tool     string
	args     map[string]any
	contains string
}

// oneEach calls one tool of each transport of the quickstart.
var oneEach = []probe{
	{"text.echo", map[string]any{"text": "from the same process"}, "from the same process"},
	{"everything_get-sum", map[string]any{"a": 19, "b": 23}, "42"},
	{"gitea_userGet", map[string]any{"username": "ada"}, "someone@example.com"},
}

// more calls tools with no arguments, with text, and with arguments in path and query.
var more = []probe{
	{"everything_echo", map[string]any{"message": "from a child"}, "from a child"},
	{"gitea_getVersion", map[string]any{}, "version"},
	{"gitea_issueListIssues", map[string]any{"owner": "ada", "repo": "engine", "state": "open", "limit": 2}, "html_url"},
}

// minOperations is how many tools the OpenAPI document alone must give.
const minOperations = 100

func TestClientsUseTheQuickstart(t *testing.T) {
	config := quickstart(t)
	binary := peertest.Build(t, "./cmd/toolcrib")
	serve := peertest.Start(t, exec.Command(binary, "serve", "-c", config, "--listen", "127.0.0.1:0", "--data", t.TempDir()))
	http := endpoint{url: serve.Line(t, `^listening on (http://\S+)`)[1] + "/mcp"}
	stdio := endpoint{command: []string{binary, "mcp", "-c", config}}
	for _, c := range clients() {
		t.Run("http/"+c.name, func(t *testing.T) { useQuickstart(t, c, http, slices.Concat(oneEach, more)) })
		// On stdio every call starts the gateway and its children anew.
		t.Run("stdio/"+c.name, func(t *testing.T) { useQuickstart(t, c, stdio, oneEach) })
	}
}

func useQuickstart(t *testing.T, c client, at endpoint, probes []probe) {
	listed := c.tools(t, at)
	names := slices.Sorted(maps.Keys(listed))
	operations := 0
	for _, name := range names {
		if strings.HasPrefix(name, "gitea_") {
			operations++
		}
		if len(listed[name].InputSchema) == 0 {
			t.Errorf("%s has no input schema", name)
		}
	}
	if operations < minOperations {
		t.Errorf("%d tools come from the OpenAPI document, want at least %d; all: %v", operations, minOperations, names)
	}
	for _, p := range probes {
		if _, ok := listed[p.tool]; !ok {
			t.Errorf("%s is not listed", p.tool)
			continue
		}
		got := c.result(t, at, p.tool, p.args)
		if text := got.text(); got.IsError || !strings.Contains(text, p.contains) {
			t.Errorf("%s%v answered %q (error: %t), want it to contain %q", p.tool, p.args, text, got.IsError, p.contains)
		}
	}
}

// quickstart is the published configuration, with the pinned npm server in the place of a download, this
// test's stand-in for the API in the place of the one that a reader starts, and every tool listed. It returns
// the file.
func quickstart(t *testing.T) string {
	t.Helper()
	example := filepath.Join(peertest.Root(t), "examples", "quickstart")
	document := filepath.Join(example, "testdata", "gitea.openapi.json")
	api := peertest.Start(t, exec.Command(peertest.Build(t, "./examples/quickstart/fakeapi"), "-listen", "127.0.0.1:0", document))
	url := api.Line(t, `^listening on (http://\S+)`)[1]

	text, err := os.ReadFile(filepath.Join(example, "toolcrib.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	for old, replacement := range map[string]string{
		`[npx, --yes, "@modelcontextprotocol/server-everything@` + peertest.Pinned(t, "@modelcontextprotocol/server-everything") + `"]`: fmt.Sprintf("[%q, %q]",
			peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/server-everything/dist/index.js")),
		"http://127.0.0.1:7780":       url,
		"testdata/gitea.openapi.json": document,
	} {
		if strings.Count(config, old) != 1 {
			t.Fatalf("toolcrib.yaml has %q %d times, want once", old, strings.Count(config, old))
		}
		config = strings.Replace(config, old, replacement, 1)
	}
	config += "\nmcp: {discovery: full}\n"
	path := filepath.Join(t.TempDir(), "toolcrib.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
