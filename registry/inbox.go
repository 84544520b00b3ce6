package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
)

// settleRequest answers a worker that claims a call, asks its caller or gives its
// result.
func (r *Registry) settleRequest(ctx context.Context, m stream.Message) stream.Message {
	switch m.Name {
	case MessageAsk:
		return r.asked(m)
	case MessageClaims, MessageResults:
		return r.settleTogether(ctx, m)
	case MessageClaim:
		var c Claim
		if decode(m.Payload, &c) != nil || c.check() != nil {
			return stream.Message{Name: string(VerdictOver)}
		}
		return stream.Message{Name: string(r.claimed(ctx, &c))}
	}
	res, err := DecodeResult(m.Payload)
	if err != nil {
		r.log.Warn("a result cannot be read", "error", err)
		return stream.Message{Name: MessageOK} // sending it again would not help
	}
	if err := r.take(ctx, &res); err != nil {
		r.log.Error("a result cannot be recorded", "call", res.ToolUseID, "error", err)
		return stream.Message{Name: MessageRetry}
	}
	return stream.Message{Name: MessageOK}
}

// check refuses ids that no call, worker or tenant has.
func (c *Claim) check() error {
	for _, id := range []string{c.Instance, c.Token, c.TenantID} {
		if len(id) > MaxIDBytes {
			return fmt.Errorf("%w: an id of a claim has %d bytes; at most %d are allowed", ErrInvalid, len(id), MaxIDBytes)
		}
	}
	return checkToolUseID(c.ToolUseID)
}

// claimed decides about a claim. A worker that another is said to have taken a
// call away from is asked whether it lives; when not, nobody knows what became
// of the call.
func (r *Registry) claimed(ctx context.Context, by *Claim) Verdict {
	c, err := r.find(ctx, by.TenantID, by.ToolUseID)
	if err != nil {
		r.log.Error("the record of a call cannot be read", "call", by.ToolUseID, "error", err)
		return VerdictRetry
	}
	if c == nil || c.toolset != by.Toolset {
		return VerdictOver
	}
	if by.Release {
		if err := c.unclaim(ctx, &r.ledger, by); err != nil {
			return VerdictRetry
		}
		return VerdictOver
	}
	v, held, err := c.claim(ctx, &r.ledger, by)
	if errors.Is(err, errOtherBody) {
		return VerdictOver
	}
	if err != nil {
		r.log.Error("a claim cannot be recorded", "call", by.ToolUseID, "error", err)
		return VerdictRetry
	}
	if v == VerdictHeld && !r.alive(ctx, by.Toolset, held) {
		r.unknown(ctx, c, held)
		if c.over() {
			return VerdictOver
		}
	}
	return v
}

// find returns a call that this process knows of, or that the store has, or nil.
func (r *Registry) find(ctx context.Context, tenant, id string) (*call, error) {
	if c := r.known(id); c != nil {
		return c, nil
	}
	key := callKey(tenant, id)
	rec, rev, err := r.ledger.read(ctx, key)
	if err != nil || rec == nil {
		return nil, err
	}
	return r.adopt(key, rec, rev), nil
}

// adopt makes a call of a record, of which this process did not know.
func (r *Registry) adopt(key store.Key, rec *record, rev store.Revision) *call {
	c := newCall(key.Name, *rec, key)
	c.recorded, c.wait, c.rev = true, true, rev
	c.again = rec.Digest != "" // of which its id was made
	c.waiter.leave()
	c.sending()
	if rec.State == stateDone {
		c.answer(rec.Result)
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.calls[c.id]; other != nil {
		return other
	}
	r.calls[c.id] = c
	return c
}

func (r *Registry) known(id string) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[id]
}

// open returns the calls of now that were sent.
func (r *Registry) open() []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*call, 0, len(r.calls))
	for _, c := range r.calls {
		if c.sent.Load() != 0 {
			list = append(list, c)
		}
	}
	return list
}

// discard forgets a call that is over, whose record is not being removed, and that
// nobody waits for.
func (r *Registry) discard(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.waiters == 0 && !c.removing.Load() && (c.over() || !c.recorded || c.homeless.Load()) && r.calls[c.id] == c {
		delete(r.calls, c.id)
		c.questions.close()
	}
}

