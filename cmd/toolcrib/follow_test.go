package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A file that grew beyond all measure is not taken into memory to be refused.
func TestReloadOfAHugeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolcrib.yaml")
	if err := os.WriteFile(file, []byte("tools: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 256<<20); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := (&plan{file: file}).reload(t.Context(), nil)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "the file is too large") {
		t.Errorf("got %v", err)
	}
	if read := after.TotalAlloc - before.TotalAlloc; read > 64<<20 {
		t.Errorf("it took %d bytes", read)
	}
}

func TestAFileSettlesBeforeItIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "toolcrib.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tools: {}")
	first, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	w := fileWatch{file: file, applied: first}
	logger := slog.New(slog.DiscardHandler)
	look := func(step string, want bool) {
		t.Helper()
		if got := w.settled(logger); got != want {
			t.Errorf("%s: settled = %v", step, got)
		}
	}
	look("unchanged", false)
	look("unchanged", false)
	write("tools: {built_in: [")
	look("half written", false)
	write("tools: {built_in: [text.echo]}")
	look("still being written", false)
	look("the same again", true)
	look("already applied", false)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	look("gone", false)
	look("still gone", false)
	write("tools: {built_in: [clock.now]}")
	look("back", false)
	look("back and settled", true)
}
