package a2atool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// The names under which a result says where it comes from, in its _meta.
const (
	metaTask    = a2a.ProtocolDomain + "/task_id"
	metaContext = a2a.ProtocolDomain + "/context_id"
	metaState   = a2a.ProtocolDomain + "/state"
	metaSource  = a2a.ProtocolDomain + "/artifact"
)

// result is what the call gives back when there is nothing more to wait for.
func (x *exchange) result() (tools.ToolResult, error) {
	if x.message != nil {
		return x.finished(x.collect(nil, x.message)), nil
	}
	switch state := x.task.Status.State; state {
	case a2a.TaskStateCompleted:
		return x.finished(x.collect(x.task.Artifacts, x.task.Status.Message)), nil
	case a2a.TaskStateAuthRequired:
		return tools.ToolResult{}, x.authRequired()
	default:
		r := x.collect(x.task.Artifacts, x.task.Status.Message)
		r.IsError = true
		if textOf(x.task.Status.Message) == "" {
			r.Content = append(r.Content, tools.TextContent("The agent ended the task ("+stateWord(state)+") and gave no reason."))
		}
		return x.finished(r), nil
	}
}

func (x *exchange) authRequired() error {
	text := "it wants an authorization before it goes on"
	if said := textOf(x.task.Status.Message); said != "" {
		text += ": " + said
	}
	return &tools.Error{Tool: x.skill.name, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: x.peer.message(text)}
}

// finished adds where the result comes from, and its value.
func (x *exchange) finished(r tools.ToolResult) tools.ToolResult {
	task, contextID, state := x.origin()
	r.Meta = map[string]any{}
	for name, v := range map[string]string{metaTask: task, metaContext: contextID, metaState: state} {
		if v != "" {
			r.Meta[name] = v
		}
	}
	r.Provider = map[string]any{"agent": x.agent.card.Name, "binding": string(x.agent.via.ProtocolBinding), "protocol": string(x.agent.via.ProtocolVersion)}
	r.Value = value(r)
	return r
}

func (x *exchange) origin() (task, contextID, state string) {
	if x.message != nil {
		return string(x.message.TaskID), x.message.ContextID, ""
	}
	return string(x.task.ID), x.task.ContextID, stateWord(x.task.Status.State)
}

// value is the result as Go sees it.
func value(r tools.ToolResult) any {
	if r.Structured != nil {
		return r.Structured
	}
	for _, c := range r.Content {
		if _, ok := c.Text(); !ok {
			return nil
		}
	}
	return r.Text()
}

// collect turns artifacts, in order, and then a message into content. What the
// message repeats of the artifacts is left out.
func (x *exchange) collect(artifacts []*a2a.Artifact, message *a2a.Message) tools.ToolResult {
	c := &collector{base: x.base()}
	for _, a := range artifacts {
		if a != nil {
			c.parts(a.Parts, a)
		}
	}
	if message != nil && !c.has(textOf(message)) {
		c.parts(message.Parts, nil)
	}
	return c.result()
}

// base is what the URIs of files without one begin with.
func (x *exchange) base() string {
	task, _, _ := x.origin()
	if task == "" {
		task = "message"
	}
	return "a2a://" + url.PathEscape(x.peer.agentName()) + "/" + url.PathEscape(task)
}

// A collector gathers the content of a result.
type collector struct {
	base    string
	content []tools.Content
	texts   []string
	data    []json.RawMessage
}

// result puts the data together: one part as it is, several as a list.
func (c *collector) result() tools.ToolResult {
	r := tools.ToolResult{Content: c.content}
	switch len(c.data) {
	case 0:
	case 1:
		r.Structured = c.data[0]
	default:
		raw, err := json.Marshal(map[string]any{"data": c.data})
		if err == nil {
			r.Structured = raw
		}
	}
	return r
}

// has reports whether the texts so far come to the given one.
func (c *collector) has(text string) bool {
	if text == "" {
		return false
	}
	joined := strings.Join(c.texts, "\n")
	return joined == text || strings.Join(c.texts, "") == text
}

