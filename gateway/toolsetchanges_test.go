package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// ear hears that the list of tools changed.
func ear() (chan struct{}, *mcp.ClientOptions) {
	heard := make(chan struct{}, 100)
	return heard, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { heard <- struct{}{} }}
}

func hear(t *testing.T, heard <-chan struct{}) {
	t.Helper()
	select {
	case <-heard:
	case <-bounded(t).Done():
		t.Fatal("nothing was told of the change")
	}
}

// A toolset follows the catalog and the configuration while its clients stay, and
// only those are told whose list is another now.
func TestToolsetsFollow(t *testing.T) {
	for _, revision := range bothEras {
		t.Run(revision, func(t *testing.T) {
			g := openLibrary(t, libraryToolsets)
			url := behindAuth(t, g)
			heardBulk, bulkOpts := ear()
			heardLib, libOpts := ear()
			bulk := connectTo(t, url+"/mcp/bulk", revision, headers{}, bulkOpts)
			lib := connectTo(t, url+"/mcp/lib", revision, headers{}, libOpts)
			before := toolNames(t, lib)
			if got := toolNames(t, bulk); !slices.Equal(got, []string{"lib.dump"}) {
				t.Fatalf("listed %v", got)
			}
			// Both must listen before something changes that both are told.
			for i := 0; len(heardBulk) == 0 || len(heardLib) == 0; i++ {
				register(t, g, tools.Tool{Name: fmt.Sprintf("both.n%d", i), Category: "bulk", Namespace: "lib"})
				select {
				case <-bounded(t).Done():
					t.Fatal("nobody listens")
				default:
				}
				toolNames(t, lib)
			}
			register(t, g, tools.Tool{Name: "bulk.more", Category: "bulk"})
			for !slices.Contains(toolNames(t, bulk), "bulk.more") {
				hear(t, heardBulk)
			}
			reload(t, g, strings.Replace(libraryToolsets, "{name: bulk, categories: [bulk]}", "{name: bulk, include: [lib.search]}", 1))
			for !slices.Equal(toolNames(t, bulk), []string{"lib.search"}) {
				hear(t, heardBulk)
			}
			if _, err := bulk.CallTool(bounded(t), &mcp.CallToolParams{Name: "lib.dump"}); err == nil {
				t.Error("a tool that left the toolset was called")
			}
			if got := toolNames(t, lib); len(got) < len(before) {
				t.Errorf("another toolset lost tools: %v", got)
			}
		})
	}
}

// What an entry says of a tool counts for the toolsets that it is in, at once.
func TestToolsetsFollowEntries(t *testing.T) {
	const sets = "toolsets: [{name: picked, tags: [picked]}, {name: open, policy: '!(\"picked\" in tool.tags)'}]\n"
	g := openLibrary(t, sets)
	in := func(name string) bool {
		ctx, err := g.WithToolset(g.LocalContext(bounded(t)), name)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(tools.VisibleNames(g.Catalog(), tools.FilterFrom(ctx)), "mail.send")
	}
	if in("picked") || !in("open") {
		t.Error("before")
	}
	reload(t, g, sets+"tools: {entries: [{name: mail.send, tags: [picked]}]}")
	if !in("picked") || in("open") {
		t.Error("after")
	}
}

