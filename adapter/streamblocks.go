package adapter

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// anthropicAssembler puts the events of a message together.
type anthropicAssembler struct {
	message []byte
	blocks  map[int]*anthropicBlock
	stop    []byte
	ready   []rawCall // of a block that ended, until it is known why the message did
}

type anthropicBlock struct {
	raw   []byte
	texts map[string][]byte // of members that grow
	args  []byte
	lists map[string][]json.RawMessage
	done  bool // it ended
	told  bool // that it did not is told already
}

func (a *anthropicAssembler) add(event []byte) ([]rawCall, error) {
	index, _ := number(event, "index")
	switch text(event, "type") {
	case "error":
		return nil, failure(event)
	case "message_start":
		a.message = get(event, "message")
	case "content_block_start":
		if a.blocks == nil {
			a.blocks = map[int]*anthropicBlock{}
		}
		a.blocks[index] = &anthropicBlock{raw: get(event, "content_block")}
		return a.release(), nil
	case "content_block_delta":
		if b := a.blocks[index]; b != nil {
			b.delta(get(event, "delta"))
		}
	case "content_block_stop":
		if b := a.blocks[index]; b != nil && !b.done {
			b.done = true
			a.ready = append(a.ready, b.call()...)
		}
	case "message_delta":
		a.stop = get(event, "delta", "stop_reason")
		if stopped(text(a.stop)) {
			a.ready = cutLast(a.ready)
		}
		return a.release(), nil
	}
	return nil, nil
}

// release returns the calls that are ready.
func (a *anthropicAssembler) release() []rawCall {
	calls := a.ready
	a.ready = nil
	return calls
}

// delta adds to the member that the delta's kind is about.
func (b *anthropicBlock) delta(delta []byte) {
	switch text(delta, "type") {
	case "text_delta":
		b.grow("text", get(delta, "text"))
	case "thinking_delta":
		b.grow("thinking", get(delta, "thinking"))
	case "signature_delta":
		b.grow("signature", get(delta, "signature"))
	case "input_json_delta":
		b.args = rawjson.AppendUnquoted(b.args, get(delta, "partial_json"))
	case "citations_delta":
		if b.lists == nil {
			b.lists = map[string][]json.RawMessage{}
		}
		b.lists["citations"] = append(b.lists["citations"], get(delta, "citation"))
	}
}

func (b *anthropicBlock) grow(member string, v []byte) {
	if rawjson.KindOf(v) != rawjson.KindString {
		return
	}
	if b.texts == nil {
		b.texts = map[string][]byte{}
	}
	b.texts[member] = rawjson.AppendUnquoted(b.texts[member], v)
}

// input returns the arguments: what was streamed, or what the block began with.
func (b *anthropicBlock) input() []byte {
	if len(b.args) > 0 {
		return b.args
	}
	return get(b.raw, "input")
}

func (b *anthropicBlock) call() []rawCall {
	if text(b.raw, "type") != "tool_use" {
		return nil
	}
	return []rawCall{{id: text(b.raw, "id"), name: text(b.raw, "name"), args: b.input()}}
}

func (b *anthropicBlock) whole() json.RawMessage {
	raw := b.raw
	for _, member := range sortedKeys(b.texts) {
		raw, _ = rawjson.Set(raw, member, rawjson.Quote(text(b.raw, member)+string(b.texts[member])))
	}
	for _, member := range sortedKeys(b.lists) {
		raw, _ = rawjson.Set(raw, member, encode(b.lists[member]))
	}
	if get(b.raw, "input") != nil {
		raw, _ = rawjson.Set(raw, "input", inputOf(b.input(), b.done))
	}
	return raw
}

func (a *anthropicAssembler) rest() []rawCall {
	list := a.release()
	for _, index := range sortedKeys(a.blocks) {
		if b := a.blocks[index]; !b.done && !b.told {
			b.told = true
			list = append(list, b.call()...)
		}
	}
	return list
}

func (a *anthropicAssembler) response() json.RawMessage {
	content := []json.RawMessage{}
	for _, index := range sortedKeys(a.blocks) {
		if b := a.blocks[index]; rawjson.KindOf(b.raw) == rawjson.KindObject {
			content = append(content, b.whole())
		}
	}
	message := a.message
	if rawjson.KindOf(message) != rawjson.KindObject {
		message = []byte(`{"role":"assistant"}`)
	}
	message, _ = rawjson.Set(message, "content", encode(content))
	if a.stop != nil {
		message, _ = rawjson.Set(message, "stop_reason", a.stop)
	}
	return message
}

