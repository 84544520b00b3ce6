// Package corpus imports dumped tool lists through an MCP server that replays them.
package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/gatewaytest"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
)

// corpusEnv names the environment variable that holds a folder of further dumps, one JSON file for each
// server. Lists of real servers are their vendors' and are not part of this repository.
const corpusEnv = "TOOLCRIB_CORPUS"

// refusable are the tools of the own dumps that may be refused; every other one must be served.
var refusable = map[string][]string{
	"odd-refused": {"twice", "", "schema_is_text", "type_is_number", "bad_pattern", "dangling_ref", "remote_ref"},
	"odd-schemas": {"null_schema"},
}

func TestOwnCorpus(t *testing.T) {
	for _, r := range importAll(t, "testdata") {
		for _, name := range r.refused {
			if !slices.Contains(refusable[r.name], name) {
				t.Errorf("%s: %q is refused, and must be served", r.name, name)
			}
		}
		if r.name == "odd-names" && len(r.called) != len(r.served) {
			t.Errorf("%s: %d of %d tools answered under their own names", r.name, len(r.called), len(r.served))
		}
	}
}

func TestVendorCorpus(t *testing.T) {
	dir := os.Getenv(corpusEnv)
	if dir == "" {
		t.Skipf("left out: the tool lists of real servers; set %s to a folder of dumps to import them", corpusEnv)
	}
	served, refused := 0, 0
	for _, r := range importAll(t, dir) {
		t.Logf("%s: %d served, %d refused, %d called", r.name, len(r.served), len(r.refused), len(r.called))
		served += len(r.served)
		refused += len(r.refused)
	}
	t.Logf("in all: %d served, %d refused", served, refused)
}

// imported is what became of one dump: the source names of its tools.
type imported struct {
	name                    string
	served, refused, called []string
}

// importAll opens one gateway in front of a replaying server for each dump in dir.
func importAll(t *testing.T, dir string) []imported {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	dumps, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(dumps) == 0 {
		t.Fatalf("no dumps in %s (%v)", dir, err)
	}
	g := open(t, dumps)
	var results []imported
	for _, dump := range dumps {
		name := serverName(dump)
		t.Run(name, func(t *testing.T) { results = append(results, check(t, g, name, listed(t, dump))) })
	}
	return results
}

func serverName(dump string) string {
	return strings.TrimSuffix(filepath.Base(dump), ".json")
}

// open starts the gateway and waits until every server was asked once.
func open(t *testing.T, dumps []string) *gateway.Gateway {
	t.Helper()
	replay := peertest.Build(t, "./test/replay")
	var config strings.Builder
	config.WriteString("tools:\n  mcp_servers:\n")
	for _, dump := range dumps {
		fmt.Fprintf(&config, "    - {name: %q, transport_mode: stdio, command: [%q, -page, '20', %q]}\n", serverName(dump), replay, dump)
	}
	return gatewaytest.Open(t, gatewaytest.Parse(t, config.String()), &gateway.Options{DataDir: t.TempDir()})
}

// listed reads the tools of a dump as the server sends them.
func listed(t *testing.T, dump string) []json.RawMessage {
	t.Helper()
	text, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", dump, err)
	}
	return d.Tools
}

// check accounts for every tool of one server: it is in the catalog under a canonical name and whole, or
// it is refused with a reason.
func check(t *testing.T, g *gateway.Gateway, server string, list []json.RawMessage) imported {
	t.Helper()
	result := imported{name: server}
	state := stateOf(t, g, server)
	ctx := g.LocalContext(t.Context())
	bySource := map[string]tools.Tool{}
	for _, tool := range g.Catalog().List(tools.FilterFrom(ctx)) {
		if tool.Namespace == server {
			bySource[tool.SourceName] = tool
		}
	}
	for _, raw := range list {
		source := sourceName(raw)
		tool, served := bySource[source]
		if !served {
			result.refused = append(result.refused, source)
			continue
		}
		result.served = append(result.served, source)
		checkServed(t, tool, raw)
		if called(t, ctx, g, tool) {
			result.called = append(result.called, source)
		}
	}
	checkRefused(t, state, result.refused)
	if len(bySource) != state.Tools {
		t.Errorf("the catalog holds %d tools, the state says %d", len(bySource), state.Tools)
	}
	return result
}

func stateOf(t *testing.T, g *gateway.Gateway, server string) gateway.SourceState {
	t.Helper()
	for _, state := range g.Sources() {
		if state.Name == server {
			if state.State != gateway.SourceReady {
				t.Errorf("state = %s: %s", state.State, state.Error)
			}
			return state
		}
	}
	t.Fatalf("the gateway knows no source %q", server)
	return gateway.SourceState{}
}

// sourceName is the server's own name of a tool, empty when it has none.
func sourceName(raw json.RawMessage) string {
	var tool struct{ Name string }
	if err := json.Unmarshal(raw, &tool); err != nil {
		return ""
	}
	return tool.Name
}

func checkServed(t *testing.T, tool tools.Tool, raw json.RawMessage) {
	t.Helper()
	if err := tools.CheckName(tool.Name); err != nil {
		t.Error(err)
	}
	// Of two tools with one name the first is served; the second has no definition to compare with.
	if diff := cmp.Diff(value(t, raw), value(t, tool.Definition)); diff != "" && tool.SourceName != "twice" {
		t.Errorf("%s: the definition changed on the way (-sent +kept):\n%s", tool.Name, diff)
	}
}

// value decodes JSON without losing digits.
func value(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

// called calls a tool without arguments, where its schemas allow that, and checks that the server was
// asked for it by the server's own name.
func called(t *testing.T, ctx context.Context, g *gateway.Gateway, tool tools.Tool) bool {
	t.Helper()
	result, err := tools.Invoke(ctx, g.Catalog(), tool.Name, json.RawMessage(`{}`))
	if errors.Is(err, tools.ErrToolInvalidArgs) || errors.Is(err, tools.ErrToolInvalidOutput) {
		return false
	}
	if err != nil {
		t.Errorf("%s: %v", tool.Name, err)
		return false
	}
	if name, _, _ := strings.Cut(result.Text(), "\n"); name != tool.SourceName {
		t.Errorf("%s: the server was asked for %q, want %q", tool.Name, name, tool.SourceName)
	}
	return true
}

// checkRefused demands a reason for each tool that is not served, and that it can be told which one it is
// about.
func checkRefused(t *testing.T, state gateway.SourceState, names []string) {
	t.Helper()
	for _, name := range names {
		named := slices.ContainsFunc(state.Refused, func(r gateway.Refused) bool {
			return strings.Contains(r.Name+" "+r.Reason, name) && r.Reason != ""
		})
		if !named {
			t.Errorf("%q is neither served nor refused with a reason that names it; refused: %v", name, state.Refused)
		}
	}
}
