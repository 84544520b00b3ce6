//go:build unix

package yamldoc_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe to which nobody writes is refused and not waited for.
func TestEachDoesNotWaitForAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	if files, faults := each(t, os.DirFS(dir)); len(files) != 0 || len(faults) != 1 {
		t.Errorf("got %q, %v", files, faults)
	}
}
