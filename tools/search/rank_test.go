package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

// from is a tool of a source, as a driver makes it.
func from(source, name, description string) tools.ToolDescriptor {
	d := described(source+"_"+name, description)
	d.Tool.Namespace, d.Tool.SourceName = source, name
	return d
}

func TestExactNameWins(t *testing.T) {
	list := []tools.ToolDescriptor{
		from("git", "status", "Show the working tree."),
		from("hosts", "getStatus", "Get the status of a host."),
		from("x", "a", "Status status status of everything, the status of git, git status and more git."),
	}
	index := search.New(nil)
	cat := catalog(t, index, list...)
	for _, c := range []struct{ query, want string }{
		{"git_status", "git_status"},
		{" git_status ", "git_status"},
		{"Git Status", "git_status"},
		{"getStatus", "hosts_getStatus"},
		{"get_status", "hosts_getStatus"},
		{"please call `git_status` for me", "git_status"},
		{"what does hosts_getStatus do?", "hosts_getStatus"},
		{"a", "x_a"},
	} {
		r := find(t, index, t.Context(), cat, search.Query{Text: c.query})
		if len(r.Hits) == 0 || r.Hits[0].Name != c.want || !r.Hits[0].Exact || r.Hits[0].Weak {
			t.Errorf("%q found %+v; want %s first, as exact", c.query, r.Hits, c.want)
		}
	}
}

// An issue tracker whose tools say neither ticket, bug nor close.
func TestTicketsAreIssues(t *testing.T) {
	index := search.New(nil)
	cat := catalog(t, index,
		from("forge", "issueCreateIssue", "Create an issue."),
		from("forge", "issueCreateLabel", "Create a label"),
		from("forge", "issueEditIssue", "Edit an issue."),
		from("forge", "issueClearLabels", "Remove all labels from an issue"),
		from("forge", "issueDeleteIssueAttachment", "Delete an issue attachment"),
		from("forge", "issueGetMilestonesList", "Get all of a repository's opened milestones"),
		from("forge", "repoDismissPullReview", "Dismiss a review for a pull request"),
		from("forge", "repoCreateFile", "Create a file in a repository"),
		from("forge", "adminCronRun", "Run cron task"),
	)
	for query, want := range map[string]string{
		"open a ticket":  "forge_issueCreateIssue",
		"file a bug":     "forge_issueCreateIssue",
		"report a bug":   "forge_issueCreateIssue",
		"close an issue": "forge_issueEditIssue",
		"close a ticket": "forge_issueEditIssue",
	} {
		r := find(t, index, t.Context(), cat, search.Query{Text: query})
		if len(r.Hits) == 0 || r.Hits[0].Name != want || r.Hits[0].Weak {
			t.Errorf("%q found %+v; want %s first", query, r.Hits, want)
		}
	}
}

// Half a match is no reason to offer a tool that deletes to whoever did not ask for that.
func TestToolsThatDeleteAreWeakOnHalfAMatch(t *testing.T) {
	index := search.New(nil)
	cat := catalog(t, index,
		from("forge", "deleteAttachment", "Delete a file that is attached"),
		from("forge", "readAttachment", "Read a file that is attached"),
		from("forge", "listLabels", "List all labels"),
		from("forge", "copyLabels", "Copy all labels"),
	)
	for _, c := range []struct {
		query, name string
		weak        bool
	}{
		{"attachment labels", "forge_deleteAttachment", true},
		{"attachment labels", "forge_readAttachment", false},
		{"attachment", "forge_deleteAttachment", false},
		{"delete attachment labels", "forge_deleteAttachment", false},
		{"get rid of an attachment", "forge_deleteAttachment", false},
	} {
		r := find(t, index, t.Context(), cat, search.Query{Text: c.query})
		at := slices.IndexFunc(r.Hits, func(h search.Hit) bool { return h.Name == c.name })
		if at < 0 || r.Hits[at].Weak != c.weak {
			t.Errorf("%q found %+v; want %s with weak: %v", c.query, r.Hits, c.name, c.weak)
		}
	}
}

