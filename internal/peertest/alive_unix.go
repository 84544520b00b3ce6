//go:build unix

package peertest

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// goneLimit is how long a process may take to end that has been killed.
const goneLimit = 10 * time.Second

// Alive reports whether a process is there and is no zombie.
func Alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err)
	}
	_, after, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	return !bytes.HasPrefix(after, []byte("Z"))
}

// ExpectGone waits until a process has ended. When it does not within ten seconds, the test fails and the process is
// killed; what names it.
func ExpectGone(t testing.TB, pid int, what string) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for limit := time.After(goneLimit); Alive(pid); {
		select {
		case <-tick.C:
		case <-limit:
			t.Errorf("%s (process %d) is left", what, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return
		}
	}
}
