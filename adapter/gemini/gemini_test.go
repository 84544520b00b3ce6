package gemini_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"google.golang.org/genai"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/adapter/gemini"
	"github.com/toolcrib/toolcrib/tools"
)

func declare(t *testing.T, p adapter.Provider, openAPI bool) *adapter.Declarations {
	t.Helper()
	a, err := adapter.New(p, &adapter.Options{OpenAPISchemas: openAPI})
	if err != nil {
		t.Fatal(err)
	}
	return a.Declare([]tools.Tool{{
		Name: "weather.get", Description: "Weather.",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"zip":{"type":"integer"},"city":{"type":"string"},"pair":{"prefixItems":[{"type":"string"},{"type":"boolean"}]}},"required":["city"]}`),
	}})
}

func same(t *testing.T, what string, got any, want string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(raw, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%s is\n%s\nwant\n%s", what, raw, want)
	}
}

func TestContents(t *testing.T) {
	content := `{"role":"model","parts":[{"functionCall":{"name":"weather.get","args":{"city":"Riga"}},"thoughtSignature":"CqQB"}]}`
	for _, openAPI := range []bool{false, true} {
		var sent map[string]json.RawMessage
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"candidates":[{"content":`+content+`,"finishReason":"STOP"}]}`)
		}))
		t.Cleanup(server.Close)
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
		})
		if err != nil {
			t.Fatal(err)
		}
		d := declare(t, adapter.Gemini, openAPI)
		declared, err := gemini.Tools(d)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Models.GenerateContent(t.Context(), "m", genai.Text("hi"), &genai.GenerateContentConfig{Tools: declared})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the list of tools that was sent", sent["tools"], string(d.JSON()))
		calls, err := gemini.Calls(d, response)
		if err != nil || len(calls) != 1 || calls[0].Tool != "weather.get" || string(calls[0].Args) != `{"city":"Riga"}` {
			t.Fatalf("%+v, %v", calls, err)
		}
		next, err := gemini.Contents(t.Context(), d, response, []adapter.Answer{{Call: calls[0], Result: tools.ToolResult{Content: []tools.Content{
			tools.TextContent("sunny"), tools.ImageContent([]byte{1, 2}, "image/png"),
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the history", next, `[`+content+`,{"role":"user","parts":[{"functionResponse":{"name":"weather.get","response":{"output":"sunny"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AQI="}}]}}]}]`)
	}
}

func TestStream(t *testing.T) {
	s := declare(t, adapter.Gemini, false).Stream()
	r := &genai.GenerateContentResponse{Candidates: []*genai.Candidate{{Content: &genai.Content{Role: "model", Parts: []*genai.Part{
		{FunctionCall: &genai.FunctionCall{Name: "weather.get", Args: map[string]any{"city": "Riga"}}},
	}}}}}
	calls, err := gemini.AddResponse(s, r)
	if err != nil || len(calls) != 1 || string(calls[0].Args) != `{"city":"Riga"}` {
		t.Errorf("%+v, %v", calls, err)
	}
}

func TestWhatIsNotGeminis(t *testing.T) {
	if _, err := gemini.Tools(declare(t, adapter.OpenAI, false)); err == nil {
		t.Error("tools of OpenAI pass for those of Gemini")
	}
	d := declare(t, adapter.Gemini, false)
	if _, err := gemini.Contents(t.Context(), d, &genai.GenerateContentResponse{}, nil); err == nil {
		t.Error("a response without content passes")
	}
}
