package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// openAI is the form of Chat Completions.
type openAI struct{ calls int }

func (*openAI) allows(r *http.Request) error {
	return has(r, "/v1/chat/completions", "Authorization", "Bearer "+Key)
}

type openAIRequest struct {
	Model    string          `json:"model"`
	Messages []openAIMessage `json:"messages"`
	Tools    []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string         `json:"name"`
			Parameters map[string]any `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type openAIMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

var openAIName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (*openAI) read(body []byte) (names []string, err error) {
	var in openAIRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.Model == "" || len(in.Messages) == 0 {
		return nil, errors.New("you must provide a model and messages")
	}
	for _, t := range in.Tools {
		if t.Type != "function" || t.Function.Parameters["type"] != "object" {
			return nil, fmt.Errorf("invalid schema for function %q", t.Function.Name)
		}
		names = append(names, t.Function.Name)
	}
	if err := checkNames(names, openAIName); err != nil {
		return nil, err
	}
	return names, openAIAnswered(in.Messages)
}

// openAIAnswered checks that the calls of a message are all answered by the
// messages behind it.
func openAIAnswered(messages []openAIMessage) error {
	var open []string
	for _, m := range messages {
		if m.Role == "tool" {
			i := slices.Index(open, m.ToolCallID)
			if i < 0 {
				return fmt.Errorf("the message of role tool with tool_call_id %q answers no call of the message before", m.ToolCallID)
			}
			open = slices.Delete(open, i, i+1)
			continue
		}
		if len(open) > 0 {
			break
		}
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("an assistant message with 'tool_calls' must be followed by tool messages responding to each: %q", open)
	}
	return nil
}

func (w *openAI) write(text string, calls []Call) any {
	message := map[string]any{"role": "assistant", "content": text, "refusal": nil}
	finish := "stop"
	if len(calls) > 0 {
		var list []any
		for _, c := range calls {
			w.calls++
			list = append(list, map[string]any{"id": fmt.Sprintf("call_%d", w.calls), "type": "function",
				"function": map[string]any{"name": c.Tool, "arguments": c.Args}})
		}
		message["tool_calls"], message["content"], finish = list, nil, "tool_calls"
	}
	return map[string]any{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
}

func (*openAI) failure(message string) any {
	return map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": nil, "code": nil}}
}
