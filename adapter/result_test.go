package adapter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

func TestRawHeavyContentIsRefused(t *testing.T) {
	heavy := strings.Repeat("x", adapter.DefaultHeavyBytes+1)
	registry, err := events.NewRegistry(tools.EventDefinitions()...)
	if err != nil {
		t.Fatal(err)
	}
	bus := events.NewBus(registry)
	sub := bus.Subscribe(events.Filter{}, nil)
	ctx := identity.With(events.With(t.Context(), bus), identity.Identity{TenantID: "acme", UserID: "u", SessionID: "s"})
	for _, a := range adapters(t) {
		d := a.Declare(named("dump"))
		for _, result := range []tools.ToolResult{
			{Value: heavy, CallID: "c1"},
			{Value: map[string]any{"rows": heavy}, CallID: "c1"},
			{Content: []tools.Content{tools.TextContent("small"), tools.TextContent(heavy)}, CallID: "c1"},
			{Content: []tools.Content{tools.EmbeddedResource("file:///a", "text/plain", heavy)}, CallID: "c1"},
		} {
			messages, err := d.Results(ctx, []adapter.Answer{{Call: adapter.Call{Tool: "dump", Wire: "dump"}, Result: result}})
			if !errors.Is(err, tools.ErrContextLeak) || messages != nil {
				t.Fatalf("%s: %d messages, %v", a.Name(), len(messages), err)
			}
			if strings.Contains(err.Error(), "xxx") {
				t.Errorf("%s: the error quotes the result", a.Name())
			}
			e := <-sub.Events()
			leak, ok := e.Payload.(tools.ContextLeakPayload)
			if !ok || e.Type != tools.EventTypeContextLeak || e.Tool != "dump" || e.CallID != "c1" || leak.Provider != a.Name() ||
				leak.Identity.TenantID != "acme" || leak.SizeBytes <= leak.LimitBytes || leak.LimitBytes != adapter.DefaultHeavyBytes {
				t.Errorf("%s: %+v", a.Name(), e)
			}
		}
	}
}

