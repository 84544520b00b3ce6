package mcptool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// maxAside is how many parts of one result are kept aside by themselves. A result
// with more is kept as one.
const maxAside = 32

// An aside is what of a long result is kept where the caller keeps such things.
type aside struct {
	ctx  context.Context
	s    *Server
	tool *remoteTool
	call *tools.Call

	blocks     map[int]tools.ArtifactRef // what stands for a block, by its index
	structured *tools.ArtifactRef
	dropped    bool // the structured content, which is the text once more
	whole      *tools.ArtifactRef
	refs       []tools.ArtifactRef // all of them, in order
}

// keepsAside lets a long answer of a call go to where its caller keeps such
// things; nil when the caller keeps none.
func (s *Server) keepsAside(ctx context.Context, t *remoteTool, opts *mcpwire.CallOptions) *aside {
	call := tools.CallFrom(ctx)
	if s.cfg.Scratch == nil || !call.Offloads() {
		return nil
	}
	a := &aside{ctx: ctx, s: s, tool: t, call: call}
	opts.Long = a.take
	return a
}

// used reports whether anything was kept aside.
func (a *aside) used() bool { return len(a.refs) > 0 }

// take keeps the long parts of a result, and returns the rest.
func (a *aside) take(r *mcpwire.LongResult) (json.RawMessage, error) {
	if len(r.Parts) > maxAside {
		return a.takeWhole(r)
	}
	same, err := a.sameTwice(r)
	if err != nil {
		return nil, a.giveUp(err)
	}
	for _, p := range r.Parts {
		about, content, ok := a.describe(r, p)
		if p.Key == "" || !ok {
			return a.takeWhole(r)
		}
		if same && p.Block < 0 {
			a.dropped = true
			continue
		}
		source := &watched{in: content}
		ref, err := a.call.Offload(a.ctx, about, source)
		var corrupt base64.CorruptInputError
		switch {
		case errors.As(source.err, &corrupt), errors.Is(source.err, io.ErrUnexpectedEOF): // what is no base64
			return a.takeWhole(r)
		case err != nil:
			return nil, a.giveUp(err)
		}
		a.note(p, ref)
	}
	return r.Skeleton, nil
}

