package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

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
