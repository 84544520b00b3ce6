package registry

import (
	"fmt"
	"time"
)

// clocksAgree is how far the clocks of a worker and of this process may be apart.
// The deadline of a call is a time of day.
const clocksAgree = 2 * time.Second

// apart returns how far the clock that said a time is ahead of this process's, or,
// negative, behind it. What the way of the question, asked at began, and of its
// answer leaves open counts for no difference. Zero as a time was not said.
func apart(began, said time.Time) time.Duration {
	if said.IsZero() {
		return 0
	}
	now := time.Now()
	latest := now.Round(0) // by the clock
	earliest := latest.Add(-now.Sub(began))
	switch {
	case said.After(latest):
		return said.Sub(latest)
	case said.Before(earliest):
		return said.Sub(earliest)
	}
	return 0
}

// ClockText says of a clock that is so far ahead of another what that means for
// calls. It is empty for clocks that agree.
func ClockText(ahead time.Duration) string {
	by := ahead.Abs().Round(time.Second)
	switch {
	case ahead.Abs() < clocksAgree:
		return ""
	case ahead > 0:
		return fmt.Sprintf("%s ahead of the gateway's: calls may end before they run", by)
	}
	return fmt.Sprintf("%s behind the gateway's: tools may run on after the time of their calls", by)
}

// compareClocks notes how far a worker's clock is ahead, and tells of it when that
// begins to matter and when it no longer does.
func (r *Registry) compareClocks(ts *toolset, id string, ahead time.Duration) {
	ts.mu.Lock()
	i := ts.instances[id]
	if i == nil {
		ts.mu.Unlock()
		return
	}
	before, now := ClockText(i.ahead), ClockText(ahead)
	i.ahead = ahead
	ts.mu.Unlock()
	switch {
	case before == "" && now != "":
		r.log.Warn("the clock of a worker differs from this gateway's", "toolset", ts.name, "instance", id, "clock", now)
	case before != "" && now == "":
		r.log.Info("the clock of a worker agrees with this gateway's again", "toolset", ts.name, "instance", id)
	}
}
