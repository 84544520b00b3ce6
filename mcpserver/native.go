package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// readResource answers resources/read by a call of the tool behind the
// resource.
func (s *Server) readResource(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	p, err := readURI(r)
	if err != nil {
		return nil, err
	}
	uri := p.name
	if s.opts.Artifacts != nil {
		if args, ours, err := artifactURI(uri); ours {
			if err != nil {
				return nil, err
			}
			return s.readArtifact(ctx, r, uri, args)
		}
	}
	x := s.index(view.From(ctx, s.cat))
	tool, takesURI, ok := s.reads(x, uri)
	if !ok {
		s.parked.dismiss(ctx, r, &p)
		return nil, resourceNotFound(r, uri)
	}
	if takesURI {
		p.arguments = uriArgument(uri)
	}
	return s.converse(ctx, r, &p, func(ctx context.Context) (json.RawMessage, error) {
		res, err := tools.Invoke(ctx, s.cat, tool, p.arguments)
		var e *tools.Error
		switch {
		case errors.As(err, &e) && e.Attempts == 0 && (errors.Is(err, tools.ErrToolNotFound) || errors.Is(err, tools.ErrToolInvalidArgs)):
			return nil, resourceNotFound(r, uri)
		case takesURI && isNoResource(err):
			return nil, resourceNotFound(r, uri)
		case err != nil:
			return nil, nativeFailure(ctx, err)
		}
		result, err := encodeRead(uri, &res)
		if err != nil || r.Session.Era() == mcpwire.EraStateful {
			return result, err
		}
		return withCaching(result, x.limited[tool] || s.opts.Part != nil)
	})
}

// resourceNotFound is the same for a resource that does not exist and for one
// that the caller may not see.
func resourceNotFound(r *mcpwire.Request, uri string) error {
	code := int64(mcpwire.CodeResourceNotFound)
	if r.Session.Era() == mcpwire.EraStateless {
		code = mcpwire.CodeInvalidParams
	}
	return mcpwire.NewError(code, "Resource not found", map[string]string{"uri": shorten(uri, 2048)})
}

// isNoResource reports whether the source of a resource says that there is none.
// Its words are not passed on: they would tell what does not exist from what
// the caller may not see.
func isNoResource(err error) bool {
	var rpc *mcpwire.Error
	return errors.As(err, &rpc) && (rpc.Code == mcpwire.CodeResourceNotFound || rpc.Code == mcpwire.CodeInvalidParams)
}

// getPrompt answers prompts/get by a call of the tool behind the prompt.
func (s *Server) getPrompt(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	p, err := readCall(r)
	if err != nil {
		return nil, err
	}
	found, ok := s.index(view.From(ctx, s.cat)).prompts[p.name]
	if !ok {
		s.parked.dismiss(ctx, r, &p)
		return nil, unknownPrompt(p.name)
	}
	return s.converse(ctx, r, &p, func(ctx context.Context) (json.RawMessage, error) {
		res, err := tools.Invoke(ctx, s.cat, found.tool, p.arguments)
		var e *tools.Error
		switch {
		case errors.As(err, &e) && e.Attempts == 0 && errors.Is(err, tools.ErrToolNotFound):
			return nil, unknownPrompt(p.name)
		case err != nil:
			return nil, nativeFailure(ctx, err)
		}
		return encodePrompt(&res)
	})
}

func unknownPrompt(name string) error {
	return mcpwire.Errorf(mcpwire.CodeInvalidParams, "Unknown prompt: %s", shorten(name, 128))
}

// nativeFailure is the JSON-RPC error for a failed read or prompt, whose results
// cannot say that they are errors.
func nativeFailure(ctx context.Context, err error) error {
	var e *tools.Error
	if !errors.As(err, &e) {
		e = &tools.Error{Class: tools.ClassifyError(err, false), Err: err}
	}
	var rpc *mcpwire.Error
	switch {
	case ctx.Err() != nil:
		return mcpwire.Errorf(mcpwire.CodeRequestCancelled, "request cancelled")
	case e.Code == tools.ErrIdentityRequired && e.Attempts == 0:
		return identityRequired()
	case errors.As(err, &rpc):
		return rpc
	}
	code := int64(mcpwire.CodeInternalError)
	if errors.Is(err, tools.ErrToolInvalidArgs) {
		code = mcpwire.CodeInvalidParams
	}
	text, info := tell(e)
	return mcpwire.NewError(code, text, map[string]any{metaError: info})
}

// encodeRead returns the ReadResourceResult for a tool's result: the very bytes
// that an MCP server sent, or one made of the result's blocks.
func encodeRead(uri string, res *tools.ToolResult) (json.RawMessage, error) {
	if res.IsError {
		return nil, toldError(res)
	}
	if res.Wire != nil && res.WireKind == tools.KindResource {
		return res.Wire, nil
	}
	out := []byte(`{"contents":[`)
	for i, c := range res.Content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, contentOf(uri, c)...)
	}
	if len(res.Content) == 0 {
		text, err := resultText(res)
		if err != nil {
			return nil, err
		}
		out = append(out, textOf(uri, text)...)
	}
	return append(out, "]}"...), nil
}

