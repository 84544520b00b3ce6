package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

var update = flag.Bool("update", false, "rewrite the expectations and docs/conformance.md from this run")

// revisions are the protocol revisions whose scenarios the suite knows.
var revisions = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// clientRevisions are those that the suite has lists of client scenarios of.
var clientRevisions = []string{"2025-11-25", "2026-07-28"}

// Subjects of a run: the fixture alone, toolcrib in front of it, and toolcrib in front of the suite's own
// servers.
const (
	fixture    = "fixture"
	toolcrib   = "toolcrib"
	clientSide = "client"
)

func expectationPath(subject, revision string) string {
	return filepath.Join("testdata", subject, revision+".txt")
}

// readExpectations reads what subject is held to.
func readExpectations(t *testing.T, subject, revision string) []result {
	t.Helper()
	path := expectationPath(subject, revision)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make conformance writes it", err)
	}
	results, err := parseExpectations(string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return results
}

var page = template.Must(template.New("page").Parse(`# MCP conformance

This page is generated from the results that the tests hold toolcrib to; ` + "`make conformance`" + ` rewrites it.

The [MCP conformance suite](https://www.npmjs.com/package/@modelcontextprotocol/conformance) {{.Suite}} runs its
server scenarios against ` + "`toolcrib serve`" + ` in front of the Go SDK's fixture server, whose tools keep their
names (` + "`prefix: none`" + `) and whose sessions have connections of their own (` + "`session: per_session`" + `). The column *fixture* is the same suite against that server alone, so that a
scenario the fixture itself does not pass can be told from one that toolcrib does not pass yet. The numbers are
checks passed of checks made; the suite leaves out checks of what a server does not advertise. Only scenarios of the kind
*required* count towards conformance; all of them pass, and the suite is given no file of failures to expect. The
` + "`tasks-*`" + ` scenarios are of an extension that the fixture does not have, whose tools they call by name.
{{range .Revisions}}
## Server, revision {{.Revision}}

{{.RequiredPassed}} of {{.Required}} required scenarios pass. Checks passed/failed over all scenarios: {{.Sum}} (fixture alone {{.FixtureSum}}).

| scenario | kind | fixture | toolcrib | failed checks |
|---|---|---|---|---|
{{range .Rows}}| {{.Scenario}} | {{.Kind}} | {{.Fixture}} | {{.Toolcrib}} | {{.Failing}} |
{{end}}{{end}}
The client scenarios run against a gateway in front of the suite's servers, used by a client of the Go SDK, and for
those below ` + "`auth/`" + ` by a browser that agrees to everything at once. A check that is made of every request counts once.
{{range .Clients}}
## Client, revision {{.Revision}}

{{.RequiredPassed}} of {{.Required}} required scenarios pass. Checks passed/failed over all scenarios: {{.Sum}}.

| scenario | kind | toolcrib | failed checks |
|---|---|---|---|
{{range .Rows}}| {{.Scenario}} | {{.Kind}} | {{.Toolcrib}} | {{.Failing}} |
{{end}}{{end}}`))

type pageRevision struct {
	Revision       string
	Required       int
	RequiredPassed int
	Sum            string
	FixtureSum     string
	Rows           []pageRow
}

type pageRow struct {
	Scenario, Kind, Fixture, Toolcrib, Failing string
}

func renderPage(t *testing.T) []byte {
	t.Helper()
	var data struct {
		Suite     string
		Revisions []pageRevision
		Clients   []pageRevision
	}
	data.Suite = peertest.Pinned(t, "@modelcontextprotocol/conformance")
	for _, revision := range revisions {
		alone := readExpectations(t, fixture, revision)
		through := readExpectations(t, toolcrib, revision)
		data.Revisions = append(data.Revisions, pageOf(revision, alone, through))
	}
	for _, revision := range clientRevisions {
		data.Clients = append(data.Clients, pageOf(revision, nil, readExpectations(t, clientSide, revision)))
	}
	var out bytes.Buffer
	if err := page.Execute(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func pageOf(revision string, alone, through []result) pageRevision {
	out := pageRevision{Revision: revision, Sum: sum(through), FixtureSum: sum(alone)}
	fixtureBy := byScenario(alone)
	for _, r := range through {
		if r.Kind == required {
			out.Required++
			if r.Failed == 0 {
				out.RequiredPassed++
			}
		}
		out.Rows = append(out.Rows, pageRow{
			Scenario: r.Scenario,
			Kind:     r.Kind,
			Fixture:  cell(fixtureBy[r.Scenario]),
			Toolcrib: cell(r),
			Failing:  strings.Join(r.Failing, ", "),
		})
	}
	return out
}

// cell is a verdict with its counts. A scenario that checked nothing is not called passed.
func cell(r result) string {
	if r.Passed+r.Failed == 0 {
		return "no checks"
	}
	return fmt.Sprintf("%s %d/%d", r.verdict(), r.Passed, r.Passed+r.Failed)
}

// pagePath is where renderPage's result is published.
func pagePath(t *testing.T) string {
	t.Helper()
	return filepath.Join(peertest.Root(t), "docs", "conformance.md")
}

// The page must say what the expectations say, which the tests with peers hold the program to.
func TestPageIsCurrent(t *testing.T) {
	if *update {
		return // TestSuite writes the page after the expectations
	}
	got, err := os.ReadFile(pagePath(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, renderPage(t)) {
		t.Errorf("%s does not show the expectations in testdata; run make conformance", pagePath(t))
	}
}
