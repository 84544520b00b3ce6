package registry

import (
	"context"
	"sync"
	"time"
)

// keepAfter is after how long a call that no worker has claimed is recorded as
// accepted. One that is claimed earlier is recorded as claimed at once, with one
// write less. When the process ends in between, the call is as if it had not
// come: its caller, who lost the connection, gets no answer, and no worker is let
// run it.
const keepAfter = 100 * time.Millisecond

// keepEvery is how long the keeper pauses at least, so that it does not wake up for
// each of many calls.
const keepEvery = 5 * time.Millisecond

// keepAtOnce bounds how many records are written at a time, which the store
// commits together.
const keepAtOnce = 64

// keeper records the calls that wait for a worker.
type keeper struct {
	wake chan struct{} // holds one: the queue is no longer empty

	mu    sync.Mutex
	queue []waiting
	ended *ledger // where calls are recorded at once, when the keeper has ended
}

// waiting is a call that was sent, and when it is to be recorded.
type waiting struct {
	call *call
	at   time.Time
}

func (k *keeper) init() { k.wake = make(chan struct{}, 1) }

// soon has a call recorded unless that has become needless by then.
func (k *keeper) soon(c *call) {
	k.mu.Lock()
	ended, first := k.ended, len(k.queue) == 0
	if ended == nil {
		k.queue = append(k.queue, waiting{call: c, at: time.Now().Add(keepAfter)})
	}
	k.mu.Unlock()
	switch {
	case ended != nil:
		c.keep(context.Background(), ended)
	case first:
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// run records calls when their time has come, and what is left when ctx ends.
func (k *keeper) run(ctx context.Context, l *ledger) {
	for ctx.Err() == nil {
		next, ok := k.record(l, time.Now())
		if !ok {
			select {
			case <-k.wake:
			case <-ctx.Done():
			}
			continue
		}
		timer := time.NewTimer(max(time.Until(next), keepEvery))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	k.mu.Lock()
	k.ended = l
	k.mu.Unlock()
	k.record(l, time.Now().Add(keepAfter))
}

// record records the calls whose time has come, and returns when that of the next
// one will be.
func (k *keeper) record(l *ledger, now time.Time) (next time.Time, more bool) {
	for {
		k.mu.Lock()
		n := 0
		for n < len(k.queue) && n < keepAtOnce && !k.queue[n].at.After(now) {
			n++
		}
		due := k.queue[:n:n]
		k.queue = k.queue[n:]
		if more = len(k.queue) > 0; more {
			next = k.queue[0].at
		}
		k.mu.Unlock()
		if n == 0 {
			return next, more
		}
		var writing sync.WaitGroup
		for _, w := range due {
			if !w.call.over() {
				writing.Go(func() { w.call.keep(context.Background(), l) })
			}
		}
		writing.Wait()
	}
}
