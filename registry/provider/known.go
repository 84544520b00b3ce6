package provider

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolcrib/toolcrib/internal/wait"
	"github.com/toolcrib/toolcrib/registry"
)

// The pauses between announcements that nobody answered.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 10 * time.Second
)

// stayKnown announces the worker again when a registry starts, when none had
// answered yet, and when no ping came for too long. It returns an error when a
// registry refuses the worker, or has another in its place.
func (w *worker) stayKnown(ctx context.Context) error {
	pause := firstPause
	var greetings pace
	for {
		greeted, ok := w.awaitReason(ctx)
		if ok && !greeted {
			greeted, ok = w.pauseUnlessGreeted(ctx, rand.N(pause))
		}
		if ok && greeted {
			pause = firstPause
			// Many workers hear of a registry that starts in one moment.
			ok = wait.For(ctx, max(rand.N(firstPause), greetings.next(time.Now())))
		}
		if !ok {
			return nil
		}
		select {
		case <-w.greeted: // by one that hears what is said now
		default:
		}
		a, err := w.announce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil, a.Status == registry.StatusStandby && w.contract == nil:
			pause = min(2*pause, longestPause)
			poke(w.renew)
			continue
		case a.Status == registry.StatusRefused:
			return fmt.Errorf("%w: %s", ErrRefused, a.Message)
		case a.Status == registry.StatusStandby && a.Changing:
			if !wait.For(ctx, retryAfter(&a)) {
				return nil
			}
			poke(w.renew)
		case a.Status == registry.StatusStandby:
			w.retire.Do(func() { close(w.retired) })
			return nil
		}
		pause = firstPause
	}
}

// awaitReason waits for a reason to announce the worker again: a registry that
// starts, which greets, an announcement that nobody took, or too long a silence. ok
// is false when ctx ends.
func (w *worker) awaitReason(ctx context.Context) (greeted, ok bool) {
	quiet := time.NewTimer(w.patience())
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, false
		case <-w.greeted:
			return true, true
		case <-w.renew:
			return false, true
		case <-quiet.C:
			return false, true
		case <-w.heard:
			quiet.Reset(w.patience())
		}
	}
}

// pauseUnlessGreeted waits for d, or until a registry greets.
func (w *worker) pauseUnlessGreeted(ctx context.Context, d time.Duration) (greeted, ok bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, true
	case <-w.greeted:
		return true, true
	case <-ctx.Done():
		return false, false
	}
}

// A worker answers each of the greetings of a registry that starts, and of many one
// every two seconds, so that a crowd of registries, or one that greets without end,
// does not have all workers announce themselves without end.
const (
	greetingsAtOnce = 6
	greetingsEvery  = 2 * time.Second
)

// pace spaces the answers to greetings. The zero value is ready.
type pace struct{ full time.Time }

// next returns how long the answer to a greeting of now has to wait.
func (p *pace) next(now time.Time) time.Duration {
	if p.full.Before(now) {
		p.full = now
	}
	p.full = p.full.Add(greetingsEvery)
	return max(p.full.Sub(now)-greetingsAtOnce*greetingsEvery, 0)
}
