package registry

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
)

// call is one attempt at a call while this process knows of it.
type call struct {
	id      string
	toolset string
	tool    string
	callID  string             // the caller's own id
	who     identity.Quadruple // whose call it is
	key     store.Key
	wait    bool // for a worker, when none is up
	again   bool // its id is the same whenever its caller asks for it
	// deadline is until when its caller here waits.
	deadline time.Time
	// message is what this process sends, or has sent, to ask for it; nil for one of
	// which it knows from the store alone.
	message *ToolCallMessage
	// recorded says that the store keeps it, and only then is rec kept up.
	recorded bool

	mu  sync.Mutex // serializes the steps of the record
	rec record
	// rev is that of the record in the store, which is store.Absent until the
	// first step is written.
	rev   store.Revision
	found bool  // there was a record of it before this process wrote one
	fault error // why the store cannot have it
	early bool  // whoever waits gets the result at once, and the record is removed
	// removing says that whoever waits has the result, and that the record is being removed.
	removing atomic.Bool
	waiter   waiter // of a call that nobody else can ask for
	// released are the last tries by which workers gave the call back here.
	released map[string]int
	// refused is closed when there is a fault.
	refused chan struct{}

	// turnedAway counts how often a worker had no room.
	turnedAway atomic.Int32
	// lost counts how often no worker had it that had taken it from the stream.
	lost atomic.Int32

	sent     atomic.Int64 // when it was put on the stream, in Unix nanoseconds, or 0
	seen     atomic.Int64 // when this process last wrote or read its record, in Unix nanoseconds
	probed   atomic.Bool  // workers were asked for it since then
	homeless atomic.Bool  // fault is not nil

	result ToolResultMessage // once done is closed
	done   chan struct{}
	notes  notes
	noted  atomic.Int64
	heard  chan struct{} // holds one: a note came
	// waiters are callers that wait for the result; guarded by the registry.
	waiters int

	// proof is the token of the record, for those who must not wait for its steps.
	proof atomic.Pointer[string]

	questions *questions // of the worker; nil when the caller cannot be asked
}

// storeTime bounds a step of the record, which must not depend on how long a
// caller is willing to wait.
const storeTime = 30 * time.Second

func newCall(id string, rec record, key store.Key) *call {
	c := &call{id: id, toolset: rec.Toolset, tool: rec.Tool, deadline: rec.Deadline, message: rec.Message, key: key, rec: rec, done: make(chan struct{}),
		notes: notes{come: make(chan struct{}, 1)}, heard: make(chan struct{}, 1), refused: make(chan struct{}), rev: store.Absent}
	c.proof.Store(&rec.Token)
	c.seen.Store(time.Now().UnixNano())
	if m := rec.meta(); m != nil {
		c.callID = m.ToolCallID
		c.who = identity.Quadruple{Identity: identity.Identity{TenantID: m.TenantID, UserID: m.UserID, SessionID: m.SessionID}, RunID: m.RunID}
	}
	return c
}

// over reports whether the call has its result.
func (c *call) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// keep writes the record of the call unless a step has done so. A call that
// cannot be recorded is refused.
func (c *call) keep(ctx context.Context, l *ledger) {
	if err := c.step(ctx, l, func(*record) bool { return c.rev == store.Absent }); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refuse(err)
	}
}

// refuse ends a call that cannot be recorded. The caller holds the lock.
func (c *call) refuse(fault error) {
	if c.fault == nil && !c.over() {
		c.fault = fault
		c.homeless.Store(true)
		close(c.refused)
	}
}

// errOtherBody refuses a call whose id was used for another.
var errOtherBody = errors.New("the idempotency key of this call, or its run and call id, was used before, for another tool or other arguments")

