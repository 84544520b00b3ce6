package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// extensionTasks is the extension of the stateless era by which a call may be
// answered with a task. In the stateful era a call asks for one.
const extensionTasks = "io.modelcontextprotocol/tasks"

// takesTasks reports whether the client of a call takes a task in place of a
// result. In the stateful era "task" is an object, and refused otherwise.
func (s *Server) takesTasks(r *mcpwire.Request, p *callParams) (bool, error) {
	task, asks := rawjson.Get(p.extra, "task")
	asks = asks && r.Session.Era() == mcpwire.EraStateful
	if asks && rawjson.KindOf(task) != rawjson.KindObject {
		return false, mcpwire.Errorf(mcpwire.CodeInvalidParams, `%s: "task" must be an object`, r.Method)
	}
	return asks || declaresTasks(r.Session), nil
}

// meant returns the name of the tool that a call is meant for, which is another
// than the one it names where that calls others.
func (s *Server) meant(ctx context.Context, p *callParams) string {
	if d, ok := s.cat.Resolve(p.name); ok {
		if target, _, ok := d.Target(ctx, p.arguments); ok {
			return target
		}
	}
	return p.name
}

func declaresTasks(sess *mcpwire.Session) bool {
	v, ok := rawjson.Get(sess.ClientCapabilities(), "extensions", extensionTasks)
	return ok && rawjson.KindOf(v) == rawjson.KindObject
}

// beginTask answers a call with the task that goes on in place of its result.
func (s *Server) beginTask(ctx context.Context, r *mcpwire.Request, tool string, res *tools.ToolResult) (json.RawMessage, error) {
	if res.Wire == nil || s.taskKeeper(ctx, tool) == nil {
		return nil, mcpwire.Errorf(mcpwire.CodeInternalError, "the tool began a task that cannot be followed")
	}
	voice := &taskVoice{seal: s.tasks.seal, owner: taskOwnerOf(ctx, r), tool: tool, id: res.TaskID}
	s.tasks.add(voice.owner, tool, res.TaskID)
	task, err := s.boundInner(ctx, r, voice, res.Wire)
	if err != nil {
		return nil, err
	}
	return voice.say(task), nil
}

// taskKeeper returns what keeps the tasks of a tool that the caller sees, or
// nil.
func (s *Server) taskKeeper(ctx context.Context, tool string) tools.TaskKeeper {
	if !view.From(ctx, s.cat).Has(tool) {
		return nil
	}
	keeper, _ := s.companion(tool).(tools.TaskKeeper)
	return keeper
}

// serves reports whether a method about tasks exists for the session, or why it
// does not. In the stateless era they are an extension that the client must know.
func servesTasks(r *mcpwire.Request) error {
	old := r.Method == methodListTasks || r.Method == methodTaskResult
	switch stateless := r.Session.Era() == mcpwire.EraStateless; {
	case stateless && old, !stateless && r.Method == methodUpdateTask && !declaresTasks(r.Session):
		return methodNotFound(r)
	case stateless && !declaresTasks(r.Session):
		return missingTasks()
	}
	return nil
}

func missingTasks() error {
	return mcpwire.NewError(mcpwire.CodeMissingCapability, "this needs a client that declares the extension "+extensionTasks,
		map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extensionTasks: struct{}{}}}})
}

// task answers a request about one task by asking the source that has it. A
// task of somebody else is unknown, and so is one whose tool the caller no
// longer sees.
func (s *Server) task(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	if err := servesTasks(r); err != nil {
		return nil, err
	}
	if err := checkMembers(r, r.Params, "taskId", "inputResponses", "_meta"); err != nil {
		return nil, err
	}
	raw, _ := rawjson.Get(r.Params, "taskId")
	name, ok := rawjson.Unquote(raw)
	if !ok {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, `%s: "taskId" must be a string`, r.Method)
	}
	owner := taskOwnerOf(ctx, r)
	tool, id, ok := s.tasks.seal.open(owner, name)
	if !ok {
		return nil, unknownTask(name)
	}
	keeper := s.taskKeeper(ctx, tool)
	if keeper == nil {
		return nil, unknownTask(name)
	}
	voice := &taskVoice{seal: s.tasks.seal, owner: owner, tool: tool, id: id}
	return s.askKeeper(ctx, r, keeper, voice)
}

func unknownTask(name string) error {
	return mcpwire.Errorf(mcpwire.CodeInvalidParams, "Unknown task: %s", shorten(name, 256))
}

// askKeeper passes a request on under the source's name of the task.
func (s *Server) askKeeper(ctx context.Context, r *mcpwire.Request, keeper tools.TaskKeeper, voice *taskVoice) (json.RawMessage, error) {
	params, err := rawjson.Set(r.Params, "taskId", rawjson.Quote(voice.id))
	if err != nil {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s: the params cannot be read", r.Method)
	}
	peer := newPeer(r, s.capabilities(r))
	peer.task = voice
	defer peer.close()
	result, err := keeper.Task(tools.WithEntrance(ctx, s.taskEntrance(r, peer)), r.Method, params)
	if err != nil {
		return nil, nativeFailure(ctx, err)
	}
	if result, err = s.boundTask(ctx, r, voice, result); err != nil {
		return nil, err
	}
	return voice.say(result), nil
}

func (s *Server) taskEntrance(r *mcpwire.Request, peer *peer) tools.Entrance {
	return tools.Entrance{Peer: peer, Capabilities: peer.capabilities, Client: r.Session.ID(), ClientGone: r.Session.Done(),
		LogLevel: levelWord(r), Tasks: declaresTasks(r.Session)}
}
