//go:build unix

package mcpwire

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// A leash ends the group of a child when this process dies without doing so:
// the kernel ends the child alone, if that, and not what that started. It is a
// shell that waits for a line on a pipe whose other end only this process
// holds; when the pipe ends without one, it kills the group. Other lines name the
// processes outside of the group that are to be killed too, each with its
// beginning, so that another with the same id is left alone.
type leash struct {
	cmd *exec.Cmd
	end *os.File // nil when there is no shell
}

const leashScript = `
strays=
while read -r line; do
	test "$line" = done && exit
	strays=${line#strays}
done
for stray in $strays; do
	pid=${stray%:*} begun=${stray#*:}
	read -r line 2>/dev/null </proc/$pid/stat || continue
	set -- ${line##*)}
	test "${20}" = "$begun" && kill -9 $pid
done
kill -9 -"$0"
`

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

// tell says which processes outside of the group are to end with it, each as its
// id, a colon and its beginning.
func (l *leash) tell(strays []string) {
	if l.end != nil {
		_, _ = l.end.WriteString("strays " + strings.Join(strays, " ") + "\n") // a shell that is gone needs no word
	}
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