func TestLargeSourceDoesNotFlood(t *testing.T) {
	var list []tools.ToolDescriptor
	for i := range 40 {
		list = append(list, from("huge", fmt.Sprintf("list_reports_%02d", i), "List the reports of the company."))
	}
	list = append(list, from("small", "reports", "Shows reports that the company has."), from("tiny", "company_list", "Lists companies with their reports."))
	index := search.New(nil)
	cat := catalog(t, index, list...)
	r := find(t, index, t.Context(), cat, search.Query{Text: "list the reports of a company"})
	for _, want := range []string{"small", "tiny"} {
		if !slices.ContainsFunc(r.Hits, func(h search.Hit) bool { return h.Source == want }) {
			t.Errorf("no hit is of %s: %v", want, hitNames(r))
		}
	}
	if r.Matched != 42 {
		t.Errorf("%d tools match; want 42", r.Matched)
	}
	r = find(t, index, t.Context(), cat, search.Query{Text: "reports", Source: "huge", Limit: 50})
	if len(r.Hits) != 40 {
		t.Errorf("within the source %d hits; want 40", len(r.Hits))
	}
	r = find(t, index, t.Context(), cat, search.Query{Source: "tiny"})
	if got := hitNames(r); !slices.Equal(got, []string{"tiny_company_list"}) {
		t.Errorf("the source lists %v", got)
	}
}

func TestWeakHitsAreMarked(t *testing.T) {
	index := search.New(nil)
	cat := catalog(t, index, shop...)
	r := find(t, index, t.Context(), cat, search.Query{Text: "calibrate the spectrometer of the observatory in a channel"})
	if len(r.Hits) == 0 || !r.Weak {
		t.Errorf("a guess is not marked as weak: %+v", r)
	}
	r = find(t, index, t.Context(), cat, search.Query{Text: "post a message"})
	if r.Weak || r.Hits[0].Weak {
		t.Errorf("a good hit is marked as weak: %+v", r)
	}
	if r = find(t, index, t.Context(), cat, search.Query{Text: "xyzzy plugh"}); len(r.Hits) != 0 || r.Weak {
		t.Errorf("nonsense found %+v", r)
	}
}

func TestOtherScripts(t *testing.T) {
	index := search.New(nil)
	cat := catalog(t, index,
		described("suche", "Sucht Bücher in der Bücherei."), described("nihongo", "天気予報を取得します"),
		described("russkij", "Найти файлы по имени"), described("accents", "Résumé a café's naïve façade"), described("thai", "ค้นหาเอกสาร"))
	for query, want := range map[string]string{
		"bucherei": "suche", "BÜCHEREI": "suche", "天気": "nihongo", "予報": "nihongo", "файлы": "russkij", "cafe": "accents", "ค้นหา": "thai",
	} {
		if r := find(t, index, t.Context(), cat, search.Query{Text: query}); len(r.Hits) == 0 || r.Hits[0].Name != want {
			t.Errorf("%q found %v; want %s", query, hitNames(r), want)
		}
	}
}

// The same tools give the same answer, whatever the way to them was.
func TestOrderOfChangesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, other := search.New(nil), search.New(nil)
		cat := tools.NewCatalog().(tools.LiveCatalog)
		for range rapid.IntRange(2, 150).Draw(t, "changes") {
			change(t, cat)
			if rapid.IntRange(0, 3).Draw(t, "search") == 0 {
				find(t, index, as("acme", nil), cat, search.Query{Text: "warm"})
			}
		}
		ctx := as("acme", []string{"billing"})
		for _, text := range asked {
			q := search.Query{Text: text, Limit: 20}
			if diff := cmp.Diff(find(t, other, ctx, cat, q), find(t, index, ctx, cat, q)); diff != "" {
				t.Fatalf("%q (-made at once +by changes):\n%s", text, diff)
			}
		}
	})
}

