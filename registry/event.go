package registry

import (
	"context"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
)

// The event types of workers. They carry no identity, but for those that are
// about a call.
const (
	// EventTypeWorkerUp: a worker announced itself, or answers again.
	EventTypeWorkerUp events.EventType = "worker.up"
	// EventTypeWorkerDown: a worker ended, or does not answer.
	EventTypeWorkerDown events.EventType = "worker.down"
	// EventTypeWorkerOverloaded: a worker refused a call because its queue is
	// full.
	EventTypeWorkerOverloaded events.EventType = "worker.overloaded"
	// EventTypeWorkerDeadLetter: a call was given up because no worker could
	// serve it.
	EventTypeWorkerDeadLetter events.EventType = "worker.dead_letter"
	// EventTypeToolsetChanged: another contract took the place of a toolset's.
	EventTypeToolsetChanged events.EventType = "toolset.changed"
)

// EventDefinitions lists the events of this package, for an events.Registry.
func EventDefinitions() []events.Definition {
	return []events.Definition{
		events.Define[WorkerUpPayload](EventTypeWorkerUp),
		events.Define[WorkerDownPayload](EventTypeWorkerDown),
		events.Define[WorkerOverloadedPayload](EventTypeWorkerOverloaded),
		events.Define[WorkerDeadLetterPayload](EventTypeWorkerDeadLetter),
		events.Define[ToolsetChangedPayload](EventTypeToolsetChanged),
	}
}

// WorkerUpPayload: a worker is up.
type WorkerUpPayload struct {
	events.SafeSealed
	Toolset, Instance, Version string
}

// WorkerDownPayload: a worker is down, and why.
type WorkerDownPayload struct {
	events.SafeSealed
	Toolset, Instance, Reason string
}

// WorkerOverloadedPayload: a worker refused a call for lack of room.
type WorkerOverloadedPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	Toolset  string
	ToolName string
	// RetryAfterMS is how long it asked to wait, in milliseconds.
	RetryAfterMS int64
}

// WorkerDeadLetterPayload: a call was given up.
type WorkerDeadLetterPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	Toolset  string
	ToolName string
	Reason   string
}

// ToolsetChangedPayload: a toolset has another contract.
type ToolsetChangedPayload struct {
	events.SafeSealed
	Toolset  string
	Revision int
	Tools    int
}

// publish hands an event to the bus, if there is one. What the bus refuses is
// lost.
func (r *Registry) publish(e events.Event) {
	if r.opts.Bus == nil {
		return
	}
	e.Time = time.Now()
	_ = r.opts.Bus.Publish(context.WithoutCancel(r.ctx), e)
}

func (r *Registry) publishUp(toolset, instance, version string) {
	r.publish(events.Event{Type: EventTypeWorkerUp, Payload: WorkerUpPayload{Toolset: toolset, Instance: instance, Version: version}})
}

func (r *Registry) publishDown(toolset, instance, why string) {
	r.publish(events.Event{Type: EventTypeWorkerDown, Payload: WorkerDownPayload{Toolset: toolset, Instance: instance, Reason: why}})
}

func (r *Registry) publishChanged(toolset string, revision, tools int) {
	r.publish(events.Event{Type: EventTypeToolsetChanged, Payload: ToolsetChangedPayload{Toolset: toolset, Revision: revision, Tools: tools}})
}

func (r *Registry) publishOverloaded(c *call, after int64) {
	who, tool, id := c.about()
	r.publish(events.Event{Type: EventTypeWorkerOverloaded, Identity: who, Tool: tool, CallID: id,
		Payload: WorkerOverloadedPayload{Identity: who, Toolset: c.toolset, ToolName: tool, RetryAfterMS: after}})
}

func (r *Registry) publishDead(c *call, why string) {
	who, tool, id := c.about()
	r.publish(events.Event{Type: EventTypeWorkerDeadLetter, Identity: who, Tool: tool, CallID: id,
		Payload: WorkerDeadLetterPayload{Identity: who, Toolset: c.toolset, ToolName: tool, Reason: why}})
}

// about returns whose call it is, its tool, and the caller's own id of it.
func (c *call) about() (identity.Quadruple, string, string) {
	return c.who, c.tool, c.callID
}
