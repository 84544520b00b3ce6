package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/test/control"
)

// A program is the built binary while it serves.
type program struct {
	*peertest.Process
	url string
}

// serve starts the binary with these MCP servers.
func serve(t testing.TB, servers ...string) *program {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "toolcrib.yaml")
	// Results of the large tests do not fit the limit that holds without this, and the largest list is to be had whole.
	text := "limits: {max_message_bytes: 1073741824}\nmcp: {discovery: full}\n"
	if len(servers) > 0 {
		text += "tools:\n  mcp_servers:\n  - " + strings.Join(servers, "\n  - ") + "\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := peertest.Start(t, exec.Command(peertest.Build(t, "./cmd/toolcrib"), "serve", "-c", config, "--listen", "127.0.0.1:0", "--data", dir))
	return &program{Process: p, url: p.Line(t, `^listening on (http://\S+)`)[1]}
}

// family starts the binary with a child that has descendants: one in its group, one that has left it, one that has lost
// its parent besides, and one below such a one. It returns the ids of all, by what they are.
func family(t testing.TB, mode string) (p *program, members map[string]int) {
	t.Helper()
	desk := control.Open(t, nil)
	p = serve(t, child("kid", mode, desk, ""))
	members = map[string]int{"the child": number(t, strings.Fields(desk.Wait(t, "start", 1))[0])}
	c := connect(t, p.url+"/mcp", "2025-06-18")
	for what, tool := range map[string]string{"the grandchild": "kid_family", "that with a session of its own": "kid_stray", "that without a parent": "kid_daemon",
		"that below one without a parent": "kid_dynasty"} {
		members[what] = number(t, c.text(t, tool, `{}`))
	}
	for what, pid := range members {
		if !peertest.Alive(pid) {
			t.Fatalf("%s is not there", what)
		}
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); { // until they have been seen
		c.text(t, "kid_echo", `{}`)
	}
	return p, members
}

func expectAllGone(t testing.TB, members map[string]int) {
	t.Helper()
	for what, pid := range members {
		peertest.ExpectGone(t, pid, what)
	}
}

func TestNothingLeftAfterKill(t *testing.T) {
	for _, mode := range []string{"plain", "stubborn"} {
		t.Run(mode, func(t *testing.T) {
			p, members := family(t, mode)
			if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			expectAllGone(t, members)
		})
	}
}

func TestNothingLeftAfterTerminate(t *testing.T) {
	p, members := family(t, "stubborn")
	if err := p.Terminate(t); err != nil {
		t.Errorf("the binary ended with %v", err)
	}
	expectAllGone(t, members)
}

// What lost its parent ends with the child that it descends from, while another child lives on.
func TestNothingLeftAfterACrash(t *testing.T) {
	desk, other := control.Open(t, nil), control.Open(t, nil)
	p := serve(t, child("kid", "plain", desk, ""), child("other", "plain", other, ""))
	c := connect(t, p.url+"/mcp", "2025-06-18")
	stray, orphan := number(t, c.text(t, "kid_stray", `{}`)), number(t, c.text(t, "kid_daemon", `{}`))
	elder := number(t, c.text(t, "other_stray", `{}`))
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		c.text(t, "kid_echo", `{}`)
		c.text(t, "other_echo", `{}`)
	}
	desk.Order(t, "crash")
	peertest.ExpectGone(t, stray, "that with a session of its own")
	if !peertest.Alive(elder) {
		t.Error("what descends from the other child was ended")
	}
	other.Order(t, "crash") // from which the orphan could descend too
	peertest.ExpectGone(t, elder, "that of the other child")
	peertest.ExpectGone(t, orphan, "that without a parent")
}
