package gateway_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/gateway"
)

// The data folder may be one that has files of the user's, such as a home.
func TestFolderOfLongAnswersKeepsWhatIsNotItsOwn(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "scratch")
	if err := os.MkdirAll(filepath.Join(folder, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	mine, left := filepath.Join(folder, "thesis.txt"), filepath.Join(folder, "toolcrib-message-123")
	for _, name := range []string{mine, left} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, err := gateway.Open(t.Context(), &gateway.Config{DataDir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{mine, filepath.Join(folder, "empty")} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("%s is gone: %v", filepath.Base(name), err)
		}
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a killed process left is still there: %v", err)
	}
}
