package tools

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// ToolResult is what a call gives back.
type ToolResult struct {
	// Value is the result as Go sees it: the typed value of a Go function, a
	// json.RawMessage of structured content, a string of text, or nil when
	// the result is in Content alone.
	Value any
	// Meta is what the tool said about the result, for programs: an MCP
	// result's _meta, for instance.
	Meta map[string]any

	// Content holds the blocks of the result in order; empty when the result
	// is Value alone.
	Content []Content
	// Structured is Value, or an MCP result's structuredContent, as JSON.
	Structured json.RawMessage
	// TaskID is the source's name of the task of MCP that goes on in place of a
	// result, which then has nothing but Wire and Meta; empty for a result.
	TaskID string
	// Artifacts names large parts that are kept elsewhere.
	Artifacts []ArtifactRef
	// IsError says that the tool was reached and answers that it failed. It
	// is an answer, so it is not retried and its output is not validated.
	IsError bool
	// Tool is the canonical name of the tool that ran: of a call that a tool
	// like tool_call made another's, that other. The door sets it.
	Tool string
	// CallID is the id of the call; the door sets it.
	CallID string
	// Elapsed is how long the call took, from the door's first step; the door
	// sets it.
	Elapsed time.Duration
	// Attempts is how many attempts were made; the door sets it.
	Attempts int
	// Provider holds what the tool's transport said about the answer, by
	// name: an HTTP status, for instance.
	Provider map[string]any
	// Wire is the whole result object as an MCP server sent it, byte for
	// byte, so that an MCP entrance passes on what this struct does not name.
	// Content and Structured are views of it. Whoever changes a result must
	// clear it.
	Wire json.RawMessage
	// WireKind says what Wire is the result of: the zero value is a tool's
	// call, KindResource and KindResourceTemplate are the read of a resource,
	// and KindPrompt is what a prompt gave.
	WireKind Kind
}

// JSON returns the structured result: Structured, or Value encoded. It is nil
// when there is neither.
func (r ToolResult) JSON() (json.RawMessage, error) {
	if r.Structured != nil || r.Value == nil {
		return r.Structured, nil
	}
	if raw, ok := r.Value.(json.RawMessage); ok {
		return raw, nil
	}
	enc, err := json.Marshal(r.Value)
	return rawjson.UnescapeHTML(enc), err
}

// Text returns the text blocks of Content, joined by newlines.
func (r ToolResult) Text() string {
	var parts []string
	for _, c := range r.Content {
		if s, ok := c.Text(); ok {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n")
}

// ArtifactRef names content that is kept outside a result.
type ArtifactRef struct {
	Ref       string `json:"ref"`
	MIME      string `json:"mime"`
	SizeBytes int64  `json:"size_bytes"`
}

// Content is one block of a result in the form that MCP gives it. A block of a
// type that is not known here is kept as it is.
type Content struct {
	// Type is "text", "image", "audio", "resource_link", "resource", or a
	// type that a newer protocol defines.
	Type string
	// JSON is the whole block, an object with a "type" member.
	JSON json.RawMessage
}

// TextContent returns a block of text.
func TextContent(text string) Content {
	return block("text", map[string]any{"text": text})
}

// ImageContent returns an image block.
func ImageContent(data []byte, mime string) Content {
	return block("image", map[string]any{"data": base64.StdEncoding.EncodeToString(data), "mimeType": mime})
}

// AudioContent returns an audio block.
func AudioContent(data []byte, mime string) Content {
	return block("audio", map[string]any{"data": base64.StdEncoding.EncodeToString(data), "mimeType": mime})
}

// ResourceLink returns a block that points to a resource.
func ResourceLink(uri, name, mime string) Content {
	fields := map[string]any{"uri": uri, "name": name}
	if mime != "" {
		fields["mimeType"] = mime
	}
	return block("resource_link", fields)
}

// EmbeddedResource returns a block that holds a text resource.
func EmbeddedResource(uri, mime, text string) Content {
	return block("resource", map[string]any{"resource": map[string]any{"uri": uri, "mimeType": mime, "text": text}})
}

// block encodes a block. Maps of strings always encode.
func block(kind string, fields map[string]any) Content {
	fields["type"] = kind
	raw, _ := json.Marshal(fields)
	return Content{Type: kind, JSON: raw}
}

// Text returns the text of a text block, and false for any other block.
func (c Content) Text() (string, bool) {
	if c.Type != "text" {
		return "", false
	}
	var b struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(c.JSON, &b) != nil {
		return "", false
	}
	return b.Text, true
}

// MarshalJSON returns the block as it is.
func (c Content) MarshalJSON() ([]byte, error) { return c.JSON.MarshalJSON() }

// UnmarshalJSON keeps the block and reads its type.
func (c *Content) UnmarshalJSON(b []byte) error {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	c.Type, c.JSON = head.Type, append(json.RawMessage(nil), b...)
	return nil
}
