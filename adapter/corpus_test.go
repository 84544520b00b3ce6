package adapter_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// corpora returns lists of tools: a small one that holds every feature, and with
// TOOLCRIB_CORPUS the dumps of MCP servers in that folder.
func corpora(t *testing.T) map[string][]tools.Tool {
	t.Helper()
	all := map[string][]tools.Tool{"own": ownTools(t)}
	dir := os.Getenv("TOOLCRIB_CORPUS")
	if dir == "" {
		t.Log("TOOLCRIB_CORPUS is not set: only the tools of testdata are exported")
		return all
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dumps in TOOLCRIB_CORPUS=%s: %v", dir, err)
	}
	for _, file := range files {
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = dumpedTools(t, file)
	}
	return all
}

func read(t testing.TB, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func ownTools(t testing.TB) []tools.Tool {
	t.Helper()
	var own []struct {
		Name   string
		Schema json.RawMessage
	}
	read(t, "testdata/tools.json", &own)
	list := make([]tools.Tool, len(own))
	for i, o := range own {
		list[i] = tools.Tool{Name: o.Name, Description: "Does " + o.Name + ".", ArgsSchema: o.Schema}
	}
	return list
}

func dumpedTools(t testing.TB, file string) []tools.Tool {
	t.Helper()
	var dump struct {
		Tools []struct {
			Name, Description string
			InputSchema       json.RawMessage
		}
	}
	read(t, file, &dump)
	prefix := strings.TrimSuffix(filepath.Base(file), ".json") + "_"
	list := make([]tools.Tool, len(dump.Tools))
	for i, d := range dump.Tools {
		list[i] = tools.Tool{Name: tools.CanonicalName(prefix, d.Name), Description: d.Description, ArgsSchema: d.InputSchema}
	}
	return list
}

// adapters returns every form that there is.
func adapters(t testing.TB) []*adapter.Adapter {
	t.Helper()
	var all []*adapter.Adapter
	for _, p := range adapter.Providers() {
		all = append(all, newAdapter(t, p, nil))
	}
	return append(all,
		newAdapter(t, adapter.OpenAI, &adapter.Options{Strict: true}),
		newAdapter(t, adapter.OpenAIResponses, &adapter.Options{Strict: true}),
		newAdapter(t, adapter.Gemini, &adapter.Options{OpenAPISchemas: true}),
	)
}

func newAdapter(t testing.TB, p adapter.Provider, opts *adapter.Options) *adapter.Adapter {
	t.Helper()
	a, err := adapter.New(p, opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// label tells the two forms of Gemini apart.
func label(a *adapter.Adapter, d *adapter.Declarations) string {
	if strings.Contains(string(d.JSON()), `"parameters":{"type":"OBJECT"`) {
		return a.Name() + "-openapi"
	}
	return a.Name()
}

func TestEveryToolIsExportedWithinTheLimits(t *testing.T) {
	for name, all := range corpora(t) {
		for _, a := range adapters(t) {
			for list := range slices.Chunk(all, 128) {
				d := a.Declare(list)
				for _, v := range violations(a, d.Request()) {
					t.Errorf("%s for %s: %s", name, label(a, d), v)
				}
				if got := len(d.Tools) + len(d.Quarantined); got != len(list) {
					t.Errorf("%s for %s: %d of %d tools are accounted for", name, a.Name(), got, len(list))
				}
				for _, q := range d.Quarantined {
					t.Errorf("%s for %s: %s is left out: %s", name, a.Name(), q.Tool, q.Reason)
				}
			}
		}
	}
}

// A value that a model makes from the provider's schema, mapped back, satisfies
// the original schema, save where a loss is reported for the very keyword.
func TestArgumentsComeBackValid(t *testing.T) {
	all := corpora(t)
	for _, a := range adapters(t) {
		counts := tally{}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			rounds := 4
			if name == "own" {
				rounds = 30
			}
			for list := range slices.Chunk(all[name], 128) {
				d := a.Declare(list)
				for i := range d.Tools {
					roundTrips(t, a, d, &d.Tools[i], toolNamed(list, d.Tools[i].Tool), rounds, &counts)
				}
			}
		}
		t.Logf("%s: %d arguments valid, %d explained by a reported loss, %d not generated", a.Name(), counts.valid, counts.explained, counts.skipped)
		if counts.valid < 1000 {
			t.Errorf("%s: only %d arguments came back valid", a.Name(), counts.valid)
		}
		if counts.skipped > counts.valid/4 {
			t.Errorf("%s: %d arguments were not generated", a.Name(), counts.skipped)
		}
	}
}

type tally struct{ valid, explained, skipped int }

func toolNamed(list []tools.Tool, name string) tools.Tool {
	for _, t := range list {
		if t.Name == name {
			return t
		}
	}
	return tools.Tool{}
}

func roundTrips(t *testing.T, a *adapter.Adapter, d *adapter.Declarations, decl *adapter.Declaration, tool tools.Tool, rounds int, counts *tally) {
	original := tool.ArgsSchema
	if len(original) == 0 {
		original = json.RawMessage(`{}`)
	}
	want, err := schema.Compile(original, nil)
	if err != nil {
		t.Fatalf("%s: %v", tool.Name, err)
	}
	var root map[string]any
	if err := json.Unmarshal(decl.Schema, &root); err != nil {
		t.Fatal(err)
	}
	declared, err := schema.Compile(plainSchema(root), nil)
	if err != nil {
		t.Fatalf("%s for %s: %v", tool.Name, a.Name(), err)
	}
	lost := map[string]bool{}
	for _, l := range d.Losses {
		if l.Tool == tool.Name {
			lost[l.Feature] = true
		}
	}
	for seed := range uint64(rounds) {
		sent, ok := generated(root, declared, seed)
		if !ok {
			counts.skipped++
			continue
		}
		calls, err := d.Calls(response(a, decl.Wire, sent))
		if err != nil || len(calls) != 1 {
			t.Fatalf("%s: %v %v", a.Name(), calls, err)
		}
		if calls[0].Tool != tool.Name {
			t.Fatalf("%s: %s came back as %s", a.Name(), tool.Name, calls[0].Tool)
		}
		if calls[0].Err != nil {
			if len(lost) > 0 {
				counts.explained++
				continue
			}
			t.Errorf("%s for %s: %s gives %v", tool.Name, label(a, d), sent, calls[0].Err)
			continue
		}
		if err := want.Check(calls[0].Args); err == nil {
			counts.valid++
		} else if explained(err, lost) {
			counts.explained++
		} else {
			t.Errorf("%s for %s: %s became %s: %v (losses %v)", tool.Name, label(a, d), sent, calls[0].Args, err, lost)
		}
	}
}

// explained reports whether each violation is of a keyword that was reported
// lost. A union or a text in whose branches something was lost fails as a whole.
func explained(err error, lost map[string]bool) bool {
	var e *schema.Error
	if !errors.As(err, &e) || len(lost) == 0 {
		return false
	}
	excuses := map[string][]string{
		"required": {"if", "dependentRequired", "not"}, "enum": {"not"},
		"additionalProperties": {"patternProperties"}, "false": {"patternProperties"},
	}
	for _, v := range e.Violations {
		whole := slices.Contains([]string{"anyOf", "oneOf", "not"}, v.Keyword)
		deeper := lost["recursion"] || lost["depth"] || lost["size"]
		other := slices.ContainsFunc(excuses[v.Keyword], func(k string) bool { return lost[k] })
		if !lost[v.Keyword] && !whole && !deeper && !other {
			return false
		}
	}
	return true
}

// generated returns arguments that satisfy the declared schema.
func generated(root map[string]any, declared *schema.Schema, seed uint64) (json.RawMessage, bool) {
	for try := range uint64(40) {
		v, ok := newGenerator(seed*1000+try, root).value(root, 0)
		if !ok {
			continue
		}
		raw, err := json.Marshal(v)
		if err == nil && declared.Check(raw) == nil {
			return raw, true
		}
	}
	return nil, false
}

// plainSchema writes the dialect of OpenAPI as JSON Schema.
func plainSchema(v any) json.RawMessage {
	raw, _ := json.Marshal(plain(v))
	return raw
}

func plain(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if k == "properties" || k == "$defs" {
				inner := map[string]any{}
				for name, s := range object(e) {
					inner[name] = plain(s)
				}
				out[k] = inner
				continue
			}
			out[k] = plain(e)
		}
		if kind, ok := v["type"].(string); ok && strings.ToUpper(kind) == kind {
			out["type"] = strings.ToLower(kind)
			if v["nullable"] == true {
				out["type"] = []any{strings.ToLower(kind), "null"}
				if values := list(v["enum"]); values != nil {
					out["enum"] = append(slices.Clone(values), nil)
				}
			}
		}
		return out
	}
	return v
}

// response returns a provider's response with one call.
func response(a *adapter.Adapter, wire string, args json.RawMessage) json.RawMessage {
	var body any
	switch a.Provider() {
	case adapter.OpenAI:
		body = map[string]any{"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "tool_calls": []any{
			map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": wire, "arguments": string(args)}}}}}}}
	case adapter.OpenAIResponses:
		body = map[string]any{"output": []any{map[string]any{"type": "function_call", "call_id": "c", "name": wire, "arguments": string(args)}}}
	case adapter.Anthropic:
		body = map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": "c", "name": wire, "input": args}}}
	case adapter.Gemini:
		body = map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"parts": []any{
			map[string]any{"functionCall": map[string]any{"name": wire, "args": args}}}}}}}
	case adapter.Bedrock:
		body = map[string]any{"output": map[string]any{"message": map[string]any{"content": []any{
			map[string]any{"toolUse": map[string]any{"toolUseId": "c", "name": wire, "input": args}}}}}}
	case adapter.MCP:
		body = map[string]any{"method": "tools/call", "id": 1, "params": map[string]any{"name": wire, "arguments": args}}
	}
	raw, _ := json.Marshal(body)
	return raw
}
