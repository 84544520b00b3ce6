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

// family starts the binary with a child that has two of its own, one of which has left its group, and returns the process
// ids of all.
func family(t testing.TB, mode string) (p *program, kid, grand, stray int) {
	t.Helper()
	desk := control.Open(t, nil)
	p = serve(t, child("kid", mode, desk, ""))
	kid = number(t, strings.Fields(desk.Wait(t, "start", 1))[0])
	c := connect(t, p.url+"/mcp", "2025-06-18")
	grand = number(t, c.text(t, "kid_family", `{}`))
	stray = number(t, c.text(t, "kid_stray", `{}`))
	if !peertest.Alive(kid) || !peertest.Alive(grand) || !peertest.Alive(stray) {
		t.Fatal("they are not there")
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); { // until the stray has been seen
		c.text(t, "kid_echo", `{}`)
	}
	return p, kid, grand, stray
}

func TestNothingLeftAfterKill(t *testing.T) {
	for _, mode := range []string{"plain", "stubborn"} {
		t.Run(mode, func(t *testing.T) {
			p, kid, grand, stray := family(t, mode)
			if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			peertest.ExpectGone(t, kid, "the child")
			peertest.ExpectGone(t, grand, "the grandchild")
			peertest.ExpectGone(t, stray, "the grandchild with a session of its own")
		})
	}
}

func TestNothingLeftAfterTerminate(t *testing.T) {
	p, kid, grand, stray := family(t, "stubborn")
	if err := p.Terminate(t); err != nil {
		t.Errorf("the binary ended with %v", err)
	}
	peertest.ExpectGone(t, kid, "the child")
	peertest.ExpectGone(t, grand, "the grandchild")
	peertest.ExpectGone(t, stray, "the grandchild with a session of its own")
}
