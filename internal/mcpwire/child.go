package mcpwire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ChildTransport runs a server as a child process and speaks to it over its
// standard input and output. The child leads a process group of its own. When
// the client is closed its input ends; after CloseGrace the group is sent
// SIGTERM, and after CloseGrace again SIGKILL. Whatever of the group outlives
// the child is killed, and on Linux what descends from the child and left the
// group. All of that is killed as well when this process dies without closing it,
// where there is a /bin/sh that can wait for that.
type ChildTransport struct {
	// Command is the program and its arguments.
	Command []string
	// Dir is the working directory; "" is that of this process.
	Dir string
	// Env is the whole environment of the child; nil is an empty one.
	Env []string
	// Stderr receives the lines of the child's standard error, one at a time,
	// each cut after 8 KiB. It must not block; without it they are discarded.
	Stderr func(line string)
	// Nursery, when not nil, finds what descends from the child and has lost its
	// parent.
	Nursery *Nursery
	// CloseGrace is the time between the steps of closing, 2 seconds by
	// default.
	CloseGrace time.Duration
}

const (
	maxStderrLine = 8 << 10
	killWait      = 5 * time.Second
	// drainWait bounds how long output is read after the child itself has
	// ended, in case something it started keeps the pipe open.
	drainWait = 500 * time.Millisecond
)

// A childLink is a streamLink to a process.
type childLink struct {
	streamLink
	grace  time.Duration
	own    *Nursery // may be nil
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File // nil when nobody listens
	kin    *kin
	exited chan struct{}
	heard  chan struct{} // closed when stderr has been read to its end
}

func (t *ChildTransport) open(_ context.Context, c *Client) (link, error) {
	if len(t.Command) == 0 {
		return nil, errors.New("mcpwire: a child transport needs a command")
	}
	l := &childLink{grace: t.CloseGrace, own: t.Nursery, exited: make(chan struct{}), heard: make(chan struct{})}
	if l.grace <= 0 {
		l.grace = 2 * time.Second
	}
	l.cmd = exec.Command(t.Command[0], t.Command[1:]...)
	l.cmd.Dir = t.Dir
	l.cmd.Env = append([]string{}, t.Env...)
	l.cmd.SysProcAttr = childAttributes()
	if err := l.spawn(t); err != nil {
		return nil, fmt.Errorf("mcpwire: starting %s: %w", t.Command[0], startCause(err))
	}
	l.streamLink = streamLink{client: c, in: l.stdout, lines: newLineConn(l.stdin), cause: l.whyEnded, heard: l.kin.stirred}
	l.start()
	c.goWork(func() { l.kin.watch(l.exited) })
	if l.stderr != nil {
		c.goWork(func() {
			defer close(l.heard)
			readStderr(l.stderr, t.Stderr)
		})
	}
	return l, nil
}

// spawn makes the pipes and starts the child. Both ends of a pipe are files,
// so that waiting for the child does not wait for whoever inherited them.
func (l *childLink) spawn(t *ChildTransport) (err error) {
	var theirs []*os.File
	pipe := func(childReads bool) (ours, child *os.File) {
		r, w, perr := os.Pipe()
		if perr != nil {
			err = errors.Join(err, perr)
			return nil, nil
		}
		ours, child = r, w
		if childReads {
			ours, child = w, r
		}
		theirs = append(theirs, child)
		return ours, child
	}
	var in, out, errOut *os.File
	l.stdin, in = pipe(true)
	l.stdout, out = pipe(false)
	if t.Stderr != nil {
		l.stderr, errOut = pipe(false)
	}
	if err == nil {
		l.cmd.Stdin, l.cmd.Stdout = in, out
		if errOut != nil {
			l.cmd.Stderr = errOut
		}
		err = l.startAndWait()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		l.closePipes()
	}
	return err
}

// startAndWait starts the child on a goroutine that keeps its thread until the
// child has ended: the kernel counts the end of the thread that forked as the
// death of the parent.
func (l *childLink) startAndWait() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := l.cmd.Start()
		if err != nil {
			started <- err
			return
		}
		defer close(l.exited)
		leash := newLeash(l.cmd.Process)
		l.kin = newKin(l.cmd.Process.Pid, leash, l.own)
		started <- nil
		reap(l.cmd, l.kin, leash.release)
		deadline := time.Now().Add(drainWait)
		_ = l.stdout.SetReadDeadline(deadline)
		if l.stderr != nil {
			_ = l.stderr.SetReadDeadline(deadline)
		}
	}()
	return <-started
}

// whyEnded names the exit status as the reason why the output ended.
func (l *childLink) whyEnded(err error) error {
	wait := time.NewTimer(drainWait)
	defer wait.Stop()
	select {
	case <-l.exited:
		return errors.New(howEnded(l.cmd.ProcessState))
	case <-wait.C:
		return err
	}
}

func howEnded(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		if status.Signal() == syscall.SIGKILL {
			return "the server process was killed (signal 9)"
		}
		return fmt.Sprintf("the server process was ended by signal %d (%s)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("the server process ended: %s", state)
}

// startCause is why a program did not start, without its name, which the
// caller says, and the name of the system call.
func startCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && path.Op == "fork/exec" {
		return path.Err
	}
	var found *exec.Error
	if errors.As(err, &found) {
		return found.Err
	}
	return err
}

// close ends the child and waits until nothing of it is left.
func (l *childLink) close() error {
	l.lines.close(ErrClosed)
	_ = l.stdin.Close()
	err := l.endProcess()
	l.hearOut()
	l.closePipes()
	return err
}

// hearOut lets the child's last words be read before their pipe is closed.
func (l *childLink) hearOut() {
	if l.stderr == nil {
		return
	}
	wait := time.NewTimer(drainWait)
	defer wait.Stop()
	select {
	case <-l.heard:
	case <-wait.C:
	}
}

func (l *childLink) endProcess() error {
	l.kin.look() // while it is there
	if l.exitedWithin(l.grace) {
		return nil
	}
	l.kin.signal(syscall.SIGTERM)
	terminateGroup(l.cmd.Process)
	if l.exitedWithin(l.grace) {
		return nil
	}
	l.kin.signal(syscall.SIGKILL)
	killGroup(l.cmd.Process)
	if l.exitedWithin(killWait) {
		return nil
	}
	return fmt.Errorf("mcpwire: process %d does not end", l.cmd.Process.Pid)
}

func (l *childLink) exitedWithin(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.exited:
		return true
	case <-t.C:
		return false
	}
}

func (l *childLink) closePipes() {
	for _, f := range []*os.File{l.stdin, l.stdout, l.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// readStderr hands out lines, and the beginning of those that are too long.
func readStderr(r io.Reader, line func(string)) {
	br := bufio.NewReaderSize(r, maxStderrLine)
	for cut := false; ; {
		part, more, err := br.ReadLine()
		if err != nil {
			return
		}
		if !cut {
			line(string(part))
		}
		cut = more
	}
}
