package peertest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// childEnv turns this test binary into a child that the tests start.
const childEnv = "PEERTEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		child(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// child prints on both streams and then serves, echoes its input, or fails.
func child(mode string) {
	fmt.Fprintln(os.Stderr, "warming up")
	switch mode {
	case "serve":
		listener, err := listenLoopback()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("listening on http://%s\n", listener.Addr())
		_ = http.Serve(listener, http.NotFoundHandler())
	case "echo":
		var line string
		for {
			if _, err := fmt.Scanln(&line); err != nil {
				return
			}
			fmt.Println("got", line)
		}
	case "fail":
		fmt.Println("no luck")
		os.Exit(3)
	}
}

func childCommand(t *testing.T, mode string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+mode)
	return cmd
}

func TestProcessBecomesReadyAndStops(t *testing.T) {
	p := Start(t, childCommand(t, "serve"))
	url := p.Line(t, `listening on (http://\S+)`)[1]
	p.Answers(t, url)
	p.Stop()
	http.DefaultClient.CloseIdleConnections()
	if err := get(t.Context(), url); err == nil {
		t.Error("the stopped process still answers")
	}
	if p.Stdout() != "listening on "+url {
		t.Errorf("stdout = %q", p.Stdout())
	}
}

func TestProcessTakesInput(t *testing.T) {
	p := Start(t, childCommand(t, "echo"))
	fmt.Fprintln(p.Stdin, "one")
	p.Line(t, `^got one$`)
	if err := p.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t); err != nil {
		t.Errorf("Wait = %v, want a clean end", err)
	}
}

func TestProcessReportsItsExit(t *testing.T) {
	p := Start(t, childCommand(t, "fail"))
	var exit *exec.ExitError
	if err := p.Wait(t); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Wait = %v, want exit status 3", err)
	}
	p.Line(t, `no luck`)
	p.Line(t, `warming up`)
}

func TestTerminateEndsTheProcess(t *testing.T) {
	p := Start(t, childCommand(t, "serve"))
	p.Line(t, `listening on`)
	if err := p.Terminate(t); err == nil {
		t.Error("a child without a handler for SIGTERM ended with status 0")
	}
}

func TestNodeMajor(t *testing.T) {
	for version, want := range map[string]int{"v24.21.0\n": 24, "v9.1": 9, "": 0, "nonsense": 0} {
		if got := nodeMajor(version); got != want {
			t.Errorf("nodeMajor(%q) = %d, want %d", version, got, want)
		}
	}
}
