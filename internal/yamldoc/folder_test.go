package yamldoc_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolcrib/toolcrib/internal/yamldoc"
)

func each(t *testing.T, folder fs.FS) (files []string, faults []error) {
	t.Helper()
	err := yamldoc.Each(folder, func(file string) bool { return path.Ext(file) == ".yaml" }, func(file string, data []byte, err error) {
		if err != nil {
			faults = append(faults, err)
			return
		}
		files = append(files, file+"="+string(data))
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, faults
}

func TestEach(t *testing.T) {
	files, faults := each(t, fstest.MapFS{
		"b.yaml":              {Data: []byte("1")},
		"a/c.yaml":            {Data: []byte("2")},
		"a/c.txt":             {Data: []byte("no")},
		".git/d.yaml":         {Data: []byte("no")},
		"a/..data_1/d.yaml":   {Data: []byte("no")},
		".e.yaml":             {Data: []byte("3")},
		"pipe.yaml":           {Mode: fs.ModeNamedPipe},
		"large.yaml":          {Data: []byte(strings.Repeat(" ", 4<<20+1))},
		"folder.yaml/in.yaml": {Data: []byte("4")},
	})
	if want := []string{".e.yaml=3", "a/c.yaml=2", "b.yaml=1", "folder.yaml/in.yaml=4"}; !slices.Equal(files, want) {
		t.Errorf("got %q", files)
	}
	if err := errors.Join(faults...); err == nil ||
		err.Error() != "large.yaml: the file has more than 4194304 bytes\npipe.yaml: is not a regular file, nor a link to one" {
		t.Errorf("got %v", err)
	}
}

// A folder that is mounted with links to what is in force, as orchestrators do it,
// has each file once.
func TestEachFollowsLinksToFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "..data_1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..data_1", "a.yaml"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"..data": "..data_1", "a.yaml": filepath.Join("..data", "a.yaml"), "gone.yaml": "nowhere", "folder.yaml": "..data"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	files, faults := each(t, os.DirFS(dir))
	if !slices.Equal(files, []string{"a.yaml=1"}) || len(faults) != 2 || !errors.Is(faults[1], fs.ErrNotExist) {
		t.Errorf("got %q, %v", files, faults)
	}
}
