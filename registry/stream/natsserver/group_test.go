package natsserver

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/registry/stream"
)

func TestOrderOfFiles(t *testing.T) {
	for _, files := range [][2]string{{"", "1.blk"}, {"1.blk", "2.blk"}, {"9.blk", "10.blk"}, {"99.blk", "100.blk"}} {
		if !older(files[0], files[1]) || older(files[1], files[0]) || older(files[1], files[1]) {
			t.Errorf("%q is not older than %q", files[0], files[1])
		}
	}
}

func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A round syncs the newest file of the round before, which has grown since, and
// what came after it.
func TestRoundsFollowTheFiles(t *testing.T) {
	dir := t.TempDir()
	g := newGroups(dir, true)
	write(t, dir, "s/meta.inf", "s/meta.sum", "s/msgs/1.blk", "s/msgs/index.db")
	for _, step := range []struct {
		make, newest string
	}{{"", "1.blk"}, {"", "1.blk"}, {"s/msgs/2.blk", "2.blk"}, {"s/msgs/10.blk", "10.blk"}} {
		if step.make != "" {
			write(t, dir, step.make)
		}
		if err := g.Persist(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if got := g.streams["s"].last; got != step.newest {
			t.Errorf("the last file synced is %q, want %q", got, step.newest)
		}
	}
}

func TestOldFilesAreNotSyncedAgain(t *testing.T) {
	dir := t.TempDir()
	g := newGroups(dir, true)
	write(t, dir, "s/msgs/1.blk", "s/msgs/2.blk")
	if err := g.Persist(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	// A folder in the place of a file could be synced, a broken link cannot be
	// opened and counts as gone, but a link to itself is an error.
	for _, name := range []string{"1.blk", "3.blk"} {
		file := filepath.Join(dir, "s", "msgs", name)
		os.Remove(file) //nolint:errcheck // It may not be there.
		if err := os.Symlink(file, file); err != nil {
			t.Skip("no symbolic links here")
		}
		err := g.Persist(t.Context(), "s")
		if wantErr := name == "3.blk"; (err != nil) != wantErr || wantErr && !errors.Is(err, stream.ErrUnavailable) {
			t.Errorf("with a broken %s: %v", name, err)
		}
	}
}

func TestManyWaitForFewRounds(t *testing.T) {
	dir := t.TempDir()
	g := newGroups(dir, true)
	write(t, dir, "s/msgs/1.blk")
	var waiting sync.WaitGroup
	for range 500 {
		waiting.Go(func() {
			if err := g.Persist(t.Context(), "s"); err != nil {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	if err := g.Persist(t.Context(), "gone"); err != nil {
		t.Errorf("a stream that is gone: %v", err)
	}
	if err := newGroups("/nowhere", false).Persist(t.Context(), "s"); err != nil {
		t.Errorf("a server that syncs on its own: %v", err)
	}
}
