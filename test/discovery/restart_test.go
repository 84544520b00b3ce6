// Package discovery follows what a client has found over breaks of its connection and ends of the gateway's process.
package discovery

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

const config = `
mcp: {discovery: search}
tools: {built_in: [clock.now, text.echo]}
`

// start runs the program on a folder for state, and returns it with the URL of its MCP entrance.
func start(t *testing.T, data string) (*peertest.Process, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "toolcrib.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(peertest.Build(t, "./cmd/toolcrib"), "serve", "-c", file, "--listen", "127.0.0.1:0", "--data", data)
	serve := peertest.Start(t, cmd)
	return serve, serve.Line(t, `^listening on (http://\S+)`)[1] + "/mcp"
}

// named names the session of every request.
type named string

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Toolcrib-Session", string(n))
	return http.DefaultTransport.RoundTrip(r)
}

func connect(t *testing.T, url, session, revision string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "discovery", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: named(session)}},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func listed(t *testing.T, s *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// kill ends a process without a chance to write anything.
func kill(t *testing.T, p *peertest.Process) {
	t.Helper()
	process, err := os.FindProcess(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait(t) // which says that it was killed
}

// A client searches and is listed what it found; the process is killed and another takes its place on the same folder;
// the client's next connection is listed it still, and nobody else's is.
func TestFindsSurviveAKilledProcess(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			data := t.TempDir()
			serve, url := start(t, data)
			first := connect(t, url, "mine", revision)
			res, err := first.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool_search", Arguments: map[string]any{"query": "what time is it now"}})
			if err != nil || res.IsError {
				t.Fatalf("%+v, %v", res, err)
			}
			if got := listed(t, first); !slices.Contains(got, "clock.now") {
				t.Fatalf("listed %v after a search", got)
			}
			kill(t, serve)
			_, url = start(t, data)
			for session, want := range map[string]bool{"mine": true, "other": false} {
				if got := listed(t, connect(t, url, session, revision)); slices.Contains(got, "clock.now") != want {
					t.Errorf("the session %s is listed %v", session, got)
				}
			}
		})
	}
}

// A session of the protocol goes on over a new connection, with what it found.
func TestFindsSurviveAReconnect(t *testing.T) {
	_, url := start(t, t.TempDir())
	ask := func(session, body string) (string, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // each request has its own connection
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Get("Mcp-Session-Id"), string(answer)
	}
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	mine, _ := ask("", initialize)
	other, _ := ask("", initialize)
	for _, session := range []string{mine, other} {
		ask(session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	get, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call",
		"params": map[string]any{"name": "tool_get", "arguments": map[string]any{"name": "text.echo"}}})
	if _, answer := ask(mine, string(get)); !strings.Contains(answer, "args_schema") {
		t.Fatal(answer)
	}
	for session, want := range map[string]bool{mine: true, other: false} {
		_, answer := ask(session, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		if strings.Contains(answer, `"name":"text.echo"`) != want {
			t.Errorf("listed %s", answer)
		}
	}
}
