// Package howto checks that what is published for users of this module works for them: a module of
// their own compiles against the documented names, and documented configuration is read.
package howto

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// TestModuleOfAUser vets and tests testdata/module as a module of its own, which knows this one only by
// its import path and so only by what it exports.
func TestModuleOfAUser(t *testing.T) {
	root := peertest.Root(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "module"))); err != nil {
		t.Fatal(err)
	}
	writeModule(t, root, dir)
	for _, args := range [][]string{{"vet", "./..."}, {"test", raceFlag, "-count=1", "./..."}} {
		t.Run(args[0], func(t *testing.T) {
			cmd := exec.Command("go", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
}

// writeModule writes the user's go.mod: this module from its folder, and everything it depends on in the
// versions and with the checksums that it has itself, so that nothing is fetched or chosen anew.
func writeModule(t *testing.T, root, dir string) {
	t.Helper()
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", own, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := mod.Module.Mod.Path
	if err := mod.AddModuleStmt("example.com/tides"); err != nil {
		t.Fatal(err)
	}
	if err := mod.AddRequire(path, "v0.0.0"); err != nil {
		t.Fatal(err)
	}
	if err := mod.AddReplace(path, "", root, ""); err != nil {
		t.Fatal(err)
	}
	text, err := mod.Format()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"go.mod": text, "go.sum": sums} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
