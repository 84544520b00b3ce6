//go:build unix

package mcpwire_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

func TestNoisyChild(t *testing.T) {
	tr := child(t, "noisy")
	ready := make(chan int, 1)
	first := 0
	tr.Stderr = func(line string) {
		if line == "ready" {
			ready <- first
			return
		}
		first += len(line)
	}
	c := connect(t, tr, nil)
	if n := <-ready; n != 8<<10 {
		t.Errorf("%d bytes of a line of standard error", n)
	}
	if n := c.Stats().Noise; n != 2 {
		t.Errorf("%d lines of noise", n)
	}
}

func TestStubbornChildAndItsChildEnd(t *testing.T) {
	tr := child(t, "stubborn")
	tr.CloseGrace = 20 * time.Millisecond
	grandchild := make(chan string, 1)
	tr.Stderr = func(line string) { grandchild <- line }
	c, err := mcpwire.Connect(t.Context(), tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	pid := childPID(t, c)
	gpid, _ := strconv.Atoi(<-grandchild)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	peertest.ExpectGone(t, pid, "the child")
	peertest.ExpectGone(t, gpid, "the grandchild")
}

func childPID(t testing.TB, c *mcpwire.Client) int {
	t.Helper()
	raw, err := c.Call(t.Context(), "test/pid", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := rawjson.Get(raw, "pid")
	pid, _ := strconv.Atoi(string(v))
	return pid
}

// quick is a server in a few lines of shell, for tests that start many.
const quick = `read l
printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
cat >/dev/null`

func TestNothingIsLeftBehind(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc")
		}
		return len(entries)
	}
	tr := &mcpwire.ChildTransport{Command: []string{"/bin/sh", "-c", quick}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stderr: func(string) {}}
	before := 0
	for i := range 100 {
		c, err := mcpwire.Connect(t.Context(), tr, &mcpwire.ClientOptions{Version: mcpwire.Version20250618})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			before = open()
		}
	}
	if after := open(); after > before {
		t.Errorf("%d files open, %d after the first", after, before)
	}
}

func TestChildDiesWithItsParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{roleEnv + "=orphan"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	v, _ := rawjson.Get([]byte(strings.Fields(line)[0]), "pid")
	pid, _ := strconv.Atoi(string(v))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	peertest.ExpectGone(t, pid, "the child")
}

func TestServerThatEndsOnDiscover(t *testing.T) {
	c := connect(t, child(t, "crash"), nil)
	if got := c.Server().Version; got != mcpwire.Version20250618 {
		t.Errorf("version %s", got)
	}
	done := callAsync(t.Context(), c, "x", nil)
	got := <-done
	if !errors.Is(got.err, mcpwire.ErrClosed) || !strings.Contains(got.err.Error(), "exit status 4") {
		t.Errorf("a call on a server that ends: %v", got.err)
	}
}

func TestCommandThatDoesNotExist(t *testing.T) {
	_, err := mcpwire.Connect(t.Context(), &mcpwire.ChildTransport{Command: []string{"/no/such/program"}}, nil)
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("got %v", err)
	}
}
