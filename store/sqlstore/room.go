package sqlstore

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/toolcrib/toolcrib/internal/disk"
	"github.com/toolcrib/toolcrib/store"
)

// room tells of a disk that is full: once when it is, and once when it is no longer.
type room struct {
	log  *slog.Logger
	dir  string // of the database; empty in memory
	full atomic.Bool
}

// note hears what became of a write.
func (r *room) note(err error) {
	switch {
	case errors.Is(err, store.ErrFull):
		if !r.full.Swap(true) {
			r.log.Error("the disk has no room for the database, and what needs to be recorded is refused", "folder", r.dir, "error", err)
		}
	case err == nil && r.full.Load() && r.full.Swap(false):
		r.log.Info("the disk has room for the database again", "folder", r.dir)
	}
}

// fullError is an error that is store.ErrFull as well.
type fullError struct{ error }

func (e *fullError) Unwrap() []error { return []error{store.ErrFull, e.error} }

// explained names the reason of an error of the database where it is the disk.
// SQLite says no more than "disk I/O error" of much that it runs into, and so what
// a small file in the folder runs into is said as well.
func explained(err error, dir string) error {
	var said *sqlite.Error
	if !errors.As(err, &said) {
		return err
	}
	switch said.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return &fullError{err}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return withCause(err, dir)
	}
	return err
}

func withCause(err error, dir string) error {
	if dir == "" {
		return err
	}
	cause := disk.Cause(dir)
	if cause == nil {
		return err
	}
	err = fmt.Errorf("%w: %w", err, cause)
	if disk.Full(cause) {
		return &fullError{err}
	}
	return err
}
