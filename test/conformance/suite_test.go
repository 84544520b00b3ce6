//go:build peers

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// checkTotals are the checks passed and failed by the fixture alone, as its authors and the suite's agree
// on them. A run that differs means that the suite is misread, or that a pinned version moved.
var checkTotals = map[string]string{"2025-11-25": "82/0", "2026-07-28": "165/30"}

// The page is written last, when an update has rewritten every file that it shows.
func TestSuite(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			upstream := startFixture(t, revision)
			t.Run(fixture, func(t *testing.T) {
				results := hold(t, fixture, revision, upstream)
				if got := sum(results); got != checkTotals[revision] {
					t.Errorf("checks passed/failed = %s, want %s", got, checkTotals[revision])
				}
			})
			t.Run(toolcrib, func(t *testing.T) {
				hold(t, toolcrib, revision, startGateway(t, upstream))
			})
		})
	}
	if *update {
		if err := os.WriteFile(pagePath(t), renderPage(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// startFixture starts the fixture in the era that the revision belongs to and returns its endpoint.
func startFixture(t *testing.T, revision string) string {
	t.Helper()
	addr := strings.Replace(peertest.FreeAddr(t), "127.0.0.1", "localhost", 1)
	stateless := revision >= "2026"
	cmd := exec.Command(peertest.BuildTool(t, peertest.Fixture), "-http="+addr, fmt.Sprintf("-stateless=%t", stateless))
	peertest.Start(t, cmd).Line(t, `listening at`)
	return "http://" + addr + "/mcp"
}

// startGateway starts toolcrib in front of upstream and returns its endpoint.
func startGateway(t *testing.T, upstream string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "toolcrib.yaml")
	text := fmt.Sprintf(`tools:
  mcp_servers:
    - name: fixture
      transport_mode: streamable_http
      url: %s
      prefix: none
`, upstream)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(peertest.Build(t, "./cmd/toolcrib"),
		"serve", "-c", config, "--listen", "127.0.0.1:0", "--data", t.TempDir())
	return peertest.Start(t, cmd).Line(t, `^listening on (http://\S+)`)[1] + "/mcp"
}

// hold runs the suite against url and compares with the expectations of subject, or rewrites them.
func hold(t *testing.T, subject, revision, url string) []result {
	t.Helper()
	results := runSuite(t, revision, url)
	path := expectationPath(subject, revision)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(formatExpectations(results)), 0o644); err != nil {
			t.Fatal(err)
		}
		return results
	}
	for _, difference := range compare(readExpectations(t, subject, revision), results) {
		t.Error(difference)
	}
	return results
}

// runSuite runs every server scenario of the revision, scored or not. The suite's exit status says whether
// a scored scenario failed, which the caller decides from the results.
func runSuite(t *testing.T, revision, url string) []result {
	t.Helper()
	dir := t.TempDir()
	suite := peertest.Start(t, exec.Command(peertest.Node(t),
		peertest.NPM(t, "@modelcontextprotocol/conformance/dist/index.js"),
		"server", "--url", url, "--requirements", revision, "--output-dir", dir))
	exit := suite.Wait(t)
	results, err := parseSummary(suite.Stdout())
	if err != nil {
		t.Fatalf("%v (exit: %v)\n%s", err, exit, suite.Output())
	}
	for i := range results {
		results[i].Failing = failedChecks(t, dir, results[i])
	}
	return results
}

// failedChecks reads the ids of the failed checks from the record that the suite keeps for each scenario.
func failedChecks(t *testing.T, dir string, r result) []string {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(dir, "server-"+r.Scenario+"-[0-9][0-9][0-9][0-9]-*", "checks.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%s: the suite left %d records (%v)", r.Scenario, len(records), err)
	}
	text, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct{ ID, Status string }
	if err := json.Unmarshal(text, &checks); err != nil {
		t.Fatalf("%s: %v", records[0], err)
	}
	var failed []string
	for _, check := range checks {
		if check.Status == "FAILURE" {
			failed = append(failed, check.ID)
		}
	}
	if len(failed) != r.Failed {
		t.Fatalf("%s: %d failed checks on record, the summary says %d", r.Scenario, len(failed), r.Failed)
	}
	slices.Sort(failed)
	return failed
}