func TestWhatIsBoundedPasses(t *testing.T) {
	heavy := strings.Repeat("x", adapter.DefaultHeavyBytes+1)
	stub := tools.ToolResult{Value: heavy, Artifacts: []tools.ArtifactRef{{Ref: "art-1", MIME: "text/plain", SizeBytes: 1 << 30}}}
	image := tools.ToolResult{Content: []tools.Content{tools.ImageContent([]byte(heavy), "image/png")}}
	for _, a := range adapters(t) {
		d := a.Declare(named("dump"))
		for _, answer := range []adapter.Answer{{Result: stub}, {Result: image}, {Result: tools.ToolResult{Value: heavy}, Bounded: true}} {
			if _, err := d.Results(t.Context(), []adapter.Answer{answer}); err != nil {
				t.Errorf("%s: %v", a.Name(), err)
			}
		}
		if messages, err := d.Results(t.Context(), nil); err != nil || messages != nil {
			t.Errorf("%s: no answers give %s, %v", a.Name(), messages, err)
		}
	}
	small := newAdapter(t, adapter.OpenAI, &adapter.Options{HeavyBytes: 10}).Declare(named("dump"))
	if _, err := small.Results(t.Context(), []adapter.Answer{{Result: tools.ToolResult{Value: "12345678901"}}}); !errors.Is(err, tools.ErrContextLeak) {
		t.Errorf("a limit of 10 bytes lets 11 through: %v", err)
	}
	open := newAdapter(t, adapter.OpenAI, &adapter.Options{HeavyBytes: -1}).Declare(named("dump"))
	if _, err := open.Results(t.Context(), []adapter.Answer{{Result: tools.ToolResult{Value: heavy}}}); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestResultsAreNeverEmpty(t *testing.T) {
	for _, a := range adapters(t) {
		d := a.Declare(named("quiet"))
		for _, result := range []tools.ToolResult{{}, {Value: ""}, {Content: []tools.Content{tools.TextContent(" ")}}} {
			messages, err := d.Results(t.Context(), []adapter.Answer{{Call: adapter.Call{ID: "c", Wire: "quiet"}, Result: result}})
			if err != nil || len(messages) != 1 {
				t.Fatalf("%s: %d messages, %v", a.Name(), len(messages), err)
			}
			if a.Provider() != adapter.MCP && !strings.Contains(string(messages[0]), "(no output)") {
				t.Errorf("%s: %s", a.Name(), messages[0])
			}
		}
	}
}

func TestArtifactsAreNamed(t *testing.T) {
	ref := tools.ArtifactRef{Ref: "art-77", MIME: "text/csv", SizeBytes: 99}
	for _, a := range adapters(t) {
		if a.Provider() == adapter.MCP {
			continue
		}
		d := a.Declare(named("t"))
		for _, text := range []string{"rows", "rows, the rest is in art-77"} {
			messages, err := d.Results(t.Context(), []adapter.Answer{{Result: tools.ToolResult{Content: []tools.Content{tools.TextContent(text)}, Artifacts: []tools.ArtifactRef{ref}}}})
			if err != nil || strings.Count(string(messages[0]), "art-77") != 1 {
				t.Errorf("%s: %s, %v", a.Name(), messages, err)
			}
		}
	}
}

// What an MCP server answered passes through byte for byte.
func TestMCPResultsPassAsTheyCame(t *testing.T) {
	wire := json.RawMessage(`{"content":[{"type":"hologram","x":1}],"structuredContent":{"n":9007199254740993},"new":true}`)
	d := adapter.NewMCPAdapter().Declare(named("t"))
	messages, err := d.Results(t.Context(), []adapter.Answer{{Result: tools.ToolResult{Wire: wire}}})
	if err != nil || string(messages[0]) != string(wire) {
		t.Errorf("%s, %v", messages, err)
	}
}

func TestBodiesThatAreNoResponse(t *testing.T) {
	for _, a := range adapters(t) {
		d := a.Declare(named("t"))
		for _, body := range []string{``, `{`, `[]x`, `7`, `{"error":{"message":"overloaded"}}`} {
			if a.Provider() == adapter.MCP && strings.HasPrefix(body, "{\"") {
				continue
			}
			if calls, err := d.Calls(json.RawMessage(body)); err == nil {
				t.Errorf("%s takes %q for a response with %d calls", a.Name(), body, len(calls))
			}
		}
	}
}

// Arguments that are no JSON object are never taken for an empty one.
func TestMalformedArgumentsAreNotReplaced(t *testing.T) {
	for _, p := range []adapter.Provider{adapter.OpenAI, adapter.OpenAIResponses} {
		for _, strict := range []bool{false, true} {
			a := newAdapter(t, p, &adapter.Options{Strict: strict})
			d := a.Declare(named("t"))
			for _, args := range []string{``, `{`, `null`, `[]`, `"{}"`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
				calls, err := d.Calls(response(a, "t", json.RawMessage(args)))
				if err != nil || len(calls) != 1 {
					t.Fatalf("%s %q: %v", a.Name(), args, err)
				}
				if args == "{\"a\":\"\xff\"}" {
					continue // encoding the test's response made it valid
				}
				if c := calls[0]; !errors.Is(c.Err, tools.ErrToolInvalidArgs) || c.Args != nil || c.ID != "c" || c.Tool != "t" {
					t.Errorf("%s %q: %+v", a.Name(), args, c)
				}
			}
		}
	}
}

// What is not JSON is an error of its own call, and nothing of any other.
func TestResultsThatAreNotJSON(t *testing.T) {
	circle := map[string]any{}
	circle["it"] = circle
	for name, bad := range map[string]tools.ToolResult{
		"a value in a circle":   {Value: circle},
		"beside a blank text":   {Value: circle, Content: []tools.Content{tools.TextContent(" ")}},
		"a block":               {Content: []tools.Content{{Type: "text", JSON: json.RawMessage(`{"type`)}}},
		"an empty block":        {Content: []tools.Content{{Type: "text"}}},
		"the structured result": {Structured: json.RawMessage(`{"a":`)},
		"a raw value":           {Value: json.RawMessage(`{"a":`)},
		"the whole":             {Wire: json.RawMessage(`{`), WireKind: tools.KindTool},
	} {
		for _, a := range adapters(t) {
			d := a.Declare([]tools.Tool{{Name: "t"}})
			out, err := d.Results(t.Context(), []adapter.Answer{
				{Call: adapter.Call{ID: "1", Tool: "t", Wire: "t"}, Result: bad},
				{Call: adapter.Call{ID: "2", Tool: "t", Wire: "t"}, Result: tools.ToolResult{Value: "fine"}},
			})
			text := string(bytes.Join(raws(out), nil))
			if err != nil || !strings.Contains(text, "cannot be encoded as JSON") || !strings.Contains(text, "fine") {
				t.Errorf("%s for %s: %s, %v", name, a.Name(), text, err)
			}
		}
	}
}

func raws(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}
