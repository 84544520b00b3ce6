// Package conformance runs the scenarios of the MCP conformance suite: those for servers against toolcrib,
// and against the bare fixture for comparison, and those for clients against toolcrib with a client before
// it. Every scenario that a revision requires must pass. The records in testdata tell of the others, and hold
// each to the number of its checks.
package conformance

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// required is the kind of a scenario that the revision scores. The suite names the other kinds:
// extension, pending, added-after-release.
const required = "required"

// result is what one scenario of the suite came to.
type result struct {
	Scenario string
	Kind     string
	Passed   int
	Failed   int
	Failing  []string // ids of the failed checks, sorted
}

func (r result) verdict() string {
	if r.Failed > 0 {
		return "fail"
	}
	return "pass"
}

// check is one check of a scenario as the suite records it. Its status is SUCCESS, FAILURE, or a word that
// does not count.
type check struct{ ID, Status string }

// failedChecks returns the ids of the failed checks, sorted.
func failedChecks(checks []check) []string {
	var failed []string
	for _, c := range checks {
		if c.Status == "FAILURE" {
			failed = append(failed, c.ID)
		}
	}
	slices.Sort(failed)
	return failed
}

// once counts each check of a scenario once. One that failed at any time has failed.
func once(r result, checks []check) result {
	r.Failing = slices.Compact(failedChecks(checks))
	passed := map[string]bool{}
	for _, c := range checks {
		if c.Status == "SUCCESS" && !slices.Contains(r.Failing, c.ID) {
			passed[c.ID] = true
		}
	}
	r.Passed, r.Failed = len(passed), len(r.Failing)
	return r
}

var (
	summaryLine  = regexp.MustCompile(`=== (SUITE )?SUMMARY ===`)
	scenarioLine = regexp.MustCompile(`^([✓✗]) ([\w/-]+): (\d+) passed, (\d+) failed(, \d+ warnings)?$`)
	totalLine    = regexp.MustCompile(`^Total: (\d+) passed, (\d+) failed(, \d+ warnings)?$`)
	unscoredLine = regexp.MustCompile(`^  [✓✗] ([\w/-]+) \(([\w-]+)\)$`)
)

// parseSummary reads the summary that the suite prints at its end. It fails when the summary is missing or
// does not add up, so that a suite that broke off is never taken for one that passed.
func parseSummary(output string) ([]result, error) {
	head := summaryLine.FindStringIndex(output)
	if head == nil {
		return nil, fmt.Errorf("the suite printed no summary")
	}
	summary := output[head[1]:]
	var results []result
	total := ""
	kinds := map[string]string{}
	for line := range strings.Lines(summary) {
		line = strings.TrimRight(line, "\r\n")
		if m := scenarioLine.FindStringSubmatch(line); m != nil {
			results = append(results, result{Scenario: m[2], Kind: required, Passed: number(m[3]), Failed: number(m[4])})
		} else if m := totalLine.FindStringSubmatch(line); m != nil {
			total = m[1] + "/" + m[2]
		} else if m := unscoredLine.FindStringSubmatch(line); m != nil {
			kinds[m[1]] = m[2]
		}
	}
	for i := range results {
		if kind, ok := kinds[results[i].Scenario]; ok {
			results[i].Kind = kind
		}
	}
	if sum := sum(results); sum != total || len(results) == 0 {
		return nil, fmt.Errorf("the summary's %d scenarios add up to %s, its total says %s", len(results), sum, total)
	}
	return results, nil
}

// number reads digits that a regular expression matched.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// sum is the number of passed and failed checks, as "82/0".
func sum(results []result) string {
	var passed, failed int
	for _, r := range results {
		passed += r.Passed
		failed += r.Failed
	}
	return fmt.Sprintf("%d/%d", passed, failed)
}

const expectationHead = `# Scenarios of the MCP conformance suite. Rewrite with: make conformance
# verdict, checks passed, checks failed, kind, scenario; below a scenario its failed checks
`

// formatExpectations writes results in the form of the files in testdata.
func formatExpectations(results []result) string {
	var b strings.Builder
	b.WriteString(expectationHead)
	for _, r := range results {
		fmt.Fprintf(&b, "%s %d %d %s %s\n", r.verdict(), r.Passed, r.Failed, r.Kind, r.Scenario)
		for _, check := range r.Failing {
			fmt.Fprintf(&b, "\t%s\n", check)
		}
	}
	return b.String()
}

// parseExpectations reads what formatExpectations writes.
func parseExpectations(text string) ([]result, error) {
	var results []result
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		if check, ok := strings.CutPrefix(line, "\t"); ok && len(results) > 0 {
			last := &results[len(results)-1]
			last.Failing = append(last.Failing, check)
			continue
		}
		var r result
		var verdict string
		if _, err := fmt.Sscanf(line, "%s %d %d %s %s", &verdict, &r.Passed, &r.Failed, &r.Kind, &r.Scenario); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if verdict != r.verdict() {
			return nil, fmt.Errorf("line %d: %s with %d failed checks", n, verdict, r.Failed)
		}
		results = append(results, r)
	}
	return results, lines.Err()
}

// unmet names the required scenarios that did not pass. There is no list of such that may fail.
func unmet(results []result) []string {
	var names []string
	for _, r := range results {
		if r.Kind == required && r.Failed > 0 {
			names = append(names, fmt.Sprintf("%s fails %s", r.Scenario, strings.Join(r.Failing, ", ")))
		}
	}
	return names
}

