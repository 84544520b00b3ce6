package adapter_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

func TestUnknownProvider(t *testing.T) {
	if _, err := adapter.New("smoke-signals", nil); err == nil || !strings.Contains(err.Error(), "openai-responses") {
		t.Errorf("the error does not name the providers: %v", err)
	}
}

// A tool that no form can say is left out alone.
func TestQuarantine(t *testing.T) {
	bad := map[string]string{
		"never":   `false`,
		"outside": `{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`,
		"lost":    `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`,
		"broken":  `{"type":`,
		"twice":   `{"type":"object","type":"array"}`,
		"number":  `7`,
		"nested":  strings.Repeat(`{"properties":{"a":`, 200) + `{}` + strings.Repeat(`}}`, 200),
		"large":   `{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}`,
	}
	list := named("good", "bad name")
	for name, schema := range bad {
		list = append(list, tools.Tool{Name: name, ArgsSchema: json.RawMessage(schema)})
	}
	list = append(list, named("also_good")...)
	for _, a := range adapters(t) {
		d := a.Declare(list)
		left := map[string]string{}
		for _, q := range d.Quarantined {
			left[q.Tool] = q.Reason
		}
		for name := range bad {
			if a.Provider() == adapter.MCP && (name == "outside" || name == "lost" || name == "large") {
				continue // MCP clients resolve references themselves
			}
			if left[name] == "" {
				t.Errorf("%s declares %s", a.Name(), name)
			}
		}
		if left["bad name"] == "" {
			t.Errorf("%s declares a name that is not canonical", a.Name())
		}
		for _, name := range []string{"good", "also_good"} {
			if _, ok := d.Tool(name); !ok {
				t.Errorf("%s leaves out %s as well", a.Name(), name)
			}
		}
	}
}

func TestHiddenArgumentsNeverAppear(t *testing.T) {
	secret := tools.Tool{
		Name: "lookup", Description: "Look something up.",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"hiddenkey":{"type":"string","description":"hiddenkey of the tenant"}},"required":["q","hiddenkey"]}`),
		Injected:   []tools.Injected{{Arg: "hiddenkey", From: "secret:x"}},
		Definition: json.RawMessage(`{"name":"lookup","inputSchema":{"type":"object","properties":{"hiddenkey":{}}},"note":"hiddenkey"}`),
		Examples:   []tools.ToolExample{{Args: map[string]any{"q": "a", "hiddenkey": "b"}}, {Args: map[string]any{"q": "shown"}}},
	}
	for _, a := range adapters(t) {
		d := a.Declare([]tools.Tool{secret})
		if request := string(d.Request()); strings.Contains(request, "hiddenkey") || !strings.Contains(request, "shown") {
			t.Errorf("%s: %s", a.Name(), request)
		}
	}
}

// Nothing of what the author says of a tool is lost, in whatever place the
// provider has for it.
func TestDeclarationsSayEverything(t *testing.T) {
	tool := tools.Tool{
		Name: "pay", Description: "Pay an invoice.", SafetyNotes: "Cannot be undone.", CostHint: "one fee", LatencyHint: 90 * time.Second,
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`),
		Examples:   []tools.ToolExample{{Args: map[string]any{"id": 4711}}},
		Safety:     tools.Safety{Destructive: tools.Yes, Spend: tools.Yes},
	}
	for _, a := range adapters(t) {
		request := string(a.Declare([]tools.Tool{tool}).Request())
		for _, want := range []string{"Pay an invoice.", "Cannot be undone.", "one fee", "4711"} {
			if !strings.Contains(request, want) {
				t.Errorf("%s does not say %q: %s", a.Name(), want, request)
			}
		}
		for _, either := range [][2]string{{"1m30s", "90000"}, {"overwrite or delete", `"destructiveHint":true`}} {
			if !strings.Contains(request, either[0]) && !strings.Contains(request, either[1]) {
				t.Errorf("%s says neither of %q: %s", a.Name(), either, request)
			}
		}
	}
}

func TestWithoutToolsThereIsNothingToSend(t *testing.T) {
	for _, a := range adapters(t) {
		if got := string(a.Declare(nil).Request()); got != `{}` {
			t.Errorf("%s: %s", a.Name(), got)
		}
	}
}

