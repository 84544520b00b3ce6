package adapter_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

func named(names ...string) []tools.Tool {
	list := make([]tools.Tool, len(names))
	for i, n := range names {
		list[i] = tools.Tool{Name: n}
	}
	return list
}

func wires(d *adapter.Declarations) map[string]string {
	out := map[string]string{}
	for _, t := range d.Tools {
		out[t.Tool] = t.Wire
	}
	return out
}

func TestWireNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, test := range []struct {
		provider  adapter.Provider
		name      string
		want      string
		companion string
	}{
		{adapter.OpenAI, "get_weather", "get_weather", ""},
		{adapter.OpenAI, "weather.get", "weather__get", ""},
		{adapter.OpenAI, "weather.get", "weather_get_b8affdae", "weather__get"},
		{adapter.OpenAI, "weather__get", "weather__get", "weather.get"},
		{adapter.OpenAI, "a._b", "a__b_dd1c251a", ""},
		{adapter.OpenAI, long, strings.Repeat("a", 55) + "_6bd5e503", ""},
		{adapter.Anthropic, "a.b.c", "a__b__c", ""},
		{adapter.Bedrock, "a.b", "a__b", ""},
		{adapter.Gemini, "a.b", "a.b", ""},
		{adapter.Gemini, "9lives", "_9lives_bc867356", ""},
		{adapter.MCP, "9.lives-", "9.lives-", ""},
	} {
		list := named(test.name)
		if test.companion != "" {
			list = append(list, named(test.companion)...)
		}
		d := newAdapter(t, test.provider, nil).Declare(list)
		if got := wires(d)[test.name]; got != test.want {
			t.Errorf("%s shows %q as %q, want %q", test.provider, test.name, got, test.want)
		}
		if back, ok := d.Canonical(test.want); !ok || back != test.name {
			t.Errorf("%s takes %q for %q", test.provider, test.want, back)
		}
	}
}

// Whatever names there are, each has a wire name of its own that the provider
// takes, whatever the order in which they come.
func TestWireNamesAreABijection(t *testing.T) {
	all := adapters(t)
	rapid.Check(t, func(r *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a.][a_.]{0,5}[ab9-]{1,3}|[a-z]{62}[._][ab]{1,5}`), 1, 40, rapid.ID).Draw(r, "names")
		shuffled := slices.Clone(names)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for _, a := range all {
			d := a.Declare(named(names...))
			if found := violations(a, d.Request()); len(found) > 0 {
				r.Fatalf("%s: %v", a.Name(), found)
			}
			again := wires(a.Declare(named(shuffled...)))
			for _, tool := range d.Tools {
				if back, ok := d.Canonical(tool.Wire); !ok || back != tool.Tool {
					r.Fatalf("%s: %q is shown as %q, which is %q", a.Name(), tool.Tool, tool.Wire, back)
				}
				if again[tool.Tool] != tool.Wire {
					r.Fatalf("%s: in another order %q is shown as %q, not %q", a.Name(), tool.Tool, again[tool.Tool], tool.Wire)
				}
			}
		}
	})
}

// Names that are made to be those that others are shown under make others step
// aside, and nothing else.
func TestNamesThatAreTakenOnPurpose(t *testing.T) {
	list := named("a__b.c")
	for range 12 {
		for _, a := range adapters(t) {
			list = append(list, named(wires(a.Declare(list))["a__b.c"])...)
		}
	}
	sum := sha256.Sum256([]byte("a__b.c"))
	for n := 8; n < 64; n += 8 { // longer and longer parts of the hash
		list = append(list, named("a__b_c"[:min(6, 63-n)]+"_"+hex.EncodeToString(sum[:])[:n])...)
	}
	slices.SortFunc(list, func(a, b tools.Tool) int { return strings.Compare(a.Name, b.Name) })
	list = slices.CompactFunc(list, func(a, b tools.Tool) bool { return a.Name == b.Name })
	for _, a := range adapters(t) {
		d := a.Declare(list)
		if found := violations(a, d.Request()); len(found) > 0 || len(d.Tools) != len(list) {
			t.Errorf("%s: %d of %d tools: %v", a.Name(), len(d.Tools), len(list), found)
		}
	}
}

// The provider's own search keeps its name.
func TestNamesOfTheProvider(t *testing.T) {
	list := named("tool_search_tool_bm25", "other")
	list[1].Loading = tools.LoadingDeferred
	native := newAdapter(t, adapter.Anthropic, &adapter.Options{NativeDeferral: true})
	if got := wires(native.Declare(list))["tool_search_tool_bm25"]; got == "tool_search_tool_bm25" || got == "" {
		t.Errorf("the tool is shown as %q beside the provider's search", got)
	}
	if got := wires(newAdapter(t, adapter.Anthropic, nil).Declare(list))["tool_search_tool_bm25"]; got != "tool_search_tool_bm25" {
		t.Errorf("the tool is shown as %q", got)
	}
}

func parsed(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Keys that only differ in what a provider does not take stay apart, the empty
// one among them.
func TestKeysStayApart(t *testing.T) {
	const args = `{"":"x","$":1,"#":null,"$$":true}`
	raw := `{"type":"object","properties":{"":{"type":"string"},"$":{"type":"integer"},"#":{"type":"null"},"$$":{"type":"boolean"}},"required":["","$","#","$$"]}`
	for _, a := range adapters(t) {
		d := a.Declare([]tools.Tool{{Name: "t", ArgsSchema: json.RawMessage(raw), Examples: []tools.ToolExample{{
			Args: map[string]any{"": "x", "$": 1, "#": nil, "$$": true}}}}})
		if len(d.Tools) != 1 || rawjson.Check(d.Tools[0].Schema, rawjson.Options{}) != nil {
			t.Errorf("%s: %s", a.Name(), d.JSON())
			continue
		}
		sent := map[string]any{}
		for key, p := range object(object(parsed(t, d.Tools[0].Schema))["properties"]) {
			switch strings.ToLower(str(object(p)["type"])) {
			case "string":
				sent[key] = "x"
			case "integer":
				sent[key] = 1
			case "boolean":
				sent[key] = true
			default:
				sent[key] = nil
			}
		}
		back, err := d.Args("t", marshal(t, sent))
		if err != nil || !reflect.DeepEqual(parsed(t, back), parsed(t, []byte(args))) {
			t.Errorf("%s: %s became %s, %v", a.Name(), marshal(t, sent), back, err)
		}
	}
}

func TestTooManyToolsAreLeftOutAlone(t *testing.T) {
	var names []string
	for i := range 130 {
		names = append(names, fmt.Sprintf("tool%03d", i))
	}
	d := newAdapter(t, adapter.OpenAI, nil).Declare(named(append(names, "tool000")...))
	if len(d.Tools) != 128 || len(d.Quarantined) != 2 || d.Quarantined[0].Tool != "tool128" || !strings.Contains(d.Quarantined[0].Reason, "128") {
		t.Errorf("%d tools are declared, left out are %v", len(d.Tools), d.Quarantined)
	}
}
