package tools

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/events"
)

// attempt is the context of one attempt. It ends with the context around it,
// when its time limit is used up, and when the attempt is over. The clock
// stands still while the call waits for its caller.
//
// Its Done channel and timer exist only once somebody asks for them, because
// most tools never do.
type attempt struct {
	context.Context
	call *Call
	cat  *catalog // may be nil
	args json.RawMessage

	mu      sync.Mutex // guards the fields below
	limit   bool       // there is a time limit
	expired bool       // and it was used up
	left    time.Duration
	since   time.Time // when the clock last started to run
	waits   int       // how many Asks hold the clock
	done    chan struct{}
	err     error
	timer   *time.Timer
	unlink  func() bool
	kicked  chan struct{} // signals that the clock started or stopped
}

// begin starts the clock of an attempt that is new.
func (a *attempt) begin(ctx context.Context, call *Call, cat *catalog, limit time.Duration) {
	a.Context, a.call, a.cat, a.limit, a.left = ctx, call, cat, limit > 0, limit
	if a.limit {
		a.since = time.Now()
	}
}

// Value finds the call, the catalog and, where the caller brought none, the
// tool's event bus. The entrance and the part belong to the call and not to the
// calls that its tool makes.
func (a *attempt) Value(key any) any {
	switch key.(type) {
	case callKey:
		return a.call
	case entranceKey:
		return (*Entrance)(nil)
	case levelKey:
		return (*binding)(nil)
	case partKey:
		return a.call.partBehind(a.Context)
	case catalogKey:
		if a.cat != nil {
			return ToolCatalog(a.cat)
		}
	case events.ContextKey:
		if bus := a.Context.Value(key); bus != nil || a.cat == nil {
			return bus
		}
		if bus := a.call.binding.eventBus(); bus != nil {
			return bus
		}
		return nil
	}
	return a.Context.Value(key)
}

// eventBus returns the bus that the tool's own events go to.
func (b *binding) eventBus() events.EventBus {
	if b.cat.bus != nil {
		return b.cat.bus
	}
	return b.bus
}

// Deadline returns when the attempt ends at the latest, if its clock does not
// stand still.
func (a *attempt) Deadline() (time.Time, bool) {
	outer, ok := a.Context.Deadline()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.limit || a.waits > 0 {
		return outer, ok
	}
	if own := a.since.Add(a.left); !ok || own.Before(outer) {
		return own, true
	}
	return outer, true
}

// Done implements context.Context.
func (a *attempt) Done() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done != nil {
		return a.done
	}
	ended := a.check() != nil // which closes the channel, if there is one
	a.done = make(chan struct{})
	if ended {
		close(a.done)
		return a.done
	}
	a.unlink = context.AfterFunc(a.Context, a.outerEnded)
	if a.limit && a.waits == 0 {
		a.startTimer()
	}
	return a.done
}

// Err implements context.Context.
func (a *attempt) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.check()
}

// check brings err up to date. The caller holds the lock.
func (a *attempt) check() error {
	if a.err != nil {
		return a.err
	}
	if err := a.Context.Err(); err != nil {
		a.end(err)
	} else if a.limit && a.waits == 0 && time.Since(a.since) >= a.left {
		a.expired = true
		a.end(context.DeadlineExceeded)
	}
	return a.err
}

// end sets the final error. The caller holds the lock.
func (a *attempt) end(err error) {
	if a.err != nil {
		return
	}
	a.err = err
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.done != nil {
		select {
		case <-a.done:
		default:
			close(a.done)
		}
	}
}

func (a *attempt) outerEnded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end(a.Context.Err())
}

// startTimer ends the attempt when its time is used up. The caller holds the
// lock.
func (a *attempt) startTimer() {
	if a.timer == nil {
		a.timer = time.AfterFunc(a.left, func() { _ = a.Err() })
		return
	}
	a.timer.Reset(a.left)
}

// finish ends the attempt because it is over, so that whatever its tool left
// running ends too.
func (a *attempt) finish() {
	a.mu.Lock()
	a.end(context.Canceled)
	unlink := a.unlink
	a.mu.Unlock()
	if unlink != nil {
		unlink()
	}
}

// timedOut reports whether the attempt's own time limit ended it.
func (a *attempt) timedOut() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Is(a.check(), context.DeadlineExceeded) && a.expired
}

// remaining returns how long the attempt may go on; running is false while its
// clock stands still, and kicked signals when that changes.
func (a *attempt) remaining() (left time.Duration, running bool, kicked <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kicked == nil {
		a.kicked = make(chan struct{}, 1)
	}
	if a.waits > 0 {
		return 0, false, a.kicked
	}
	return a.left - time.Since(a.since), true, a.kicked
}

// pause stops the clock. Each pause needs a resume.
func (a *attempt) pause() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits++
	if a.waits > 1 || !a.limit {
		return
	}
	a.left -= time.Since(a.since)
	if a.timer != nil {
		a.timer.Stop()
	}
	a.kick()
}

// resume lets the clock run on.
func (a *attempt) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waits--
	if a.waits > 0 || !a.limit {
		return
	}
	a.since = time.Now()
	if a.done != nil && a.err == nil {
		a.startTimer()
	}
	a.kick()
}

func (a *attempt) kick() {
	if a.kicked == nil {
		return
	}
	select {
	case a.kicked <- struct{}{}:
	default:
	}
}
