package peertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	readyLimit = 60 * time.Second // some npm servers need 10 s to start on a busy machine
	termLimit  = 10 * time.Second // between SIGTERM and SIGKILL
	pollEvery  = 20 * time.Millisecond
)

// Process is a child in a process group of its own, whose output is kept line by line. It is stopped when
// the test ends. Its methods may be called from several goroutines.
type Process struct {
	// Stdin writes to the child.
	Stdin io.WriteCloser

	name string
	cmd  *exec.Cmd
	done chan struct{}

	mu     sync.Mutex
	stdout []string
	all    []string
	news   chan struct{} // closed and replaced whenever a line arrives
	err    error
}

// Start starts cmd and stops its whole process group when the test ends. Stdout and stderr are captured,
// so cmd must not set them.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{
		name: strings.Join(cmd.Args, " "),
		cmd:  cmd,
		done: make(chan struct{}),
		news: make(chan struct{}),
	}
	if err := p.start(); err != nil {
		t.Fatalf("peertest: start %s: %v", p.name, err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("output of %s:\n%s", p.name, tail(p.Output()))
		}
	})
	return p
}

func (p *Process) start() error {
	ownGroup(p.cmd)
	stdout, outWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	stderr, errWriter, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdout.Close(), outWriter.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr = outWriter, errWriter
	if p.Stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	closeErr := errors.Join(outWriter.Close(), errWriter.Close())
	if err != nil {
		return errors.Join(err, stdout.Close(), stderr.Close())
	}
	var readers sync.WaitGroup
	readers.Go(func() { p.read(stdout, true) })
	readers.Go(func() { p.read(stderr, false) })
	go p.wait(&readers)
	return closeErr
}

// wait ends the process's life: it collects the exit status, and what was still in the pipes.
func (p *Process) wait(readers *sync.WaitGroup) {
	err := p.cmd.Wait()
	readers.Wait()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	close(p.done)
}

func (p *Process) read(r io.ReadCloser, isStdout bool) {
	defer r.Close()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			p.keep(strings.TrimRight(line, "\r\n"), isStdout)
		}
		if err != nil {
			return
		}
	}
}

func (p *Process) keep(line string, isStdout bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, line)
	if isStdout {
		p.stdout = append(p.stdout, line)
	}
	close(p.news)
	p.news = make(chan struct{})
}

// Line waits for a line, on stdout or stderr, that matches pattern, and returns its submatches as
// [regexp.Regexp.FindStringSubmatch] does. The test fails when the process ends first, or after a minute.
func (p *Process) Line(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	for {
		match, news := p.match(re)
		if match != nil {
			return match
		}
		select {
		case <-news:
		case <-p.done:
			if match, _ := p.match(re); match != nil {
				return match
			}
			t.Fatalf("peertest: %s ended (%v) before it printed %q:\n%s", p.name, p.exitError(), pattern, tail(p.Output()))
		case <-limit.C:
			t.Fatalf("peertest: %s did not print %q within %s:\n%s", p.name, pattern, readyLimit, tail(p.Output()))
		}
	}
}

func (p *Process) match(re *regexp.Regexp) ([]string, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.all {
		if match := re.FindStringSubmatch(line); match != nil {
			return match, p.news
		}
	}
	return nil, p.news
}

// Answers waits until a GET of url is answered at all, whatever the status. It is for peers that print
// nothing when they are ready.
func (p *Process) Answers(t testing.TB, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := get(ctx, url)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-p.done:
			t.Fatalf("peertest: %s ended (%v) before %s answered:\n%s", p.name, p.exitError(), url, tail(p.Output()))
		case <-ctx.Done():
			t.Fatalf("peertest: %s: %s did not answer within %s: %v\n%s", p.name, url, readyLimit, err, tail(p.Output()))
		}
	}
}

func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// A stream that stays open must not hold the probe: the header is the answer.
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Stop sends SIGTERM to the process group, SIGKILL to what is left of it after ten seconds, and waits for
// the end. It may be called more than once.
func (p *Process) Stop() {
	_ = p.Stdin.Close()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(termLimit):
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Terminate sends SIGTERM to the process alone and waits for its exit status, an [*exec.ExitError] unless
// it was 0. The test fails when the process is still there after a minute.
func (p *Process) Terminate(t testing.TB) error {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("peertest: SIGTERM to %s: %v", p.name, err)
	}
	return p.Wait(t)
}

// Wait waits for the process to end by itself and returns its exit status as [exec.Cmd.Wait] does. The
// test fails when the process is still there after a minute.
func (p *Process) Wait(t testing.TB) error {
	t.Helper()
	select {
	case <-p.done:
		return p.exitError()
	case <-time.After(readyLimit):
		t.Fatalf("peertest: %s still runs after %s:\n%s", p.name, readyLimit, tail(p.Output()))
		return nil
	}
}

// PID returns the process id, which is the id of its process group too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns every line printed so far, stdout and stderr in the order of arrival.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.all, "\n")
}

// Stdout returns the lines printed on stdout so far.
func (p *Process) Stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.stdout, "\n")
}

func (p *Process) exitError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// tail is the end of a long output, which is where a failure shows.
func tail(output string) string {
	const most = 4 << 10
	if len(output) <= most {
		return output
	}
	return fmt.Sprintf("[%d bytes before]\n%s", len(output)-most, output[len(output)-most:])
}

// Run runs cmd to its end in a process group of its own and returns its stdout. The test fails when it
// exits with another status than 0, with its whole output.
func Run(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	p := Start(t, cmd)
	if err := p.Stdin.Close(); err != nil {
		t.Fatalf("peertest: %s: %v", p.name, err)
	}
	if err := p.Wait(t); err != nil {
		t.Fatalf("peertest: %s: %v\n%s", p.name, err, tail(p.Output()))
	}
	return p.Stdout()
}

func listenLoopback() (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no free loopback port: %w", err)
	}
	return listener, nil
}
