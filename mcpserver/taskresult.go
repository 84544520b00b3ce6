package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// boundTask makes what a task gave as small as the result of a call, where an
// answer about the task holds it.
func (s *Server) boundTask(ctx context.Context, r *mcpwire.Request, voice *taskVoice, answer json.RawMessage) (json.RawMessage, error) {
	if s.opts.Bounder != nil && r.Method == methodTaskResult {
		return s.boundResult(ctx, r, voice, answer)
	}
	return s.boundInner(ctx, r, voice, answer)
}

// boundInner bounds the result in a message that tells how a task stands.
func (s *Server) boundInner(ctx context.Context, r *mcpwire.Request, voice *taskVoice, message json.RawMessage) (json.RawMessage, error) {
	if s.opts.Bounder == nil {
		return message, nil
	}
	result, ok := rawjson.Get(message, "result")
	if !ok || rawjson.KindOf(result) != rawjson.KindObject {
		return message, nil
	}
	small, err := s.boundResult(ctx, r, voice, result)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(message, "result", small)
}

// boundResult bounds a result as an MCP server sent it. What a task gave is told
// whenever somebody asks, and is stored once.
func (s *Server) boundResult(ctx context.Context, r *mcpwire.Request, voice *taskVoice, wire json.RawMessage) (json.RawMessage, error) {
	name := smallName{voice.seal.name(voice.owner, voice.tool, voice.id), r.Session.Era(), sha256.Sum256(wire)}
	if small, ok := s.tasks.small.find(name); ok && s.stillKept(ctx, small.refs) {
		return small.wire, nil
	}
	res, err := readResult(voice.tool, wire)
	if err != nil {
		return nil, err
	}
	if err := s.bound(ctx, voice.tool, res); err != nil {
		return nil, nativeFailure(ctx, err)
	}
	out, err := encodeResult(res, s.structuredKinds(ctx, r, voice.tool))
	if err == nil && len(res.Artifacts) > 0 {
		s.tasks.small.add(name, smallResult{out, res.Artifacts})
	}
	return out, err
}

// readResult returns the views of a result as an MCP server sent it.
func readResult(tool string, wire json.RawMessage) (*tools.ToolResult, error) {
	res := &tools.ToolResult{Wire: wire, Tool: tool}
	if content, ok := rawjson.Get(wire, "content"); ok {
		if err := json.Unmarshal(content, &res.Content); err != nil {
			return nil, mcpwire.Errorf(mcpwire.CodeInternalError, "the result of the task cannot be read")
		}
	}
	if structured, ok := rawjson.Get(wire, "structuredContent"); ok {
		res.Structured = structured
	}
	failed, _ := rawjson.Get(wire, "isError")
	res.IsError = string(failed) == "true"
	if meta, ok := rawjson.Get(wire, "_meta"); ok {
		res.Meta = map[string]any{}
		for it := rawjson.Object(meta); it.Next(); {
			res.Meta[it.Key()] = json.RawMessage(it.Value())
		}
	}
	return res, nil
}

// stillKept reports whether everything that a small result refers to is there for
// the caller.
func (s *Server) stillKept(ctx context.Context, refs []tools.ArtifactRef) bool {
	for _, ref := range refs {
		if s.opts.Artifacts == nil {
			return false
		}
		if _, err := s.opts.Artifacts.Stat(ctx, ref.Ref); err != nil {
			return false
		}
	}
	return true
}

// A smallName is a result of a task in the form of an era. The client's name of the
// task holds for its owner alone.
type smallName struct {
	task string
	era  mcpwire.Era
	sum  [sha256.Size]byte
}

// A smallResult is what was made of a large result.
type smallResult struct {
	wire json.RawMessage
	refs []tools.ArtifactRef
}

// maxSmall is how many small results are remembered.
const maxSmall = 128

// smallResults remember the last that were made. They are safe for concurrent use.
type smallResults struct {
	mu    sync.Mutex
	by    map[smallName]smallResult
	order []smallName
}

func (m *smallResults) find(name smallName) (smallResult, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.by[name]
	return r, ok
}

func (m *smallResults) add(name smallName, r smallResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[smallName]smallResult{}
	}
	if _, have := m.by[name]; !have {
		m.order = append(m.order, name)
	}
	m.by[name] = r
	if len(m.order) > maxSmall {
		delete(m.by, m.order[0])
		m.order = append(m.order[:0:0], m.order[1:]...)
	}
}
