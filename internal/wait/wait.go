// Package wait waits for a time or the end of a context, whichever comes first.
package wait

import (
	"context"
	"time"
)

// For waits for d, and reports false when ctx ended before.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
