package registry

import (
	"context"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

const (
	// tendEvery is how often open calls are looked over.
	tendEvery = 2 * time.Second
	// lostAfter is after how long a call that no worker has may have been lost by
	// the stream.
	lostAfter = 5 * time.Second
	// lateness is how long after its deadline a call is ended for its worker.
	lateness = 2 * time.Second
	// orphans bounds how many records of other processes are taken up at once.
	orphans = 500
)

// tendForever sees to it that every call ends, also those of processes that are
// gone, and that what the stream lost is sent again.
func (r *Registry) tendForever() {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			r.tend(r.ctx)
		}
	}
}

func (r *Registry) tend(ctx context.Context) {
	r.forgetAbsent()
	r.takeUp(ctx)
	unsent := map[string][]*call{}
	lives := map[string]bool{} // of workers, each of which is asked once
	for _, c := range r.open() {
		if r.abandoned(c) || r.overdue(ctx, c) {
			continue
		}
		r.follow(ctx, c)
		s, instance, _ := c.view()
		switch {
		case c.over():
			r.discard(c)
		case s == stateClaimed && (c.orphaned(r) || !r.watches(c.toolset, instance)) && !r.lives(ctx, lives, c.toolset, instance):
			r.unknown(ctx, c, instance)
		case s == stateAccepted && c.sentAgo() > lostAfter:
			unsent[c.toolset] = append(unsent[c.toolset], c)
		}
	}
	for name, list := range unsent {
		r.mend(ctx, name, list)
	}
}

// lives is alive, asked once for each worker.
func (r *Registry) lives(ctx context.Context, known map[string]bool, toolset, id string) bool {
	subject := InstanceSubject(toolset, id)
	if _, asked := known[subject]; !asked {
		known[subject] = r.alive(ctx, toolset, id)
	}
	return known[subject]
}

// watches reports whether this process pings a worker that answered so far, so that
// its death will be seen, or the worker is one that cannot be asked.
func (r *Registry) watches(toolset, id string) bool {
	r.mu.Lock()
	ts := r.toolsets[toolset]
	r.mu.Unlock()
	return ts.isUp(id) || ts != nil && ts.hasUnnamed()
}

// orphaned reports whether nobody in this process waits for the call, so that
// the death of its worker may have gone unseen.
func (c *call) orphaned(r *Registry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.waiters == 0
}

// abandoned forgets a call that could not be recorded and that nobody waits for any
// more, and reports whether it is one. It was never let run, and is not sent again.
func (r *Registry) abandoned(c *call) bool {
	if !c.homeless.Load() {
		return false
	}
	r.discard(c)
	return true
}

// overdue ends a call whose deadline is past, and reports whether it is.
func (r *Registry) overdue(ctx context.Context, c *call) bool {
	s, _, deadline := c.view()
	if time.Since(deadline) < lateness || c.over() {
		return false
	}
	var err error
	if s == stateClaimed {
		err = c.finish(ctx, &r.ledger, failed(c.id, &ToolError{Code: CodeOutcomeUnknown, Class: "timeout", OutcomeUnknown: true,
			Message: "the worker that ran the call gave no answer in time"}))
	} else {
		_, err = c.finishUnclaimed(ctx, &r.ledger, failed(c.id, &ToolError{Code: CodeExpired, NotDelivered: c.recorded,
			Message: "its time was over before a worker had it"}))
	}
	if err != nil {
		r.log.Error("the end of a call cannot be recorded", "toolset", c.toolset, "call", c.id, "error", err)
	}
	r.discard(c)
	return true
}

// takeUp adopts open calls whose process is gone. Those of processes that are
// not may be adopted too: the record decides, whoever writes it.
func (r *Registry) takeUp(ctx context.Context) {
	due, err := r.ledger.records.Due(ctx, callCollection, orphans)
	if err != nil {
		if ctx.Err() == nil {
			r.log.Error("the records of calls cannot be read", "error", err)
		}
		return
	}
	for _, d := range due {
		if c := r.known(d.Key.Name); c != nil {
			r.look(ctx, c)
			continue
		}
		rec, err := decodeRecord(d.Value)
		if err != nil {
			r.log.Error("the record of a call cannot be read", "call", d.Key.Name, "error", err)
			continue
		}
		r.adopt(d.Key, rec, d.Revision)
	}
}

// look notices when another process ended the call, and has the store tell again
// later that it is open.
func (r *Registry) look(ctx context.Context, c *call) {
	err := c.refresh(ctx, &r.ledger)
	if err == nil && !c.over() {
		err = c.step(ctx, &r.ledger, func(rec *record) bool { return rec.State != stateDone })
	}
	if err != nil {
		r.log.Error("the record of a call cannot be kept up", "call", c.id, "error", err)
	}
}

