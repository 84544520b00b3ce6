package natsstream_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// serverVariable makes the test's own binary a NATS server with that
// configuration file.
const serverVariable = "TOOLCRIB_TEST_NATS_CONFIG"

const readyLine = "ready"

// startLimit bounds how long a server takes to read its streams.
const startLimit = time.Minute

// serve runs a server until it is interrupted, and exits.
func serve(config string) {
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	options.NoSigs = true
	s, err := server.NewServer(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	s.Start()
	if s.ReadyForConnections(startLimit) {
		fmt.Println(readyLine)
	}
	<-interrupted
	s.Shutdown()
	s.WaitForShutdown()
	os.Exit(0)
}

// process is a server in a process of its own.
type process struct {
	config string
	cmd    *exec.Cmd
}

func startProcess(t *testing.T, config string) *process {
	p := &process{config: config}
	p.start(t)
	t.Cleanup(func() { p.end(t, os.Interrupt) })
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0], "-test.run=^$")
	p.cmd.Env = append(os.Environ(), serverVariable+"="+p.config)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != readyLine {
		t.Fatalf("the server said %q, %v", line, err)
	}
}

func (p *process) end(t *testing.T, how os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(how); err != nil {
		t.Errorf("signalling the server: %v", err)
	}
	p.cmd.Wait() //nolint:errcheck // A killed process ends with an error.
}

func (p *process) restart(t *testing.T, how os.Signal) {
	t.Helper()
	p.end(t, how)
	p.start(t)
}
