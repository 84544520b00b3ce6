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

func reap(cmd *exec.Cmd, _ *kin, released func()) {
	_ = cmd.Wait()
	released()
}

// Without process groups there is nothing to hold.
type leash struct{}

func newLeash(*os.Process) *leash { return &leash{} }
func (*leash) release()           {}
