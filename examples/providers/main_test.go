package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

func TestEveryProviderIsShownTheTool(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`openai-strict: [{"type":"function","function":{"name":"issues__label"`, `gemini: [{"functionDeclarations":[{"name":"issues.label"`,
		"not enforced: issues.label #/properties/$reason/maxLength maxLength",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "left out") {
		t.Error(out.String())
	}
}

func TestAnswerByHand(t *testing.T) {
	ctx := t.Context()
	cat := tools.NewCatalog()
	err := cat.Register(tools.ToolDescriptor{Tool: label, Invoke: tools.Invoker(labelIssue)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := adapter.New(adapter.OpenAI, &adapter.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	declared := a.Declare([]tools.Tool{label})
	response := json.RawMessage(`{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",
		"function":{"name":"issues__label","arguments":"{\"number\":7,\"labels\":[{\"key\":\"kind\",\"value\":\"bug\"}],\"$reason\":null}"}}]}}]}`)

	calls, err := declared.Calls(response)
	if err != nil {
		t.Fatal(err)
	}
	var answers []adapter.Answer
	for _, c := range calls {
		answer := adapter.Answer{Call: c, Err: c.Err}
		if c.Err == nil {
			answer.Result, answer.Err = tools.Invoke(ctx, cat, c.Tool, c.Args)
		}
		answers = append(answers, answer)
	}
	messages, err := declared.Reply(response)
	if err != nil {
		t.Fatal(err)
	}
	results, err := declared.Results(ctx, answers)
	if err != nil {
		t.Fatal(err)
	}
	messages = append(messages, results...)

	if len(messages) != 2 || string(messages[1]) != `{"role":"tool","tool_call_id":"call_1","content":"{\"number\":7,\"labels\":{\"kind\":\"bug\"}}"}` {
		t.Errorf("%s", messages)
	}
}

func TestStreamedAnswer(t *testing.T) {
	declared := adapter.NewOpenAIAdapter().Declare([]tools.Tool{label})
	stream := declared.Stream()
	for _, event := range []string{
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"issues__label","arguments":"{\"number\":"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"7,\"la"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`,
	} {
		whole, err := stream.Add(json.RawMessage(event))
		if err != nil || len(whole) > 0 {
			t.Fatal(whole, err)
		}
	}
	cut := stream.Close()
	if len(cut) != 1 || !errors.Is(cut[0].Err, tools.ErrToolInvalidArgs) {
		t.Errorf("%+v", cut)
	}
}