// compare lists how got differs from want, worst first: what regressed, then what got better, which an
// update of the expectations must record.
func compare(want, got []result) []string {
	var regressed, improved []string
	gotBy := byScenario(got)
	wantBy := byScenario(want)
	for _, w := range want {
		g, ran := gotBy[w.Scenario]
		switch {
		case !ran:
			regressed = append(regressed, w.Scenario+": did not run")
		case g.Failed > w.Failed || g.Passed < w.Passed || len(missing(g.Failing, w.Failing)) > 0:
			regressed = append(regressed, fmt.Sprintf("%s: regressed from %d/%d to %d/%d, newly failing: %s",
				w.Scenario, w.Passed, w.Failed, g.Passed, g.Failed, strings.Join(missing(g.Failing, w.Failing), ", ")))
		case g.Failed < w.Failed || g.Passed > w.Passed || g.Kind != w.Kind:
			improved = append(improved, fmt.Sprintf("%s: improved from %d/%d to %d/%d (%s); run make conformance to record it",
				w.Scenario, w.Passed, w.Failed, g.Passed, g.Failed, g.Kind))
		}
	}
	for _, g := range got {
		if _, known := wantBy[g.Scenario]; !known {
			improved = append(improved, g.Scenario+": is not in the expectations; run make conformance to record it")
		}
	}
	return append(regressed, improved...)
}

func byScenario(results []result) map[string]result {
	by := make(map[string]result, len(results))
	for _, r := range results {
		by[r.Scenario] = r
	}
	return by
}

// missing returns the elements of all that known lacks.
func missing(all, known []string) []string {
	var out []string
	for _, s := range all {
		if !slices.Contains(known, s) {
			out = append(out, s)
		}
	}
	return out
}

const sampleSummary = `Results saved to somewhere

=== SUMMARY ===
✓ tools-list: 4 passed, 0 failed
✗ tasks-lifecycle: 1 passed, 8 failed, 2 warnings
✓ tasks-status-notifications: 0 passed, 0 failed

Total: 5 passed, 8 failed

Not scored for 2026-07-28: 2 scenario(s) run, 1 failing. These do not affect conformance.
  ✗ tasks-lifecycle (extension)
  ✓ tasks-status-notifications (extension)
`

func TestParseSummary(t *testing.T) {
	got, err := parseSummary(sampleSummary)
	if err != nil {
		t.Fatal(err)
	}
	want := []result{
		{Scenario: "tools-list", Kind: required, Passed: 4},
		{Scenario: "tasks-lifecycle", Kind: "extension", Passed: 1, Failed: 8},
		{Scenario: "tasks-status-notifications", Kind: "extension"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseSummaryRefusesWhatDoesNotAddUp(t *testing.T) {
	for name, output := range map[string]string{
		"no summary":     "Error: connect ECONNREFUSED\n",
		"no total":       "=== SUMMARY ===\n✓ ping: 2 passed, 0 failed\n",
		"lost scenario":  strings.Replace(sampleSummary, "✓ tools-list: 4 passed, 0 failed\n", "", 1),
		"changed format": strings.ReplaceAll(sampleSummary, " passed, ", " ok, "),
	} {
		t.Run(name, func(t *testing.T) {
			if results, err := parseSummary(output); err == nil {
				t.Errorf("accepted as %v", results)
			}
		})
	}
}

func TestUnmet(t *testing.T) {
	got := unmet([]result{
		{Scenario: "ping", Kind: required, Passed: 2},
		{Scenario: "initialize", Kind: required, Failed: 1, Failing: []string{"a-check"}},
		{Scenario: "tasks-lifecycle", Kind: "extension", Failed: 8},
	})
	if diff := cmp.Diff([]string{"initialize fails a-check"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOnce(t *testing.T) {
	got := once(result{Scenario: "s", Passed: 4, Failed: 2}, []check{
		{"a", "SUCCESS"}, {"a", "SUCCESS"}, {"b", "SUCCESS"}, {"b", "FAILURE"}, {"b", "FAILURE"}, {"c", "INFO"}, {"d", "SUCCESS"},
	})
	if diff := cmp.Diff(result{Scenario: "s", Passed: 2, Failed: 1, Failing: []string{"b"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestExpectationsRoundTrip(t *testing.T) {
	want := []result{
		{Scenario: "ping", Kind: required, Passed: 2},
		{Scenario: "tasks-lifecycle", Kind: "extension", Passed: 1, Failed: 2, Failing: []string{"a-check", "b-check"}},
	}
	got, err := parseExpectations(formatExpectations(want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseExpectations("pass 1 1 required ping\n"); err == nil {
		t.Error("a verdict that contradicts its counts is accepted")
	}
}

func TestCompare(t *testing.T) {
	base := result{Scenario: "s", Kind: required, Passed: 1, Failed: 1, Failing: []string{"a"}}
	cases := map[string]struct {
		got  []result
		want string
	}{
		"same":          {[]result{base}, ""},
		"not run":       {nil, "did not run"},
		"more failures": {[]result{{Scenario: "s", Kind: required, Passed: 1, Failed: 2, Failing: []string{"a", "b"}}}, "newly failing: b"},
		"other failure": {[]result{{Scenario: "s", Kind: required, Passed: 1, Failed: 1, Failing: []string{"b"}}}, "newly failing: b"},
		"better":        {[]result{{Scenario: "s", Kind: required, Passed: 2}}, "improved"},
		"new":           {[]result{base, {Scenario: "n"}}, "not in the expectations"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(compare([]result{base}, tc.got), "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("compare = %q, want it to say %q", got, tc.want)
			}
		})
	}
}
