package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// claim asks for the right to run a call. Without it the call is settled as the
// registry says. heard says that a registry did.
func (w *worker) claim(j *job) (mine, heard bool) {
	m := &j.msg
	verdict, err := w.askClaim(j.ctx, j, false)
	if verdict != registry.VerdictRun && w.isDeaf(m.Route.Inbox) {
		w.tasks.Go(func() { w.takeBack(j) })
	}
	switch {
	case err != nil:
		w.log.Warn("a call cannot be claimed now and goes back", "call", m.ToolUseID, "error", err)
		// The answer may have been lost alone, and then the call is this worker's.
		w.tasks.Go(func() { w.unclaim(j, time.Second) })
		return false, false
	case verdict == registry.VerdictRun:
		return true, true
	case verdict == registry.VerdictOver:
		w.settle(j)
	default:
		w.release(j, time.Second)
	}
	return false, true
}

// unclaim gives a call back that this worker may have claimed, and has not run.
func (w *worker) unclaim(j *job, delay time.Duration) {
	if _, err := w.askClaim(w.work, j, true); err != nil {
		w.log.Warn("the registry cannot be told that a call goes back", "call", j.msg.ToolUseID, "error", err)
	}
	w.release(j, delay)
}

// takeBack tells a process that hangs not to heed a claim which it reads when it goes on:
// it would take the call for one that runs here.
func (w *worker) takeBack(j *job) {
	payload, err := w.encodeClaim(j, true)
	if err == nil {
		_, err = w.askWithin(w.work, deafTime, j.msg.Route.Inbox, stream.Message{Name: registry.MessageClaim, Payload: payload})
	}
	if err != nil {
		w.log.Debug("a registry does not hear that a claim was taken back", "call", j.msg.ToolUseID, "error", err)
	}
}

// askClaim asks for a call, or gives it back.
func (w *worker) askClaim(ctx context.Context, j *job, release bool) (registry.Verdict, error) {
	payload, err := w.encodeClaim(j, release)
	if err != nil {
		return registry.VerdictRetry, err
	}
	answer, err := w.request(ctx, j.msg.Route, stream.Message{Name: registry.MessageClaim, Payload: payload}, string(registry.VerdictRetry))
	return registry.Verdict(answer.Name), err
}

func (w *worker) encodeClaim(j *job, release bool) ([]byte, error) {
	m := &j.msg
	return registry.Encode(registry.Claim{ToolUseID: m.ToolUseID, Toolset: w.toolset, Instance: w.instance, Token: m.Route.Token,
		TenantID: tenant(m), Try: j.try, Release: release})
}

func tenant(m *registry.ToolCallMessage) string {
	if m.Meta == nil {
		return ""
	}
	return m.Meta.TenantID
}

// tries is how often a registry is asked before something else is done.
const tries = 4

// request asks the process that sent the call, or another registry when that
// one is gone, and asks again while the answer is the one named again.
func (w *worker) request(ctx context.Context, route *registry.Route, m stream.Message, again string) (stream.Message, error) {
	err := errors.New("no registry answers")
	pause := 50 * time.Millisecond
	for range tries {
		var answer stream.Message
		if answer, err = w.ask(ctx, route, m); err == nil && answer.Name != again {
			return answer, nil
		}
		if err == nil {
			err = errors.New("the registry cannot write its record now")
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return stream.Message{}, ctx.Err()
		}
		pause *= 4
	}
	return stream.Message{}, err
}

// A claim that its process does not answer in time goes to another registry too,
// so that a gateway that hangs does not keep the calls of others waiting. A result
// waits on a stream instead.
func (w *worker) ask(ctx context.Context, route *registry.Route, m stream.Message) (stream.Message, error) {
	elsewhere := route.Shared != "" && m.Name == registry.MessageClaim
	if elsewhere && w.isDeaf(route.Inbox) {
		return w.askWithin(ctx, deafTime, route.Shared, m)
	}
	answer, err := w.askWithin(ctx, busTime, route.Inbox, m)
	switch {
	case err == nil || route.Shared == "" || ctx.Err() != nil:
		return answer, err
	case errors.Is(err, stream.ErrNoResponder):
		return w.askWithin(ctx, busTime, route.Shared, m)
	case elsewhere && errors.Is(err, context.DeadlineExceeded):
		w.deafened(route.Inbox)
		return w.askWithin(ctx, deafTime, route.Shared, m)
	}
	return answer, err
}

