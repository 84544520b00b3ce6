package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A command that opens a catalog of its own does not wait for a source that
// never answers, and says which one that is.
func TestCommandsAreNotPatientForEver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	const hung = "tools: {built_in: [text.echo], mcp_servers: [{name: hung, command: [sleep, '1000']}]}"
	if err := os.WriteFile(file, []byte(hung), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, out, errOut string
		patience          time.Duration
		status            int
	}{
		{"list", "text.echo", "source hung has not answered yet", 50 * time.Millisecond, 0},
		{"sources", "connecting", "source hung has not answered yet", 50 * time.Millisecond, 0},
		{"call hung_x", "", "source hung has not answered yet", 50 * time.Millisecond, exitToolNotFound},
		// The tools of other names do not wait for it at all.
		{"call text.echo {\"text\":\"hi\"}", `{"text":"hi"}`, "", time.Hour, 0},
		{"call text.eco", "", `did you mean "text.echo"?`, time.Hour, exitToolNotFound},
		{"call hung_x --timeout 50ms", "", "no answer within 50ms\n", time.Hour, exitBusy},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			a := &app{in: strings.NewReader(""), out: &out, errOut: &errOut, patience: c.patience}
			if got := run(append(strings.Fields(c.args), "-c", file), a); got != c.status {
				t.Errorf("status %d, want %d", got, c.status)
			}
			if !strings.Contains(out.String(), c.out) || !strings.Contains(errOut.String(), c.errOut) || c.errOut == "" && errOut.Len() > 0 {
				t.Errorf("stdout %q, stderr %q", &out, &errOut)
			}
		})
	}
}