// parts adds the parts of an artifact, or of a message when a is nil.
func (c *collector) parts(parts a2a.ContentParts, a *a2a.Artifact) {
	for _, p := range parts {
		if p == nil {
			continue
		}
		switch v := p.Content.(type) {
		case a2a.Text:
			c.texts = append(c.texts, string(v))
			c.add("text", map[string]any{"text": string(v)}, p, a)
		case a2a.Data:
			c.addData(v.Value, p, a)
		case a2a.Raw:
			c.addFile(v, p, a)
		case a2a.URL:
			c.addLink(string(v), p, a)
		}
	}
}

// addData keeps data as structured content, and as a block of text for those
// who read no other.
func (c *collector) addData(v any, p *a2a.Part, a *a2a.Artifact) {
	raw, err := exactly(v)
	if err != nil {
		raw = json.RawMessage("null")
	}
	c.data = append(c.data, raw)
	c.add("text", map[string]any{"text": string(raw)}, p, a)
}

func (c *collector) addFile(content []byte, p *a2a.Part, a *a2a.Artifact) {
	kind := p.MediaType
	if kind == "" {
		kind = "application/octet-stream"
	}
	encoded := func() string { return base64.StdEncoding.EncodeToString(content) }
	bare, _, _ := mime.ParseMediaType(kind)
	switch {
	case strings.HasPrefix(bare, "image/"), strings.HasPrefix(bare, "audio/"):
		block, _, _ := strings.Cut(bare, "/")
		c.add(block, map[string]any{"data": encoded(), "mimeType": kind}, p, a)
	case textual(bare) && utf8.Valid(content):
		c.add("resource", map[string]any{"resource": map[string]any{"uri": c.uri(p, a), "mimeType": kind, "text": string(content)}}, p, a)
	default:
		c.add("resource", map[string]any{"resource": map[string]any{"uri": c.uri(p, a), "mimeType": kind, "blob": encoded()}}, p, a)
	}
}

func textual(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		kind == "application/json" || kind == "application/xml" || strings.HasSuffix(kind, "yaml")
}

func (c *collector) addLink(uri string, p *a2a.Part, a *a2a.Artifact) {
	fields := map[string]any{"uri": uri, "name": linkName(uri, p, a)}
	if p.MediaType != "" {
		fields["mimeType"] = p.MediaType
	}
	if a != nil && a.Description != "" {
		fields["description"] = a.Description
	}
	c.add("resource_link", fields, p, a)
}

func linkName(uri string, p *a2a.Part, a *a2a.Artifact) string {
	switch {
	case p.Filename != "":
		return p.Filename
	case a != nil && a.Name != "":
		return a.Name
	}
	return uri
}

// uri names a file that came without a place.
func (c *collector) uri(p *a2a.Part, a *a2a.Artifact) string {
	name := p.Filename
	if name == "" {
		name = fmt.Sprintf("part-%d", len(c.content)+1)
	}
	if a != nil {
		return c.base + "/" + url.PathEscape(string(a.ID)) + "/" + url.PathEscape(name)
	}
	return c.base + "/" + url.PathEscape(name)
}

// add adds a block. Its _meta says of what artifact it is a part, and holds
// what the agent said about either.
func (c *collector) add(kind string, fields map[string]any, p *a2a.Part, a *a2a.Artifact) {
	fields["type"] = kind
	if meta := blockMeta(p, a); len(meta) > 0 {
		fields["_meta"] = meta
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return // metadata that cannot be encoded was never JSON
	}
	raw = rawjson.UnescapeHTML(raw)
	c.content = append(c.content, tools.Content{Type: kind, JSON: raw})
}

func blockMeta(p *a2a.Part, a *a2a.Artifact) map[string]any {
	meta := map[string]any{}
	if len(p.Metadata) > 0 {
		meta[a2a.ProtocolDomain+"/metadata"] = unmarked(p.Metadata)
	}
	if a == nil {
		return meta
	}
	about := map[string]any{"id": string(a.ID)}
	for name, v := range map[string]string{"name": a.Name, "description": a.Description} {
		if v != "" {
			about[name] = v
		}
	}
	if len(a.Metadata) > 0 {
		about["metadata"] = unmarked(a.Metadata)
	}
	meta[metaSource] = about
	return meta
}

// textOf joins the texts of a message.
func textOf(m *a2a.Message) string {
	if m == nil {
		return ""
	}
	var texts []string
	for _, p := range m.Parts {
		if p != nil && p.Text() != "" {
			texts = append(texts, p.Text())
		}
	}
	return strings.Join(texts, "\n")
}