func (w *worker) askWithin(ctx context.Context, d time.Duration, subject string, m stream.Message) (stream.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	answer, err := w.client.Request(ctx, subject, m)
	if err == nil {
		w.hindrances.end(toAsk)
	}
	return answer, err
}

const (
	// deafTime bounds a question to any registry, of which one may be the process
	// that does not answer.
	deafTime = time.Second
	// deafFor is how long a process that did not answer is not asked.
	deafFor = 15 * time.Second
	// maxDeaf bounds how many such processes are remembered.
	maxDeaf = 1000
)

func (w *worker) deafened(inbox string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.deaf) >= maxDeaf {
		clear(w.deaf)
	}
	w.deaf[inbox] = time.Now()
}

func (w *worker) isDeaf(inbox string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, known := w.deaf[inbox]
	if known && time.Since(since) > deafFor {
		delete(w.deaf, inbox)
		return false
	}
	return known
}

// answer gives the call its result, and settles it once that has arrived. Until
// then the worker has the call, so that it is not run again here. A result that
// somebody must confirm arrives later than answer returns.
func (w *worker) answer(j *job, res registry.ToolResultMessage) {
	w.served.Add(1)
	if res.Error != nil {
		w.failed.Add(1)
	}
	payload := w.encode(j, res)
	switch r := j.msg.Route; {
	case r == nil: // It may wait for room on the stream of its caller.
		w.tasks.Go(func() { w.handIn(j, payload) })
	case r.Confirm:
		w.hand(&question{job: j, payload: payload})
	default: // It is sent, and not waited for.
		w.handIn(j, payload)
	}
}

// handIn brings a result to its place, and settles its call.
func (w *worker) handIn(j *job, payload []byte) {
	if err := w.deliver(&j.msg, payload); err != nil {
		w.log.Error("an answer cannot be delivered", "call", j.msg.ToolUseID, "error", err)
		if w.work.Err() != nil {
			j.cancel()
			return // the call goes back when its lease ends
		}
		w.keepDead(j.leases[0], "its answer could not be delivered: "+err.Error())
	}
	w.ran(j)
	w.settle(j)
}

// encode makes the bytes of an answer; one that cannot be made, or is too large,
// becomes an error.
func (w *worker) encode(j *job, res registry.ToolResultMessage) []byte {
	m := &j.msg
	res.ToolUseID = m.ToolUseID
	if m.Route != nil {
		res.Receipt = &registry.Receipt{Instance: w.instance, Token: m.Route.Token, TenantID: tenant(m), Notes: j.out.count()}
	}
	payload, err := registry.Encode(res)
	if err == nil && len(payload) <= w.client.MaxPayload() {
		return payload
	}
	e := &registry.ToolError{Code: registry.CodeResultTooLarge, Class: "permanent",
		Message: fmt.Sprintf("the result takes %d bytes, and the stream takes at most %d", len(payload), w.client.MaxPayload())}
	if err != nil {
		e = &registry.ToolError{Code: registry.CodeInvalidOutput, Class: "permanent", Message: "the result is not JSON"}
	}
	res = registry.ToolResultMessage{ToolUseID: m.ToolUseID, Receipt: res.Receipt, Error: e}
	payload, _ = registry.Encode(res) // texts and numbers always encode
	return payload
}

// deliver brings an answer to the process that waits for it, or else to the
// stream that keeps it for whoever takes that process's place. It tries until the
// worker ends.
func (w *worker) deliver(m *registry.ToolCallMessage, payload []byte) error {
	message := stream.Message{Name: w.opts.ResultEventType, Payload: payload}
	if m.Route != nil && !m.Route.Confirm {
		w.hindrances.try(toPublish)
		return w.client.Publish(w.work, registry.NotesSubject(m.Route.Inbox), message)
	}
	if m.Route != nil {
		if answer, err := w.request(w.work, m.Route, message, registry.MessageRetry); err == nil && answer.Name == registry.MessageOK {
			return nil
		}
	}
	return w.leaveOnStream(w.work, m, message)
}

// roomTime is how long an answer waits for room on a stream that only its caller
// reads. Registries read theirs, and their calls wait as long as it takes.
const roomTime = 5 * time.Second

