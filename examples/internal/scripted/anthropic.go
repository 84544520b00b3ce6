package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// anthropic is the form of the Messages API.
type anthropic struct{ calls int }

func (*anthropic) allows(r *http.Request) error {
	if r.Header.Get("anthropic-version") != "2023-06-01" {
		return errors.New("anthropic-version: header is required")
	}
	return has(r, "/v1/messages", "x-api-key", Key)
}

type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	Messages  []anthropicMessage `json:"messages"`
	Tools     []struct {
		Name        string         `json:"name"`
		InputSchema map[string]any `json:"input_schema"`
	} `json:"tools"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type anthropicBlock struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	ToolUseID string `json:"tool_use_id"`
}

var anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

func (*anthropic) read(body []byte) (names []string, err error) {
	var in anthropicRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.Model == "" || in.MaxTokens < 1 || len(in.Messages) == 0 {
		return nil, errors.New("model, max_tokens and messages: field required")
	}
	for _, t := range in.Tools {
		if t.InputSchema["type"] != "object" {
			return nil, fmt.Errorf("tools.%s.input_schema.type: field required", t.Name)
		}
		names = append(names, t.Name)
	}
	if err := checkNames(names, anthropicName); err != nil {
		return nil, err
	}
	return names, anthropicAnswered(in.Messages)
}

// anthropicAnswered checks that the message behind one with calls answers them
// all, before anything else that it holds.
func anthropicAnswered(messages []anthropicMessage) error {
	var open []string
	for i, m := range messages {
		if want := [2]string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: roles must alternate, expected %s", i, want)
		}
		var blocks []anthropicBlock
		if json.Unmarshal(m.Content, &blocks) != nil {
			blocks = nil // a plain text
		}
		var uses []string
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				uses = append(uses, b.ID)
			case "tool_result":
				at := slices.Index(open, b.ToolUseID)
				if at < 0 {
					return fmt.Errorf("messages.%d: unexpected tool_use_id found in tool_result blocks: %s", i, b.ToolUseID)
				}
				open = slices.Delete(open, at, at+1)
			}
		}
		if len(open) > 0 {
			return fmt.Errorf("messages.%d: tool_use ids were found without tool_result blocks immediately after: %q", i, open)
		}
		open = uses
	}
	if len(open) > 0 {
		return fmt.Errorf("tool_use ids without tool_result: %q", open)
	}
	return nil
}

func (w *anthropic) write(text string, calls []Call) any {
	content, stop := []any{}, "end_turn"
	if text != "" {
		content = append(content, map[string]any{"type": "text", "text": text})
	}
	for _, c := range calls {
		w.calls++
		stop = "tool_use"
		content = append(content, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", w.calls), "name": c.Tool, "input": json.RawMessage(c.Args)})
	}
	return map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1}}
}

func (*anthropic) failure(message string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": message}}
}
