//go:build peers

package tasks

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/mcpserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// scenarios are those of the conformance suite that are about tasks.
var scenarios = []string{"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
	"tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error", "tasks-mrtr-composition"}

// With a server of tasks behind it, a gateway is what the conformance suite wants of one.
func TestConformanceSuite(t *testing.T) {
	_, upstream := newServer(t, true)
	none := mcptool.NoPrefix
	crib := newCrib(t, tools.Stages{}, &mcptool.Config{Name: "up", URL: upstream, Prefix: &none})
	s := mcpserver.New(crib, nil)
	t.Cleanup(func() {
		if err := s.Shutdown(bounded(t)); err != nil {
			t.Error(err)
		}
	})
	url := toolstest.NewHTTPServer(t, func() (http.Handler, func()) { return s, nil }).URL
	for _, scenario := range scenarios {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			suite := peertest.Start(t, exec.Command(peertest.Node(t), peertest.NPM(t, "@modelcontextprotocol/conformance/dist/index.js"),
				"server", "--url", url, "--scenario", scenario, "--spec-version", "2026-07-28", "--force", "--output-dir", dir))
			_ = suite.Wait(t) // a failed check shows in the record
			for _, c := range checks(t, dir, suite) {
				if c.Status == "FAILURE" {
					t.Errorf("%s: %s", c.ID, c.ErrorMessage)
				}
			}
		})
	}
}

type check struct{ ID, Status, ErrorMessage string }

// checks reads the record that the suite keeps of a scenario.
func checks(t *testing.T, dir string, suite *peertest.Process) (list []check) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d records (%v):\n%s", len(files), err, suite.Output())
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list) == 0 {
		t.Fatalf("%d checks, %v", len(list), err)
	}
	return list
}
