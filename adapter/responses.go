package adapter

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// openAIResponses is the Responses API.
type openAIResponses struct {
	base
	strict, serial, defers bool
}

// responsesFunction is a function tool of the Responses API.
type responsesFunction struct {
	Type string `json:"type"`
	openAIFunction
	Defer bool `json:"defer_loading,omitempty"`
}

func (w *openAIResponses) declare(d *Declaration) json.RawMessage {
	return encode(responsesFunction{"function", openAIFunctionOf(d, w.strict), d.Deferred})
}

func (w *openAIResponses) request(d *Declarations) json.RawMessage {
	return openAIRequest(w.list(d), w.serial)
}

// responsesNamespace groups deferred functions, so that a model is shown the
// group alone until it searches.
type responsesNamespace struct {
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Tools       []json.RawMessage `json:"tools"`
}

// list puts the deferred tools behind those that are declared, grouped by their
// namespace, with the provider's search.
func (w *openAIResponses) list(d *Declarations) json.RawMessage {
	if !w.defers {
		return w.base.list(d)
	}
	list := []json.RawMessage{}
	var groups []string
	members := map[string][]*Declaration{}
	for i := range d.Tools {
		t := &d.Tools[i]
		if !t.Deferred {
			list = append(list, t.JSON)
			continue
		}
		if members[t.group] == nil {
			groups = append(groups, t.group)
		}
		members[t.group] = append(members[t.group], t)
	}
	if len(groups) == 0 {
		return encode(list)
	}
	names := d.adapter.names.wireNames(groups)
	for _, g := range groups {
		list = append(list, namespaceOf(g, names[g], members[g])...)
	}
	return encode(append(list, json.RawMessage(`{"type":"tool_search"}`)))
}

// namespaceOf returns the tool objects of one group: those of no namespace, or
// of one with a single tool, stand alone.
func namespaceOf(group, wire string, members []*Declaration) []json.RawMessage {
	objects := make([]json.RawMessage, len(members))
	about := make([]string, len(members))
	for i, m := range members {
		objects[i], about[i] = m.JSON, m.Wire
	}
	if group == "" || len(members) == 1 {
		return objects
	}
	said := fmt.Sprintf("%d tools of %s: %s", len(members), group, strings.Join(about, ", "))
	if len(said) > 1000 {
		said = said[:1000] + "…"
	}
	return []json.RawMessage{encode(responsesNamespace{"namespace", wire, said, objects})}
}

// outputItems returns the output of a response, which may be given alone.
func outputItems(response []byte) ([][]byte, error) {
	if rawjson.KindOf(response) == rawjson.KindArray {
		return elements(response), nil
	}
	if output := get(response, "output"); rawjson.KindOf(output) == rawjson.KindArray {
		return elements(output), nil
	}
	return nil, errNoMessage
}

func (w *openAIResponses) calls(response []byte) ([]rawCall, error) {
	items, err := outputItems(response)
	if err != nil {
		return nil, err
	}
	var calls []rawCall
	for _, item := range items {
		if text(item, "type") == "function_call" {
			calls = append(calls, rawCall{
				id: text(item, "call_id"), name: text(item, "name"), args: []byte(text(item, "arguments")),
				cut: text(item, "status") == "incomplete",
			})
		}
	}
	return calls, nil
}

func (w *openAIResponses) reply(response []byte) ([]json.RawMessage, error) {
	items, err := outputItems(response)
	if err != nil {
		return nil, err
	}
	list := make([]json.RawMessage, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list, nil
}

func (w *openAIResponses) results(answers []rendered) []json.RawMessage {
	list := make([]json.RawMessage, len(answers))
	for i := range answers {
		list[i] = encode(struct {
			Type   string `json:"type"`
			ID     string `json:"call_id"`
			Output any    `json:"output"`
		}{"function_call_output", answers[i].call.ID, responsesOutput(&answers[i])})
	}
	return list
}

// responsesOutput returns a text, or a list of parts when there are media.
func responsesOutput(r *rendered) any {
	var list []any
	some := false
	for _, p := range r.parts {
		switch {
		case !p.isMedia():
			list = append(list, textBlock{"input_text", p.text})
		case strings.HasPrefix(p.mime, "image/"):
			some = true
			list = append(list, map[string]any{"type": "input_image", "image_url": dataURL(&p)})
		case p.mime == "application/pdf":
			some = true
			list = append(list, map[string]any{"type": "input_file", "file_data": dataURL(&p), "filename": fileName(&p, "pdf")})
		default:
			list = append(list, textBlock{"input_text", p.unshown()})
		}
	}
	if some {
		if r.isError {
			list = append([]any{textBlock{"input_text", "Error:"}}, list...)
		}
		return list
	}
	said := make([]string, len(list))
	for i := range list {
		said[i] = list[i].(textBlock).Text
	}
	return openAIText(r, strings.Join(said, "\n"))
}

func (w *openAIResponses) assembler() assembler { return &responsesAssembler{} }
