package registry

import (
	"testing"
	"time"
)

// A call for which workers have no room comes back later each time, and never
// sooner than they ask.
func TestPauseOfACallWithoutRoom(t *testing.T) {
	c := new(call)
	for i, least := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000} {
		least *= time.Millisecond
		if got := c.pause(200 * time.Millisecond); got < least || got >= 2*least {
			t.Errorf("pause %d is %s, not between %s and twice that", i, got, least)
		}
	}
	if got := c.pause(time.Minute); got < time.Minute {
		t.Errorf("a worker asks for a minute, and the pause is %s", got)
	}
	if got := new(call).pause(-time.Second); got < 10*time.Millisecond || got >= 20*time.Millisecond {
		t.Errorf("the shortest pause is %s", got)
	}
	most := 365 * 24 * time.Hour
	if got := c.pause(most); got < most || got >= 2*most {
		t.Errorf("a year becomes %s", got)
	}
}
