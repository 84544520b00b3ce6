package bedrock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/adapter/bedrock"
	"github.com/toolcrib/toolcrib/tools"
)

func declare(t *testing.T, p adapter.Provider) *adapter.Declarations {
	t.Helper()
	a, err := adapter.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a.Declare([]tools.Tool{{
		Name: "weather.get", Description: "Weather.",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"zip":{"type":"integer","maximum":9007199254740993},"$city":{"type":"string"}},"required":["$city"]}`),
	}})
}

// exchange returns a client of a server that answers with one body for each
// request, and the requests that it was sent.
func exchange(t *testing.T, body string) (*bedrockruntime.Client, *[]map[string]json.RawMessage) {
	t.Helper()
	var sent []map[string]json.RawMessage
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		sent = append(sent, request)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
		}),
	}), &sent
}

func same(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%s is\n%s\nwant\n%s", what, got, want)
	}
}

func TestConverse(t *testing.T) {
	content := `[{"text":"Let me look."},{"toolUse":{"toolUseId":"tooluse_1","name":"weather__get","input":{"_city":"Riga","zip":9007199254740993}}}]`
	client, sent := exchange(t, `{"output":{"message":{"role":"assistant","content":`+content+`}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`)
	d := declare(t, adapter.Bedrock)
	config, err := bedrock.ToolConfig(d)
	if err != nil {
		t.Fatal(err)
	}
	messages := []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "hi"}}}}
	out, err := client.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String("m"), Messages: messages, ToolConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	var request struct {
		ToolConfig json.RawMessage `json:"toolConfig"`
	}
	if err := json.Unmarshal(d.Request(), &request); err != nil {
		t.Fatal(err)
	}
	same(t, "the configuration that was sent", (*sent)[0]["toolConfig"], string(request.ToolConfig))

	calls, err := bedrock.Calls(d, out)
	if err != nil || len(calls) != 1 || calls[0].ID != "tooluse_1" || calls[0].Tool != "weather.get" {
		t.Fatalf("%+v, %v", calls, err)
	}
	same(t, "the arguments", calls[0].Args, `{"$city":"Riga","zip":9007199254740993}`)

	next, err := bedrock.Messages(t.Context(), d, out, []adapter.Answer{
		{Call: calls[0], Result: tools.ToolResult{Content: []tools.Content{
			tools.TextContent("sunny"), tools.ImageContent([]byte{1, 2}, "image/png"),
			{Type: "resource", JSON: json.RawMessage(`{"type":"resource","resource":{"uri":"file:///a.pdf","mimeType":"application/pdf","blob":"AQI="}}`)},
			{Type: "resource", JSON: json.RawMessage(`{"type":"resource","resource":{"uri":"file:///a.mp4","mimeType":"video/mp4","blob":"AQI="}}`)},
		}}},
		{Call: calls[0], Result: tools.ToolResult{Value: map[string]any{"n": 1}, IsError: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Converse(t.Context(), &bedrockruntime.ConverseInput{ModelId: aws.String("m"), Messages: append(messages, next...)}); err != nil {
		t.Fatal(err)
	}
	same(t, "the history", (*sent)[1]["messages"], `[{"role":"user","content":[{"text":"hi"}]},{"role":"assistant","content":`+content+`},
		{"role":"user","content":[
			{"toolResult":{"toolUseId":"tooluse_1","status":"success","content":[{"text":"sunny"},
				{"image":{"format":"png","source":{"bytes":"AQI="}}},
				{"document":{"format":"pdf","name":"Document A","source":{"bytes":"AQI="}}},
				{"video":{"format":"mp4","source":{"bytes":"AQI="}}}]}},
			{"toolResult":{"toolUseId":"tooluse_1","status":"error","content":[{"json":{"n":1}}]}}]}]`)
}

func TestStream(t *testing.T) {
	s := declare(t, adapter.Bedrock).Stream()
	index := aws.Int32(1)
	input := func(text string) types.ConverseStreamOutput {
		return &types.ConverseStreamOutputMemberContentBlockDelta{Value: types.ContentBlockDeltaEvent{
			ContentBlockIndex: index, Delta: &types.ContentBlockDeltaMemberToolUse{Value: types.ToolUseBlockDelta{Input: aws.String(text)}},
		}}
	}
	var calls []adapter.Call
	for _, event := range []types.ConverseStreamOutput{
		&types.ConverseStreamOutputMemberMessageStart{},
		&types.ConverseStreamOutputMemberContentBlockDelta{Value: types.ContentBlockDeltaEvent{
			ContentBlockIndex: aws.Int32(0), Delta: &types.ContentBlockDeltaMemberText{Value: "Let me look."},
		}},
		&types.ConverseStreamOutputMemberContentBlockStart{Value: types.ContentBlockStartEvent{
			ContentBlockIndex: index,
			Start:             &types.ContentBlockStartMemberToolUse{Value: types.ToolUseBlockStart{ToolUseId: aws.String("tooluse_1"), Name: aws.String("weather__get")}},
		}},
		input(`{"_city":`), input(`"Riga"}`),
		&types.ConverseStreamOutputMemberContentBlockStop{Value: types.ContentBlockStopEvent{ContentBlockIndex: index}},
		&types.ConverseStreamOutputMemberMessageStop{Value: types.MessageStopEvent{StopReason: types.StopReasonToolUse}},
	} {
		whole, err := bedrock.AddEvent(s, event)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, whole...)
	}
	if len(calls) != 1 || string(calls[0].Args) != `{"$city":"Riga"}` {
		t.Errorf("%+v", calls)
	}
	same(t, "the response", s.Response(), `{"output":{"message":{"role":"assistant","content":[{"text":"Let me look."},{"toolUse":{"toolUseId":"tooluse_1","name":"weather__get","input":{"_city":"Riga"}}}]}},"stopReason":"tool_use"}`)
}

func TestWhatIsNotBedrocks(t *testing.T) {
	if _, err := bedrock.ToolConfig(declare(t, adapter.OpenAI)); err == nil {
		t.Error("tools of OpenAI pass for those of Bedrock")
	}
	if _, err := bedrock.Calls(declare(t, adapter.Bedrock), &bedrockruntime.ConverseOutput{}); err == nil {
		t.Error("an output without a message passes")
	}
	a, err := adapter.New(adapter.Bedrock, nil)
	if err != nil {
		t.Fatal(err)
	}
	if config, err := bedrock.ToolConfig(a.Declare(nil)); err != nil || config != nil {
		t.Errorf("no tools give %v, %v", config, err)
	}
}
