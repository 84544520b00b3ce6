//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// scratchAttempts bounds how often a folder is made anew because another process
// took it for an abandoned one before it was locked.
const scratchAttempts = 10

// makeScratch makes a folder in parent, and returns the file by whose lock it is in
// use.
func makeScratch(parent string) (dir string, lock *os.File, err error) {
	for range scratchAttempts {
		if dir, err = os.MkdirTemp(parent, scratchPrefix); err != nil {
			return "", nil, err
		}
		if lock, err = claim(filepath.Join(dir, scratchLock), os.O_CREATE|os.O_EXCL); err == nil {
			return dir, lock, nil
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return "", nil, err
}

// clearScratch removes from parent what processes of the same user have left
// behind. A folder without a lock file is not touched: it is about to get one.
func clearScratch(parent string) error {
	left, err := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"))
	if err != nil {
		return err
	}
	var faults []error
	for _, dir := range left {
		if !ours(dir) {
			continue
		}
		lock, err := claim(filepath.Join(dir, scratchLock), 0)
		if err != nil {
			continue // in use, or not complete
		}
		faults = append(faults, os.RemoveAll(dir), lock.Close())
	}
	return errors.Join(faults...)
}

// ours reports whether this is a folder of the user's that nobody else can change.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// claim opens a file and locks it, without waiting for who has the lock. The error
// also says that the file has been removed since it was opened.
func claim(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockAt(f, name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func lockAt(f *os.File, name string) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%s is locked: %w", name, err)
	}
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !os.SameFile(opened, there) {
		return fmt.Errorf("%s was replaced", name)
	}
	return nil
}
