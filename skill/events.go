package skill

import (
	"context"
	"errors"
	"time"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// The event types of skills. An execution gives Started, then one StepEnded for
// each step that ran, then Completed or Failed.
const (
	EventTypeStarted   events.EventType = "skill.started"
	EventTypeStepEnded events.EventType = "skill.step_ended"
	EventTypeCompleted events.EventType = "skill.completed"
	EventTypeFailed    events.EventType = "skill.failed"
)

// EventDefinitions lists the events of this package, for an events.Registry.
func EventDefinitions() []events.Definition {
	return []events.Definition{
		events.Define[StartedPayload](EventTypeStarted),
		events.Define[StepEndedPayload](EventTypeStepEnded),
		events.Define[CompletedPayload](EventTypeCompleted),
		events.Define[FailedPayload](EventTypeFailed),
	}
}

// StartedPayload: an execution begins.
type StartedPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	Skill    string
	// Steps is how many there are.
	Steps int
}

// StepEndedPayload: a step is over.
type StepEndedPayload struct {
	events.SafeSealed
	Identity            identity.Quadruple
	Skill, Step, ToolID string
	Failed              bool
	Elapsed             time.Duration
}

// CompletedPayload: every step ran.
type CompletedPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	Skill    string
	Elapsed  time.Duration
}

// FailedPayload: an execution ended early.
type FailedPayload struct {
	events.SafeSealed
	Identity identity.Quadruple
	// Step is the step that failed, or empty.
	Skill, Step string
	ErrorClass  tools.ErrorClass
	// OutcomeUnknown says that a call may have had an effect that nobody knows
	// of.
	OutcomeUnknown bool
	Elapsed        time.Duration
}

// teller publishes the events of one execution. Without a bus or an identity on
// the context it is silent.
type teller struct {
	bus         events.EventBus
	who         identity.Quadruple
	skill, call string
	began       time.Time
}

func newTeller(ctx context.Context, skill string) *teller {
	bus, _ := events.From(ctx)
	who, ok := identity.QuadrupleFrom(ctx)
	if bus == nil || !ok {
		return nil
	}
	t := &teller{bus: bus, who: who, skill: skill, began: time.Now()}
	if call := tools.CallFrom(ctx); call != nil {
		t.call = call.ID
	}
	return t
}

// tell publishes. A bus that does not know the event takes nothing from the
// execution.
func (t *teller) tell(ctx context.Context, kind events.EventType, p events.Payload) {
	_ = t.bus.Publish(ctx, events.Event{Type: kind, Identity: t.who, Tool: t.skill, CallID: t.call, Payload: p})
}

func (t *teller) started(ctx context.Context, steps int) {
	if t != nil {
		t.tell(ctx, EventTypeStarted, StartedPayload{Identity: t.who, Skill: t.skill, Steps: steps})
	}
}

func (t *teller) step(ctx context.Context, r *StepResult, began time.Time) {
	if t != nil {
		t.tell(ctx, EventTypeStepEnded, StepEndedPayload{Identity: t.who, Skill: t.skill, Step: r.StepID, ToolID: r.ToolID,
			Failed: r.Err != nil, Elapsed: time.Since(began)})
	}
}

func (t *teller) end(ctx context.Context, err error) {
	if t == nil {
		return
	}
	elapsed := time.Since(t.began)
	if err == nil {
		t.tell(ctx, EventTypeCompleted, CompletedPayload{Identity: t.who, Skill: t.skill, Elapsed: elapsed})
		return
	}
	p := FailedPayload{Identity: t.who, Skill: t.skill, ErrorClass: tools.ClassifyError(err, false),
		OutcomeUnknown: errors.Is(err, tools.ErrOutcomeUnknown), Elapsed: elapsed}
	if failed, ok := errors.AsType[*StepError](err); ok {
		p.Step = failed.StepID
	}
	t.tell(ctx, EventTypeFailed, p)
}
