//go:build peers

package clients

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// sdkJob is what testdata/sdk-client.cjs is asked to do.
type sdkJob struct {
	URL         string   `json:"url,omitempty"`
	Command     []string `json:"command,omitempty"`
	Call        sdkCall  `json:"call"`
	CancelAfter int      `json:"cancelAfter"`
}

type sdkCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// sdkReport is what it saw.
type sdkReport struct {
	Tools    []string
	Progress []struct{ Progress, Total float64 }
	Result   *result
	Error    string
}

func runSDK(t *testing.T, job sdkJob) sdkReport {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", "sdk-client.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := node(t, script, encode(t, job))
	cmd.Env = append(cmd.Env, peertest.PeersEnv+"="+peertest.PeersDir(t))
	var report sdkReport
	decode(t, peertest.Run(t, cmd), &report)
	return report
}

// everything is the npm server alone on stdio.
func everything(t *testing.T) []string {
	t.Helper()
	return []string{peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/server-everything/dist/index.js")}
}

// The npm server alone shows that progress and cancellation work without toolcrib in between.
func TestSDKClientReachesTheServerAlone(t *testing.T) {
	useLongRunning(t, endpoint{command: everything(t)}, "trigger-long-running-operation")
}

func TestSDKClientThroughTheQuickstart(t *testing.T) {
	config := quickstart(t)
	binary := peertest.Build(t, "./cmd/toolcrib")
	serve := peertest.Start(t, exec.Command(binary, "serve", "-c", config, "--listen", "127.0.0.1:0", "--data", t.TempDir()))
	for transport, at := range map[string]endpoint{
		"http":  {url: serve.Line(t, `^listening on (http://\S+)`)[1] + "/mcp"},
		"stdio": {command: []string{binary, "mcp", "-c", config}},
	} {
		t.Run(transport, func(t *testing.T) {
			useLongRunning(t, at, "everything_trigger-long-running-operation")
		})
	}
}

// useLongRunning calls a tool that reports progress five times, once to its end and once cancelled.
func useLongRunning(t *testing.T, at endpoint, tool string) {
	job := sdkJob{URL: at.url, Command: at.command, Call: sdkCall{Name: tool, Arguments: map[string]any{"duration": 0.5, "steps": 5}}}
	t.Run("to its end", func(t *testing.T) {
		report := runSDK(t, job)
		if !slices.Contains(report.Tools, tool) {
			t.Errorf("%s is not listed", tool)
		}
		// The SDK forgets a call's progress handler as soon as it has read the result, so it drops the last
		// step when one read brings both.
		if n := len(report.Progress); n < 4 || report.Progress[3].Progress != 4 || report.Progress[3].Total != 5 {
			t.Errorf("progress = %v, want 5 steps of 5, or all but the last", report.Progress)
		}
		if report.Result == nil || !strings.Contains(report.Result.text(), "completed") {
			t.Errorf("result = %+v, error = %s", report.Result, report.Error)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		job.CancelAfter = 2
		report := runSDK(t, job)
		if report.Result != nil || !strings.Contains(report.Error, "enough") {
			t.Errorf("result = %+v, error = %q, want the caller's own reason", report.Result, report.Error)
		}
		if len(report.Progress) != 2 {
			t.Errorf("progress after the cancellation: %v", report.Progress)
		}
	})
}
