//go:build unix

package peertest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// ownGroup makes the child the leader of a new process group, so that its own children can be ended with it.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// signal reaches the whole group. A group that is gone is no failure.
func (p *Process) signal(sig syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, sig)
}

// lock holds an exclusive lock on path, across processes, until the returned function is called.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("peertest: lock %s: %v", path, err)
	}
	return func() { _ = file.Close() }
}
