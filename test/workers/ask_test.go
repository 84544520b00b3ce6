//go:build peers

package workers

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// An npm server of a stateful revision, behind a worker, asks the client of the gateway for input.
func TestAnNPMServerOnAWorkerAsks(t *testing.T) {
	c := serve(t)
	p := peertest.Start(t, exec.Command(c.binary, "worker", "--toolset", "every", "--connect", c.stream, "--token-file", c.token, "--session", "per_session",
		"--", peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/server-everything/dist/index.js")))
	p.Line(t, `the worker serves`)
	const tool = "every_trigger-elicitation-request"
	c.until(t, tool)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			asked := 0
			opts := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
			}}
			session, err := mcp.NewClient(&mcp.Implementation{Name: "t"}, opts).Connect(t.Context(),
				&mcp.StreamableClientTransport{Endpoint: c.url + "/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}})
			if err != nil || res.IsError {
				t.Fatalf("got %+v, %v", res, err)
			}
			if text, _ := json.Marshal(res); !strings.Contains(string(text), "Ada") || asked != 1 {
				t.Errorf("after %d questions it got %s", asked, text)
			}
		})
	}
}
