package disk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/internal/disk"
)

// Linux has a device that is always full.
func TestFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Write([]byte("x"))
	if !disk.Full(fmt.Errorf("keeping it: %w", err)) {
		t.Errorf("%v is not known to mean that there is no room", err)
	}
	if disk.Full(fs.ErrPermission) || disk.Full(nil) {
		t.Error("any failure is taken for a full disk")
	}
}

func TestCause(t *testing.T) {
	dir := t.TempDir()
	if err := disk.Cause(dir); err != nil {
		t.Errorf("a folder that can be written: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := disk.Cause(filepath.Join(dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: got %v", err)
	}
}
