package adapter

import (
	"encoding/json"
	"strings"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// setGemini prepares an adapter for generateContent.
func (a *Adapter) setGemini() {
	a.names = nameRule{marks: "_.:-", max: 128, word: true}
	a.profile = geminiProfile()
	if a.opts.OpenAPISchemas {
		a.profile = geminiOpenAPIProfile()
	}
	a.wire = &gemini{openAPI: a.opts.OpenAPISchemas}
}

// geminiProfile is the part of JSON Schema that parametersJsonSchema documents.
func geminiProfile() *subset.Profile {
	return &subset.Profile{
		Provider: "Gemini", PlainRoot: true, ArrayItems: true, Maps: true, Tuples: true, AnyValue: true,
		Keys:     subset.KeyRule{Marks: "_", Max: 64, Word: true},
		Keywords: []string{"minimum", "maximum", "minItems", "maxItems"},
		Formats:  []string{"date-time", "date", "time"},
		MaxDepth: 16, MaxProperties: 3_000, MaxEnum: 3_000,
	}
}

// geminiOpenAPIProfile is the type Schema of the API.
func geminiOpenAPIProfile() *subset.Profile {
	return &subset.Profile{
		Provider: "Gemini", PlainRoot: true, ArrayItems: true, OpenAPI: true,
		Keys: subset.KeyRule{Marks: "_", Max: 64, Word: true},
		Keywords: []string{"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern",
			"minProperties", "maxProperties"},
		Formats:  []string{"date-time"},
		MaxDepth: 16, MaxProperties: 3_000, MaxEnum: 3_000,
	}
}

// gemini is generateContent.
type gemini struct {
	base
	openAPI bool
}

func (w *gemini) declare(d *Declaration) json.RawMessage {
	f := struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		OpenAPI     json.RawMessage `json:"parameters,omitempty"`
		JSONSchema  json.RawMessage `json:"parametersJsonSchema,omitempty"`
	}{Name: d.Wire, Description: d.Description}
	properties := get(d.Schema, "properties")
	switch {
	case !w.openAPI:
		f.JSONSchema = d.Schema
	case rawjson.Len(properties) > 0: // an object without properties is refused
		f.OpenAPI = d.Schema
	}
	return encode(f)
}

// list returns one tool that holds all functions.
func (w *gemini) list(d *Declarations) json.RawMessage {
	return encode([]map[string]json.RawMessage{{"functionDeclarations": w.base.list(d)}})
}

func (w *gemini) request(d *Declarations) json.RawMessage {
	return encode(map[string]json.RawMessage{"tools": w.list(d)})
}

// geminiContent returns the content of the first candidate, which may be given
// alone.
func geminiContent(response []byte) ([]byte, error) {
	for _, candidate := range elements(get(response, "candidates")) {
		if content := get(candidate, "content"); rawjson.KindOf(content) == rawjson.KindObject {
			return content, nil
		}
	}
	if get(response, "parts") != nil {
		return response, nil
	}
	return nil, errNoMessage
}

func (w *gemini) calls(response []byte) ([]rawCall, error) {
	content, err := geminiContent(response)
	if err != nil {
		return nil, err
	}
	var calls []rawCall
	for _, p := range elements(get(content, "parts")) {
		c := get(p, "functionCall")
		if c == nil {
			continue
		}
		args := get(c, "args")
		if args == nil || rawjson.KindOf(args) == rawjson.KindNull {
			args = []byte(`{}`) // the API leaves out what is empty
		}
		calls = append(calls, rawCall{
			id: text(c, "id"), name: text(c, "name"), args: args,
			cut: isTrue(get(c, "willContinue")) || get(c, "partialArgs") != nil,
		})
	}
	return calls, nil
}

func (w *gemini) reply(response []byte) ([]json.RawMessage, error) {
	content, err := geminiContent(response)
	if err != nil {
		return nil, err
	}
	return []json.RawMessage{content}, nil
}

// geminiResponse is the answer to one function call. It has an id when the call
// had one; else answers are told by name and order.
type geminiResponse struct {
	ID       string           `json:"id,omitempty"`
	Name     string           `json:"name"`
	Response map[string]any   `json:"response"`
	Parts    []map[string]any `json:"parts,omitempty"`
}

func (w *gemini) results(answers []rendered) []json.RawMessage {
	parts := make([]map[string]any, len(answers))
	for i := range answers {
		parts[i] = map[string]any{"functionResponse": geminiResponseOf(&answers[i])}
	}
	return []json.RawMessage{encode(map[string]any{"role": "user", "parts": parts})}
}

func geminiResponseOf(r *rendered) geminiResponse {
	out := geminiResponse{ID: r.call.ID, Name: r.call.Wire}
	var said []string
	for _, p := range r.parts {
		switch {
		case !p.isMedia():
			said = append(said, p.text)
		case geminiTakes(p.mime):
			out.Parts = append(out.Parts, map[string]any{"inlineData": map[string]any{"mimeType": p.mime, "data": p.data}})
		default:
			said = append(said, p.unshown())
		}
	}
	key := "output"
	if r.isError {
		key = "error"
	}
	out.Response = map[string]any{key: strings.Join(said, "\n")}
	if len(r.parts) == 1 && r.parts[0].json != nil && !r.isError {
		out.Response[key] = json.RawMessage(r.parts[0].json)
	}
	return out
}

// geminiTakes reports whether media can be part of a function's response.
func geminiTakes(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/webp", "application/pdf":
		return true
	}
	return false
}

func (w *gemini) assembler() assembler { return &geminiAssembler{} }
