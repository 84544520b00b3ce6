// Package disk tells why something cannot be written, and how much can be.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Full reports whether an error says that there is no room, on the disk or within
// what its user may take of it.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// probeBytes is more than one block of a file system, so that room for it is not
// found in a block that is there already.
const probeBytes = 16 << 10

// Cause returns why a file in a folder can be neither made nor written, or nil when
// it can. It is for failures that do not say so themselves. The file is removed, and
// the error does not name it.
func Cause(dir string) error {
	err := try(dir)
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s in %s: %w", fault.Op, dir, fault.Err)
	}
	return err
}

func try(dir string) error {
	f, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeBytes))
	if err == nil {
		err = f.Sync() // some file systems find out no earlier
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if removed := os.Remove(f.Name()); err == nil {
		err = removed
	}
	return err
}
