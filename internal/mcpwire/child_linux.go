package mcpwire

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

// childAttributes puts the child at the head of a group of its own, and has the
// kernel kill it when the thread that started it dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func terminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }
func killGroup(p *os.Process)      { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// reap waits for the child and kills what it left of its group. The group is
// killed while the child is a zombie, so that its id cannot be another's yet.
func reap(cmd *exec.Cmd, k *kin, released func()) {
	waitUnreaped(cmd.Process.Pid)
	killGroup(cmd.Process)
	k.end()
	released()
	_ = cmd.Wait()
}

func waitUnreaped(pid int) {
	const idTypePID = 1
	var info [128]byte // siginfo_t
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idTypePID, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			return
		}
	}
}
