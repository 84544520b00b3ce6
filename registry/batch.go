package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/store"
)

// MaxTogether bounds the claims, or the results, of one question. What comes after
// them gets no verdict.
const MaxTogether = 128

// EncodeTogether returns the payload of a question that holds several messages, each
// of them encoded.
func EncodeTogether(messages [][]byte) []byte {
	size := 2
	for _, m := range messages {
		size += len(m) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, m := range messages {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	return append(out, ']')
}

// DecodeVerdicts reads what answers several claims or results, in their order. Of
// an answer that cannot be read it returns what comes before.
func DecodeVerdicts(payload []byte) []string {
	var verdicts []string
	for list := rawjson.Array(payload); list.Next(); {
		text, ok := rawjson.Unquote(list.Value())
		if !ok {
			break
		}
		verdicts = append(verdicts, text)
	}
	return verdicts
}

// batch is steps of several calls, whose locks it holds until they are written
// together.
type batch struct {
	steps    []batched
	verdicts []string
}

// batched is the step of one call.
type batched struct {
	call *call
	next record
	at   int // of its verdict
}

// settleTogether answers several claims, or several results. It makes only steps
// that are as plain as most are, all in one batch of the store. Whatever else there
// is to a claim or result, it says that it is to be handed in alone: so no other
// waits for it, or fails with it, and it ends as it always does.
func (r *Registry) settleTogether(ctx context.Context, m stream.Message) stream.Message {
	b, verdict := batch{}, string(VerdictRun)
	join := r.joinClaim
	if m.Name == MessageResults {
		verdict, join = MessageOK, r.joinResult
	}
	for list := rawjson.Array(m.Payload); len(b.verdicts) < MaxTogether && list.Next(); {
		b.verdicts = append(b.verdicts, MessageAlone)
		join(&b, list.Value())
	}
	if err := r.write(ctx, &b); err != nil {
		r.log.Debug("the records of calls cannot be written together", "calls", len(b.steps), "error", err)
		b.steps = nil
	}
	for _, s := range b.steps {
		b.verdicts[s.at] = verdict
		if s.next.State == stateDone {
			r.discard(s.call)
		}
	}
	payload, err := json.Marshal(b.verdicts)
	if err != nil {
		return stream.Message{Name: MessageRetry}
	}
	return stream.Message{Name: MessageVerdicts, Payload: payload}
}

// joinClaim adds a claim of a call that no worker has.
func (r *Registry) joinClaim(b *batch, message []byte) {
	var by Claim
	if decode(message, &by) != nil || by.check() != nil || by.Release {
		return
	}
	c := r.known(by.ToolUseID)
	if c == nil || c.toolset != by.Toolset {
		return
	}
	b.join(c, func(rec *record) bool {
		_, _, given := c.give(rec, &by)
		return given
	})
}

// joinResult adds a result of the worker that has the call, or of a call that no
// worker had to claim.
func (r *Registry) joinResult(b *batch, message []byte) {
	res, err := DecodeResult(bytes.Clone(message)) // so that a result that is kept does not keep the others
	if err != nil || res.Receipt == nil || res.Error != nil {
		return
	}
	c := r.known(res.ToolUseID)
	if c == nil || c.noted.Load() < int64(res.Receipt.Notes) {
		return
	}
	b.join(c, func(rec *record) bool {
		ended, _ := c.ends(rec, &res, res.Receipt)
		return ended
	})
}

// join adds a step of a call, if change makes one, and then has the call's lock. A
// call whose lock another has is left out, as whoever has locks waits for none.
func (b *batch) join(c *call, change func(rec *record) bool) {
	if !c.mu.TryLock() {
		return
	}
	next := c.rec
	c.early = false
	if c.fault != nil || !c.recorded || !change(&next) {
		c.mu.Unlock()
		return
	}
	b.steps = append(b.steps, batched{call: c, next: next, at: len(b.verdicts) - 1})
}

// write writes all steps of a batch, or none, and lets go of the calls.
func (r *Registry) write(ctx context.Context, b *batch) error {
	if len(b.steps) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	revisions, err := r.ledger.writeAll(ctx, b.steps)
	for i, s := range b.steps {
		if err == nil {
			s.call.wrote(s.next, revisions[i])
		}
		s.call.removing.Store(false)
		s.call.mu.Unlock()
	}
	return err
}

// writeAll puts records, each under the condition that it is what its call knows,
// in the place of those before.
func (l *ledger) writeAll(ctx context.Context, steps []batched) ([]store.Revision, error) {
	batch := store.Batch{Writes: make([]store.Write, 0, len(steps)), Later: true}
	for i := range steps {
		s := &steps[i]
		w, waits, err := s.call.writes(l, &s.next)
		if err != nil {
			return nil, fmt.Errorf("call %s: %w", s.call.id, err)
		}
		batch.Writes = append(batch.Writes, w)
		batch.Later = batch.Later && !waits
	}
	return l.records.Apply(ctx, batch)
}
