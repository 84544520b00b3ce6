package peertest

import (
	"os"
	"syscall"
	"testing"

	"github.com/toolcrib/toolcrib/internal/disk"
)

// memoryFiles is where Linux keeps files that are in memory.
const memoryFiles = "/dev/shm"

// Roomy returns a new directory for hundreds of megabytes, which goes with the test. It is where most is free: on the disk
// of temporary files, or in memory that is no process's own.
func Roomy(t testing.TB) string {
	t.Helper()
	base := ""
	if _, err := os.Stat(memoryFiles); err == nil && disk.Free(memoryFiles) > disk.Free(os.TempDir()) {
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

// SmallDisk mounts a file system of some size, such as "60m", and returns where. Where that is not allowed the test is
// skipped.
func SmallDisk(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a file system of its own cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}
