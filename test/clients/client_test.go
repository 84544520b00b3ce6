//go:build peers

// Package clients lets MCP clients that nobody here wrote use toolcrib, over HTTP and over stdio.
package clients

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// endpoint is where a client finds a server: a URL, or else a command that speaks on stdio.
type endpoint struct {
	url     string
	command []string
}

// client is a real MCP client as a program.
type client struct {
	name string
	list func(t *testing.T, at endpoint) *exec.Cmd
	call func(t *testing.T, at endpoint, tool string, args map[string]any) *exec.Cmd
	// bare says that the client prints a structured result alone, without the rest of the answer.
	bare bool
}

// tool is what a client prints of a tool.
type tool struct {
	Name        string
	InputSchema json.RawMessage
}

// result is what a client prints of a call.
type result struct {
	Content []struct {
		Type string
		Text string
	}
	StructuredContent json.RawMessage
	IsError           bool
}

// text is the answer's text blocks, and what is structured behind them.
func (r result) text() string {
	parts := []string{}
	for _, block := range r.Content {
		parts = append(parts, block.Text)
	}
	return strings.Join(append(parts, string(r.StructuredContent)), "\n")
}

// clients are the MCP Inspector in both protocol eras, and mcporter.
func clients() []client {
	return []client{
		inspector("inspector", "auto"),
		inspector("inspector legacy", "legacy"),
		inspector("inspector modern", "modern"),
		mcporter(),
	}
}

func inspector(name, era string) client {
	command := func(t *testing.T, at endpoint, args ...string) *exec.Cmd {
		t.Helper()
		line := []string{peertest.NPM(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"}
		if at.url != "" {
			line = append(line, at.url, "--transport", "http")
		} else {
			line = append(line, at.command...)
		}
		return node(t, append(append(line, "--protocol-era", era), args...)...)
	}
	return client{
		name: name,
		list: func(t *testing.T, at endpoint) *exec.Cmd {
			return command(t, at, "--method", "tools/list")
		},
		call: func(t *testing.T, at endpoint, tool string, args map[string]any) *exec.Cmd {
			line := []string{"--method", "tools/call", "--tool-name", tool}
			for key, value := range args {
				line = append(line, "--tool-arg", key+"="+literal(t, value))
			}
			return command(t, at, line...)
		},
	}
}

// literal is a value as the Inspector reads it: text as it is, everything else as JSON.
func literal(t *testing.T, value any) string {
	t.Helper()
	if text, ok := value.(string); ok {
		return text
	}
	return encode(t, value)
}

func mcporter() client {
	command := func(t *testing.T, at endpoint, verb string, args ...string) *exec.Cmd {
		t.Helper()
		line := []string{peertest.NPM(t, "mcporter/dist/cli.js"), verb}
		if at.url != "" {
			line = append(line, "--http-url", at.url, "--allow-http")
		} else {
			line = append(line, "--stdio", at.command[0])
			for _, arg := range at.command[1:] {
				line = append(line, "--stdio-arg", arg)
			}
		}
		return node(t, append(line, args...)...)
	}
	return client{
		name: "mcporter",
		bare: true,
		list: func(t *testing.T, at endpoint) *exec.Cmd {
			return command(t, at, "list", "--name", "subject", "--json")
		},
		call: func(t *testing.T, at endpoint, tool string, args map[string]any) *exec.Cmd {
			return command(t, at, "call", "--name", "subject", "--tool", tool, "--args", encode(t, args), "--output", "json", "--no-oauth")
		},
	}
}

// node is a Node program that sees no configuration of the person who runs the tests.
func node(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(peertest.Node(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Environ(), "HOME="+cmd.Dir, "NO_COLOR=1")
	return cmd
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tools lists what the client sees, by name.
func (c client) tools(t *testing.T, at endpoint) map[string]tool {
	t.Helper()
	var listed struct{ Tools []tool }
	decode(t, peertest.Run(t, c.list(t, at)), &listed)
	byName := make(map[string]tool, len(listed.Tools))
	for _, tool := range listed.Tools {
		byName[tool.Name] = tool
	}
	if len(byName) != len(listed.Tools) {
		t.Errorf("%s lists %d tools under %d names", c.name, len(listed.Tools), len(byName))
	}
	return byName
}

// result calls a tool and returns what the client shows.
func (c client) result(t *testing.T, at endpoint, tool string, args map[string]any) result {
	t.Helper()
	output := peertest.Run(t, c.call(t, at, tool, args))
	var r result
	if c.bare {
		r.StructuredContent = json.RawMessage(output)
		return r
	}
	decode(t, output, &r)
	return r
}

// decode reads the JSON that a client printed.
func decode(t *testing.T, output string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(output), into); err != nil {
		t.Fatalf("the client printed no JSON: %v\n%s", err, output)
	}
}
