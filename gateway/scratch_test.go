//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package gateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/artifacts"
)

func TestTheFolderOfLargeResultsComesWithTheFirst(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	g, err := Open(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("a start made %v", left)
	}
	if _, err := g.Artifacts().Put(g.LocalContext(t.Context()), strings.NewReader("x"), artifacts.Meta{}); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 1 || !strings.HasPrefix(left[0].Name(), scratchPrefix) {
		t.Errorf("the first made %v", left)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestAStartNeedsNoFolderForTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	g, err := Open(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Artifacts().Put(g.LocalContext(t.Context()), strings.NewReader("x"), artifacts.Meta{}); err == nil || !strings.Contains(err.Error(), "no folder can be made") {
		t.Errorf("%v", err)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	parent := t.TempDir()
	abandoned, lock, err := makeScratch(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil { // as the end of a process does
		t.Fatal(err)
	}
	used, inUse, err := makeScratch(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer inUse.Close()
	fresh, other := filepath.Join(parent, scratchPrefix+"new"), filepath.Join(parent, "other")
	for _, dir := range []string{fresh, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := clearScratch(parent); err != nil {
		t.Error(err)
	}
	for dir, want := range map[string]bool{abandoned: false, used: true, fresh: true, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", dir, err == nil, want)
		}
	}
}
