package adapter

import (
	"encoding/json"
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// chatAssembler puts the chunks of a completion together.
type chatAssembler struct {
	texts  map[string]*[]byte // the string members of the deltas, by key
	order  []string
	calls  []*chatCall
	finish string
}

type chatCall struct {
	index    int
	id, name string
	args     []byte
	done     bool
}

func (a *chatAssembler) add(event []byte) ([]rawCall, error) {
	if err := failure(event); err != nil {
		return nil, err
	}
	for _, choice := range elements(get(event, "choices")) {
		if n, ok := number(choice, "index"); ok && n != 0 {
			continue // other candidates are not followed
		}
		a.delta(get(choice, "delta"))
		if reason := text(choice, "finish_reason"); reason != "" {
			a.finish = reason
		}
	}
	if a.finish == "" || unfinished(a.finish) {
		return nil, nil
	}
	return a.take(), nil
}

func (a *chatAssembler) delta(delta []byte) {
	for it := rawjson.Object(delta); it.Next(); {
		key := it.Key()
		switch {
		case key == "tool_calls":
			for _, c := range elements(it.Value()) {
				a.callDelta(c)
			}
		case key != "role" && rawjson.KindOf(it.Value()) == rawjson.KindString:
			a.textDelta(key, it.Value())
		}
	}
}

func (a *chatAssembler) textDelta(key string, v []byte) {
	if a.texts == nil {
		a.texts = map[string]*[]byte{}
	}
	if a.texts[key] == nil {
		a.texts[key] = new([]byte)
		a.order = append(a.order, key)
	}
	*a.texts[key] = rawjson.AppendUnquoted(*a.texts[key], v)
}

// callDelta adds to the call of the delta's index. A provider that leaves the
// index out begins a call with its id.
func (a *chatAssembler) callDelta(delta []byte) {
	index, given := number(delta, "index")
	id, name := text(delta, "id"), text(delta, "function", "name")
	at := slices.IndexFunc(a.calls, func(c *chatCall) bool { return c.index == index })
	if !given {
		at = len(a.calls) - 1
		if at < 0 || id != "" && a.calls[at].id != id {
			at, index = -1, len(a.calls)
		}
	}
	if at < 0 {
		a.calls = append(a.calls, &chatCall{index: index})
		at = len(a.calls) - 1
	}
	c := a.calls[at]
	if c.id == "" {
		c.id = id
	}
	if c.name == "" {
		c.name = name
	}
	if args := get(delta, "function", "arguments"); rawjson.KindOf(args) == rawjson.KindString {
		c.args = rawjson.AppendUnquoted(c.args, args)
	}
}

// take returns the calls that were not returned before.
func (a *chatAssembler) take() []rawCall {
	var list []rawCall
	for _, c := range a.calls {
		if !c.done {
			c.done = true
			list = append(list, rawCall{id: c.id, name: c.name, args: c.args})
		}
	}
	return list
}

// rest returns what is left: of a completion that was cut off all calls but the
// last are whole, yet nobody says so of each.
func (a *chatAssembler) rest() []rawCall { return a.take() }

func (a *chatAssembler) response() json.RawMessage {
	message := map[string]any{"role": "assistant", "content": nil}
	for _, key := range a.order {
		message[key] = string(*a.texts[key])
	}
	var calls []any
	for _, c := range a.calls {
		calls = append(calls, map[string]any{
			"id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": string(c.args)},
		})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	choice := map[string]any{"index": 0, "message": message, "finish_reason": nil}
	if a.finish != "" {
		choice["finish_reason"] = a.finish
	}
	return encode(map[string]any{"choices": []any{choice}})
}

// responsesAssembler puts the events of a response together.
type responsesAssembler struct {
	items map[int]*responsesItem
	whole json.RawMessage
}

type responsesItem struct {
	raw   []byte
	args  []byte
	done  bool
	taken bool
}

func (a *responsesAssembler) item(event []byte) *responsesItem {
	index, _ := number(event, "output_index")
	if a.items == nil {
		a.items = map[int]*responsesItem{}
	}
	if a.items[index] == nil {
		a.items[index] = &responsesItem{}
	}
	return a.items[index]
}

func (a *responsesAssembler) add(event []byte) ([]rawCall, error) {
	switch text(event, "type") {
	case "error":
		if err := failure(event); err != nil {
			return nil, err
		}
		return nil, failure(encode(map[string]any{"error": map[string]any{"message": text(event, "message")}}))
	case "response.failed":
		return nil, failure(get(event, "response"))
	case "response.output_item.added":
		a.item(event).raw = get(event, "item")
	case "response.function_call_arguments.delta":
		i := a.item(event)
		i.args = rawjson.AppendUnquoted(i.args, get(event, "delta"))
	case "response.output_item.done":
		i := a.item(event)
		i.raw, i.done = get(event, "item"), true
		return a.take(i), nil
	case "response.completed", "response.incomplete":
		a.whole = get(event, "response")
	}
	return nil, nil
}

// take returns the call that an item is, once.
func (a *responsesAssembler) take(i *responsesItem) []rawCall {
	if i.taken || text(i.raw, "type") != "function_call" {
		return nil
	}
	i.taken = true
	args := []byte(text(i.raw, "arguments"))
	if !i.done {
		args = i.args
	}
	return []rawCall{{
		id: text(i.raw, "call_id"), name: text(i.raw, "name"), args: args, cut: text(i.raw, "status") == "incomplete",
	}}
}

func (a *responsesAssembler) sorted() []*responsesItem {
	var list []*responsesItem
	for _, index := range sortedKeys(a.items) {
		list = append(list, a.items[index])
	}
	return list
}

func (a *responsesAssembler) rest() []rawCall {
	var list []rawCall
	for _, i := range a.sorted() {
		list = append(list, a.take(i)...)
	}
	return list
}

func (a *responsesAssembler) response() json.RawMessage {
	if a.whole != nil {
		return a.whole
	}
	output := []json.RawMessage{}
	for _, i := range a.sorted() {
		if i.raw == nil {
			continue
		}
		raw := i.raw
		if !i.done && text(raw, "type") == "function_call" {
			raw, _ = rawjson.Set(raw, "arguments", rawjson.Quote(string(i.args)))
			raw, _ = rawjson.Set(raw, "status", []byte(`"incomplete"`))
		}
		output = append(output, raw)
	}
	return encode(map[string]any{"output": output})
}