func register(t *testing.T, g *gateway.Gateway, tool tools.Tool) {
	t.Helper()
	err := g.Catalog().Register(tools.ToolDescriptor{Tool: tool, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: "done"}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// Who is told another title has a new session; a toolset that is gone ends those
// that it had, and one of its name that comes back is a new one.
func TestToolsetsComeAndGo(t *testing.T) {
	g := openLibrary(t, libraryToolsets)
	url := behindAuth(t, g)
	reading := connectTo(t, url+"/mcp/reading", "2025-11-25", headers{}, nil)
	lib := connectTo(t, url+"/mcp/lib", "2025-11-25", headers{}, nil)
	own := connectTo(t, url+"/mcp/own", "2025-11-25", headers{}, nil)
	next := strings.Replace(strings.Replace(libraryToolsets, "title: Reading", "title: Books", 1), "{name: lib, namespaces", "{name: lab, namespaces", 1)
	reload(t, g, next)
	for name, s := range map[string]*mcp.ClientSession{"reading": reading, "lib": lib} {
		if _, err := s.ListTools(bounded(t), nil); err == nil {
			t.Errorf("the session in %s goes on", name)
		}
	}
	if _, err := own.ListTools(bounded(t), nil); err != nil {
		t.Errorf("the session in a toolset that did not change: %v", err)
	}
	if s := connectTo(t, url+"/mcp/reading", "2025-11-25", headers{}, nil); s.InitializeResult().ServerInfo.Title != "Books" {
		t.Errorf("%+v", s.InitializeResult().ServerInfo)
	}
	if _, err := g.WithToolset(g.LocalContext(bounded(t)), "lib"); err == nil {
		t.Error("a toolset that is gone is there")
	}
	if s := connectTo(t, url+"/mcp/lab", "2025-11-25", headers{}, nil); len(toolNames(t, s)) == 0 {
		t.Error("the new toolset is empty")
	}
	bad := strings.Replace(libraryToolsets, "tags: [read]", "policy: tool.nmae", 1)
	if _, err := gateway.Parse("toolcrib.yaml", []byte(bad)); err == nil {
		t.Error("a wrong policy is accepted")
	}
	cfg := parse(t, libraryToolsets)
	cfg.Toolsets[0].Policy = "tool.nmae"
	if err := g.Reload(bounded(t), cfg); err == nil {
		t.Error("a wrong policy was applied")
	}
	if s := connectTo(t, url+"/mcp/reading", "2025-11-25", headers{}, nil); s.InitializeResult().ServerInfo.Title != "Books" {
		t.Error("what was refused was applied in part")
	}
}

// A context that was narrowed to a toolset stays so when that is gone: it has
// nothing.
func TestNothingIsLeftOfAToolsetThatIsGone(t *testing.T) {
	g := openLibrary(t, libraryToolsets)
	ctx, err := g.WithToolset(g.LocalContext(bounded(t)), "lib")
	if err != nil {
		t.Fatal(err)
	}
	if got := tools.VisibleNames(g.Catalog(), tools.FilterFrom(ctx)); len(got) == 0 {
		t.Fatal("nothing is there")
	}
	reload(t, g, "toolsets: [{name: other}]")
	if got := tools.VisibleNames(g.Catalog(), tools.FilterFrom(ctx)); len(got) != 0 {
		t.Errorf("left %v", got)
	}
	if _, err := tools.Invoke(ctx, g.Catalog(), "lib.search", nil); !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("called: %v", err)
	}
}

// What a session finds in a toolset it is declared there and nowhere else, also
// after a restart.
func TestFindsBelongToTheirToolset(t *testing.T) {
	const config = "mcp: {discovery: search}\ntoolsets: [{name: a, namespaces: [lib]}, {name: b, namespaces: [lib]}]"
	dir := t.TempDir()
	for round, start := range []string{"", dir, dir} {
		g := open(t, parse(t, config), &gateway.Options{DataDir: start, Register: []func(tools.ToolCatalog) error{registerLibrary}})
		url := behindAuth(t, g)
		session := headers{"Toolcrib-Session": "mine"}
		for _, revision := range bothEras {
			in := map[string]*mcp.ClientSession{}
			for path, name := range map[string]string{"/mcp/a": "a", "/mcp/b": "b", "/mcp": "all"} {
				in[name] = connectTo(t, url+path, revision, session, nil)
			}
			if round < 2 {
				res, err := in["a"].CallTool(bounded(t), &mcp.CallToolParams{Name: "tool_get", Arguments: map[string]any{"name": "lib.lend"}})
				if err != nil || res.IsError {
					t.Fatalf("%v, %v", res, err)
				}
			}
			for name, want := range map[string][]string{"a": {"lib.lend"}, "b": {}, "all": {}} {
				if diff := cmp.Diff(want, toolNames(t, in[name])); diff != "" {
					t.Errorf("round %d, %s in %s: %s", round, revision, name, diff)
				}
			}
		}
		if err := g.Close(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// policies are expressions and what they mean.
var policies = map[string]func(tools.Tool, identity.Identity, []string) bool{
	"": func(tools.Tool, identity.Identity, []string) bool { return true },
	`identity.tenant == "acme"`: func(_ tools.Tool, who identity.Identity, _ []string) bool {
		return who.TenantID == "acme"
	},
	`"vault" in identity.scopes || size(tool.auth_scopes) == 0`: func(tool tools.Tool, _ identity.Identity, scopes []string) bool {
		return slices.Contains(scopes, "vault") || len(tool.AuthScopes) == 0
	},
	`tool.name.endsWith(identity.user)`: func(tool tools.Tool, who identity.Identity, _ []string) bool {
		return strings.HasSuffix(tool.Name, who.UserID)
	},
	`tool.safety.read_only == true || tool.kind == "prompt"`: func(tool tools.Tool, _ identity.Identity, _ []string) bool {
		return tool.Safety.ReadOnly == tools.Yes || tool.Kind == tools.KindPrompt
	},
	`tool.tags[99] == "x"`: func(tools.Tool, identity.Identity, []string) bool { return false }, // cannot be evaluated, so left out
}

// Whatever a toolset says and whoever asks, its list, its search, its descriptions
// and its calls agree, and are what the caller may see and the toolset has.
func TestToolsetsEqualTheirSpecification(t *testing.T) {
	g := openLibrary(t, "")
	local := g.LocalAPI()
	rapid.Check(t, func(t *rapid.T) {
		some := func(name string, of ...string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 2, rapid.ID[string]).Draw(t, name)
		}
		ts := gateway.Toolset{Name: "drawn"}
		if rapid.Bool().Draw(t, "includes") {
			ts.Include = some("include", "lib.*", "*send", "lib?search", "mail_*", "nothing")
		}
		if rapid.Bool().Draw(t, "excludes") {
			ts.Exclude = some("exclude", "*.lend", "lib.vault", "*_*")
		}
		if rapid.Bool().Draw(t, "has tags") {
			ts.Tags = some("tags", "read", "write", "nosuch")
		}
		if rapid.Bool().Draw(t, "has namespaces") {
			ts.Namespaces = some("namespaces", "lib", "mail")
		}
		ts.Policy = rapid.SampledFrom(sortedKeys(policies)).Draw(t, "policy")
		if err := g.Reload(context.Background(), &gateway.Config{Toolsets: []gateway.Toolset{ts, {Name: "all"}}}); err != nil {
			t.Fatal(err)
		}
		who := identity.Identity{TenantID: rapid.SampledFrom([]string{"acme", "zeta"}).Draw(t, "tenant"), UserID: rapid.SampledFrom([]string{"send", "lend"}).Draw(t, "user"), SessionID: "s"}
		scopes := rapid.SampledFrom([][]string{nil, {"vault"}}).Draw(t, "scopes")
		ctx := identity.With(context.Background(), who, scopes...)
		visible := tools.VisibleNames(g.Catalog(), tools.FilterFrom(ctx))
		var want []string
		for _, tool := range libraryTools() {
			if slices.Contains(visible, tool.Name) && specified(&ts, tool) && policies[ts.Policy](tool, who, scopes) {
				want = append(want, tool.Name)
			}
		}
		slices.Sort(want)
		narrowed, err := g.WithToolset(ctx, "drawn")
		if err != nil {
			if e, ok := errors.AsType[*api.Error](err); ok && e.Code == api.CodeToolsetNotFound && len(want) == 0 {
				return // who sees nothing in it does not know of it
			}
			t.Fatal(err)
		}
		list, err := local.List(narrowed, api.ListRequest{PageSize: api.MaxPageSize})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range list.Tools {
			got = append(got, row.Name)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v for %v %v: listed %v, want %v", ts, who, scopes, got, want)
		}
		for _, tool := range libraryTools() {
			in := slices.Contains(want, tool.Name)
			_, err := local.Describe(narrowed, tool.Name)
			found, ferr := local.Search(narrowed, api.SearchRequest{Query: tool.Name, Limit: 50})
			_, cerr := local.Call(narrowed, api.CallRequest{Name: tool.Name})
			hit := ferr == nil && slices.ContainsFunc(found.Tools, func(h api.SearchHit) bool { return h.Name == tool.Name })
			if (err == nil) != in || (cerr == nil) != in || hit != in || ferr != nil {
				t.Fatalf("%s is in %v; described %v, called %v, found %v %v", tool.Name, in, err, cerr, hit, ferr)
			}
		}
	})
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// specified reports whether the keys of a toolset, its policy aside, take a tool.
func specified(ts *gateway.Toolset, tool tools.Tool) bool {
	namespace := tool.Namespace
	if namespace == "" {
		namespace, _, _ = strings.Cut(tool.Name, ".")
	}
	matching := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return glob(p, tool.Name) })
	}
	return (ts.Include == nil || matching(ts.Include)) && !matching(ts.Exclude) &&
		(ts.Tags == nil || slices.ContainsFunc(ts.Tags, func(tag string) bool { return slices.Contains(tool.Tags, tag) })) &&
		(ts.Namespaces == nil || slices.Contains(ts.Namespaces, namespace))
}

// glob matches by trying every length of a star.
func glob(pattern, name string) bool {
	switch {
	case pattern == "":
		return name == ""
	case pattern[0] == '*':
		return glob(pattern[1:], name) || name != "" && glob(pattern, name[1:])
	}
	return name != "" && (pattern[0] == '?' || pattern[0] == name[0]) && glob(pattern[1:], name[1:])
}

// Calls and lists go on while toolsets are swapped under them, and at each moment
// agree with one configuration or the other.
func TestToolsetsAreSwappedUnderLoad(t *testing.T) {
	g := openLibrary(t, libraryToolsets)
	url := behindAuth(t, g)
	configs := []*gateway.Config{
		parse(t, "toolsets: [{name: swapped, include: [lib.search, lib.lend]}, {name: stays, include: [lib.search]}]"),
		parse(t, `toolsets: [{name: stays, include: [lib.search]}, {name: swapped, include: [lib.search, mail.send], policy: 'identity.tenant != ""'}]`),
	}
	if err := g.Reload(bounded(t), configs[0]); err != nil {
		t.Fatal(err)
	}
	swapped := connectTo(t, url+"/mcp/swapped", "2025-11-25", headers{}, nil)
	stays := connectTo(t, url+"/mcp/stays", "2025-11-25", headers{}, nil)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, s := range []*mcp.ClientSession{swapped, stays} {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "lib.search"}); err != nil || res.IsError {
					t.Errorf("what is in both was not called: %v, %v", res, err)
				}
				if _, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "lib.vault"}); err == nil {
					t.Error("what is in none was called")
				}
				list, err := s.ListTools(bounded(t), nil)
				if err != nil {
					t.Error(err)
					return
				}
				var names []string
				for _, tool := range list.Tools {
					names = append(names, tool.Name)
				}
				all := [][]string{{"lib.search"}, {"lib.lend", "lib.search"}, {"lib.search", "mail.send"}}
				if !slices.ContainsFunc(all, func(want []string) bool { return slices.Equal(want, names) }) {
					t.Errorf("a torn list: %v", names)
				}
			}
		})
	}
	for i := range 40 {
		if err := g.Reload(bounded(t), configs[(i+1)%2]); err != nil {
			t.Error(err)
		}
		register(t, g, tools.Tool{Name: fmt.Sprintf("noise.n%d", i)})
	}
	close(done)
	wg.Wait()
}

