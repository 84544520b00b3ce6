package flow

import (
	"context"
	"errors"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// The event types of flows. A run gives Started, then one NodeEnded for each node
// that ran, then Completed or Failed; BudgetExceeded comes just before the Failed
// that it explains.
const (
	EventTypeStarted   events.EventType = "flow.started"
	EventTypeNodeEnded events.EventType = "flow.node_ended"
	EventTypeCompleted events.EventType = "flow.completed"
	EventTypeFailed    events.EventType = "flow.failed"
	// EventTypeBudgetExceeded: a flow met one of its limits and was ended.
	EventTypeBudgetExceeded events.EventType = "flow.budget_exceeded"
)

// EventDefinitions lists the events of this package, for an events.Registry.
func EventDefinitions() []events.Definition {
	return []events.Definition{
		events.Define[StartedPayload](EventTypeStarted),
		events.Define[NodeEndedPayload](EventTypeNodeEnded),
		events.Define[CompletedPayload](EventTypeCompleted),
		events.Define[FailedPayload](EventTypeFailed),
		events.Define[BudgetExceededPayload](EventTypeBudgetExceeded),
	}
}

// StartedPayload: a run begins, or goes on.
type StartedPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	Flow     string
	// FlowRun is the id of the run.
	FlowRun string
	// Resumed says that it begins where it had ended.
	Resumed bool
}

// NodeEndedPayload: a node of a run is over.
type NodeEndedPayload struct {
	events.SafeSealed
	Identity      identity.Quadruple
	Flow, FlowRun string
	// Node is the node, and Ran the one that ran in its place, or the same.
	Node, Ran string
	Status    Status
	Attempts  int
	Elapsed   time.Duration
}

// CompletedPayload: a run gave its result.
type CompletedPayload struct {
	events.SafeSealed
	Identity      identity.Quadruple
	Flow, FlowRun string
	// Nodes is how many nodes ran.
	Nodes   int
	Elapsed time.Duration
}

// FailedPayload: a run gave no result.
type FailedPayload struct {
	events.SafeSealed
	Identity      identity.Quadruple
	Flow, FlowRun string
	// Node is the node whose failure ended the run, or empty.
	Node       string
	ErrorClass tools.ErrorClass
	// Canceled says that the run was cancelled, and OutcomeUnknown that one of
	// its calls may have had an effect that nobody knows of.
	Canceled, OutcomeUnknown bool
	Nodes                    int
	Elapsed                  time.Duration
}

// BudgetExceededPayload says which flow met which limit.
type BudgetExceededPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	// Flow is the flow that ended, and Budget whose limit it was: a flow's name,
	// or empty for the caller's.
	Flow, FlowRun, Budget string
	Axis                  Axis
	Limit                 float64
	// Elapsed is how long the run had taken.
	Elapsed time.Duration
}

// teller publishes the events of one run. Without a bus or an identity on the
// context it is silent.
type teller struct {
	bus  events.EventBus
	who  identity.Quadruple
	call string
}

func newTeller(ctx context.Context) teller {
	bus, _ := events.From(ctx)
	who, ok := identity.QuadrupleFrom(ctx)
	if !ok {
		return teller{}
	}
	t := teller{bus: bus, who: who}
	if call := tools.CallFrom(ctx); call != nil {
		t.call = call.ID
	}
	return t
}

func (t teller) silent() bool { return t.bus == nil }

// tell publishes. A bus that does not know the event takes nothing from the run.
func (r *run) tell(kind events.EventType, p events.Payload) {
	_ = r.teller.bus.Publish(r.outer, events.Event{Type: kind, Identity: r.teller.who, Tool: r.f.name, CallID: r.teller.call, Payload: p})
}

func (r *run) tellStarted() {
	if !r.teller.silent() {
		r.tell(EventTypeStarted, StartedPayload{Identity: r.teller.who, Flow: r.f.name, FlowRun: r.id, Resumed: r.before != nil})
	}
}

func (r *run) tellNode(o *outcome, status Status) {
	if r.teller.silent() {
		return
	}
	r.tell(EventTypeNodeEnded, NodeEndedPayload{Identity: r.teller.who, Flow: r.f.name, FlowRun: r.id, Node: r.f.nodes[o.of].ID,
		Ran: r.f.nodes[o.node].ID, Status: status, Attempts: o.attempts, Elapsed: o.elapsed})
}

// tellEnd publishes how the run ended.
func (r *run) tellEnd(err error) {
	if r.teller.silent() {
		return
	}
	elapsed := time.Since(r.began)
	if err == nil {
		r.tell(EventTypeCompleted, CompletedPayload{Identity: r.teller.who, Flow: r.f.name, FlowRun: r.id, Nodes: r.ran, Elapsed: elapsed})
		return
	}
	if e, ok := errors.AsType[*BudgetError](err); ok {
		r.tell(EventTypeBudgetExceeded, BudgetExceededPayload{Identity: r.teller.who, Flow: r.f.name, FlowRun: r.id, Budget: e.Flow,
			Axis: e.Axis, Limit: e.Limit, Elapsed: elapsed})
	}
	p := FailedPayload{Identity: r.teller.who, Flow: r.f.name, FlowRun: r.id, ErrorClass: tools.ClassifyError(err, false),
		Canceled: canceled(err), OutcomeUnknown: errors.Is(err, tools.ErrOutcomeUnknown), Nodes: r.ran, Elapsed: elapsed}
	if node, ok := errors.AsType[*NodeError](err); ok && node.Flow == r.f.name {
		p.Node = node.Node
	}
	r.tell(EventTypeFailed, p)
}

// canceled reports whether a run ended because somebody wanted it to.
func canceled(err error) bool { return errors.Is(err, ErrCanceled) || errors.Is(err, context.Canceled) }
