package scripted

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// gemini is the form of generateContent. It gives calls no ids, and signs the
// first of a response.
type gemini struct{ responses int }

func (*gemini) allows(r *http.Request) error {
	if !strings.Contains(r.URL.Path, "/v1beta/models/") {
		return fmt.Errorf("unknown endpoint %s", r.URL.Path)
	}
	return has(r, ":generateContent", "x-goog-api-key", Key)
}

type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		FunctionDeclarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		ThoughtSignature string          `json:"thoughtSignature"`
		FunctionCall     *geminiFunction `json:"functionCall"`
		FunctionResponse *geminiFunction `json:"functionResponse"`
	} `json:"parts"`
}

type geminiFunction struct {
	Name     string         `json:"name"`
	Response map[string]any `json:"response"`
}

var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)

func (w *gemini) read(body []byte) (names []string, err error) {
	var in geminiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if len(in.Contents) == 0 {
		return nil, errors.New("contents is not specified")
	}
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			names = append(names, f.Name)
		}
	}
	if err := checkNames(names, geminiName); err != nil {
		return nil, err
	}
	return names, geminiAnswered(in.Contents)
}

// geminiAnswered checks that what follows the calls of a content answers them one
// by one, in their order, and that signatures came back.
func geminiAnswered(contents []geminiContent) error {
	var open []string
	signed := 0
	for i, c := range contents {
		var calls, answers []string
		for _, p := range c.Parts {
			if p.FunctionCall != nil {
				if len(calls) == 0 && p.ThoughtSignature != signature(signed) {
					return fmt.Errorf("contents[%d]: function call is missing a thought_signature", i)
				}
				calls = append(calls, p.FunctionCall.Name)
			}
			if p.FunctionResponse != nil {
				answers = append(answers, p.FunctionResponse.Name)
			}
		}
		if fmt.Sprint(answers) != fmt.Sprint(open) {
			return fmt.Errorf("contents[%d]: the number of function response parts must equal that of function call parts: %q, %q", i, open, answers)
		}
		if len(calls) > 0 {
			signed++
		}
		open = calls
	}
	if len(open) > 0 {
		return fmt.Errorf("function calls without responses: %q", open)
	}
	return nil
}

func signature(n int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "thought %d", n))
}

func (w *gemini) write(text string, calls []Call) any {
	parts := []any{}
	if text != "" {
		parts = append(parts, map[string]any{"text": text})
	}
	for i, c := range calls {
		part := map[string]any{"functionCall": map[string]any{"name": c.Tool, "args": json.RawMessage(c.Args)}}
		if i == 0 {
			part["thoughtSignature"] = signature(w.responses)
			w.responses++
		}
		parts = append(parts, part)
	}
	return map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "scripted"}
}

func (*gemini) failure(message string) any {
	return map[string]any{"error": map[string]any{"code": http.StatusBadRequest, "message": message, "status": "INVALID_ARGUMENT"}}
}
