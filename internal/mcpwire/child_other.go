//go:build !unix

package mcpwire

import (
	"os"
	"os/exec"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return nil }

// Where there are no process groups, the child alone is ended.
func terminateGroup(p *os.Process) { _ = p.Kill() }
func killGroup(p *os.Process)      { _ = p.Kill() }

func reap(cmd *exec.Cmd) { _ = cmd.Wait() }
