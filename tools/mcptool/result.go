package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

var (
	errNoResult      = errors.New("the server's answer is not a result object")
	errInputRequired = errors.New("the server asks for input before it answers")
)

// resultOf returns the views of a tools/call result, which stays whole in Wire.
// Nothing large is copied but the text of a result that is all text. A task in
// place of a result names itself so, or is taken for one that was asked for.
func resultOf(raw json.RawMessage, era mcpwire.Era, taskAsked bool) (tools.ToolResult, error) {
	r := tools.ToolResult{Wire: raw}
	if rawjson.KindOf(raw) != rawjson.KindObject {
		return r, errNoResult
	}
	var taskID json.RawMessage
	isTask := false
	it := rawjson.Object(raw)
	for it.Next() {
		switch {
		case it.KeyIs("taskId"):
			taskID = it.Value()
		case it.KeyIs("task") && taskAsked:
			taskID, isTask = rawjson.Get(it.Value(), "taskId")
		case it.KeyIs("content"):
			r.Content = blocks(it.Value())
		case it.KeyIs("structuredContent"):
			r.Structured = it.Value()
		case it.KeyIs("isError"):
			r.IsError = string(it.Value()) == "true"
		case it.KeyIs("_meta"):
			r.Meta = metaOf(it.Value())
		case it.KeyIs("resultType"):
			switch kind, _ := rawjson.Unquote(it.Value()); kind {
			case "input_required":
				return r, errInputRequired
			case "task":
				isTask = true
			}
		}
	}
	if it.Err() != nil {
		return r, errNoResult
	}
	if isTask {
		if r.TaskID, _ = rawjson.Unquote(taskID); r.TaskID == "" {
			return r, errNoResult
		}
	}
	if era == mcpwire.EraStateful { // where structured content is an object, and null stands for none
		r.Structured = notNull(r.Structured)
	}
	r.Value = valueOf(&r)
	return r, nil
}

// blocks returns the elements of a content array. One that has no type keeps
// its place, with an empty one.
func blocks(content json.RawMessage) []tools.Content {
	var out []tools.Content
	it := rawjson.Array(content)
	for it.Next() {
		out = append(out, tools.Content{Type: blockType(it.Value()), JSON: it.Value()})
	}
	return out
}

// blockType stops at the type, which mostly stands before what is large.
func blockType(block json.RawMessage) string {
	it := rawjson.Object(block)
	for it.Next() {
		if it.KeyIs("type") {
			kind, _ := rawjson.Unquote(it.Value())
			return kind
		}
	}
	return ""
}

// valueOf is the result as Go sees it: structured content, or the text of a
// result whose blocks are all text, or nil.
func valueOf(r *tools.ToolResult) any {
	if r.Structured != nil {
		return r.Structured
	}
	var one string
	texts := make([]string, 0, 1)
	for _, c := range r.Content {
		text, ok := blockText(c)
		if !ok {
			return nil
		}
		one, texts = text, append(texts, text)
	}
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return one
	}
	return strings.Join(texts, "\n")
}

func blockText(c tools.Content) (string, bool) {
	if c.Type != "text" {
		return "", false
	}
	raw, ok := rawjson.Get(c.JSON, "text")
	if !ok {
		return "", false
	}
	return rawjson.Unquote(raw)
}

// metaOf decodes a _meta object; numbers stay json.Number.
func metaOf(raw json.RawMessage) map[string]any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var m map[string]any
	if d.Decode(&m) != nil {
		return nil
	}
	return m
}
