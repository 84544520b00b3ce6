package peertest

import (
	"os"
	"syscall"
	"testing"
)

// memoryFiles is where Linux keeps files that are in memory.
const memoryFiles = "/dev/shm"

// Roomy returns a new directory for hundreds of megabytes, which goes with the test. It is where most is free: on the disk
// of temporary files, or in memory that is no process's own.
func Roomy(t testing.TB) string {
	t.Helper()
	base := ""
	if free(memoryFiles) > free(os.TempDir()) {
		base = memoryFiles
	}
	dir, err := os.MkdirTemp(base, "toolcrib-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// free is how many bytes a file system has left for this user, or zero where there is none.
func free(dir string) uint64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}