// step changes the record: change gets what is there and reports whether it is
// to be written. When another process changed the record meanwhile, change is
// asked again with what that one wrote. The first step of a call writes its first
// record, so that a call which is claimed at once is never written as accepted.
func (c *call) step(ctx context.Context, l *ledger, change func(rec *record) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil {
		return c.fault
	}
	if !c.recorded {
		if next := c.rec; change(&next) {
			c.settled(next, 0)
		}
		return nil
	}
	defer c.removing.Store(false)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	for range 10 {
		next := c.rec
		c.early = false
		if !change(&next) {
			return nil
		}
		w, waits, err := c.writes(l, &next)
		if err != nil {
			return err
		}
		rev, err := l.write(ctx, w, waits)
		if err == nil {
			c.wrote(next, rev)
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("registry: the record of a call cannot be written: %w", err)
		}
		if err := c.reload(ctx, l); err != nil {
			return err
		}
		if c.early && c.rec.State != stateDone {
			break // The result is its caller's now; the worker gives it again.
		}
	}
	return fmt.Errorf("registry: %w: others keep changing the record of a call", store.ErrConflict)
}

// surely is step for a change that depends on which worker has the call: before
// it is taken for not to be made, the record is read, as another process may have
// changed it.
func (c *call) surely(ctx context.Context, l *ledger, change func(rec *record) bool) error {
	made := false
	noting := func(rec *record) bool {
		made = change(rec)
		return made
	}
	err := c.step(ctx, l, noting)
	if err != nil || made || c.over() || !c.recorded {
		return err
	}
	read, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if err := c.refresh(read, l); err != nil {
		return err
	}
	return c.step(ctx, l, noting)
}

// settled takes over what was written. The caller holds the lock.
func (c *call) settled(rec record, rev store.Revision) {
	c.rec, c.rev = rec, rev
	if c.recorded {
		c.seen.Store(time.Now().UnixNano())
	}
	if *c.proof.Load() != rec.Token {
		c.proof.Store(&rec.Token)
	}
	if rec.State == stateDone {
		c.answer(rec.Result)
	}
}

// answer gives those who wait the result of the call, unless they have one. The caller
// holds the lock, or is alone with the call.
func (c *call) answer(res *ToolResultMessage) {
	if !c.over() {
		c.result = *res
		close(c.done)
	}
}

// errUnread says that there may be a record which another process wrote.
var errUnread = errors.New("the record of a call cannot be read")

// reload reads what another process wrote. The caller holds the lock.
func (c *call) reload(ctx context.Context, l *ledger) error {
	rec, rev, err := l.read(ctx, c.key)
	if err != nil {
		return fmt.Errorf("registry: %w: %w", errUnread, err)
	}
	if c.rev == store.Absent {
		return c.meet(rec, rev)
	}
	if rec == nil {
		expired := c.rec
		expired.done(failed(c.id, &ToolError{Code: CodeOutcomeUnknown, OutcomeUnknown: true, Message: "the record of the call has expired"}))
		c.settled(expired, store.Absent)
		return nil
	}
	c.settled(*rec, rev)
	return nil
}

// meet takes over what another process wrote of the same call before this one
// wrote anything. The caller holds the lock.
func (c *call) meet(rec *record, rev store.Revision) error {
	switch {
	case rec == nil:
		return nil
	case rec.Digest != c.rec.Digest:
		c.refuse(errOtherBody)
		return errOtherBody
	}
	c.found = true
	c.settled(*rec, rev)
	return nil
}

// foundUnrun reports whether there was a record of the call, by which it is over and
// did not run, and which is of the same call as another.
func (c *call) foundUnrun(other *call) bool {
	if !c.again {
		return false // and its record may be on its way out
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found && c.rec.unrun(other.rec.Digest)
}

// wasFound reports whether another process made the record of the call.
func (c *call) wasFound() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found
}

// refresh looks whether another process ended the call.
func (c *call) refresh(ctx context.Context, l *ledger) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil || !c.recorded || c.over() {
		return nil
	}
	return c.reload(ctx, l)
}

// failed is the answer to a call that has no result.
func failed(id string, e *ToolError) *ToolResultMessage {
	return &ToolResultMessage{ToolUseID: id, Error: e}
}

// isMet reports whether the store has a record of the call.
func (c *call) isMet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rev != store.Absent || c.fault != nil
}

// giveUp ends a call that was never sent, for others that wait for the same one.
func (c *call) giveUp(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer(failed(c.id, ErrorOf(err)))
}

