package sqlstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

// The log of a database that is written without a pause begins anew from time to
// time, and what was in it is in the file.
func TestLogStaysShort(t *testing.T) {
	const page, records, rounds, most = 4096, 250, 120, 16000 // pages
	path := filepath.Join(t.TempDir(), "busy.db")
	db, err := sqlstore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	value := make([]byte, page)
	for round := range rounds {
		b := store.Batch{Later: true}
		for n := range records {
			value[0] = byte(round)
			b.Writes = append(b.Writes, store.Write{Key: numbered(n), Value: append([]byte(nil), value...), If: store.Any})
		}
		if _, err := db.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if pages := log.Size() / page; pages > most {
		t.Errorf("the log has %d pages after %d writes of one", pages, records*rounds)
	}
	if r, err := db.Get(t.Context(), numbered(records-1)); err != nil || len(r.Value) != page || r.Value[0] != rounds-1 {
		t.Errorf("the last write: %d bytes, %v", len(r.Value), err)
	}
}
