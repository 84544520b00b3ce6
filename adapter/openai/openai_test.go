package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolcrib/toolcrib/adapter"
	oai "github.com/toolcrib/toolcrib/adapter/openai"
	"github.com/toolcrib/toolcrib/tools"
)

func declare(t *testing.T, p adapter.Provider) *adapter.Declarations {
	t.Helper()
	a, err := adapter.New(p, &adapter.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return a.Declare([]tools.Tool{{
		Name: "weather.get", Description: "Weather.",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"zip":{"type":"integer"},"city":{"type":"string"},"at":{"type":"string"}},"required":["city"]}`),
	}})
}

// exchange returns a client of a server that answers with one body and keeps
// what it was sent.
func exchange(t *testing.T, body string) (openai.Client, *map[string]json.RawMessage) {
	t.Helper()
	sent := &map[string]json.RawMessage{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(sent); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return openai.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("none"), option.WithMaxRetries(0)), sent
}

func answer(calls []adapter.Call) []adapter.Answer {
	return []adapter.Answer{{Call: calls[0], Result: tools.ToolResult{Value: "sunny"}}}
}

func equal(t *testing.T, what string, got any, want string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != want {
		t.Errorf("%s is\n%s\nwant\n%s", what, raw, want)
	}
}

func TestChat(t *testing.T) {
	message := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{\"zip\":null,\"city\":\"Riga\",\"at\":null}"}}]}`
	client, sent := exchange(t, `{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":`+message+`}]}`)
	d := declare(t, adapter.OpenAI)
	declared, err := oai.ChatTools(d)
	if err != nil {
		t.Fatal(err)
	}
	completion, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}, Tools: declared,
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the list of tools that was sent", (*sent)["tools"], string(d.JSON()))
	calls, err := oai.ChatCalls(d, completion)
	if err != nil || len(calls) != 1 || calls[0].Tool != "weather.get" || string(calls[0].Args) != `{"city":"Riga"}` {
		t.Fatalf("%+v, %v", calls, err)
	}
	next, err := oai.ChatMessages(t.Context(), d, completion, answer(calls))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the history", next, `[`+message+`,{"role":"tool","tool_call_id":"call_1","content":"sunny"}]`)
	if _, err := oai.ResponseTools(d); err == nil {
		t.Error("declarations of Chat Completions pass for those of Responses")
	}
}

func TestChatStream(t *testing.T) {
	d := declare(t, adapter.OpenAI)
	s := d.Stream()
	var calls []adapter.Call
	for _, raw := range []string{
		`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather__get","arguments":"{\"city\":"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"Riga\"}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
	} {
		var chunk openai.ChatCompletionChunk
		if err := json.Unmarshal([]byte(raw), &chunk); err != nil {
			t.Fatal(err)
		}
		whole, err := oai.AddChunk(s, chunk)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, whole...)
	}
	if len(calls) != 1 || string(calls[0].Args) != `{"city":"Riga"}` {
		t.Errorf("%+v", calls)
	}
}

func TestResponses(t *testing.T) {
	output := `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"weather__get","arguments":"{\"zip\":1,\"city\":\"Riga\",\"at\":null}","status":"completed"}`
	client, sent := exchange(t, `{"id":"r","object":"response","status":"completed","output":[`+output+`]}`)
	d := declare(t, adapter.OpenAIResponses)
	declared, err := oai.ResponseTools(d)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")}, Tools: declared,
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the list of tools that was sent", (*sent)["tools"], string(d.JSON()))
	calls, err := oai.ResponseCalls(d, response)
	if err != nil || len(calls) != 1 || calls[0].ID != "call_1" || string(calls[0].Args) != `{"zip":1,"city":"Riga"}` {
		t.Fatalf("%+v, %v", calls, err)
	}
	items, err := oai.ResponseItems(t.Context(), d, response, answer(calls))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the input", items, `[`+output+`,{"type":"function_call_output","call_id":"call_1","output":"sunny"}]`)
	if _, err := oai.ChatCalls(d, &openai.ChatCompletion{}); err == nil {
		t.Error("declarations of Responses pass for those of Chat Completions")
	}
}

func TestResponseStream(t *testing.T) {
	d := declare(t, adapter.OpenAIResponses)
	s := d.Stream()
	var event responses.ResponseStreamEventUnion
	raw := `{"type":"response.output_item.done","output_index":0,"sequence_number":1,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"weather__get","arguments":"{\"city\":\"Riga\"}","status":"completed"}}`
	if err := json.Unmarshal([]byte(raw), &event); err != nil {
		t.Fatal(err)
	}
	calls, err := oai.AddEvent(s, event)
	if err != nil || len(calls) != 1 || calls[0].Tool != "weather.get" {
		t.Errorf("%+v, %v", calls, err)
	}
}
