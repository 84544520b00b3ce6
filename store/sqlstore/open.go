package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/toolcrib/toolcrib/store"
)

// Options adjusts a store. Nil means the defaults.
type Options struct {
	// Now is the clock by which records and leases expire. Nil means
	// time.Now. Processes that share a file must have clocks that agree.
	Now func() time.Time
	// Readers is how many reads may run at once; zero means 4.
	Readers int
	// BusyTimeout is how long a write waits for another process; zero means
	// 10 seconds.
	BusyTimeout time.Duration
	// Logger hears when the disk is full, and when there is room again; nil is
	// silent.
	Logger *slog.Logger
}

const (
	defaultReaders = 4
	defaultBusy    = 10 * time.Second
	// sweepEvery is how many writes there are to one removal of what expired.
	sweepEvery = 64
)

// DB is a store in a SQLite database.
type DB struct {
	write, read *sql.DB
	reads       statements
	commits     committer
	log         checkpointer // not started in memory
	now         func() time.Time
	writes      atomic.Uint64
	closed      atomic.Bool
	room        room
}

var _ store.Store = (*DB)(nil)

// Open opens the database in a file, which it makes when it is not there,
// readable by its owner alone. Every commit is on the disk before it is
// acknowledged, but for batches that say Later.
func Open(ctx context.Context, path string, opts *Options) (*DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	if err := createPrivate(abs); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	db, err := open(ctx, abs, url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", fmt.Sprintf("wal_autocheckpoint(%d)", mostPages)}}, opts)
	if err != nil {
		return nil, explained(err, filepath.Dir(abs))
	}
	db.room.dir = filepath.Dir(abs)
	db.log.start(db)
	return db, nil
}

// OpenMemory opens a new database in memory, for tests and for programs that
// keep nothing. It goes when it is closed.
func OpenMemory(ctx context.Context, opts *Options) (*DB, error) {
	return open(ctx, "/toolcrib-"+rand.Text(), url.Values{"vfs": {"memdb"}}, opts)
}

// createPrivate makes the file, so that SQLite gives its own permissions to the
// files that it puts beside it.
func createPrivate(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func open(ctx context.Context, path string, query url.Values, opts *Options) (*DB, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Readers <= 0 {
		o.Readers = defaultReaders
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusy
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	// The wait for other processes is set first: switching to the journal takes
	// a lock too.
	query["_pragma"] = append([]string{fmt.Sprintf("busy_timeout(%d)", o.BusyTimeout.Milliseconds())}, query["_pragma"]...)
	query.Set("_txlock", "immediate")
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: query.Encode()}).String()
	db := &DB{now: o.Now, room: room{log: o.Logger}}
	db.commits.begin = make(chan struct{}, 1)
	var err error
	if db.write, err = pool(name, 1); err != nil {
		return nil, err
	}
	if err := db.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlstore: opening %s: %w", filepath.Base(path), err), db.write.Close())
	}
	if db.read, err = pool(name, o.Readers); err != nil {
		return nil, errors.Join(err, db.write.Close())
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlstore: %w", err), db.Close())
	}
	db.reads.db = db.read
	db.commits.db, db.commits.tx = db, &tx{conn: conn, ready: map[string]*sql.Stmt{}, synced: true}
	db.commits.ended.Go(db.commits.run)
	return db, nil
}

// pool opens a pool whose connections stay open, as memory that nobody is
// connected to is gone.
func pool(name string, size int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// Close closes the database. Writes that were handed in end first.
func (db *DB) Close() error {
	if db.commits.close() {
		return nil
	}
	db.commits.ended.Wait()
	db.log.end()
	var fault error
	if t := db.commits.tx; t != nil {
		fault = t.close()
	}
	return errors.Join(fault, db.read.Close(), db.write.Close())
}

// fault names an error of the database, and tells that it was closed meanwhile.
func (db *DB) fault(err error) error {
	if err == nil {
		return nil
	}
	if expected(err) {
		return err
	}
	if db.closed.Load() {
		return store.ErrClosed
	}
	return explained(fmt.Errorf("sqlstore: %w", err), db.room.dir)
}

// expected reports whether an error is one that the store's interfaces name, and
// not one of the database.
func expected(err error) bool {
	for _, known := range []error{store.ErrNotFound, store.ErrConflict, store.ErrInvalid, store.ErrTooLarge, store.ErrLeaseHeld,
		store.ErrLeaseLost, store.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// removeExpired removes a bounded number of rows that no reader sees any more.
func (db *DB) removeExpired(ctx context.Context, tx *tx) error {
	now := db.now().UnixMilli()
	for _, statement := range []string{
		"delete from records where rowid in (select rowid from records where expires > 0 and expires <= ? limit 256)",
		"delete from leases where rowid in (select rowid from leases where expires <= ? limit 256)",
	} {
		if err := tx.exec(ctx, statement, now); err != nil {
			return err
		}
	}
	return nil
}

// millis is how the database keeps an instant; 0 is never.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 1)
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