func TestSearchWhileToolsChange(t *testing.T) {
	index := search.New(&search.Options{MaxClasses: 2})
	cat := catalog(t, index, shop...)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 60 {
				d := described(fmt.Sprintf("made.tool_%d_%d", w, i%7), fmt.Sprintf("Does the work of number %d.", i))
				d.Tool.AuthScopes = [][]string{nil, {"billing"}, {"admin"}}[i%3]
				if cat.Register(d) != nil && cat.Replace([]tools.ToolDescriptor{d}) != nil {
					t.Error("neither registered nor replaced")
				}
				for _, granted := range grants {
					got := cat.Search(as("acme", granted), "create an issue", nil, 3)
					if len(got) == 0 || got[0].Name != "tracker.create_issue" {
						t.Errorf("found %v", names(got))
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestCancelledSearch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	index := search.New(nil)
	if _, err := index.Find(ctx, catalog(t, index, shop...).Snapshot().Visible(tools.CatalogFilter{}), search.Query{Text: "issue"}); err == nil {
		t.Error("no error")
	}
	if _, err := index.Search(ctx, "issue", nil, 1); err == nil {
		t.Error("no error")
	}
	if err := index.Sync(ctx, nil); err == nil {
		t.Error("no error")
	}
}

func TestLimits(t *testing.T) {
	index := search.New(nil)
	cat := catalog(t, index, shop...)
	for _, c := range []struct{ limit, most int }{{-1, 10}, {0, 10}, {1, 1}, {2, 2}, {1 << 30, 6}} {
		r := find(t, index, t.Context(), cat, search.Query{Text: "issue message", Limit: c.limit})
		if len(r.Hits) == 0 || len(r.Hits) > c.most {
			t.Errorf("limit %d gave %d hits", c.limit, len(r.Hits))
		}
	}
	if r, err := index.Find(t.Context(), nil, search.Query{Text: "issue"}); err != nil || len(r.Hits) != 0 {
		t.Errorf("without a set: %v, %v", r, err)
	}
}

func FuzzFind(f *testing.F) {
	for _, q := range append(slices.Clone(asked), "", "'s's", "a\x00b", "\xff\xfe", strings.Repeat("zorblax ", 500), strings.Repeat("x", 5000), "天気ค้นหา", "̈́́́́", "get get get", "who are the", "HTTPServerURLs", "v1.2-3_4") {
		f.Add(q, "a description of "+q)
	}
	index := search.New(nil)
	cat := catalog(f, index, shop...)
	f.Fuzz(func(t *testing.T, query, description string) {
		d := described("fuzzed.tool", description, query)
		if cat.Register(d) != nil {
			if err := cat.Replace([]tools.ToolDescriptor{d}); err != nil {
				t.Fatal(err)
			}
		}
		r := find(t, index, t.Context(), cat, search.Query{Text: query})
		if again := find(t, index, t.Context(), cat, search.Query{Text: query}); !cmp.Equal(r, again) {
			t.Errorf("%q found %v, then %v", query, r, again)
		}
		for _, h := range r.Hits {
			if h.Score < 0 || h.Score > 1 || h.Score != h.Score {
				t.Errorf("%q: %s has the score %v", query, h.Name, h.Score)
			}
		}
	})
}

// A prompt or resource comes after a tool that answers as well.
func TestToolsComeFirst(t *testing.T) {
	prompt := from("desk", "triage_ticket", "Triage a ticket.")
	prompt.Tool.Kind = tools.KindPrompt
	prompt.Tool.Name = "a_prompt_triage_ticket"
	index := search.New(nil)
	cat := catalog(t, index, prompt, from("desk", "triage_ticket", "Triage a ticket."))
	r := find(t, index, t.Context(), cat, search.Query{Text: "triage of tickets"})
	if got := hitNames(r); len(got) != 2 || got[0] != "desk_triage_ticket" {
		t.Errorf("found %v", got)
	}
}
