//go:build peers

package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// npmPath makes the pinned npm peers what npx finds in dir, and returns the folder of their Node. With the
// build tag peers, blocks that need npm are run.
func npmPath(t *testing.T, dir string) (path string, run bool) {
	t.Helper()
	if err := os.Symlink(filepath.Join(peertest.PeersDir(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(peertest.Node(t)), true
}
