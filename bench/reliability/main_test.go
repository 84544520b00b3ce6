package main

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	for i, arg := range os.Args {
		if arg == "-be" && i+1 < len(os.Args) {
			main() // a process that the test starts
			return
		}
	}
	os.Exit(m.Run())
}

// The promises hold for a small run. The program makes larger ones.
func TestPromisesUnderKills(t *testing.T) {
	o := &options{calls: 300, kills: 3, workers: 2, inFlight: 8, seed: uint64(time.Now().UnixNano()), deadline: 2 * time.Minute}
	t.Logf("seed %d", o.seed)
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// A run that was twice, that is missing, and that was not told of are each found.
func TestBrokenPromisesAreFound(t *testing.T) {
	outcomes := []outcome{
		{id: "twice", write: true, end: answered}, {id: "never", write: true, end: answered}, {id: "hung", write: true, end: silent},
		{id: "doubt", write: true, end: unknown}, {id: "good", write: true, end: answered}, {id: "read", end: refused},
		{id: "lost", write: true, once: true, end: broke}, {id: "lost twice", write: true, once: true, end: broke},
	}
	v := judge(outcomes, map[string]int{"twice": 2, "doubt": 1, "good": 1, "lost": 1, "lost twice": 2})
	if len(v.broken) != 5 {
		t.Errorf("found %q", v.broken)
	}
	if v := judge(outcomes[3:5], map[string]int{"doubt": 1, "good": 1}); len(v.broken) != 0 {
		t.Errorf("found %q", v.broken)
	}
}
