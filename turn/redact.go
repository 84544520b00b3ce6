package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// Redaction removes from a text what a model must not see.
type Redaction func(text string) string

// Removing is the redaction that puts "[redacted]" in the place of what the
// patterns match.
func Removing(patterns ...*regexp.Regexp) Redaction {
	return func(text string) string {
		for _, p := range patterns {
			text = p.ReplaceAllLiteralString(text, "[redacted]")
		}
		return text
	}
}

// Redact returns middleware that redacts the texts in results: the strings of the
// structured result and of content blocks, apart from encoded data. A tool's
// Safety.Redaction names which of the redactions is used, and "" is used for
// every tool. The result of a tool whose redaction is not among them is withheld.
// Nothing of a result that is redacted is kept aside before.
func Redact(named map[string]Redaction) Middleware {
	after := After(func(_ context.Context, inv *Invocation, res *tools.ToolResult) error {
		list, err := redactions(named, inv.Tool)
		for _, r := range list {
			redact(res, r)
		}
		return err
	})
	return func(next Handler) Handler {
		return after(func(ctx context.Context, inv *Invocation) (tools.ToolResult, error) {
			if list, err := redactions(named, inv.Tool); err != nil || len(list) > 0 {
				tools.CallFrom(ctx).KeepWhole()
			}
			return next(ctx, inv)
		})
	}
}

// redactions returns those that hold for a tool.
func redactions(named map[string]Redaction, tool *tools.Tool) (list []Redaction, err error) {
	if every := named[""]; every != nil {
		list = append(list, every)
	}
	if name := tool.Safety.Redaction; name != "" {
		own := named[name]
		if own == nil {
			return nil, fmt.Errorf("there is no redaction %q", name)
		}
		list = append(list, own)
	}
	return list, nil
}

func redact(res *tools.ToolResult, r Redaction) {
	changed := false
	if text, ok := res.Value.(string); ok {
		if out := r(text); out != text {
			res.Value, changed = out, true
		}
	}
	if raw, ok := redactJSON(res.Structured, r, nil); ok {
		if _, isText := res.Value.(string); !isText {
			res.Value = json.RawMessage(raw)
		}
		res.Structured, changed = raw, true
	}
	var content []tools.Content
	for i, c := range res.Content {
		raw, ok := redactJSON(c.JSON, r, opaque)
		if !ok {
			continue
		}
		if content == nil {
			content = append(content, res.Content...)
		}
		content[i].JSON, changed = raw, true
	}
	if content != nil {
		res.Content = content
	}
	if changed {
		res.Wire = nil
	}
}

// opaque reports whether a member of a content block is not text.
func opaque(key string) bool {
	return key == "data" || key == "blob" || key == "type" || key == "mimeType"
}

// redactJSON redacts the strings of a well-formed JSON document that are values,
// apart from the members that skip names, and reports whether any changed. All
// else stays byte for byte.
func redactJSON(doc []byte, r Redaction, skip func(key string) bool) ([]byte, bool) {
	var out []byte
	kept, key := 0, ""
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end, _, fault := rawjson.ScanString(doc, i)
		if fault != rawjson.FaultNone {
			return doc, false
		}
		text, _ := rawjson.Unquote(doc[i:end])
		if at := rawjson.SkipSpace(doc, end); at < len(doc) && doc[at] == ':' {
			key = text
		} else if skip == nil || !skip(key) {
			if clean := r(text); clean != text {
				out = append(out, doc[kept:i]...)
				out = rawjson.AppendQuoted(out, clean)
				kept = end
			}
		}
		i = end - 1
	}
	if kept == 0 {
		return doc, false
	}
	return append(out, doc[kept:]...), true
}
