//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream/connect"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"toolcrib":    main,
		"mcp-fixture": serveFixture,
	})
}

func TestScripts(t *testing.T) {
	takeHangups(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":      status,
			"bigfile":     bigFile,
			"fifo":        fifo,
			"serve":       serve,
			"kill-server": killServer,
			"paste":       paste,
			"logged":      logged,
			"served":      served,
			"get":         get,
			"request":     request,
		},
		Setup: func(env *testscript.Env) error {
			env.Values[serverKey{}] = new(server)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv(serverEnv, "")
			return nil
		},
	})
}

// takeHangups has what a test starts end on SIGHUP, also when the tests themselves
// were started to ignore it, as by nohup.
func takeHangups(t *testing.T) {
	if !signal.Ignored(syscall.SIGHUP) {
		return
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
}

// status runs a command that must end with the given status:
//
//	status 3 toolcrib call nosuch
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [argument…]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if want := args[0]; strconv.Itoa(got) != want {
		ts.Fatalf("ended with status %d, want %s", got, want)
	}
}

// bigFile writes a JSON object whose member "message" has that many bytes:
//
//	bigfile NAME BYTES
func bigFile(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := bytes.Repeat([]byte("x"), n)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), fmt.Appendf(nil, `{"message":"%s"}`, text), 0o644))
}

// fifo makes named pipes, on which processes wait for each other.
func fifo(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(syscall.Mkfifo(ts.MkAbs(name), 0o600))
	}
}

// get asks for a URL, which must answer with the given status, and shows the
// body as stdout:
//
//	get URL STATUS
func get(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
	if got := strconv.Itoa(resp.StatusCode); got != args[1] {
		ts.Fatalf("got status %s, want %s", got, args[1])
	}
}

// request puts a message on the request stream of a toolset, past the gateway:
//
//	request TOOLSET MESSAGE
func request(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := connect.Client(ctx, ts.ReadFile("data/streams/address"), &connect.Options{TokenFile: ts.MkAbs("data/streams/token")})
	ts.Check(err)
	defer client.Close()
	s, err := client.Stream(ctx, registry.RequestStream(args[0]), nil)
	ts.Check(err)
	_, err = s.Add(ctx, registry.TypeCall, []byte(args[1]))
	ts.Check(err)
}

type serverKey struct{}

// server is the toolcrib that a script serves with.
type server struct {
	cmd            *exec.Cmd
	stdout, stderr transcript
	lines          chan string // of stdout
	ended          chan struct{}
	err            error
}

// transcript keeps what a process prints.
type transcript struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{} // holds one; nil when nobody waits
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.wrote <- struct{}{}:
	default:
	}
	return t.text.Write(b)
}

// logged waits until the server's stderr holds a text.
func logged(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	limit := time.After(time.Minute)
	for !strings.Contains(s.stderr.String(), args[0]) {
		select {
		case <-s.stderr.wrote:
		case <-s.ended:
			ts.Fatalf("the server ended with %v\n%s", s.err, s.stderr.String())
		case <-limit:
			ts.Fatalf("the server did not log %q\n%s", args[0], s.stderr.String())
		}
	}
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// serve starts toolcrib serve on a free port with further arguments, waits
// until it serves, and sets $SERVER to its URL and $ADDR to host and port. It
// is killed when the script ends.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	*s = server{ended: make(chan struct{}), lines: make(chan string, 1000), stderr: transcript{wrote: make(chan struct{}, 1)}}
	bin, err := exec.LookPath("toolcrib")
	ts.Check(err)
	s.cmd = exec.Command(bin, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Dir = ts.MkAbs(".")
	s.cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "PATH="+ts.Getenv("PATH"))
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	go s.watch(out)
	ts.Defer(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	})
	url, _ := strings.CutPrefix(s.line(ts, "listening on "), "listening on ")
	ts.Setenv("SERVER", url)
	ts.Setenv("ADDR", strings.TrimPrefix(url, "http://"))
}

// watch reads stdout to its end and waits for the process.
func (s *server) watch(out io.Reader) {
	defer close(s.ended)
	lines := bufio.NewScanner(io.TeeReader(out, &s.stdout))
	for lines.Scan() {
		s.lines <- lines.Text()
	}
	s.err = s.cmd.Wait()
}

// line waits for a line of stdout that holds a text.
func (s *server) line(ts *testscript.TestScript, text string) string {
	limit := time.After(time.Minute)
	for {
		select {
		case line := <-s.lines:
			if strings.Contains(line, text) {
				return line
			}
		case <-s.ended:
			ts.Fatalf("the server ended with %v\n%s", s.err, s.stderr.String())
		case <-limit:
			ts.Fatalf("the server did not print %q\n%s", text, s.stderr.String())
		}
	}
}

// paste runs the line that the server printed and that holds a text, as a
// person does who copies it into another terminal.
func paste(ts *testscript.TestScript, _ bool, args []string) {
	line := ts.Value(serverKey{}).(*server).line(ts, args[0])
	ts.Check(ts.Exec("sh", "-c", line))
}

// killServer sends the server a signal: TERM, INT, HUP or KILL.
func killServer(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	signal := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[args[0]]
	ts.Check(s.cmd.Process.Signal(signal))
}

// served waits until the server has ended with the given status, and puts what
// it printed into the files serve.stdout and serve.stderr.
func served(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serverKey{}).(*server)
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		ts.Fatalf("the server has not ended\n%s", s.stderr.String())
	}
	ts.Logf("[serve stdout]\n%s[serve stderr]\n%s", s.stdout.String(), s.stderr.String())
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs("."), "serve.stdout"), []byte(s.stdout.String()), 0o644))
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs("."), "serve.stderr"), []byte(s.stderr.String()), 0o644))
	if got := strconv.Itoa(s.cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("the server ended with status %s, want %s", got, args[0])
	}
}
