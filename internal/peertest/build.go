package peertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mainpkg"
)

// Build compiles a main package of this module, named as for go build ("./cmd/toolcrib"), and returns the
// binary's path. Test processes share the binary through .cache/bin: a file lock admits one build at a
// time, and go build leaves a binary alone that is up to date.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	if pkg == mainpkg.Path {
		return build(t, pkg, "-tags="+mainpkg.Tags)
	}
	return build(t, pkg)
}

// BuildTool compiles a main package that tools.mod pins, such as [Fixture], and returns the binary's path.
func BuildTool(t testing.TB, pkg string) string {
	t.Helper()
	return build(t, pkg, "-modfile=tools.mod")
}

// Fixture is the server that the MCP conformance suite expects, as the Go SDK provides it. It is started
// with -http=HOST:PORT, and with -stateless=false for the revisions that have sessions.
const Fixture = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

func build(t testing.TB, pkg string, flags ...string) string {
	t.Helper()
	root := Root(t)
	dir := filepath.Join(root, ".cache", "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("peertest: %v", err)
	}
	unlock := lock(t, filepath.Join(dir, ".lock"))
	defer unlock()

	binary := filepath.Join(dir, filepath.Base(pkg))
	args := append([]string{"build", "-buildvcs=false"}, flags...)
	cmd := exec.Command("go", append(args, "-o", binary, pkg)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("peertest: go build %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// FreeAddr returns a loopback address, host and port, that nothing listens on at this moment. It is for
// peers that cannot choose a port themselves and report it.
func FreeAddr(t testing.TB) string {
	t.Helper()
	listener, err := listenLoopback()
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
