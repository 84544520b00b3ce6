package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

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
// structured result and of content blocks, apart from encoded data, and what the
// error of a call that gave no result says. The keys of objects stay. A tool's
// Safety.Redaction names which of the redactions is used, and "" is used for every
// tool. The result of a tool whose redaction is not among them is withheld, and so
// is why it failed. Nothing of a result that is redacted is kept aside before.
func Redact(named map[string]Redaction) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, inv *Invocation) (tools.ToolResult, error) {
			list, unknown := redactions(named, inv.Tool)
			if unknown != nil || len(list) > 0 {
				tools.CallFrom(ctx).KeepWhole()
			}
			res, err := next(ctx, inv)
			switch {
			case err != nil && unknown != nil:
				return tools.ToolResult{}, saying(err, "why is withheld: "+unknown.Error())
			case err != nil:
				return tools.ToolResult{}, redactError(err, list)
			case unknown != nil:
				return tools.ToolResult{}, withheld(unknown)
			}
			for _, r := range list {
				if err := redact(&res, r); err != nil {
					return tools.ToolResult{}, withheld(err)
				}
			}
			return res, nil
		}
	}
}

// redactError returns err, or one that says the same without what is redacted.
func redactError(err error, list []Redaction) error {
	text := err.Error()
	if e, ok := err.(*tools.Error); ok {
		text = e.SafeMessage()
	}
	clean := text
	for _, r := range list {
		clean = r(clean)
	}
	if clean == text {
		return err
	}
	return saying(err, clean)
}

// saying returns err with another text. What it wraps is not part of it any more,
// apart from what it is matched with.
func saying(err error, text string) error {
	e, ok := err.(*tools.Error)
	if !ok {
		return &tools.Error{Class: tools.ClassifyError(err, false), Message: text}
	}
	c := *e
	c.Message, c.Err = text, nil
	return &c
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

func redact(res *tools.ToolResult, r Redaction) error {
	changed := false
	if text, ok := res.Value.(string); ok {
		if out := r(text); out != text {
			res.Value, changed = out, true
		}
	}
	raw, err := res.JSON()
	if err != nil {
		return errUnread
	}
	if raw, ok := redactJSON(raw, r, ""); ok {
		if _, isText := res.Value.(string); !isText {
			res.Value = json.RawMessage(raw)
		}
		if changed = true; res.Structured != nil {
			res.Structured = raw
		}
	}
	var content []tools.Content
	for i, c := range res.Content {
		raw, ok := redactJSON(c.JSON, r, c.Type)
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
	if _, more := redactJSON(res.Wire, r, ""); changed || more {
		res.Wire = nil
	}
	return nil
}

var errUnread = errors.New("it cannot be encoded as JSON to be redacted")

// opaque reports whether a member of a content block of a type is not text.
func opaque(block, key, text string) bool {
	switch key {
	case "type":
		return block != ""
	case "mimeType":
		return block == "image" || block == "audio"
	case "data", "blob":
		return (block == "image" || block == "audio" || block == "resource") && !strings.ContainsFunc(text, notEncoded)
	}
	return false
}

// notEncoded reports whether base64 does not have a character.
func notEncoded(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("+/=-_\r\n", c)
}

// redactJSON redacts the strings of a well-formed JSON document that are values,
// apart from what is opaque in a content block of the given type, and reports
// whether any changed. All else stays byte for byte.
func redactJSON(doc []byte, r Redaction, block string) ([]byte, bool) {
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
		} else if !opaque(block, key, text) {
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
