package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/toolcrib/toolcrib/adapter"
	claude "github.com/toolcrib/toolcrib/adapter/anthropic"
	"github.com/toolcrib/toolcrib/tools"
)

func declare(t *testing.T, p adapter.Provider) *adapter.Declarations {
	t.Helper()
	a, err := adapter.New(p, &adapter.Options{Serial: true, NativeDeferral: true})
	if err != nil {
		t.Fatal(err)
	}
	schema := json.RawMessage(`{"type":"object","properties":{"zip":{"type":"integer"},"$city":{"type":"string"}},"required":["$city"]}`)
	return a.Declare([]tools.Tool{
		{Name: "weather.get", Description: "Weather.", ArgsSchema: schema},
		{Name: "later", Loading: tools.LoadingDeferred},
	})
}

func TestMessages(t *testing.T) {
	content := `[{"type":"thinking","thinking":"Hm.","signature":"EqoB"},{"type":"tool_use","id":"toolu_1","name":"weather__get","input":{"_city":"Riga"}}]`
	var sent map[string]json.RawMessage
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"m","type":"message","role":"assistant","model":"x","content":`+content+`,"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	t.Cleanup(server.Close)
	client := anthropic.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithMaxRetries(0))

	d := declare(t, adapter.Anthropic)
	declared, err := claude.Tools(d)
	if err != nil {
		t.Fatal(err)
	}
	choice, err := claude.Choice(d)
	if err != nil {
		t.Fatal(err)
	}
	message, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "x", MaxTokens: 10, Tools: declared, ToolChoice: choice,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	var request map[string]json.RawMessage
	if err := json.Unmarshal(d.Request(), &request); err != nil {
		t.Fatal(err)
	}
	for key, want := range request {
		if string(sent[key]) != string(want) {
			t.Errorf("%s was sent as\n%s\nwant\n%s", key, sent[key], want)
		}
	}
	calls, err := claude.Calls(d, message)
	if err != nil || len(calls) != 1 || calls[0].Tool != "weather.get" || string(calls[0].Args) != `{"$city":"Riga"}` {
		t.Fatalf("%+v, %v", calls, err)
	}
	next, err := claude.Messages(t.Context(), d, message, []adapter.Answer{{Call: calls[0], Result: tools.ToolResult{Value: "sunny"}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(next)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"assistant","content":` + content + `},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"sunny"}]}]}]`
	if string(got) != want {
		t.Errorf("the history is\n%s\nwant\n%s", got, want)
	}
}

func TestStream(t *testing.T) {
	s := declare(t, adapter.Anthropic).Stream()
	var calls []adapter.Call
	for _, raw := range []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather__get","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"_city\":\"Ri"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"ga\"}"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}`,
	} {
		var event anthropic.MessageStreamEventUnion
		if err := json.Unmarshal([]byte(raw), &event); err != nil {
			t.Fatal(err)
		}
		whole, err := claude.AddEvent(s, event)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, whole...)
	}
	if len(calls) != 1 || string(calls[0].Args) != `{"$city":"Riga"}` {
		t.Errorf("%+v", calls)
	}
}

func TestDeclarationsOfAnotherProvider(t *testing.T) {
	d := declare(t, adapter.OpenAI)
	if _, err := claude.Tools(d); err == nil {
		t.Error("tools of OpenAI pass for those of Anthropic")
	}
	if _, err := claude.Calls(d, &anthropic.Message{}); err == nil {
		t.Error("calls of OpenAI pass for those of Anthropic")
	}
}
