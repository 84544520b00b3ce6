package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

// responses calls "look.up" with {"q":"a"} and with arguments that are no object,
// and a tool that there is none of.
var responses = map[adapter.Provider]string{
	adapter.OpenAI: `{"choices":[{"message":{"role":"assistant","tool_calls":[
		{"id":"c1","type":"function","function":{"name":"WIRE","arguments":"{\"q\":\"a\"}"}},
		{"id":"c1","type":"function","function":{"name":"WIRE","arguments":"\"{\\\"q\\\":\\\"b\\\"}\""}},
		{"id":"c3","type":"function","function":{"name":"WIRES","arguments":"{}"}}]}}]}`,
	adapter.OpenAIResponses: `{"output":[
		{"type":"function_call","call_id":"c1","name":"WIRE","arguments":"{\"q\":\"a\"}"},
		{"type":"function_call","call_id":"c1","name":"WIRE","arguments":"\"{\\\"q\\\":\\\"b\\\"}\""},
		{"type":"function_call","call_id":"c3","name":"WIRES","arguments":"{}"}]}`,
	adapter.Anthropic: `{"role":"assistant","content":[
		{"type":"tool_use","id":"c1","name":"WIRE","input":{"q":"a"}},
		{"type":"tool_use","id":"c1","name":"WIRE","input":"{\"q\":\"b\"}"},
		{"type":"tool_use","id":"c3","name":"WIRES","input":{}}]}`,
	adapter.Gemini: `{"candidates":[{"content":{"role":"model","parts":[
		{"functionCall":{"name":"WIRE","args":{"q":"a"}}},
		{"functionCall":{"name":"WIRE","args":"{\"q\":\"b\"}"}},
		{"functionCall":{"name":"WIRES","args":{}}}]}}]}`,
}

func TestRespondInEachProvidersForm(t *testing.T) {
	for provider, response := range responses {
		t.Run(string(provider), func(t *testing.T) {
			a, err := adapter.New(provider, nil)
			must(t, err)
			for policy, second := range map[turn.BadCalls]turn.Status{turn.ReturnError: turn.StatusInvalid, turn.Normalize: turn.StatusCompleted} {
				c := newCrib(t).add(tools.Tool{Name: "look.up", Safety: readOnly, ArgsSchema: object(`"q":{"type":"string"}`)}, nil)
				tn := c.begin(caller(), &turn.Options{BadCalls: policy})
				d := tn.Declare(a)
				wire := d.Tools[0].Wire
				answer, err := tn.Respond(caller(), d, json.RawMessage(strings.ReplaceAll(response, "WIRE", wire)))
				must(t, err)
				want(t, answer.Results, turn.StatusCompleted, second, turn.StatusUnknown)
				if second == turn.StatusCompleted && string(answer.Results[1].Structured) != `{"q":"b"}` {
					t.Errorf("%s", answer.Results[1].Structured)
				}
				all := string(slices.Concat(answer.Messages...))
				if !strings.Contains(all, `There is no tool \"`+wire+`S\" in this turn. Did you mean \"`+wire+`\"?`) || !strings.Contains(all, wire) || len(answer.Messages) < 2 {
					t.Errorf("%s", all)
				}
				if got := countTerminal(c.heard()); got != 3 {
					t.Errorf("%d terminal events for 3 calls", got)
				}
			}
		})
	}
}

func TestRespondWithoutCalls(t *testing.T) {
	c := newCrib(t).add(tools.Tool{Name: "a"}, nil)
	tn := c.begin(caller(), nil)
	answer, err := tn.Respond(caller(), tn.Declare(adapter.NewOpenAIAdapter()), json.RawMessage(`{"choices":[{"message":{"role":"assistant","content":"Done."}}]}`))
	if err != nil || len(answer.Results) != 0 || len(answer.Messages) != 1 {
		t.Errorf("%+v %v", answer, err)
	}
	if _, err := tn.Respond(caller(), tn.Declare(adapter.NewOpenAIAdapter()), json.RawMessage(`{`)); err == nil {
		t.Error("a response that is no JSON was read")
	}
}

// A result that is too large for a model gets as far as the adapter, unless it
// was made small.
func TestHeavyResultsNeverReachAModel(t *testing.T) {
	heavy := func(context.Context, json.RawMessage) (tools.ToolResult, error) {
		return tools.ToolResult{Value: strings.Repeat("x", adapter.DefaultHeavyBytes+1)}, nil
	}
	c := newCrib(t).add(tools.Tool{Name: "a"}, heavy)
	response := json.RawMessage(`{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]}}]}`)
	tn := c.begin(caller(), nil)
	if _, err := tn.Respond(caller(), tn.Declare(adapter.NewOpenAIAdapter()), response); !errors.Is(err, tools.ErrContextLeak) {
		t.Errorf("error %v", err)
	}
	tn = c.begin(caller(), &turn.Options{Bounder: &shelf{kept: map[string][]byte{}}})
	answer, err := tn.Respond(caller(), tn.Declare(adapter.NewOpenAIAdapter()), response)
	must(t, err)
	if all := string(slices.Concat(answer.Messages...)); strings.Contains(all, "xxx") || !strings.Contains(all, "art-1") {
		t.Errorf("%s", all)
	}
}
