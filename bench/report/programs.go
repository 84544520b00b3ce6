package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolcrib/toolcrib/internal/mainpkg"
)

const (
	readyLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
	// clockTick is the unit of CPU times in /proc, which Linux fixes at 100
	// for user space on every architecture that Go supports.
	clockTick = 10 * time.Millisecond
)

// build compiles the programs that take part, into a folder of its own.
func build(ctx context.Context) (*bench, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("only Linux tells what the report measures")
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	if err := os.Chdir(strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "toolcrib-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir}
	for _, args := range [][]string{
		{"build", "-tags", mainpkg.Tags, "-trimpath", "-buildvcs=false", "-o", dir + "/", mainpkg.Path, "./bench/upstream", "./bench/passthrough"},
		{"test", "-c", "-o", b.path("bench.test"), "./bench"},
	} {
		if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
			b.remove()
			return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, out)
		}
	}
	return b, nil
}

// program is a running program that said where it listens.
type program struct {
	cmd   *exec.Cmd
	url   string
	ready time.Duration // from before it was started until it listened
	done  chan struct{}
	tail  *tail
}

// launch starts a program and waits until it prints "listening on URL".
func launch(ctx context.Context, name string, args ...string) (*program, error) {
	p := prepare(exec.CommandContext(ctx, name, args...))
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			p.url, p.ready = url, time.Since(begin)
			break
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		p.wait()
	}()
	if p.url == "" {
		p.stop()
		return nil, fmt.Errorf("%s did not start: %s", filepath.Base(name), p.tail)
	}
	return p, nil
}

func prepare(cmd *exec.Cmd) *program {
	p := &program{cmd: cmd, done: make(chan struct{}), tail: &tail{}}
	cmd.Stderr = p.tail
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	return p
}

func (p *program) wait() {
	_ = p.cmd.Wait() // it is told to end, and how it does is of no interest
	close(p.done)
}

func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// cpu returns the user and system time that the process has used.
func (p *program) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name of the program stands in parentheses and may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("unexpected form of /proc/PID/stat")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, err
}

// onCPU returns how long the threads that the process has now were on a CPU. It
// is finer than cpu, and only for a process that is young.
func (p *program) onCPU() (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	sum := time.Duration(0)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that ended
		}
		spent, _, _ := strings.Cut(string(text), " ")
		nanos, err := strconv.ParseInt(spent, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(nanos)
	}
	return sum, nil
}

// resident returns the resident memory of the process in bytes.
func (p *program) resident() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no VmRSS in /proc/PID/status")
}

// tail keeps the end of what a program says on stderr.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	const most = 2 << 10
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-most):]
	return len(b), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }

// machine names what the run had at its disposal.
func machine() string {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("Measured on %d cores (%s), %s, load generator, upstream and gateway on the same machine.",
		runtime.NumCPU(), model, runtime.Version())
}