// unseen is after how long the record of a call that is open here is read: sooner it
// would have been due, if it were open.
const unseen = lookAfter + 2*tendEvery

// follow notices when another process ended the call, of which nobody tells this one.
// Where the call is under way through the other one it is looked for each time.
func (r *Registry) follow(ctx context.Context, c *call) {
	if c.over() || c.seenAgo() < unseen && !c.wasFound() {
		return
	}
	if err := c.refresh(ctx, &r.ledger); err != nil && ctx.Err() == nil {
		r.log.Error("the record of a call cannot be read", "call", c.id, "error", err)
	}
}

// mend looks for calls that the stream has lost, among those that were sent a
// while ago and that no worker has claimed. When the stream holds nothing, all of
// them are. When nothing waits on it, workers hold what is left: they are asked
// which, and what none of them has is sent again.
func (r *Registry) mend(ctx context.Context, name string, list []*call) {
	r.mu.Lock()
	ts := r.toolsets[name]
	r.mu.Unlock()
	if ts == nil {
		return
	}
	s, err := ts.stream(ctx)
	if err != nil {
		return // the backend is away
	}
	size, err := s.Size(ctx)
	if err != nil || size.Waiting > 0 {
		return
	}
	if size.Held > 0 {
		if ts.hasUnnamed() {
			return // they cannot be asked
		}
		list = r.giveUp(ctx, name, r.probe(ctx, name, list))
	}
	if len(list) > 0 {
		r.log.Warn("calls were lost and are sent again", "toolset", name, "calls", len(list))
		r.resend(ctx, ts, list)
	}
}

// hasUnnamed reports whether workers serve the toolset that cannot be asked.
func (ts *toolset) hasUnnamed() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.agreed.Unnamed
}

// probe asks the toolset's workers which of the calls they have, and returns those
// of which none said so since it was asked before.
func (r *Registry) probe(ctx context.Context, name string, list []*call) (lost []*call) {
	var ids []string
	for _, c := range list {
		if c.probed.Load() {
			lost = append(lost, c)
		} else if len(ids) < probeAtOnce {
			ids = append(ids, c.id)
			c.probed.Store(true)
		}
	}
	if len(ids) == 0 {
		return lost
	}
	payload, err := Encode(Probe{ToolUseIDs: ids, Inbox: r.inbox})
	if err == nil {
		err = r.client.Publish(ctx, CancelSubject(name), stream.Message{Name: MessageProbe, Payload: payload})
	}
	if err != nil {
		r.log.Warn("the workers cannot be asked for their calls", "toolset", name, "error", err)
	}
	return lost
}

// mostLost is how often a harmless call is sent again that workers took and have no
// more, before it is held to be what ended them.
const mostLost = 3

// giveUp ends the calls that are not to be sent again, keeps them as dead letters, and
// returns the others. One that is claimed before it runs has ended at most one worker.
func (r *Registry) giveUp(ctx context.Context, toolset string, lost []*call) (others []*call) {
	for _, c := range lost {
		if c.message == nil || c.message.Route.Claim || c.lost.Add(1) <= mostLost {
			others = append(others, c)
			continue
		}
		sends := mostLost + 1
		why := fmt.Sprintf("it was given to workers %d times, and none answered it or has it any more", sends)
		r.log.Error("a call is given up", "toolset", toolset, "tool", c.tool, "call", c.id, "sent", sends)
		payload, err := Encode(c.message)
		if err == nil {
			err = KeepDead(ctx, r.client, toolset, TypeCall, payload, DeadNote{Reason: why, Deliveries: sends})
		}
		if err != nil {
			r.log.Error("a dead letter cannot be kept", "toolset", toolset, "call", c.id, "error", err)
		}
		res := failed(c.id, &ToolError{Code: CodeDeadLetter, Class: "permanent", Message: why})
		if err := c.finish(ctx, &r.ledger, res); err != nil {
			r.log.Error("the end of a call cannot be recorded", "toolset", toolset, "call", c.id, "error", err)
		}
		r.tell(c, res)
		r.discard(c)
	}
	return others
}

// probeAtOnce bounds how many calls are asked for in one message.
const probeAtOnce = 1000

// resend puts calls that no worker has on the stream again, as calls of this
// process.
func (r *Registry) resend(ctx context.Context, ts *toolset, list []*call) {
	for _, c := range list {
		c.mu.Lock()
		m, s := c.rec.Message, c.rec.State
		c.mu.Unlock()
		if m == nil || s != stateAccepted {
			continue
		}
		again, route := *m, *m.Route
		route.Inbox, route.Again = r.inbox, !c.recorded
		again.Route = &route
		if err := r.add(ctx, ts, &again, c); err != nil {
			return // it is tried again when it has been away for long enough
		}
	}
}