// contentOf is the content of a resource in a block.
func contentOf(uri string, c tools.Content) []byte {
	if resource, ok := rawjson.Get(c.JSON, "resource"); ok && c.Type == "resource" {
		return resource
	}
	if text, ok := c.Text(); ok {
		return textOf(uri, text)
	}
	out := rawjson.AppendQuoted([]byte(`{"uri":`), uri)
	for _, m := range [][2]string{{"mimeType", "mimeType"}, {"data", "blob"}} {
		if v, ok := rawjson.Get(c.JSON, m[0]); ok {
			out = append(append(rawjson.AppendQuoted(append(out, ','), m[1]), ':'), v...)
		}
	}
	return append(out, '}')
}

func textOf(uri, text string) []byte {
	out := rawjson.AppendQuoted([]byte(`{"uri":`), uri)
	return append(rawjson.AppendQuoted(append(out, `,"text":`...), text), '}')
}

// resultText is a result without blocks, as text.
func resultText(res *tools.ToolResult) (string, error) {
	if text, ok := res.Value.(string); ok {
		return text, nil
	}
	raw, err := res.JSON()
	return string(raw), err
}

// withCaching says for how long and for whom a result may be kept, where its
// source did not: not at all, and for the caller. What is limited to some
// callers is never for everybody, whatever its source says.
func withCaching(result json.RawMessage, limited bool) (json.RawMessage, error) {
	var err error
	if _, ok := rawjson.Get(result, "ttlMs"); !ok {
		result, err = rawjson.Set(result, "ttlMs", []byte("0"))
	}
	if _, ok := rawjson.Get(result, "cacheScope"); err == nil && (limited || !ok) {
		result, err = rawjson.Set(result, "cacheScope", []byte(`"private"`))
	}
	return result, err
}

// encodePrompt returns the GetPromptResult for a tool's result: the very bytes
// that an MCP server sent, or one made of the result's blocks.
func encodePrompt(res *tools.ToolResult) (json.RawMessage, error) {
	if res.IsError {
		return nil, toldError(res)
	}
	if res.Wire != nil && res.WireKind == tools.KindPrompt {
		return res.Wire, nil
	}
	blocks := res.Content
	if len(blocks) == 0 {
		text, err := resultText(res)
		if err != nil {
			return nil, err
		}
		blocks = []tools.Content{tools.TextContent(text)}
	}
	out := []byte("{")
	if text, ok := res.Provider["prompt_description"].(string); ok {
		out = append(rawjson.AppendQuoted(append(out, `"description":`...), text), ',')
	}
	out = append(out, `"messages":[`...)
	roles, _ := res.Provider["prompt_roles"].([]string)
	for i, c := range blocks {
		if i > 0 {
			out = append(out, ',')
		}
		role := "user"
		if i < len(roles) {
			role = roles[i]
		}
		out = rawjson.AppendQuoted(append(out, `{"role":`...), role)
		out = append(append(append(out, `,"content":`...), c.JSON...), '}')
	}
	return append(out, "]}"...), nil
}

// toldError is the error for a tool of ours that was read like a resource and
// answers that it failed.
func toldError(res *tools.ToolResult) error {
	return mcpwire.Errorf(mcpwire.CodeInternalError, "%s", shorten(res.Text(), 2048))
}

// complete answers completion/complete by asking the source of the prompt or
// the resource template.
func (s *Server) complete(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	ref, _ := rawjson.Get(r.Params, "ref")
	if err := checkMembers(r, r.Params, "ref", "argument", "context", "_meta"); err != nil {
		return nil, err
	}
	if err := checkMembers(r, ref, "type", "name", "uri"); err != nil {
		return nil, err
	}
	text := func(key string) string {
		raw, _ := rawjson.Get(ref, key)
		v, _ := rawjson.Unquote(raw)
		return v
	}
	x := s.index(view.From(ctx, s.cat))
	params, tool := r.Params, ""
	switch kind := text("type"); kind {
	case "ref/prompt":
		found, ok := x.prompts[text("name")]
		if !ok {
			return nil, unknownPrompt(text("name"))
		}
		var err error
		if params, err = renamedRef(params, ref, found.source); err != nil {
			return nil, err
		}
		tool = found.tool
	case "ref/resource":
		if tool = x.byForm[text("uri")]; tool == "" {
			tool = x.resources[text("uri")]
		}
		if tool == "" {
			return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "Unknown resource template: %s", shorten(text("uri"), 512))
		}
	default:
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, `%s: the type of "ref" must be ref/prompt or ref/resource`, r.Method)
	}
	companion := s.companion(tool)
	if companion == nil {
		return json.RawMessage(`{"completion":{"values":[]}}`), nil
	}
	peer := newPeer(r, tools.Capabilities{})
	defer peer.close()
	result, err := companion.Complete(tools.WithEntrance(ctx, tools.Entrance{Peer: peer, LogLevel: levelWord(r)}), params)
	if err != nil {
		return nil, nativeFailure(ctx, err)
	}
	return result, nil
}

// renamedRef puts the source's own name of a prompt into the params.
func renamedRef(params, ref json.RawMessage, source string) (json.RawMessage, error) {
	ref, err := rawjson.Set(ref, "name", rawjson.Quote(source))
	if err != nil {
		return nil, fmt.Errorf("the ref of a completion cannot be read: %w", err)
	}
	return rawjson.Set(params, "ref", ref)
}

// companion returns what answers for a tool that the caller sees, or nil.
func (s *Server) companion(tool string) tools.Companion {
	d, ok := s.cat.Resolve(tool)
	if !ok {
		return nil
	}
	return d.Companion
}
