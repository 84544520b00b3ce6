package adapter

import (
	"encoding/json"
	"strings"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// setOpenAI prepares an adapter for either API of OpenAI.
func (a *Adapter) setOpenAI() {
	a.names = nameRule{marks: "_-", max: 64}
	a.maxTools = 128
	a.profile = openAIProfile()
	if a.opts.Strict {
		a.profile = openAIStrictProfile()
	}
	if a.provider == OpenAI {
		a.wire = &openAIChat{strict: a.opts.Strict, serial: a.opts.Serial}
	} else {
		a.wire = &openAIResponses{strict: a.opts.Strict, serial: a.opts.Serial, defers: a.Defers()}
	}
}

func openAIProfile() *subset.Profile {
	return &subset.Profile{Provider: "OpenAI", Full: true, PlainRoot: true, ArrayItems: true}
}

func openAIStrictProfile() *subset.Profile {
	return &subset.Profile{
		Provider: "OpenAI's strict mode", PlainRoot: true, ArrayItems: true, AllRequired: true, Refs: true,
		Keywords: []string{"pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"},
		Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
		MaxDepth: 10, MaxProperties: 5_000, MaxEnum: 1_000, MaxChars: 120_000,
	}
}

// openAIFunction is what both APIs say of a function.
type openAIFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func openAIFunctionOf(d *Declaration, strict bool) openAIFunction {
	return openAIFunction{Name: d.Wire, Description: d.Description, Parameters: d.Schema, Strict: strict}
}

// openAIChat is the Chat Completions API.
type openAIChat struct {
	base
	strict, serial bool
}

func (w *openAIChat) declare(d *Declaration) json.RawMessage {
	return encode(struct {
		Type     string         `json:"type"`
		Function openAIFunction `json:"function"`
	}{"function", openAIFunctionOf(d, w.strict)})
}

func (w *openAIChat) request(d *Declarations) json.RawMessage {
	return openAIRequest(w.list(d), w.serial)
}

func openAIRequest(list json.RawMessage, serial bool) json.RawMessage {
	return encode(struct {
		Tools    json.RawMessage `json:"tools"`
		Parallel bool            `json:"parallel_tool_calls"`
	}{list, !serial})
}

// chatMessage returns the message of a completion, which may be given alone.
func chatMessage(response []byte) ([]byte, error) {
	for _, choice := range elements(get(response, "choices")) {
		if message := get(choice, "message"); rawjson.KindOf(message) == rawjson.KindObject {
			return message, nil
		}
	}
	if get(response, "role") != nil {
		return response, nil
	}
	return nil, errNoMessage
}

func (w *openAIChat) calls(response []byte) ([]rawCall, error) {
	message, err := chatMessage(response)
	if err != nil {
		return nil, err
	}
	var calls []rawCall
	for _, c := range elements(get(message, "tool_calls")) {
		if function := get(c, "function"); function != nil {
			calls = append(calls, rawCall{id: text(c, "id"), name: text(function, "name"), args: []byte(text(function, "arguments"))})
		}
	}
	if choices := elements(get(response, "choices")); len(choices) > 0 && unfinished(text(choices[0], "finish_reason")) {
		return cutLast(calls), nil
	}
	return calls, nil
}

// unfinished reports whether a completion ended before the model did.
func unfinished(reason string) bool { return reason == "length" || reason == "content_filter" }

func (w *openAIChat) reply(response []byte) ([]json.RawMessage, error) {
	message, err := chatMessage(response)
	if err != nil {
		return nil, err
	}
	return []json.RawMessage{message}, nil
}

// results writes one message for each answer. A tool message holds text alone,
// so that media follow in a message of the user.
func (w *openAIChat) results(answers []rendered) []json.RawMessage {
	var list []json.RawMessage
	var shown []any
	for i := range answers {
		r := &answers[i]
		said := []string{}
		for _, p := range r.parts {
			block, ok := chatMedia(&p)
			switch {
			case !p.isMedia():
				said = append(said, p.text)
			case ok:
				said = append(said, "[shown in the next message: "+p.mime+"]")
				shown = append(shown, textBlock{"text", "From the result of " + r.call.Wire + " (" + r.call.ID + "):"}, block)
			default:
				said = append(said, p.unshown())
			}
		}
		list = append(list, encode(struct {
			Role    string `json:"role"`
			ID      string `json:"tool_call_id"`
			Content string `json:"content"`
		}{"tool", r.call.ID, openAIText(r, strings.Join(said, "\n"))}))
	}
	if len(shown) > 0 {
		list = append(list, encode(struct {
			Role    string `json:"role"`
			Content []any  `json:"content"`
		}{"user", shown}))
	}
	return list
}

// openAIText marks a failure, for which OpenAI has no field.
func openAIText(r *rendered, said string) string {
	if r.isError && !strings.HasPrefix(strings.ToLower(said), "error") {
		return "Error: " + said
	}
	return said
}

// chatMedia returns media as a part of a user's message.
func chatMedia(p *part) (map[string]any, bool) {
	switch p.mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return map[string]any{"type": "image_url", "image_url": map[string]any{"url": dataURL(p)}}, true
	case "audio/wav", "audio/x-wav", "audio/wave":
		return map[string]any{"type": "input_audio", "input_audio": map[string]any{"data": p.data, "format": "wav"}}, true
	case "audio/mpeg", "audio/mp3":
		return map[string]any{"type": "input_audio", "input_audio": map[string]any{"data": p.data, "format": "mp3"}}, true
	case "application/pdf":
		return map[string]any{"type": "file", "file": map[string]any{"file_data": dataURL(p), "filename": fileName(p, "pdf")}}, true
	}
	return nil, false
}

func dataURL(p *part) string { return "data:" + p.mime + ";base64," + p.data }

// fileName returns the last part of the name that media came with.
func fileName(p *part, extension string) string {
	name := p.name[strings.LastIndexByte(p.name, '/')+1:]
	if name == "" {
		return "file." + extension
	}
	return name
}

func (w *openAIChat) assembler() assembler { return &chatAssembler{} }
