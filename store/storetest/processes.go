package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store"
)

// taskVariable tells a process that Run starts what to do.
const taskVariable = "TOOLCRIB_STORETEST"

// increments is how often a process that counts adds one.
const increments = 40

// Main is for TestMain. The suite starts the test's own program again to have
// several processes; those do their task here instead of running tests.
func Main(m *testing.M, open Opener) {
	task, source, ok := strings.Cut(os.Getenv(taskVariable), " ")
	if !ok {
		os.Exit(m.Run())
	}
	if err := perform(task, source, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func perform(task, source string, open Opener) error {
	ctx := context.Background()
	s, err := open(ctx, source, time.Now)
	if err != nil {
		return err
	}
	switch task {
	case "count":
		for range increments {
			if _, err := store.Update(ctx, s, key("count"), increment); err != nil {
				return err
			}
		}
		return s.Close()
	case "write":
		return writeForever(ctx, s, false)
	case "write-later":
		return writeForever(ctx, s, true)
	}
	return errors.New("unknown task")
}

// writeForever writes until the process is killed, and says what was
// acknowledged.
func writeForever(ctx context.Context, s store.Store, later bool) error {
	for n := 1; ; n++ {
		text := []byte(strconv.Itoa(n))
		_, err := s.Apply(ctx, store.Batch{Later: later, Writes: []store.Write{{Key: key("last"), Value: text}, {Key: key("n" + string(text)), Value: text}}})
		if err != nil {
			return err
		}
		if _, err := s.Append(ctx, key("log"), text); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func child(t *testing.T, task, source string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), taskVariable+"="+task+" "+source)
	cmd.Stderr = os.Stderr
	return cmd
}

func testReopened(t *testing.T, f *fixture) {
	revision := put(t, f.store, store.Write{Key: key("kept"), Value: []byte("x")})
	if _, err := f.store.Append(t.Context(), key("kept"), []byte("y")); err != nil {
		t.Fatal(err)
	}
	lease, err := f.store.Acquire(t.Context(), key("kept"), "a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	s := f.open(t)
	if r, err := s.Get(t.Context(), key("kept")); err != nil || string(r.Value) != "x" || r.Revision != revision {
		t.Errorf("Get = %+v, %v", r, err)
	}
	if e, err := s.Read(t.Context(), key("kept"), 1, 1); err != nil || len(e) != 1 {
		t.Errorf("Read = %v, %v", e, err)
	}
	if _, err := s.Renew(t.Context(), lease, time.Hour); err != nil {
		t.Errorf("Renew = %v", err)
	}
	if later := put(t, s, store.Write{Key: key("kept")}); later <= revision {
		t.Errorf("revision %d after %d", later, revision)
	}
}

func testOpenedAtOnce(t *testing.T, h Harness) {
	source := h.New(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			s, err := h.Open(t.Context(), source, time.Now)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := store.Put(t.Context(), s, key(fmt.Sprint(i)), nil, store.Absent); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func testTwoProcesses(t *testing.T, f *fixture) {
	const processes = 2
	var wg sync.WaitGroup
	for range processes {
		cmd := child(t, "count", f.source)
		wg.Go(func() {
			if out, err := cmd.Output(); err != nil {
				t.Errorf("a child: %v: %s", err, out)
			}
		})
	}
	for range increments {
		if _, err := store.Update(t.Context(), f.store, key("count"), increment); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	want := strconv.Itoa((processes + 1) * increments)
	if r, err := f.store.Get(t.Context(), key("count")); err != nil || string(r.Value) != want {
		t.Errorf("count = %s, %v, want %s", r.Value, err, want)
	}
}

func testKilled(t *testing.T, f *fixture) {
	for i, after := range []int{1, 25, 60, 40} {
		source := f.harness.New(t)
		task := []string{"write", "write-later"}[i%2]
		acknowledged := killAfter(t, child(t, task, source), after)
		s, err := f.harness.Open(t.Context(), source, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		checkKept(t, s, acknowledged)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// killAfter kills a process that writes once it has acknowledged so much, and
// returns the last number that it acknowledged.
func killAfter(t *testing.T, cmd *exec.Cmd, after int) int {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if last == after {
			_ = cmd.Process.Kill() // what it still prints was acknowledged too
		}
	}
	_ = cmd.Wait() // it was killed
	if last < after {
		t.Fatalf("the child ended after %d writes", last)
	}
	return last
}

// checkKept demands everything that was acknowledged, and nothing in halves.
func checkKept(t *testing.T, s store.Store, acknowledged int) {
	t.Helper()
	for n := 1; n <= acknowledged; n++ {
		if _, err := s.Get(t.Context(), key("n"+strconv.Itoa(n))); err != nil {
			t.Fatalf("record %d of %d: %v", n, acknowledged, err)
		}
	}
	extent, err := s.Extent(t.Context(), key("log"))
	if err != nil || int(extent.Next) <= acknowledged {
		t.Errorf("the log ends at %d, %v; %d entries were acknowledged", extent.Next-1, err, acknowledged)
	}
	last, err := s.Get(t.Context(), key("last"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), key("n"+string(last.Value))); err != nil {
		t.Errorf("half of a batch: %v", err)
	}
}