// watched remembers why reading failed.
type watched struct {
	in  io.Reader
	err error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// note remembers what stands for a part.
func (a *aside) note(p mcpwire.LongPart, ref tools.ArtifactRef) {
	a.refs = append(a.refs, ref)
	if p.Block < 0 {
		a.structured = &ref
		return
	}
	if a.blocks == nil {
		a.blocks = map[int]tools.ArtifactRef{}
	}
	a.blocks[p.Block] = ref
}

// takeWhole keeps the result as one document, with what cannot be told apart.
func (a *aside) takeWhole(r *mcpwire.LongResult) (json.RawMessage, error) {
	a.retract()
	about := tools.Offload{MIME: "application/json", Name: "result.json"}
	ref, err := a.call.Offload(a.ctx, about, r.JSON(r.Whole()))
	if err != nil {
		return nil, a.giveUp(err)
	}
	a.whole, a.refs = &ref, []tools.ArtifactRef{ref}
	return r.Skeleton, nil
}

// unkept is an answer that could not be kept aside.
type unkept struct{ err error }

func (e *unkept) Error() string { return "the answer could not be kept: " + e.err.Error() }
func (e *unkept) Unwrap() error { return e.err }

// giveUp leaves nothing of the result.
func (a *aside) giveUp(err error) error {
	a.retract()
	return &unkept{err}
}

func (a *aside) retract() {
	if err := a.call.Retract(a.ctx, a.refs...); err != nil {
		a.s.log.Warn("a part of a result that was given up is left", "tool", a.tool.name, "error", err)
	}
	a.refs, a.blocks, a.structured, a.dropped = nil, nil, nil, false
}

// unkeptFailure: the call was made, and its answer is lost.
func (s *Server) unkeptFailure(ctx context.Context, tool string, lost *unkept) *tools.Error {
	e := &tools.Error{Tool: tool, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Err: lost.err}
	if ctx.Err() != nil && errors.Is(lost.err, ctx.Err()) {
		e.Class = "" // whose limit it was is for the caller to judge
	}
	reason := "the call was made, but its large answer could not be kept"
	var told *tools.Error
	if errors.As(lost.err, &told) && told.Code != nil {
		reason += ": " + told.SafeMessage()
	}
	e.Message = s.message(reason)
	return e
}

// finish puts what stands for the parts into the views of the rest. A result that
// cannot be used leaves nothing.
func (a *aside) finish(r tools.ToolResult, err error) (tools.ToolResult, error) {
	if err == nil && r.TaskID != "" {
		err = errNoResult
	}
	if err != nil {
		a.retract()
		if err == errInputRequired {
			err = errNoResult
		}
		return tools.ToolResult{}, err
	}
	if a.whole != nil {
		return tools.ToolResult{Content: []tools.Content{a.whole.Link()}, Meta: r.Meta, IsError: r.IsError, Artifacts: a.refs}, nil
	}
	for i, ref := range a.blocks {
		if i < len(r.Content) {
			r.Content[i] = ref.Link()
		}
	}
	if a.structured != nil {
		r.Content = append(r.Content, a.structured.Link())
	}
	if a.structured != nil || a.dropped {
		r.Structured = nil
	}
	r.Wire, r.WireKind, r.Artifacts = nil, tools.KindTool, a.refs
	r.Value = valueOf(&r)
	return r, nil
}

// describe says what a part is, and reads it. It is false for one that cannot be
// kept by itself.
func (a *aside) describe(r *mcpwire.LongResult, p mcpwire.LongPart) (tools.Offload, io.Reader, bool) {
	if p.Block < 0 {
		return tools.Offload{MIME: "application/json"}, r.JSON(p), true
	}
	if p.List != a.list() { // one that such a result does not have, and that is in no view of it
		return tools.Offload{}, nil, false
	}
	block := a.blockOf(r.Skeleton, p.Block)
	kind, key := blockType(block), p.Key
	if a.tool.kind != tools.KindTool { // a content of a resource
		kind, key = "resource", "resource/"+p.Key
	} else if kind == "resource" {
		block, _ = rawjson.Get(block, "resource")
	}
	about := tools.Offload{MIME: textOf(block, "mimeType"), Name: lastOf(textOf(block, "uri"))}
	switch {
	case kind == "text" && key == "text", kind == "resource" && key == "resource/text":
		content := bufio.NewReaderSize(r.Text(p), textHead)
		if about.MIME == "" {
			about.MIME = textType(content)
		}
		return about, content, true
	case (kind == "image" || kind == "audio") && key == "data", kind == "resource" && key == "resource/blob":
		return about, base64.NewDecoder(base64.StdEncoding, r.Text(p)), true
	}
	return about, nil, false
}

// list is the member of a result that has its blocks.
func (a *aside) list() string {
	if a.tool.kind == tools.KindTool {
		return "content"
	}
	return "contents"
}

// blockOf returns a block of the skeleton.
func (a *aside) blockOf(skeleton json.RawMessage, i int) json.RawMessage {
	blocks, _ := rawjson.Get(skeleton, a.list())
	at := 0
	for it := rawjson.Array(blocks); it.Next(); at++ {
		if at == i {
			return it.Value()
		}
	}
	return nil
}

func textOf(obj json.RawMessage, key string) string {
	raw, _ := rawjson.Get(obj, key)
	text, _ := rawjson.Unquote(raw)
	return text
}

// lastOf returns the last part of a URI, as a file name.
func lastOf(uri string) string {
	uri, _, _ = strings.Cut(uri, "?")
	return uri[strings.LastIndexByte(uri, '/')+1:]
}

// textHead is how much of a text is looked at to tell what it is.
const textHead = 4 << 10

// textType tells JSON from other text by its beginning.
func textType(r *bufio.Reader) string {
	head, _ := r.Peek(textHead) // what there is
	switch kind := rawjson.KindOf(bytes.TrimSpace(head)); kind {
	case rawjson.KindObject, rawjson.KindArray:
		return "" // the store looks closer
	}
	return "text/plain; charset=utf-8"
}
