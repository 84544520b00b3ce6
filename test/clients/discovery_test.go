//go:build peers

package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// discoveryJob is what testdata/discovery-client.cjs is asked to do.
type discoveryJob struct {
	URL     string   `json:"url,omitempty"`
	Command []string `json:"command,omitempty"`
	Session string   `json:"session,omitempty"`
	Query   string   `json:"query,omitempty"`
	Refresh bool     `json:"refresh"`
	Call    sdkCall  `json:"call"`
}

// discoveryReport is what it saw.
type discoveryReport struct {
	Instructions  string
	Before, After []string
	Called        string
	Search        struct{ Tools []struct{ Name string } }
	Result        result
}

func discover(t *testing.T, job discoveryJob) discoveryReport {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", "discovery-client.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	job.Call = sdkCall{Name: "everything_get-sum", Arguments: map[string]any{"a": 20, "b": 22}}
	cmd := node(t, script, encode(t, job))
	cmd.Env = append(cmd.Env, peertest.PeersEnv+"="+peertest.PeersDir(t))
	var report discoveryReport
	decode(t, peertest.Run(t, cmd), &report)
	if !strings.Contains(report.Result.text(), "42") || report.Result.IsError {
		t.Errorf("the call of the found tool gave %+v", report.Result)
	}
	return report
}

// searching is a configuration in which clients find the tools of an npm server.
func searching(t *testing.T) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "toolcrib.yaml")
	text := "mcp: {discovery: search}\ntools: {mcp_servers: [{name: everything, command: " + encode(t, everything(t)) + "}]}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// A client that listens finds a tool, hears that its list changed, and calls it by its name; one that reads the
// list once calls it through tool_call.
func TestSDKClientFindsATool(t *testing.T) {
	config := searching(t)
	binary := peertest.Build(t, "./cmd/toolcrib")
	serve := peertest.Start(t, exec.Command(binary, "serve", "-c", config, "--listen", "127.0.0.1:0"))
	for transport, at := range map[string]endpoint{
		"http":  {url: serve.Line(t, `^listening on (http://\S+)`)[1] + "/mcp"},
		"stdio": {command: []string{binary, "mcp", "-c", config}},
	} {
		for _, refresh := range []bool{true, false} {
			job := discoveryJob{URL: at.url, Command: at.command, Query: "add two numbers", Refresh: refresh}
			report := discover(t, job)
			if want := []string{"tool_call", "tool_get", "tool_search"}; !slices.Equal(report.Before, want) {
				t.Errorf("%s: listed %v at first", transport, report.Before)
			}
			if !strings.Contains(report.Instructions, "tool_search") {
				t.Errorf("%s: the instructions are %q", transport, report.Instructions)
			}
			if want := map[bool]string{true: "everything_get-sum", false: "tool_call"}[refresh]; report.Called != want {
				t.Errorf("%s: called %s, want %s; found %+v, listed %v", transport, report.Called, want, report.Search, report.After)
			}
		}
	}
}

// What a client found is listed to it after the server's process was replaced, and to no other session.
func TestFindsSurviveTheProcess(t *testing.T) {
	config, data := searching(t), t.TempDir()
	binary := peertest.Build(t, "./cmd/toolcrib")
	start := func() (*peertest.Process, string) {
		serve := peertest.Start(t, exec.Command(binary, "serve", "-c", config, "--listen", "127.0.0.1:0", "--data", data))
		return serve, serve.Line(t, `^listening on (http://\S+)`)[1] + "/mcp"
	}
	first, url := start()
	discover(t, discoveryJob{URL: url, Session: "mine", Query: "add two numbers", Refresh: true})
	if err := first.Terminate(t); err != nil {
		t.Fatal(err)
	}
	_, url = start()
	for session, want := range map[string]string{"mine": "everything_get-sum", "other": "tool_call", "": "tool_call"} {
		if report := discover(t, discoveryJob{URL: url, Session: session}); report.Called != want {
			t.Errorf("the session %q called %s, listed %v", session, report.Called, report.Before)
		}
	}
	stdio := []string{binary, "mcp", "-c", config, "--data", data, "--session", "mine"}
	if report := discover(t, discoveryJob{Command: stdio}); report.Called != "everything_get-sum" {
		t.Errorf("over stdio, called %s, listed %v", report.Called, report.Before)
	}
}
