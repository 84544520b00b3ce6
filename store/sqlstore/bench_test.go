package sqlstore_test

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

func benchKey(n int64) store.Key {
	id := identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"}
	return store.Key{Collection: "bench", Owner: store.Session(id), Name: fmt.Sprint("key", n%5000)}
}

func benchDB(b *testing.B) *sqlstore.DB {
	b.Helper()
	db, err := sqlstore.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func BenchmarkPut(b *testing.B) {
	db, value := benchDB(b), make([]byte, 300)
	var n int64
	for b.Loop() {
		n++
		if _, err := store.Put(b.Context(), db, benchKey(n), value, store.Any); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPutByMany(b *testing.B) {
	db, value := benchDB(b), make([]byte, 300)
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := store.Put(b.Context(), db, benchKey(n.Add(1)), value, store.Any); err != nil {
				b.Error(err)
			}
		}
	})
}

// A record that is made, changed and changed again, by many, which do not wait for
// the disk.
func BenchmarkStepsLaterByMany(b *testing.B) {
	db, value := benchDB(b), make([]byte, 2000)
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key, revision := store.Key{Collection: "bench", Owner: store.Global(), Name: fmt.Sprint("call", n.Add(1))}, store.Absent
			for range 3 {
				w := store.Write{Key: key, Value: value, If: revision, Expires: time.Now().Add(time.Hour), Due: time.Now().Add(time.Minute)}
				revisions, err := db.Apply(b.Context(), store.Batch{Writes: []store.Write{w}, Later: true})
				if err != nil {
					b.Error(err)
					return
				}
				revision = revisions[0]
			}
		}
	})
}

// Twenty records that are made in one batch, and changed in another, none of which
// waits for the disk, as two callers at once do it.
func BenchmarkStepsTogether(b *testing.B) {
	db, made, changed := benchDB(b), make([]byte, 2000), make([]byte, 1500)
	b.SetParallelism(1)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var batch store.Batch
			for range 20 {
				key := store.Key{Collection: "bench", Owner: store.Global(), Name: rand.Text()}
				batch.Writes = append(batch.Writes, store.Write{Key: key, Value: made, If: store.Absent, Expires: time.Now().Add(time.Hour), Due: time.Now().Add(time.Minute)})
			}
			batch.Later = true
			revisions, err := db.Apply(b.Context(), batch)
			if err != nil {
				b.Error(err)
				return
			}
			for i := range batch.Writes {
				w := &batch.Writes[i]
				w.Value, w.If, w.Expires, w.Due = changed, revisions[i], time.Now().Add(time.Hour), time.Time{}
			}
			if _, err := db.Apply(b.Context(), batch); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkGet(b *testing.B) {
	db := benchDB(b)
	for n := range int64(5000) {
		if _, err := store.Put(b.Context(), db, benchKey(n), make([]byte, 300), store.Any); err != nil {
			b.Fatal(err)
		}
	}
	var n int64
	for b.Loop() {
		n++
		if _, err := db.Get(b.Context(), benchKey(n)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	db, value := benchDB(b), make([]byte, 300)
	for b.Loop() {
		if _, err := db.Append(b.Context(), benchKey(1), value); err != nil {
			b.Fatal(err)
		}
	}
}

// One record after the other that is made and changed, none of which waits for the
// disk.
func BenchmarkStepsLater(b *testing.B) {
	db, value := benchDB(b), make([]byte, 2000)
	for b.Loop() {
		key, revision := store.Key{Collection: "bench", Owner: store.Global(), Name: rand.Text()}, store.Absent
		for range 2 {
			w := store.Write{Key: key, Value: value, If: revision, Expires: time.Now().Add(time.Hour), Due: time.Now().Add(time.Minute)}
			revisions, err := db.Apply(b.Context(), store.Batch{Writes: []store.Write{w}, Later: true})
			if err != nil {
				b.Fatal(err)
			}
			revision = revisions[0]
		}
	}
}
