package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// Answer is what came of one call.
type Answer struct {
	// Call is the call that is answered, as Calls returned it.
	Call Call
	// Result is the tool's result, when Err is nil.
	Result tools.ToolResult
	// Err is why there is none. A *tools.Error is shown to the model as it is,
	// and of any other error the text.
	Err error
	// Bounded says that whoever made the result has bounded it, such as the
	// answer of artifact_fetch: it may be larger than Options.HeavyBytes.
	Bounded bool
}

// Results returns the messages that carry answers to the model, to be appended
// to the conversation after what Reply returned: for most providers one message,
// for OpenAI one for each answer, for MCP one result object for each answer.
// Answers are written in the order in which they are given; the providers want
// one for each call of the response that they answer.
//
// An answer whose text is larger than Options.HeavyBytes, that is neither Bounded
// nor the stub of an artifact, is raw content that should have been kept as an
// artifact. Nothing of it is written: the error is a *tools.Error with
// ErrContextLeak, and the event llm.context_leak is published where ctx carries
// a bus.
func (d *Declarations) Results(ctx context.Context, answers []Answer) ([]json.RawMessage, error) {
	list := make([]rendered, len(answers))
	for i := range answers {
		r := render(&answers[i])
		if err := d.refuseHeavy(ctx, &answers[i], &r); err != nil {
			return nil, err
		}
		list[i] = r
	}
	if len(list) == 0 {
		return nil, nil
	}
	return d.adapter.wire.results(list), nil
}

// refuseHeavy returns an error for raw content that is too large for a model.
func (d *Declarations) refuseHeavy(ctx context.Context, a *Answer, r *rendered) error {
	limit := d.adapter.heavyBytes()
	size := r.textSize()
	if limit < 0 || size <= limit || a.Bounded || len(a.Result.Artifacts) > 0 {
		return nil
	}
	publishLeak(ctx, tools.ContextLeakPayload{
		ToolName: a.Call.Tool, Provider: d.adapter.Name(), SizeBytes: int64(size), LimitBytes: int64(limit),
	}, a.Result.CallID)
	return &tools.Error{
		Code: tools.ErrContextLeak, Tool: a.Call.Tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
		Message: fmt.Sprintf("the result has %d bytes of text, and at most %d reach a model whole: store it as an artifact", size, limit),
	}
}

func publishLeak(ctx context.Context, p tools.ContextLeakPayload, callID string) {
	bus, ok := events.From(ctx)
	if !ok {
		return
	}
	p.Identity, _ = identity.QuadrupleFrom(ctx)
	// A bus that does not know the event takes nothing from the refusal.
	_ = bus.Publish(ctx, events.Event{
		Type: tools.EventTypeContextLeak, Identity: p.Identity, Tool: p.ToolName, CallID: callID, Payload: p,
	})
}

// rendered is an answer in parts that every provider has a form for.
type rendered struct {
	call    Call
	parts   []part
	isError bool
	answer  *Answer

	structured json.RawMessage
}

// A part of an answer is a text, or media as base64.
type part struct {
	text string
	json []byte // the object that text is the JSON of, or nil
	mime string // of media
	data string // base64
	name string
}

func (p *part) isMedia() bool { return p.mime != "" }

func (r *rendered) textSize() int {
	n := 0
	for i := range r.parts {
		n += len(r.parts[i].text)
	}
	return n
}

// texts returns the text parts, joined.
func (r *rendered) texts() string {
	var list []string
	for i := range r.parts {
		if !r.parts[i].isMedia() {
			list = append(list, r.parts[i].text)
		}
	}
	return strings.Join(list, "\n")
}

// maxErrorText bounds what a model reads of an error, in bytes.
const maxErrorText = 4 << 10

// render returns an answer in parts. A result that is not JSON is an error that
// says so, and takes no other answer along.
func render(a *Answer) rendered {
	structured, err := readable(a)
	if err != nil {
		a = &Answer{Call: a.Call, Err: err}
	}
	r := rendered{call: a.Call, answer: a, structured: structured, isError: a.Err != nil || a.Result.IsError}
	if a.Err != nil {
		r.parts = []part{{text: errorText(a.Err)}}
		return r
	}
	for _, c := range a.Result.Content {
		if p := partOf(c); p.isMedia() || strings.TrimSpace(p.text) != "" {
			r.parts = append(r.parts, p) // some providers refuse a text that is blank
		}
	}
	r.addStructured()
	r.addArtifacts(a.Result.Artifacts)
	if len(r.parts) == 0 {
		r.parts = []part{{text: "(no output)"}}
	}
	return r
}

