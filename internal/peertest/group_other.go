//go:build !unix

package peertest

import (
	"os/exec"
	"syscall"
	"testing"
)

// ownGroup does nothing: process groups are a notion of Unix.
func ownGroup(*exec.Cmd) {}

// signal ends the process; this platform knows no gentler way and no group.
func (p *Process) signal(syscall.Signal) {
	_ = p.cmd.Process.Kill()
}

// lock does nothing on a platform without flock; go build replaces a binary whole.
func lock(testing.TB, string) (unlock func()) {
	return func() {}
}
