package registry

import (
	"testing"
	"testing/synctest"
	"time"
)

// A gateway that was stopped, as a suspended machine is, takes that for no silence
// of its workers.
func TestExcuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ts := &toolset{instances: map[string]*instance{"early": {lastPong: began}, "late": {lastPong: began.Add(40 * time.Second)}}}
		time.Sleep(50 * time.Second)
		ts.excuse(45 * time.Second)
		for id, want := range map[string]time.Duration{"early": 5 * time.Second, "late": 0} {
			if got := time.Since(ts.instances[id].lastPong); got != want {
				t.Errorf("%s: silent for %s, want %s", id, got, want)
			}
		}
	})
}