// readable returns the structured result of an answer, or an error when something
// of its result is not JSON.
func readable(a *Answer) (json.RawMessage, error) {
	if a.Err != nil {
		return nil, nil
	}
	structured, err := a.Result.JSON()
	if err != nil && strings.TrimSpace(a.Result.Text()) != "" {
		structured, err = nil, nil // a text stands for it
	}
	ok := err == nil && isJSON(structured) && isJSON(a.Result.Wire)
	for _, c := range a.Result.Content {
		ok = ok && len(c.JSON) > 0 && isJSON(c.JSON)
	}
	if ok {
		return structured, nil
	}
	return nil, &tools.Error{
		Code: tools.ErrToolInvalidOutput, Tool: a.Call.Tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered,
		Message: "the result cannot be encoded as JSON", Err: err,
	}
}

// isJSON reports whether v is JSON, or nothing at all.
func isJSON(v []byte) bool {
	return len(v) == 0 || rawjson.Valid(v)
}

func errorText(err error) string {
	var te *tools.Error
	msg := err.Error()
	if errors.As(err, &te) {
		msg = te.Error()
	}
	if len(msg) > maxErrorText {
		msg = strings.ToValidUTF8(msg[:maxErrorText], "") + "…"
	}
	return msg
}

// addStructured adds the structured result where no text stands for it.
func (r *rendered) addStructured() {
	raw := r.structured
	if len(raw) == 0 || strings.TrimSpace(r.texts()) != "" {
		return
	}
	p := part{text: string(rawjson.Trim(raw))}
	switch rawjson.KindOf(raw) {
	case rawjson.KindString:
		p.text, _ = rawjson.Unquote(raw)
	case rawjson.KindObject:
		p.json = rawjson.Trim(raw)
	}
	if strings.TrimSpace(p.text) != "" {
		r.parts = append([]part{p}, r.parts...)
	}
}

// addArtifacts names the artifacts that no text mentions.
func (r *rendered) addArtifacts(refs []tools.ArtifactRef) {
	said := r.texts()
	for _, ref := range refs {
		if !strings.Contains(said, ref.Ref) {
			r.parts = append(r.parts, part{text: "Artifact: " + string(encode(ref))})
		}
	}
}

// partOf returns the part that a content block becomes.
func partOf(c tools.Content) part {
	switch c.Type {
	case "text":
		t, _ := c.Text()
		return part{text: t}
	case "image", "audio":
		if p := media(text(c.JSON, "mimeType"), text(c.JSON, "data"), ""); p.isMedia() {
			return p
		}
	case "resource_link":
		return part{text: linkText(c.JSON)}
	case "resource":
		return resourcePart(c.JSON)
	}
	return part{text: string(c.JSON)}
}

func media(mime, data, name string) part {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	if mime == "" || data == "" {
		return part{}
	}
	return part{mime: mime, data: data, name: name}
}

func linkText(block []byte) string {
	said := "Resource: " + text(block, "uri")
	var more []string
	for _, key := range []string{"title", "name", "mimeType", "description"} {
		if s := text(block, key); s != "" {
			more = append(more, s)
		}
	}
	if len(more) > 0 {
		said += " (" + strings.Join(more, ", ") + ")"
	}
	return said
}

// resourcePart returns an embedded resource: its text below its URI, or its
// bytes.
func resourcePart(block []byte) part {
	uri := text(block, "resource", "uri")
	if t := get(block, "resource", "text"); t != nil {
		return part{text: strings.TrimSpace("Resource: "+uri) + "\n" + text(block, "resource", "text")}
	}
	if p := media(text(block, "resource", "mimeType"), text(block, "resource", "blob"), uri); p.isMedia() {
		return p
	}
	return part{text: "Resource: " + uri + " (its bytes are not shown)"}
}

// unshown says what media a provider has no form for.
func (p *part) unshown() string {
	said := fmt.Sprintf("[%s, %d bytes of base64, which cannot be shown here", p.mime, len(p.data))
	if p.name != "" {
		said += ": " + p.name
	}
	return said + "]"
}
