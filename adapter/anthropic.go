package adapter

import (
	"encoding/json"
	"slices"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// setAnthropic prepares an adapter for the Messages API. Names stay within 64
// characters, which every platform that serves the API takes.
func (a *Adapter) setAnthropic() {
	a.names = nameRule{marks: "_-", max: 64}
	if a.Defers() {
		a.names.reserved = anthropicSearch
	}
	a.profile = claudeProfile("Anthropic")
	a.wire = &anthropic{serial: a.opts.Serial}
}

func claudeProfile(provider string) *subset.Profile {
	return &subset.Profile{
		Provider: provider, Full: true, PlainRoot: true, Keys: subset.KeyRule{Marks: "_.-", Max: 64},
	}
}

// anthropic is the Messages API.
type anthropic struct {
	base
	serial bool
}

// describe leaves the examples to their own member.
func (w *anthropic) describe(d *Declaration) string { return prose(d.original) }

func (w *anthropic) declare(d *Declaration) json.RawMessage {
	return encode(struct {
		Name        string            `json:"name"`
		Description string            `json:"description,omitempty"`
		Schema      json.RawMessage   `json:"input_schema"`
		Examples    []json.RawMessage `json:"input_examples,omitempty"`
		Defer       bool              `json:"defer_loading,omitempty"`
	}{d.Wire, d.Description, d.Schema, d.examples, d.Deferred})
}

// anthropicSearch is the name of the provider's search.
const anthropicSearch = "tool_search_tool_bm25"

// list puts the provider's search before the tools when some are deferred.
func (w *anthropic) list(d *Declarations) json.RawMessage {
	var list []json.RawMessage
	for i := range d.Tools {
		if d.Tools[i].Deferred {
			list = append(list, json.RawMessage(`{"type":"tool_search_tool_bm25_20251119","name":"`+anthropicSearch+`"}`))
			break
		}
	}
	for i := range d.Tools {
		list = append(list, d.Tools[i].JSON)
	}
	return encode(list)
}

func (w *anthropic) request(d *Declarations) json.RawMessage {
	type choice struct {
		Type   string `json:"type"`
		Serial bool   `json:"disable_parallel_tool_use"`
	}
	body := struct {
		Tools  json.RawMessage `json:"tools"`
		Choice *choice         `json:"tool_choice,omitempty"`
	}{Tools: w.list(d)}
	if w.serial {
		body.Choice = &choice{"auto", true}
	}
	return encode(body)
}

func (w *anthropic) calls(response []byte) ([]rawCall, error) {
	content := get(response, "content")
	if content == nil {
		return nil, errNoMessage
	}
	var calls []rawCall
	for _, block := range elements(content) {
		if text(block, "type") == "tool_use" {
			calls = append(calls, rawCall{id: text(block, "id"), name: text(block, "name"), args: get(block, "input")})
		}
	}
	blocks := elements(content)
	if n := len(blocks); n > 0 && stopped(text(response, "stop_reason")) && text(blocks[n-1], "type") == "tool_use" {
		return cutLast(calls), nil
	}
	return calls, nil
}

// stopped reports whether Anthropic or Bedrock ended a message before the model
// did.
func stopped(reason string) bool {
	return reason == "max_tokens" || reason == "model_context_window_exceeded"
}

func (w *anthropic) reply(response []byte) ([]json.RawMessage, error) {
	content := get(response, "content")
	if rawjson.KindOf(content) != rawjson.KindArray {
		return nil, errNoMessage
	}
	content = withElements(content, func(block []byte) []byte {
		if text(block, "type") != "tool_use" {
			return block
		}
		return withInput(block)
	})
	return []json.RawMessage{slices.Concat([]byte(`{"role":"assistant","content":`), content, []byte("}"))}, nil
}

// roleMessage is a message of a conversation.
type roleMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// results writes all answers into one message, as parallel calls demand.
func (w *anthropic) results(answers []rendered) []json.RawMessage {
	list := make([]any, len(answers))
	for i := range answers {
		r := &answers[i]
		list[i] = struct {
			Type    string `json:"type"`
			ID      string `json:"tool_use_id"`
			Content []any  `json:"content"`
			Error   bool   `json:"is_error,omitempty"`
		}{"tool_result", r.call.ID, anthropicContent(r), r.isError}
	}
	return []json.RawMessage{encode(roleMessage{"user", list})}
}

// anthropicContent returns the blocks of a result. That of an error holds text
// alone, and no text is empty.
func anthropicContent(r *rendered) []any {
	list := []any{}
	for _, p := range r.parts {
		block, ok := anthropicMedia(&p)
		switch {
		case ok && !r.isError:
			list = append(list, block)
		case p.isMedia():
			list = append(list, textBlock{"text", p.unshown()})
		case p.text != "":
			list = append(list, textBlock{"text", p.text})
		}
	}
	return list
}

func anthropicMedia(p *part) (map[string]any, bool) {
	source := map[string]any{"type": "base64", "media_type": p.mime, "data": p.data}
	switch p.mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return map[string]any{"type": "image", "source": source}, true
	case "application/pdf":
		return map[string]any{"type": "document", "source": source}, true
	}
	return nil, false
}

func (w *anthropic) assembler() assembler { return &anthropicAssembler{} }
