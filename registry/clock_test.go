package registry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A clock is known to be ahead or behind as far as the way of the answer does not
// explain it.
func TestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(4 * time.Second)
		for said, want := range map[time.Duration]time.Duration{
			0: 0, 2 * time.Second: 0, 4 * time.Second: 0,
			time.Hour: time.Hour - 4*time.Second, -time.Hour: -time.Hour,
		} {
			if got := apart(began, began.Add(said).Round(0)); got != want {
				t.Errorf("said %s after the question, 4s before the answer was there: %s, want %s", said, got, want)
			}
		}
		if got := apart(began, time.Time{}); got != 0 {
			t.Errorf("a worker that does not say: %s", got)
		}
	})
}

// The log is told once that a clock differs, and once that it no longer does.
func TestClocksAreCompared(t *testing.T) {
	var log bytes.Buffer
	r := &Registry{log: slog.New(slog.NewTextHandler(&log, nil))}
	ts := &toolset{name: "demo", instances: map[string]*instance{"w": {}}}
	for _, ahead := range []time.Duration{time.Second, time.Hour, time.Hour + time.Second, -time.Hour, 0, -time.Second} {
		r.compareClocks(ts, "w", ahead)
	}
	r.compareClocks(ts, "gone", time.Hour)
	for line, times := range map[string]int{"1h0m0s ahead": 1, "differs": 1, "agrees with this gateway's again": 1} {
		if n := strings.Count(log.String(), line); n != times {
			t.Errorf("the log says %q %d times, want %d:\n%s", line, n, times, log.String())
		}
	}
	for ahead, says := range map[time.Duration]string{1500 * time.Millisecond: "", -time.Minute: "1m0s behind", 3 * time.Second: "3s ahead"} {
		if got := ClockText(ahead); !strings.Contains(got, says) || (says == "") != (got == "") {
			t.Errorf("%s: %q, want %q", ahead, got, says)
		}
	}
}
