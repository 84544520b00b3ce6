//go:build peers

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// checkTotals are the checks passed and failed by the fixture alone, as its authors and the suite's agree
// on them. A run that differs means that the suite is misread, or that a pinned version moved.
var checkTotals = map[string]string{"2025-06-18": "56/0", "2025-11-25": "82/0", "2026-07-28": "165/30"}

// The page is written last, when an update has rewritten every file that it shows.
func TestSuite(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Run(fixture, func(t *testing.T) {
				results := hold(t, fixture, revision, runServerSuite(t, revision, startFixture(t, revision)))
				if got := sum(results); got != checkTotals[revision] {
					t.Errorf("checks passed/failed = %s, want %s", got, checkTotals[revision])
				}
			})
			t.Run(toolcrib, func(t *testing.T) {
				upstream := startFixture(t, revision) // a new one: a run leaves tools and prompts behind
				hold(t, toolcrib, revision, runServerSuite(t, revision, startGateway(t, upstream)))
			})
		})
	}
	for _, revision := range clientRevisions {
		t.Run(revision+" client", func(t *testing.T) {
			hold(t, clientSide, revision, runClientSuite(t, revision))
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
      session: per_session
`, upstream)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(peertest.Build(t, "./cmd/toolcrib"),
		"serve", "-c", config, "--listen", "127.0.0.1:0", "--data", t.TempDir())
	return peertest.Start(t, cmd).Line(t, `^listening on (http://\S+)`)[1] + "/mcp"
}

// hold demands that every required scenario passed, and compares the results with the records of subject, or
// rewrites them.
func hold(t *testing.T, subject, revision string, results []result) []result {
	t.Helper()
	for _, fault := range unmet(results) {
		t.Error(fault)
	}
	path := expectationPath(subject, revision)
	if *update && t.Failed() {
		return results // what must not be is not written down
	}
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

// runServerSuite runs every server scenario of the revision against url.
func runServerSuite(t *testing.T, revision, url string) []result {
	t.Helper()
	results, _ := runSuite(t, "server-", "server", "--url", url, selection(revision), revision)
	return results
}

// runClientSuite runs every client scenario of the revision against toolcrib with a client before it. Some
// checks are made of each request, and how many requests there are is a matter of timing; so each check
// counts once.
func runClientSuite(t *testing.T, revision string) []result {
	t.Helper()
	command := peertest.Build(t, "./test/conformance/client")
	results, made := runSuite(t, "", "client", "--command", command, selection(revision), revision)
	for i := range results {
		results[i] = once(results[i], made[i])
	}
	return results
}

// runSuite runs scenarios, scored or not. The records of one are kept under its name behind prefix. No file of
// expected failures is given, so that the suite's exit status says whether every scored scenario passed.
func runSuite(t *testing.T, prefix string, args ...string) ([]result, [][]check) {
	t.Helper()
	dir := t.TempDir()
	args = append([]string{peertest.NPM(t, "@modelcontextprotocol/conformance/dist/index.js")}, args...)
	suite := peertest.Start(t, exec.Command(peertest.Node(t), append(args, "--output-dir", dir)...))
	exit := suite.Wait(t)
	results, err := parseSummary(suite.Stdout())
	if err != nil {
		t.Fatalf("%v (exit: %v)\n%s", err, exit, suite.Output())
	}
	made := make([][]check, len(results))
	for i := range results {
		made[i] = readChecks(t, dir+string(filepath.Separator)+prefix, results[i].Scenario)
		results[i].Failing = failedChecks(made[i])
		if n := len(results[i].Failing); n != results[i].Failed {
			t.Fatalf("%s: %d failed checks on record, the summary says %d", results[i].Scenario, n, results[i].Failed)
		}
	}
	if exit != nil {
		t.Errorf("the suite ended with %v", exit)
	}
	return results, made
}

// selection is the option of the suite that selects the scenarios of a revision. It keeps lists of what
// is required from 2025-11-25 on; of a revision before, all scenarios are.
func selection(revision string) string {
	if revision < "2025-11-25" {
		return "--spec-version"
	}
	return "--requirements"
}

// readChecks reads the record that the suite keeps for a scenario.
func readChecks(t *testing.T, under, scenario string) []check {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(under+scenario+"-[0-9][0-9][0-9][0-9]-*", "checks.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%s: the suite left %d records (%v)", scenario, len(records), err)
	}
	text, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []check
	if err := json.Unmarshal(text, &checks); err != nil {
		t.Fatalf("%s: %v", records[0], err)
	}
	return checks
}
