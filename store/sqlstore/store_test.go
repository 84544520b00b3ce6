package sqlstore_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/store/storetest"
)

func open(ctx context.Context, path string, now func() time.Time) (store.Store, error) {
	db, err := sqlstore.Open(ctx, path, &sqlstore.Options{Now: now})
	if err != nil {
		return nil, err
	}
	return db, nil
}

func TestMain(m *testing.M) { storetest.Main(m, open) }

func TestFile(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	storetest.Run(t, storetest.Harness{Open: open, New: func(t *testing.T) string {
		return filepath.Join(t.TempDir(), "odd name?#%20ü", "toolcrib.db")
	}})
}

func TestMemory(t *testing.T) {
	storetest.Run(t, storetest.Harness{Private: true, New: func(*testing.T) string { return "" },
		Open: func(ctx context.Context, _ string, now func() time.Time) (store.Store, error) {
			return sqlstore.OpenMemory(ctx, &sqlstore.Options{Now: now})
		}})
}

func TestFileIsPrivateAndWhereItWasAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a%41?b#c.db")
	db, err := sqlstore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := store.Put(t.Context(), db, store.Key{Collection: "c", Owner: store.Global(), Name: "n"}, nil, store.Any); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 3 {
		t.Fatalf("files = %v, %v", files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !strings.HasPrefix(f.Name(), "a%41?b#c.db") || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestUnusableFileIsToldApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.Open(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), "not.db") {
		t.Errorf("Open = %v", err)
	}
}