// bedrockAssembler puts the events of ConverseStream together.
type bedrockAssembler struct {
	blocks map[int]*bedrockBlock
	stop   string
	ready  []rawCall // of a block that ended, until it is known why the message did
}

type bedrockBlock struct {
	use       []byte // what a tool use began with
	text      []byte
	args      []byte
	reasoning []byte
	signature []byte
	redacted  []byte
	done      bool // it ended
	told      bool // that it did not is told already
}

func (a *bedrockAssembler) block(event []byte) *bedrockBlock {
	index, _ := number(event, "contentBlockIndex")
	if a.blocks == nil {
		a.blocks = map[int]*bedrockBlock{}
	}
	if a.blocks[index] == nil {
		a.blocks[index] = &bedrockBlock{}
	}
	return a.blocks[index]
}

func (a *bedrockAssembler) add(event []byte) ([]rawCall, error) {
	for it := rawjson.Object(event); it.Next(); {
		body := it.Value()
		switch it.Key() {
		case "contentBlockStart":
			a.block(body).use = get(body, "start", "toolUse")
			return a.release(), nil
		case "contentBlockDelta":
			a.block(body).delta(get(body, "delta"))
		case "contentBlockStop":
			if b := a.block(body); !b.done {
				b.done = true
				a.ready = append(a.ready, b.call()...)
			}
		case "messageStop":
			if a.stop = text(body, "stopReason"); stopped(a.stop) {
				a.ready = cutLast(a.ready)
			}
			return a.release(), nil
		case "internalServerException", "modelStreamErrorException", "serviceUnavailableException",
			"throttlingException", "validationException":
			return nil, failure(encode(map[string]any{"error": map[string]any{"type": it.Key(), "message": text(body, "message")}}))
		}
	}
	return nil, nil
}

// release returns the calls that are ready.
func (a *bedrockAssembler) release() []rawCall {
	calls := a.ready
	a.ready = nil
	return calls
}

func (b *bedrockBlock) delta(delta []byte) {
	add := func(dst *[]byte, path ...string) {
		if v := get(delta, path...); rawjson.KindOf(v) == rawjson.KindString {
			*dst = rawjson.AppendUnquoted(*dst, v)
		}
	}
	add(&b.text, "text")
	add(&b.args, "toolUse", "input")
	add(&b.reasoning, "reasoningContent", "text")
	add(&b.signature, "reasoningContent", "signature")
	add(&b.redacted, "reasoningContent", "redactedContent")
}

// input returns the arguments. A tool without any is streamed without a delta.
func (b *bedrockBlock) input() []byte {
	if len(b.args) == 0 {
		return []byte(`{}`)
	}
	return b.args
}

func (b *bedrockBlock) call() []rawCall {
	if b.use == nil {
		return nil
	}
	return []rawCall{{id: text(b.use, "toolUseId"), name: text(b.use, "name"), args: b.input()}}
}

func (b *bedrockBlock) whole() map[string]any {
	switch {
	case b.use != nil:
		use, _ := rawjson.Set(b.use, "input", inputOf(b.input(), b.done))
		return map[string]any{"toolUse": json.RawMessage(use)}
	case b.redacted != nil:
		return map[string]any{"reasoningContent": map[string]any{"redactedContent": string(b.redacted)}}
	case b.reasoning != nil || b.signature != nil:
		said := map[string]any{"text": string(b.reasoning)}
		if b.signature != nil {
			said["signature"] = string(b.signature)
		}
		return map[string]any{"reasoningContent": map[string]any{"reasoningText": said}}
	}
	return map[string]any{"text": string(b.text)}
}

func (a *bedrockAssembler) rest() []rawCall {
	list := a.release()
	for _, index := range sortedKeys(a.blocks) {
		if b := a.blocks[index]; !b.done && !b.told {
			b.told = true
			list = append(list, b.call()...)
		}
	}
	return list
}

func (a *bedrockAssembler) response() json.RawMessage {
	content := []any{}
	for _, index := range sortedKeys(a.blocks) {
		content = append(content, a.blocks[index].whole())
	}
	body := map[string]any{"output": map[string]any{"message": map[string]any{"role": "assistant", "content": content}}}
	if a.stop != "" {
		body["stopReason"] = a.stop
	}
	return encode(body)
}
