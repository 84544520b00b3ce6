package gateway

import (
	"testing"
	"time"
)

func TestRetriesSlowDown(t *testing.T) {
	for failures, longest := range map[int]time.Duration{1: firstRetry, 2: 2 * firstRetry, 5: 16 * firstRetry, 50: longestRetry, 5000: longestRetry} {
		for range 100 {
			if got := retryAfter(failures); got > longest || got < longest*3/4-1 {
				t.Errorf("after %d failures: %v, want at most %v and at least three quarters of it", failures, got, longest)
			}
		}
	}
}