// A large catalog in many toolsets, whose policies read the caller.
func TestLargeToolsets(t *testing.T) {
	const many = 10_000
	g := gatewaytest.Open(t, parse(t, `
mcp: {discovery: full}
toolsets:
  - {name: half, policy: 'tool.name.endsWith("0") || identity.user == "root"'}
  - {name: tagged, tags: [t7]}
`), &gateway.Options{Register: []func(tools.ToolCatalog) error{func(cat tools.ToolCatalog) error {
		list := make([]tools.ToolDescriptor, many)
		for i := range list {
			list[i] = tools.ToolDescriptor{Tool: tools.Tool{Name: fmt.Sprintf("many.t%05d", i), Tags: []string{fmt.Sprint("t", i%10)}},
				Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
					return tools.ToolResult{Value: i}, nil
				}}
		}
		return cat.(tools.BatchRegistrar).RegisterAll(list)
	}}})
	local := g.LocalAPI()
	for user, want := range map[string]int{"u": many / 10, "root": many} {
		ctx, err := g.WithToolset(identity.With(bounded(t), identity.Identity{TenantID: "local", UserID: user, SessionID: "s"}), "half")
		if err != nil {
			t.Fatal(err)
		}
		if list, err := local.List(ctx, api.ListRequest{}); err != nil || list.TotalRows != want {
			t.Errorf("%s is listed %d, %v", user, list.TotalRows, err)
		}
	}
	s := connectTo(t, behindAuth(t, g)+"/mcp/tagged", "2025-11-25", headers{}, nil)
	if got := toolNames(t, s); len(got) != many/10 {
		t.Errorf("listed %d", len(got))
	}
	if res, err := s.CallTool(bounded(t), &mcp.CallToolParams{Name: "many.t00017"}); err != nil || res.IsError {
		t.Errorf("%v, %v", res, err)
	}
}
