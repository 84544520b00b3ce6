//go:build unix && !linux

package mcpwire

import (
	"os"
	"os/exec"
	"syscall"
)

// childAttributes puts the child at the head of a group of its own.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }
func killGroup(p *os.Process)      { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// reap waits for the child and kills what it left of its group.
func reap(cmd *exec.Cmd, _ *kin, released func()) {
	_ = cmd.Wait()
	killGroup(cmd.Process)
	released()
}
