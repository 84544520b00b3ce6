package registry

import (
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/store"
)

// wrote takes over what was written. Of a record that was removed it keeps the revision,
// so that none is put in its place. The caller holds the lock.
func (c *call) wrote(rec record, rev store.Revision) {
	if c.early {
		rev = c.rev
	}
	c.settled(rec, rev)
}

// waiter tells whether the one who waits for a call is given its result or waits no
// longer, whichever comes first.
type waiter struct{ state atomic.Int32 }

const (
	waiterStays = iota
	waiterGiven
	waiterLeft
)

// give reports whether the result is for the one who waits.
func (w *waiter) give() bool {
	return w.state.CompareAndSwap(waiterStays, waiterGiven) || w.state.Load() == waiterGiven
}

// leave reports whether one who waits may go without the result. Otherwise it comes at
// once.
func (w *waiter) leave() bool {
	return w.state.CompareAndSwap(waiterStays, waiterLeft) || w.state.Load() == waiterLeft
}

// soonest bounds how long after a claim the one who waits for the call is given its
// result at once.
const soonest = lookAfter / 2

// ends is record.end for the next record of this call. Where only the one who waits here
// will ever ask for the call, that one gets its result at once, and its record goes: a
// worker that is given the call again hears that it is over, as of any call of which
// nothing is known. The worker gives the result again until the record is gone, and no
// other process looks at a call that is as young, unless this one does not answer. The
// caller holds the lock.
func (c *call) ends(next *record, res *ToolResultMessage, by *Receipt) (ended, foreign bool) {
	early := !c.again && next.State == stateClaimed && time.Since(next.Claimed) < soonest
	ended, foreign = next.end(res, by)
	c.early = ended && early
	return ended, foreign
}

// writes returns what writes the next record of the call, or removes it. The caller
// holds the lock.
func (c *call) writes(l *ledger, next *record) (w store.Write, waits bool, err error) {
	if c.early = c.early && c.waiter.give(); c.early {
		c.removing.Store(true)
		c.answer(next.Result)
		return store.Write{Key: c.key, If: c.rev, Delete: true}, false, nil
	}
	return l.writeOf(c.key, next, c.rev, c.rec.State)
}