// take gives a call its result. A result of a call that is over, or that nobody
// knows of, is done with.
func (r *Registry) take(ctx context.Context, res *ToolResultMessage) error {
	receipt := Receipt{}
	if res.Receipt != nil {
		receipt = *res.Receipt
	}
	c, err := r.find(ctx, receipt.TenantID, res.ToolUseID)
	if err != nil {
		return err
	}
	if c == nil {
		return nil
	}
	if c.token() == receipt.Token {
		r.awaitNotes(ctx, c, receipt.Notes)
	}
	if again, err := c.noRoom(ctx, &r.ledger, res, &receipt); err != nil {
		return err
	} else if again {
		r.publishOverloaded(c, res.Error.RetryAfterMS)
		r.later(c, c.pause(milliseconds(res.Error.RetryAfterMS)))
		return nil
	}
	foreign := false
	err = c.surely(ctx, &r.ledger, func(rec *record) (ended bool) {
		ended, foreign = c.ends(rec, res, &receipt)
		return ended
	})
	if foreign {
		r.log.Warn("a result came from a worker that does not have the call", "toolset", c.toolset, "call", c.id, "instance", receipt.Instance)
	}
	if err == nil {
		r.tell(c, res)
		r.discard(c)
	}
	return err
}

// noRoom reports whether a worker had no room for the call, whose caller waits
// for one that has. A tool that has run and says that it is overloaded gives the
// call its answer like any other.
func (c *call) noRoom(ctx context.Context, l *ledger, res *ToolResultMessage, by *Receipt) (again bool, err error) {
	if !c.wait || res.Error == nil || res.Error.Code != CodeOverloaded || !res.Error.NotDelivered {
		return false, nil
	}
	err = c.surely(ctx, l, func(rec *record) bool {
		again = rec.Token == by.Token && rec.State == stateAccepted
		return false
	})
	return again, err
}

// mostPause bounds the wait before a call is sent again for which no worker had
// room, unless the worker asks for a longer one.
const mostPause = 5 * time.Second

// pause is how long to wait before the call is sent again: what the worker asked
// for, longer each time, and not the same for all, so that the many calls for
// which there is no room do not all come back at once, again and again.
func (c *call) pause(asked time.Duration) time.Duration {
	asked = max(asked, 10*time.Millisecond)
	longer := asked << min(c.turnedAway.Add(1)-1, 10)
	longer = max(asked, min(longer, mostPause))
	return longer + rand.N(longer)
}

// later sends a call again that a worker had no room for, and whose caller
// waits.
func (r *Registry) later(c *call, pause time.Duration) {
	r.background(func(ctx context.Context) {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
			r.mu.Lock()
			ts := r.toolsets[c.toolset]
			r.mu.Unlock()
			if ts != nil {
				r.resend(ctx, ts, []*call{c})
			}
		case <-c.done:
		case <-ctx.Done():
		}
	})
}

// notesTime is how long a result waits for the notes that were sent ahead of it
// and may have been overtaken or lost.
const notesTime = 250 * time.Millisecond

func (r *Registry) awaitNotes(ctx context.Context, c *call, sent int) {
	if c.noted.Load() >= int64(sent) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, notesTime)
	defer cancel()
	for c.noted.Load() < int64(sent) {
		select {
		case <-c.heard:
		case <-ctx.Done():
			return
		}
	}
}

// tell publishes what a result says of the worker.
func (r *Registry) tell(c *call, res *ToolResultMessage) {
	if res.Error == nil || !c.over() {
		return
	}
	switch res.Error.Code {
	case CodeDeadLetter:
		r.publishDead(c, res.Error.Message)
	case CodeOverloaded:
		r.publishOverloaded(c, res.Error.RetryAfterMS)
	}
}

// readResults takes the results that workers left on the stream because no
// registry took them at once.
func (r *Registry) readResults() {
	for {
		e, err := r.results.Receive(r.ctx)
		if err != nil {
			if r.ctx.Err() == nil && !errors.Is(err, stream.ErrClosed) {
				r.log.Error("the stream of results cannot be read", "error", err)
			}
			return
		}
		r.settleEvent(e)
	}
}

func (r *Registry) settleEvent(e stream.Event) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), storeTime)
	defer cancel()
	res, err := DecodeResult(e.Payload)
	if err == nil {
		if err = r.take(ctx, &res); err != nil {
			r.log.Error("a result cannot be recorded", "call", res.ToolUseID, "error", err)
			_ = e.Nack(ctx, time.Second)
			return
		}
	} else {
		r.log.Warn("a result on the stream cannot be read", "error", err)
	}
	if err := e.Ack(ctx); err != nil {
		r.log.Warn("a result cannot be acknowledged and will come again", "error", err)
	}
}
