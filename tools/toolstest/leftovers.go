package toolstest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	// settleLimit bounds how long the end of something is waited for.
	settleLimit = 10 * time.Second
	pollEvery   = 10 * time.Millisecond
)

// Held counts what this process holds that outlives a call which forgets it.
// Where there is no /proc the counts are zero.
type Held struct {
	// Files is how many file descriptors are open.
	Files int
	// Children is how many child processes there are, ended and not waited for
	// included.
	Children int
}

// Holding returns what this process holds now.
func Holding() Held {
	return Held{Files: openFiles(), Children: len(Children(os.Getpid()))}
}

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// Children returns the ids of the processes whose parent is pid, in no
// particular order. Where there is no /proc it returns nothing.
func Children(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	var out []int
	for _, name := range stats {
		if parent, ok := parentIn(name); ok && parent == pid {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			out = append(out, child)
		}
	}
	return out
}

// parentIn reads "1234 (any name) S 1 …" and returns the 1.
func parentIn(stat string) (int, bool) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0, false
	}
	_, after, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	fields := bytes.Fields(after)
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// NothingLeft fails the test when, at its end and a grace of ten seconds, there
// are goroutines, open files or child processes that are not there now. It is
// called before the test's other clean-ups are registered, since those run
// first. Tests that use it must not run in parallel with others.
func NothingLeft(t testing.TB) {
	t.Helper()
	nothingLeft(t, settleLimit)
}

func nothingLeft(t testing.TB, grace time.Duration) {
	t.Helper()
	primePoller(t)
	before, running := Holding(), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		t.Helper()
		var left error
		if !Await(grace, func() bool { left = goleak.Find(running); return left == nil }) {
			t.Errorf("goroutines are left: %v", left)
		}
		if !Await(grace, func() bool { return !Holding().exceeds(before) }) {
			t.Errorf("held before: %+v, and after: %+v\n%s", before, Holding(), listFiles())
		}
	})
}

// primePoller makes the runtime open what it keeps for good.
func primePoller(t testing.TB) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	_ = w.Close()
}

func (h Held) exceeds(before Held) bool {
	return h.Files > before.Files || h.Children > before.Children
}

// listFiles says what the open files are, for a person who has to find out.
func listFiles() string {
	var b bytes.Buffer
	names, _ := filepath.Glob("/proc/self/fd/*") // the pattern is well-formed
	for _, name := range names {
		if target, err := os.Readlink(name); err == nil {
			fmt.Fprintf(&b, "%s: %s\n", filepath.Base(name), target)
		}
	}
	return b.String()
}

// Await looks again and again until done reports true, for at most limit, and
// returns what it reported last. It is for what can only be looked at, such as
// another process.
func Await(limit time.Duration, done func() bool) bool {
	if done() {
		return true
	}
	end := time.NewTimer(limit)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if done() {
				return true
			}
		case <-end.C:
			return done()
		}
	}
}
