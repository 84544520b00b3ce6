// Command tokens measures what a model carries of its tools, in tokens of the
// o200k vocabulary: with the whole list, and with discovery over a session of ten
// tasks. It prints the table in docs/discovery.md.
//
//	go run ./bench/tokens [-corpus DIR]...
//
// A corpus is a folder of lists of tools, one JSON file {"tools": […]} for each
// server, as the servers answer to tools/list. Where there are fewer tools than a
// row asks for, further instances of the same servers are added.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/tiktoken-go/tokenizer"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/view"
)

func main() {
	var dirs list
	flag.Var(&dirs, "corpus", "folder of lists of tools; may be repeated")
	flag.Parse()
	if len(dirs) == 0 {
		dirs = list{"tools/search/testdata/corpus/tools-list"}
	}
	if err := run(dirs); err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func run(dirs []string) error {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return err
	}
	m := &meter{codec: codec}
	all, err := read(dirs)
	if err != nil {
		return err
	}
	fmt.Println("| tools | whole list, each turn | discovery, first turn | after 10 tasks | mean of 20 turns | session, whole list | session, discovery | found | estimate / measured |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, n := range []int{45, 500, 2800} {
		row, err := m.measure(take(all, n))
		if err != nil {
			return err
		}
		fmt.Println(row)
	}
	return nil
}

// read returns the tools of the lists, under the names that a gateway gives them.
func read(dirs []string) ([]tools.Tool, error) {
	var all []tools.Tool
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) == 0 {
			return nil, errors.Join(fmt.Errorf("no lists of tools in %s", dir), err)
		}
		for _, file := range files {
			some, err := readList(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

func readList(file string) ([]tools.Tool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var l struct {
		Tools []struct {
			Name, Description string
			InputSchema       json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return nil, err
	}
	server := strings.TrimSuffix(filepath.Base(file), ".json")
	var out []tools.Tool
	for _, t := range l.Tools {
		compact, err := json.Marshal(t.InputSchema)
		if err != nil {
			return nil, err
		}
		out = append(out, tools.Tool{Name: tools.CanonicalName(server+"_", t.Name), SourceName: t.Name, Namespace: server,
			Source: tools.ToolSourceID("mcp:" + server), Description: t.Description, ArgsSchema: compact})
	}
	return out, nil
}

// take picks n tools evenly, of as many instances of each server as that needs.
func take(all []tools.Tool, n int) []tools.Tool {
	out := make([]tools.Tool, 0, n)
	for copies := 1; len(all) < n; copies++ {
		for _, t := range all[:min(len(all), n-len(all))] {
			prefix := fmt.Sprintf("site%d-", copies)
			t.Name, t.Namespace, t.Source = prefix+t.Name, prefix+t.Namespace, "mcp:"+tools.ToolSourceID(prefix+t.Namespace)
			if tools.CheckName(t.Name) == nil {
				all = append(all, t)
			}
		}
	}
	for i := range n {
		out = append(out, all[i*len(all)/n])
	}
	return out
}

// meter counts tokens.
type meter struct{ codec tokenizer.Codec }

func (m *meter) count(text string) int {
	n, err := m.codec.Count(text)
	if err != nil {
		return len(text) / 4
	}
	return n
}

// declaration is a tool as providers take it.
type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func (m *meter) declared(list []tools.Tool) int {
	sum := 0
	for _, t := range list {
		raw, err := json.Marshal(declaration{t.Name, t.Description, t.ArgsSchema})
		if err != nil {
			panic(err) // what came from JSON goes back to it
		}
		sum += m.count(string(raw))
	}
	return sum
}

// tasks is how many a session has. Each takes a turn that searches and, the next
// turn, one that calls what was found.
const tasks = 10

// measure is a row of the table.
func (m *meter) measure(some []tools.Tool) (string, error) {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	registered := 0
	for _, t := range some {
		if err := cat.Register(tools.ToolDescriptor{Tool: t, Invoke: nothing}); err == nil {
			registered++
		}
	}
	discovery := view.NewDiscovery(nil, &view.DiscoveryOptions{Mode: view.ModeSearch})
	whole := view.From(context.Background(), cat).Tools()
	full, estimate := m.declared(whole), 0
	for i := range whole {
		estimate += view.Tokens(&whole[i])
	}
	if err := builtin.RegisterMeta(cat, &builtin.MetaOptions{Memory: discovery.Memory()}); err != nil {
		return "", err
	}
	s := &session{meter: m, cat: cat, discovery: discovery}
	if err := s.work(whole); err != nil {
		return "", err
	}
	return fmt.Sprintf("| %d | %d | %d | %d | %d | %d | %d | %d of %d | %.2f |", registered, full, s.carried[0], s.carried[len(s.carried)-1],
		sum(s.carried)/len(s.carried), full*tasks, sum(s.carried), s.found, tasks, float64(estimate)/float64(full)), nil
}

func nothing(context.Context, json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{}, nil
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// session is a model that works with discovery.
type session struct {
	meter     *meter
	cat       tools.LiveCatalog
	discovery *view.Discovery
	history   int   // tokens of searches and their answers so far
	carried   []int // by turn
	found     int   // tasks whose tool, at whichever site, was found
}

// work does the tasks, each for a tool from another part of the catalog.
func (s *session) work(whole []tools.Tool) error {
	ctx := identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
	for i := range tasks {
		if err := s.turn(ctx); err != nil {
			return err
		}
		wanted := whole[i*len(whole)/tasks]
		args, err := json.Marshal(builtin.SearchArgs{Query: words(wanted.SourceName)})
		if err != nil {
			return err
		}
		res, err := tools.Invoke(ctx, s.cat, builtin.SearchName, args)
		if err != nil {
			return err
		}
		if strings.Contains(res.Text(), siteless(wanted.Name)+`"`) {
			s.found++
		}
		s.history += s.meter.count(builtin.SearchName+string(args)) + s.meter.count(res.Text())
		if err := s.turn(ctx); err != nil {
			return err
		}
	}
	return nil
}

// siteless is a name without that of the instance of its server.
func siteless(name string) string {
	if rest, ok := strings.CutPrefix(name, "site"); ok {
		return strings.TrimLeft(rest, "0123456789-")
	}
	return name
}

// turn notes what the model carries in one turn.
func (s *session) turn(ctx context.Context) error {
	d, err := s.discovery.Declared(ctx, s.cat)
	s.carried = append(s.carried, s.meter.declared(d.Tools())+s.history)
	return err
}

// words are those of a name, as somebody would say them.
func words(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var out []string
	for _, p := range parts {
		start := 0
		for i, r := range p {
			if i > start && unicode.IsUpper(r) && unicode.IsLower(rune(p[i-1])) {
				out, start = append(out, strings.ToLower(p[start:i])), i
			}
		}
		out = append(out, strings.ToLower(p[start:]))
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), " ")
}
