//go:build unix

package mcpwire

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// A leash ends the group of a child when this process dies without doing so:
// the kernel ends the child alone, if that, and not what that started. It is a
// shell that waits for a line on a pipe whose other end only this process
// holds; when the pipe ends without one, it kills the group.
type leash struct {
	cmd *exec.Cmd
	end *os.File // nil when there is no shell
}

const leashScript = `read -r _ || kill -9 -"$0"`

// newLeash holds the group that p leads. Where there is no shell, the leash
// holds nothing.
func newLeash(p *os.Process) *leash {
	r, w, err := os.Pipe()
	if err != nil {
		return &leash{}
	}
	defer r.Close()
	l := &leash{cmd: exec.Command("/bin/sh", "-c", leashScript, strconv.Itoa(p.Pid)), end: w}
	l.cmd.Stdin, l.cmd.Env, l.cmd.Dir = r, []string{}, "/"
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := l.cmd.Start(); err != nil {
		_ = w.Close()
		return &leash{}
	}
	return l
}

// release lets the group go. Where it can, it is called while the child is a
// zombie, so that its id cannot be another's yet.
func (l *leash) release() {
	if l.end == nil {
		return
	}
	_, _ = l.end.WriteString("done\n") // a shell that is gone needs no word
	_ = l.end.Close()
	_ = l.cmd.Wait()
}