// finish gives the call its result, unless it has one.
func (c *call) finish(ctx context.Context, l *ledger, res *ToolResultMessage) error {
	return c.step(ctx, l, func(rec *record) bool {
		if rec.State == stateDone {
			return false
		}
		rec.done(res)
		return true
	})
}

// finishUnclaimed is finish for a call that no worker has; it reports whether
// that was so.
func (c *call) finishUnclaimed(ctx context.Context, l *ledger, res *ToolResultMessage) (bool, error) {
	unclaimed := false
	err := c.surely(ctx, l, func(rec *record) bool {
		unclaimed = rec.State == stateAccepted
		if unclaimed {
			rec.done(res)
		}
		return unclaimed
	})
	return unclaimed, err
}

// finishLost ends a call that a worker had which is gone, unless another has it
// by now.
func (c *call) finishLost(ctx context.Context, l *ledger, instance string, res *ToolResultMessage) error {
	return c.surely(ctx, l, func(rec *record) bool {
		lost := rec.State == stateClaimed && rec.Instance == instance
		if lost {
			rec.done(res)
		}
		return lost
	})
}

// claim gives the call to a worker. held is the worker that has it when that is
// another. A call that is not recorded is nobody's, and runs unless it is over.
func (c *call) claim(ctx context.Context, l *ledger, by *Claim) (v Verdict, held string, err error) {
	if !c.recorded {
		if c.over() || !c.hasToken(by.Token) {
			return VerdictOver, "", nil
		}
		return VerdictRun, "", nil
	}
	err = c.surely(ctx, l, func(rec *record) (given bool) {
		v, held, given = c.give(rec, by)
		return given
	})
	if err != nil {
		return VerdictRetry, "", err
	}
	return v, held, nil
}

// unclaim takes a call back from a worker that has not run it. Where only the store
// knew of the call, the stream alone has its message from now on.
func (c *call) unclaim(ctx context.Context, l *ledger, by *Claim) error {
	return c.surely(ctx, l, func(rec *record) bool {
		c.gaveBack(rec, by)
		mine := rec.State == stateClaimed && rec.Instance == by.Instance && rec.Token == by.Token && rec.Try == by.Try
		if mine {
			rec.State, rec.Instance, rec.Try, rec.Claimed = stateAccepted, "", 0, time.Time{}
			if c.message != nil {
				rec.Message, rec.Meta = c.message, nil
			}
		}
		return mine
	})
}

// gaveBack remembers that the worker will not run the call by this try. The caller holds
// the lock.
func (c *call) gaveBack(rec *record, by *Claim) {
	if by.Try == 0 || rec.Token != by.Token || rec.State == stateDone {
		return
	}
	if c.released == nil {
		c.released = map[string]int{}
	}
	c.released[by.Instance] = max(c.released[by.Instance], by.Try)
}

// give is record.give, but for a claim that comes after its own release. The caller
// holds the lock.
func (c *call) give(rec *record, by *Claim) (v Verdict, held string, given bool) {
	if by.Try != 0 && by.Try <= c.released[by.Instance] {
		return VerdictOver, "", false
	}
	return rec.give(by)
}

// hasToken reports whether a token is that of the message which asks for the call.
func (c *call) hasToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(*c.proof.Load()), []byte(token)) == 1
}

// token returns the token of the message that asks for the call.
func (c *call) token() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rec.Token
}

// view returns how far the call is.
func (c *call) view() (s state, instance string, deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rec.State, c.rec.Instance, c.rec.Deadline
}

// sentAgo returns how long ago the call was put on the stream.
func (c *call) sentAgo() time.Duration { return time.Since(time.Unix(0, c.sent.Load())) }

// seenAgo returns how long ago this process wrote or read the record of the call, or
// began to know of the call.
func (c *call) seenAgo() time.Duration { return time.Since(time.Unix(0, c.seen.Load())) }

// sending notes that the call is put on the stream now, or is known to be with a
// worker.
func (c *call) sending() {
	c.sent.Store(time.Now().UnixNano())
	c.probed.Store(false)
}
