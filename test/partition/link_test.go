//go:build linux

package partition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// A link leads from the gateway to the far worker.
type link interface {
	// host is where the stream server listens.
	host() string
	// through returns the address at which the far worker reaches a port of host.
	through(t *testing.T, port string) string
	// far makes a command one at the other end.
	far(cmd *exec.Cmd) *exec.Cmd
	cut(t *testing.T)
	mend(t *testing.T)
}

// A cable is a link to a network namespace.
type cable struct {
	holder   *peertest.Process // has the namespace
	near     string            // name of the interface here
	from, to net.IP
}

// plug makes a namespace and the link to it. Links of one test have numbers of their own.
func plug(t *testing.T, n int) *cable {
	t.Helper()
	hold := self("hold")
	hold.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	c := &cable{holder: peertest.Start(t, hold), near: fmt.Sprintf("near%d", n), from: net.IPv4(10, 77, byte(n), 1), to: net.IPv4(10, 77, byte(n), 2)}
	run(t, "ip", "link", "add", c.near, "type", "veth", "peer", "name", "far", "netns", c.pid())
	run(t, "ip", "addr", "add", c.from.String()+"/24", "dev", c.near)
	run(t, "ip", "link", "set", c.near, "up")
	for _, args := range [][]string{{"ip", "addr", "add", c.to.String() + "/24", "dev", "far"}, {"ip", "link", "set", "far", "up"}, {"ip", "link", "set", "lo", "up"}} {
		c.inside(t, args...)
	}
	return c
}

func (c *cable) pid() string { return strconv.Itoa(c.holder.PID()) }

func (c *cable) host() string { return c.from.String() }

func (c *cable) through(_ *testing.T, port string) string { return net.JoinHostPort(c.host(), port) }

func (c *cable) far(cmd *exec.Cmd) *exec.Cmd {
	moved := exec.Command("nsenter", append([]string{"-t", c.pid(), "-n", "--"}, cmd.Args...)...)
	moved.Env = cmd.Env
	return moved
}

func (c *cable) inside(t *testing.T, args ...string) {
	t.Helper()
	run(t, "nsenter", append([]string{"-t", c.pid(), "-n", "--"}, args...)...)
}

// cut drops all packets without a word to whoever sends them.
func (c *cable) cut(t *testing.T) {
	t.Helper()
	run(t, "tc", "qdisc", "replace", "dev", c.near, "root", "blackhole")
	c.inside(t, "tc", "qdisc", "replace", "dev", "far", "root", "blackhole")
}

func (c *cable) mend(t *testing.T) {
	t.Helper()
	run(t, "tc", "qdisc", "del", "dev", c.near, "root")
	c.inside(t, "tc", "qdisc", "del", "dev", "far", "root")
}

func self(mode string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeVariable+"="+mode, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if err := command(name, args...); err != nil {
		t.Fatal(err)
	}
}

func command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", cmd.Args, err, bytes.TrimSpace(out))
	}
	return nil
}

// probe finds out, in a new namespace, whether all is there that a cable needs.
func probe() error {
	return errors.Join(command("ip", "link", "set", "lo", "up"), command("ip", "link", "add", "near", "type", "veth", "peer", "name", "far"),
		command("tc", "qdisc", "replace", "dev", "near", "root", "blackhole"))
}

// namespaces are the ways to one, of which the second is for those who are not root.
var namespaces = []func() *syscall.SysProcAttr{
	func() *syscall.SysProcAttr { return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET} },
	func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	},
}

// namespace returns what gives a process a namespace with all that a cable needs, or why that cannot be had.
func namespace() (*syscall.SysProcAttr, error) {
	var refused error
	for _, attr := range namespaces {
		cmd := self("probe")
		cmd.SysProcAttr = attr()
		out, err := cmd.CombinedOutput()
		if err == nil {
			return attr(), nil
		}
		refused = errors.Join(refused, fmt.Errorf("%w: %s", err, bytes.TrimSpace(out)))
	}
	return nil, refused
}

// A hose is a link over a proxy, for kernels that grant no namespace.
type hose struct {
	mu   sync.Mutex
	open chan struct{} // closed while bytes pass
}

func newHose() *hose {
	h := &hose{open: make(chan struct{})}
	close(h.open)
	return h
}

func (h *hose) host() string { return "127.0.0.1" }

func (h *hose) far(cmd *exec.Cmd) *exec.Cmd { return cmd }

func (h *hose) cut(*testing.T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = make(chan struct{})
}

func (h *hose) mend(*testing.T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.open)
}

func (h *hose) opened() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

func (h *hose) through(t *testing.T, port string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go h.join(in, net.JoinHostPort(h.host(), port))
		}
	}()
	return listener.Addr().String()
}

// join passes bytes on, both ways, until one side ends.
func (h *hose) join(in net.Conn, to string) {
	defer in.Close()
	<-h.opened()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(gated{pair[0], h}, pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// gated writes while the hose is open.
type gated struct {
	net.Conn
	hose *hose
}

// Write waits until bytes pass.
func (g gated) Write(p []byte) (int, error) {
	<-g.hose.opened()
	return g.Conn.Write(p)
}

// ReadFrom keeps io.Copy from going past Write.
func (g gated) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{g}, r)
}
