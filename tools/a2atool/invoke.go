package a2atool

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/log"

	"github.com/toolcrib/toolcrib/internal/httpfault"
	"github.com/toolcrib/toolcrib/tools"
)

// cancelWait bounds the request that cancels a task nobody waits for.
const cancelWait = 10 * time.Second

// maxRounds bounds how often one call answers questions of the agent.
const maxRounds = 20

// invoker returns the innermost step of a call: one attempt.
func (p *Peer) invoker(s *skill) tools.Invoker {
	return func(ctx context.Context, raw json.RawMessage) (tools.ToolResult, error) {
		args, err := read(raw)
		if err != nil {
			return tools.ToolResult{}, invalid(s.name, err)
		}
		parts, err := args.parts()
		if err != nil {
			return tools.ToolResult{}, invalid(s.name, err)
		}
		a, err := p.current(ctx)
		if err != nil {
			return tools.ToolResult{}, err
		}
		defer a.release()
		begun, err := p.memory.begin(ctx, args.ContextID)
		if err != nil {
			return tools.ToolResult{}, invalid(s.name, err)
		}
		x := &exchange{peer: p, agent: a, skill: s, call: tools.CallFrom(ctx)}
		return x.run(log.AttachLogger(ctx, p.log), begun, parts)
	}
}

// An exchange is one call's dealings with the agent: a message, what the agent
// does about it, and the answers to its questions. It belongs to one goroutine.
type exchange struct {
	peer  *Peer
	agent *agent
	skill *skill
	call  *tools.Call

	task    *a2a.Task    // as last heard of, or nil
	message *a2a.Message // the agent's answer without a task, or nil
	heard   bool         // something came in answer to the last message

	answered question // what the last message answers, if anything
	notes    float64  // how many notes of progress were passed on
}

// run sends the message and goes on until there is an answer.
func (x *exchange) run(ctx context.Context, begun thread, parts []*a2a.Part) (tools.ToolResult, error) {
	result, err := x.converse(ctx, begun, parts)
	if begun.task != "" && errors.Is(err, a2a.ErrTaskNotFound) && x.task == nil {
		begun = thread{context: begun.context} // the agent has forgotten it, so the message was not acted upon
		result, err = x.converse(ctx, begun, parts)
	}
	switch t := x.thread(); {
	case t.context != "":
		x.peer.memory.end(ctx, t)
	case unknown(err):
		x.peer.memory.forget(ctx, begun.context)
	case err != nil && begun.task != "":
		x.peer.memory.end(ctx, begun) // the task still waits
	}
	if err != nil && ctx.Err() != nil {
		x.cancel(ctx)
	}
	return result, err
}

// unknown reports whether an agent may have refused a message because it no
// longer knows the conversation. Then the next call begins another.
func unknown(err error) bool {
	return errors.Is(err, a2a.ErrTaskNotFound) || errors.Is(err, a2a.ErrInvalidParams) || errors.Is(err, a2a.ErrInvalidRequest)
}

// thread is what the session goes on with after the call.
func (x *exchange) thread() thread {
	switch {
	case x.message != nil:
		return thread{context: x.message.ContextID}
	case x.task == nil:
		return thread{}
	case waits(x.task.Status.State):
		return thread{context: x.task.ContextID, task: x.task.ID, asked: questionOf(x.task.Status)}
	}
	return thread{context: x.task.ContextID}
}

// converse sends the message, and the answers to what the agent asks.
func (x *exchange) converse(ctx context.Context, begun thread, parts []*a2a.Part) (tools.ToolResult, error) {
	msg := a2a.NewMessage(a2a.MessageRoleUser, parts...)
	msg.ContextID, msg.TaskID, x.answered = begun.context, begun.task, begun.asked
	msg.Metadata = map[string]any{"skillId": x.skill.id}
	if x.call != nil && x.call.IdempotencyKey != "" {
		msg.ID = x.call.IdempotencyKey // by which an agent tells a message that it has had
	}
	for range maxRounds {
		if err := x.deliver(ctx, msg); err != nil {
			return tools.ToolResult{}, err
		}
		if x.message != nil || x.task.Status.State != a2a.TaskStateInputRequired {
			return x.result()
		}
		answer, err := x.ask(ctx)
		switch {
		case errors.Is(err, tools.ErrAskUnsupported):
			return x.unasked(ctx), nil
		case errors.Is(err, errDeclined):
			x.cancel(ctx)
			return x.declined(), nil
		case err != nil:
			x.cancel(ctx)
			return tools.ToolResult{}, err
		}
		x.answered = questionOf(x.task.Status)
		msg = a2a.NewMessageForTask(a2a.MessageRoleUser, x.task, answer...)
	}
	x.cancel(ctx)
	return tools.ToolResult{}, x.peer.answerFailure(x.skill.name, errors.New("it asks for input again and again"))
}

// cancel asks the agent to give up the task, beside the call.
func (x *exchange) cancel(ctx context.Context) {
	if x.task == nil || x.task.Status.State.Terminal() {
		return
	}
	id, a := x.task.ID, x.agent
	x.task.Status.State = a2a.TaskStateCanceled
	a.use()
	ctx = context.WithoutCancel(ctx)
	x.peer.aside(func() {
		defer a.release()
		ctx, cancel := context.WithTimeout(ctx, cancelWait)
		defer cancel()
		if _, err := a.client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: id}); err != nil {
			x.peer.log.Debug("a task was not cancelled", "task", string(id), "error", httpfault.BareText(err))
		}
	})
}

// waits reports whether a task stands still until its caller does something.
func waits(s a2a.TaskState) bool {
	return s == a2a.TaskStateInputRequired || s == a2a.TaskStateAuthRequired
}