func TestSerialCalls(t *testing.T) {
	for provider, want := range map[adapter.Provider]string{
		adapter.OpenAI: `"parallel_tool_calls":false`, adapter.OpenAIResponses: `"parallel_tool_calls":false`,
		adapter.Anthropic: `"disable_parallel_tool_use":true`,
	} {
		d := newAdapter(t, provider, &adapter.Options{Serial: true}).Declare(named("a"))
		if got := string(d.Request()); !strings.Contains(got, want) {
			t.Errorf("%s: %s", provider, got)
		}
	}
}

// Only a provider that has a search of its own is handed deferred tools as such.
func TestNativeDeferral(t *testing.T) {
	list := named("now", "later")
	list[1].Loading = tools.LoadingDeferred
	for _, p := range adapter.Providers() {
		a := newAdapter(t, p, &adapter.Options{NativeDeferral: true})
		d := a.Declare(list)
		defers := p == adapter.Anthropic || p == adapter.OpenAIResponses
		if a.Defers() != defers || strings.Contains(string(d.JSON()), "defer_loading") != defers || d.Tools[1].Deferred != defers {
			t.Errorf("%s: %s", p, d.JSON())
		}
		if strings.Contains(string(newAdapter(t, p, nil).Declare(list).JSON()), "defer_loading") {
			t.Errorf("%s defers without being asked to", p)
		}
	}
}

// Compiling does not share memory with the tools that were given.
func TestDeclarationsStandAlone(t *testing.T) {
	for _, a := range adapters(t) {
		schema := json.RawMessage(`{"type":"object","properties":{"$a":{"type":"string","enum":["x","y"]}},"required":["$a"]}`)
		d := a.Declare([]tools.Tool{{Name: "t", Description: "d", ArgsSchema: schema}})
		before := string(d.Request())
		for i := range schema {
			schema[i] = '!'
		}
		if after := string(d.Request()); after != before {
			t.Errorf("%s: %s", a.Name(), after)
		}
		sent := json.RawMessage(`{"$a":"x"}`)
		if strings.Contains(string(d.JSON()), `"_a"`) {
			sent = json.RawMessage(`{"_a":"x"}`)
		}
		calls, err := d.Calls(response(a, "t", sent))
		if err != nil || calls[0].Err != nil || string(calls[0].Args) != `{"$a":"x"}` {
			t.Errorf("%s: %v %+v", a.Name(), err, calls)
		}
	}
}

// What an MCP server says of a tool beyond what the catalog names stays in the
// tool object.
func TestMCPDefinitionsKeepWhatIsNotNamed(t *testing.T) {
	tool := tools.Tool{
		Name: "srv_x", SourceName: "x", Description: "Ours.", CostHint: "cheap",
		ArgsSchema: json.RawMessage(`{"type":"object"}`),
		Safety:     tools.Safety{ReadOnly: tools.Yes},
		Definition: json.RawMessage(`{"name":"x","description":"Theirs.","inputSchema":{"type":"object"},"icons":[{"src":"i.png"}],"annotations":{"title":"X","readOnlyHint":false},"_meta":{"ui":{"n":9007199254740993}}}`),
	}
	got := string(adapter.NewMCPAdapter().Declare([]tools.Tool{tool}).Tools[0].JSON)
	want := `{"name":"srv_x","description":"Ours.","inputSchema":{"type":"object"},"icons":[{"src":"i.png"}],"annotations":{"title":"X","readOnlyHint":true},"_meta":{"ui":{"n":9007199254740993},"toolcrib/cost":"cheap"}}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Many declare the same tools at once, and again.
func TestDeclaringAgainGivesTheSame(t *testing.T) {
	list := ownTools(t)
	for _, a := range adapters(t) {
		want := string(a.Declare(list).Request())
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				if got := string(a.Declare(list).Request()); got != want {
					t.Errorf("%s: %s", a.Name(), got)
				}
			})
		}
		callers.Wait()
	}
}

func BenchmarkDeclareAgain(b *testing.B) {
	list := ownTools(b)
	for _, a := range adapters(b) {
		b.Run(a.Name(), func(b *testing.B) {
			for b.Loop() {
				a.Declare(list)
			}
		})
	}
}