// leaveOnStream adds an event to the stream that takes a call's answer, and tries
// again while the backend is away.
func (w *worker) leaveOnStream(ctx context.Context, m *registry.ToolCallMessage, message stream.Message) error {
	pause, began := 100*time.Millisecond, time.Now()
	for {
		err := w.addReply(ctx, m, message)
		if err == nil || ctx.Err() != nil || errors.Is(err, stream.ErrTooLarge) || errors.Is(err, stream.ErrInvalid) || errors.Is(err, stream.ErrClosed) || errors.Is(err, stream.ErrForbidden) {
			return err
		}
		if m.Route == nil && errors.Is(err, stream.ErrFull) && time.Since(began) > roomTime {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		pause = min(2*pause, busTime)
	}
}

func (w *worker) addReply(ctx context.Context, m *registry.ToolCallMessage, message stream.Message) error {
	name, opts := m.ReplyTo, (*stream.Options)(nil)
	if name == "" {
		name, opts = registry.ResultStream(m.ToolUseID), &stream.Options{TTL: registry.ResultTTL}
	}
	ctx, cancel := context.WithTimeout(ctx, busTime)
	defer cancel()
	s, err := w.client.Stream(ctx, name, opts)
	if err != nil {
		return err
	}
	if _, err = s.Add(ctx, message.Name, message.Payload); err == nil && m.Route != nil {
		w.hindrances.end(toLeave)
	}
	return err
}

// settle acknowledges calls, which have ended.
func (w *worker) settle(jobs ...*job) {
	if len(jobs) == 0 {
		return
	}
	ctx, cancel := w.brief()
	defer cancel()
	w.hindrances.try(toTake)
	for _, j := range jobs {
		w.forget(j)
		j.cancel()
		if err := j.each(func(e stream.Event) error { return e.Ack(ctx) }); err != nil {
			w.log.Warn("a call cannot be acknowledged and will come again", "call", j.msg.ToolUseID, "error", err)
		}
	}
}

// poison puts what cannot be read aside, and tells whoever sent it as far as
// that can be read.
func (w *worker) poison(e stream.Event, m registry.ToolCallMessage, fault error) {
	w.log.Error("a message on the request stream cannot be served", "event", e.ID, "error", fault)
	w.keepDead(e, "it cannot be served: "+strings.TrimPrefix(fault.Error(), registry.ErrInvalid.Error()+": "))
	w.tellDead(e, m, &registry.ToolError{Code: registry.CodeInvalidMessage, Class: "permanent", NotDelivered: true, Message: fault.Error()})
	ctx, cancel := w.brief()
	defer cancel()
	if err := e.Ack(ctx); err != nil {
		w.log.Warn("a message cannot be acknowledged and will come again", "event", e.ID, "error", err)
	}
}

// dead gives up a call that several workers had and none answered.
func (w *worker) dead(_ context.Context, e stream.Event) error {
	m, err := registry.DecodeCall(e.Payload)
	if err == nil && m.Type == registry.TypePing {
		return nil
	}
	e.Deliveries-- // the last was that to be given up
	w.log.Error("a call is given up", "call", m.ToolUseID, "tool", m.Tool, "deliveries", e.Deliveries)
	w.keepDead(e, fmt.Sprintf("it was given to workers %d times, and none answered it", e.Deliveries))
	w.tellDead(e, m, &registry.ToolError{Code: registry.CodeDeadLetter, Class: "permanent",
		Message: fmt.Sprintf("the call was given to workers %d times, and none answered it", e.Deliveries)})
	return nil
}

// tellDead answers an event that is given up.
func (w *worker) tellDead(e stream.Event, m registry.ToolCallMessage, why *registry.ToolError) {
	if m.ToolUseID == "" || len(m.ToolUseID) > registry.MaxToolUseIDBytes || m.Type == registry.TypePing {
		return
	}
	j := w.newJob(e, m)
	defer j.cancel()
	if err := w.deliver(&j.msg, w.encode(j, registry.ToolResultMessage{Error: why})); err != nil {
		w.log.Error("the caller of a dead letter cannot be told", "call", m.ToolUseID, "error", err)
	}
}

// keepDead puts an event on the toolset's stream of dead letters, with why it is given
// up.
func (w *worker) keepDead(e stream.Event, why string) {
	ctx, cancel := w.brief()
	defer cancel()
	note := registry.DeadNote{Reason: why, Deliveries: e.Deliveries, Instance: w.instance}
	if err := registry.KeepDead(ctx, w.client, w.toolset, e.Name, e.Payload, note); err != nil {
		w.log.Error("a dead letter cannot be kept", "event", e.ID, "error", err)
	}
}
