package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

// blocked returns a database whose write lock another connection holds until
// release is called.
func blocked(t *testing.T, opts *sqlstore.Options) (db *sqlstore.DB, release func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "blocked.db")
	db, err := sqlstore.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = errors.Join(tx.Rollback(), other.Close()) })
	t.Cleanup(func() {
		release()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, release
}

func numbered(n int) store.Key {
	return store.Key{Collection: "c", Owner: store.Global(), Name: fmt.Sprint(n)}
}

// No two writes have the same revision, whichever processes they come from, also after
// a transaction was undone in which revisions were taken from their counter.
func TestRevisionsOfSeveralProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	seen := map[store.Revision]bool{}
	var open [3]*sqlstore.DB
	for i := range open {
		var err error
		if open[i], err = sqlstore.Open(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		half := store.Batch{Writes: []store.Write{{Key: numbered(i)}, {Key: numbered(-1), If: 12345}}}
		if _, err := open[i].Apply(t.Context(), half); !errors.Is(err, store.ErrConflict) {
			t.Errorf("a revision that no record has = %v", err)
		}
	}
	for n := range 90 {
		var batch store.Batch
		for k := range 50 { // so that they need more than were taken at once
			batch.Writes = append(batch.Writes, store.Write{Key: numbered(k)})
		}
		revisions, err := open[n%3].Apply(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range revisions {
			if seen[r] {
				t.Fatalf("batch %d has the revision %d, and there was one before", n, r)
			}
			seen[r] = true
		}
	}
	for _, db := range open {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Writes that wait for another process are committed together afterwards, and one
// that fails takes none of the others with it.
func TestWaitingWritesAreCommittedTogether(t *testing.T) {
	db, release := blocked(t, nil)
	const writers = 100
	faults := make([]error, writers)
	var begun, wg sync.WaitGroup
	begun.Add(writers)
	for n := range writers {
		condition := store.Absent
		if n%3 == 0 {
			condition = 12345 // no record has it
		}
		wg.Go(func() {
			begun.Done()
			_, faults[n] = db.Apply(t.Context(), store.Batch{Writes: []store.Write{
				{Key: store.Key{Collection: "half", Owner: store.Global(), Name: fmt.Sprint(n)}}, {Key: numbered(n), If: condition}}})
		})
	}
	begun.Wait()
	release()
	wg.Wait()
	for n, err := range faults {
		_, whole := db.Get(t.Context(), numbered(n))
		_, half := db.Get(t.Context(), store.Key{Collection: "half", Owner: store.Global(), Name: fmt.Sprint(n)})
		if n%3 != 0 && (err != nil || whole != nil || half != nil) {
			t.Errorf("write %d: %v, %v, %v", n, err, whole, half)
		}
		if n%3 == 0 && (!errors.Is(err, store.ErrConflict) || !errors.Is(whole, store.ErrNotFound) || !errors.Is(half, store.ErrNotFound)) {
			t.Errorf("write %d: %v, %v, %v, want a conflict and nothing written", n, err, whole, half)
		}
	}
}

// Writes that do not wait for the disk go along with those that do, and their
// conditions hold among each other.
func TestWritesOfBothKinds(t *testing.T) {
	db, release := blocked(t, nil)
	const writers = 40
	won := make([]error, 2*writers)
	var begun, wg sync.WaitGroup
	begun.Add(2 * writers)
	for n := range 2 * writers {
		wg.Go(func() {
			begun.Done()
			_, won[n] = db.Apply(t.Context(), store.Batch{Later: n%2 == 0, Writes: []store.Write{{Key: numbered(n / 2), Value: []byte{byte(n)}, If: store.Absent}}})
		})
	}
	begun.Wait()
	release()
	wg.Wait()
	for n := range writers {
		first, second := won[2*n], won[2*n+1]
		if (first == nil) == (second == nil) || !errors.Is(errors.Join(first, second), store.ErrConflict) {
			t.Errorf("two who make record %d: %v, %v; want one and a conflict", n, first, second)
		}
		r, err := db.Get(t.Context(), numbered(n))
		want := byte(2 * n)
		if first != nil {
			want++
		}
		if err != nil || len(r.Value) != 1 || r.Value[0] != want {
			t.Errorf("record %d = %v, %v, want that of who won", n, r.Value, err)
		}
	}
}

// A caller that goes away while its write waits leaves nothing behind.
func TestWritesThatAreGivenUp(t *testing.T) {
	db, release := blocked(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := store.Put(ctx, db, numbered(1), nil, store.Any); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put = %v", err)
	}
	release()
	if _, err := store.Put(t.Context(), db, numbered(2), nil, store.Any); err != nil {
		t.Errorf("Put afterwards = %v", err)
	}
	if _, err := db.Get(t.Context(), numbered(1)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of what was given up = %v", err)
	}
}

// A write does not wait for ever.
func TestWritesThatWaitTooLong(t *testing.T) {
	db, release := blocked(t, &sqlstore.Options{BusyTimeout: 30 * time.Millisecond})
	if _, err := store.Put(t.Context(), db, numbered(1), nil, store.Any); err == nil || errors.Is(err, store.ErrConflict) {
		t.Errorf("Put = %v", err)
	}
	release()
	if _, err := store.Put(t.Context(), db, numbered(1), nil, store.Absent); err != nil {
		t.Errorf("Put afterwards = %v", err)
	}
}
