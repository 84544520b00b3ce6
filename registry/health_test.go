package registry

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
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

// deserted is a backend where nobody responds.
type deserted struct{ stream.Client }

func (deserted) Request(context.Context, string, stream.Message) (stream.Message, error) {
	return stream.Message{}, stream.ErrNoResponder
}

// Workers for which nobody responds are remembered until their calls have been
// ended, and no more of them than the bound.
func TestAbsentWorkersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Registry{client: deserted{}, absent: map[string]time.Time{}}
		if !r.alive(t.Context(), "demo", "w") {
			t.Error("a worker is taken for gone at once")
		}
		time.Sleep(absence)
		if r.alive(t.Context(), "demo", "w") {
			t.Error("a worker is taken for alive for which nobody responds")
		}
		time.Sleep(absentFor)
		r.forgetAbsent()
		if n := len(r.absent); n != 0 {
			t.Errorf("%d workers are remembered", n)
		}
		for i := range maxAbsent + 10 {
			r.alive(t.Context(), "demo", fmt.Sprint(i))
		}
		if n := len(r.absent); n > maxAbsent {
			t.Errorf("%d workers are remembered", n)
		}
	})
}

// The workers of a toolset that are kept are bounded; one that is down makes room.
func TestTooManyWorkers(t *testing.T) {
	r := newWorld(nil, memory(t)).r
	ts := r.newToolset("math", agreement{})
	for i := range maxWorkers + 10 {
		ts.enter(&Announcement{Toolset: "math", Instance: fmt.Sprint("w", i)})
	}
	if n := len(ts.instances); n != maxWorkers || ts.instances["w0"] == nil {
		t.Errorf("%d workers are kept", n)
	}
	ts.instances["w7"].up = false
	if ts.enter(&Announcement{Toolset: "math", Instance: "late"}); ts.instances["late"] == nil || ts.instances["w7"] != nil || len(ts.instances) != maxWorkers {
		t.Errorf("%d workers are kept, and not the last one", len(ts.instances))
	}
}
