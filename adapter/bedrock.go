package adapter

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// setBedrock prepares an adapter for the Converse API.
func (a *Adapter) setBedrock() {
	a.names = nameRule{marks: "_-", max: 64}
	a.profile = claudeProfile("Bedrock")
	a.wire = &bedrock{}
}

// bedrock is the Converse API.
type bedrock struct{ base }

// describe returns a text that is never empty, as the API demands.
func (w *bedrock) describe(d *Declaration) string {
	if text := proseWithExamples(d); text != "" {
		return text
	}
	return "The tool " + d.Tool + "."
}

func (w *bedrock) declare(d *Declaration) json.RawMessage {
	type schema struct {
		JSON json.RawMessage `json:"json"`
	}
	type spec struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Schema      schema `json:"inputSchema"`
	}
	return encode(map[string]spec{"toolSpec": {d.Wire, d.Description, schema{d.Schema}}})
}

func (w *bedrock) request(d *Declarations) json.RawMessage {
	return encode(map[string]any{"toolConfig": map[string]any{"tools": w.list(d)}})
}

// bedrockContent returns the content of the message, which may be given alone.
func bedrockContent(response []byte) (message []byte, err error) {
	if message := get(response, "output", "message"); rawjson.KindOf(message) == rawjson.KindObject {
		return message, nil
	}
	if get(response, "content") != nil {
		return response, nil
	}
	return nil, errNoMessage
}

func (w *bedrock) calls(response []byte) ([]rawCall, error) {
	message, err := bedrockContent(response)
	if err != nil {
		return nil, err
	}
	var calls []rawCall
	blocks := elements(get(message, "content"))
	for _, block := range blocks {
		if use := get(block, "toolUse"); use != nil {
			calls = append(calls, rawCall{id: text(use, "toolUseId"), name: text(use, "name"), args: get(use, "input")})
		}
	}
	if n := len(blocks); n > 0 && stopped(text(response, "stopReason")) && get(blocks[n-1], "toolUse") != nil {
		return cutLast(calls), nil
	}
	return calls, nil
}

func (w *bedrock) reply(response []byte) ([]json.RawMessage, error) {
	message, err := bedrockContent(response)
	if err != nil {
		return nil, err
	}
	content := get(message, "content")
	fixed := withElements(content, func(block []byte) []byte {
		use := get(block, "toolUse")
		if use == nil || rawjson.KindOf(get(use, "input")) == rawjson.KindObject {
			return block
		}
		block, _ = rawjson.Set(block, "toolUse", withInput(use)) // an object that was checked
		return block
	})
	if !bytes.Equal(fixed, content) {
		message, err = rawjson.Set(message, "content", fixed)
	}
	return []json.RawMessage{message}, err
}

func (w *bedrock) results(answers []rendered) []json.RawMessage {
	list := make([]map[string]any, len(answers))
	documents := 0
	for i := range answers {
		r := &answers[i]
		result := map[string]any{"toolUseId": r.call.ID, "content": bedrockResult(r, &documents), "status": "success"}
		if r.isError {
			result["status"] = "error"
		}
		list[i] = map[string]any{"toolResult": result}
	}
	return []json.RawMessage{encode(roleMessage{"user", list})}
}

func bedrockResult(r *rendered, documents *int) []map[string]any {
	list := []map[string]any{}
	for _, p := range r.parts {
		kind, format := bedrockFormat(p.mime)
		source := map[string]any{"bytes": p.data}
		switch {
		case p.json != nil:
			list = append(list, map[string]any{"json": json.RawMessage(p.json)})
		case !p.isMedia():
			list = append(list, map[string]any{"text": p.text})
		case kind == "document":
			*documents++
			name := "Document " + string(rune('A'+(*documents-1)%26))
			list = append(list, map[string]any{"document": map[string]any{"format": format, "name": name, "source": source}})
		case kind != "":
			list = append(list, map[string]any{kind: map[string]any{"format": format, "source": source}})
		default:
			list = append(list, map[string]any{"text": p.unshown()})
		}
	}
	return list
}

// bedrockFormat returns the block and the format for a MIME type, or "".
func bedrockFormat(mime string) (kind, format string) {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return "image", strings.TrimPrefix(mime, "image/")
	case "application/pdf":
		return "document", "pdf"
	case "text/csv":
		return "document", "csv"
	case "text/html":
		return "document", "html"
	case "text/plain":
		return "document", "txt"
	case "text/markdown":
		return "document", "md"
	case "application/vnd.openxmlformats-officedocument.wordprocessingml.document":
		return "document", "docx"
	case "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
		return "document", "xlsx"
	case "video/mp4", "video/webm", "video/mpeg":
		return "video", strings.TrimPrefix(mime, "video/")
	case "video/quicktime":
		return "video", "mov"
	}
	return "", ""
}

func (w *bedrock) assembler() assembler { return &bedrockAssembler{} }
