package natsserver_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
)

// lines is a log of which each line is received.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// await receives lines until one holds a text.
func (l lines) await(t *testing.T, text string) string {
	t.Helper()
	for limit := within(t, time.Minute); ; {
		select {
		case line := <-l:
			if strings.Contains(line, text) {
				return line
			}
		case <-limit.Done():
			t.Fatalf("the log does not say %q", text)
		}
	}
}

// What keeps the store from being opened again is said with its cause, and once.
func TestWhyTheStoreStaysClosed(t *testing.T) {
	log := make(lines, 1000)
	dir := filepath.Join(t.TempDir(), "streams")
	s := start(t, dir, &natsserver.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	away := dir + ".away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	natsserver.FailWrite(s)
	const said = "cannot be opened again yet"
	if line := log.await(t, said); !strings.Contains(line, "not a directory") {
		t.Errorf("the cause is missing: %s", line)
	}
	<-within(t, 2500*time.Millisecond).Done() // It is tried twice more.
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if line := log.await(t, "opened again"); !strings.Contains(line, "was opened again") {
		t.Errorf("it is said again: %s", line)
	}
}
