package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFollowLooksAtTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toolcrib.yaml")
	written := time.Now().Add(-time.Hour)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		written = written.Add(time.Second) // a state of its own, whatever the file system counts in
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	write("tools: {built_in: [text.echo]}")
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	ctx := context.Background()
	g, err := Open(ctx, cfg, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(ctx)
	f := follower{g: g, path: path, applied: stamp(path)}
	f.seen = f.applied
	has := func(name string) bool {
		_, ok := g.cat.Resolve(name)
		return ok
	}

	write("tools: {built_in: [clock.now]}")
	f.look(ctx)
	if !has("text.echo") || has("clock.now") {
		t.Fatal("the file was read while it may still be written")
	}
	f.look(ctx)
	if has("text.echo") || !has("clock.now") {
		t.Fatal("the change was not applied")
	}

	write("tools: {built_in: [clock.never]}")
	f.look(ctx)
	f.look(ctx)
	f.look(ctx)
	if !has("clock.now") || strings.Count(log.String(), "clock.never") != 1 {
		t.Fatalf("a wrong file must be refused, and that said once:\n%s", &log)
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.look(ctx)
	f.look(ctx)
	if !has("clock.now") {
		t.Fatal("a file that is gone changed something")
	}
	write("tools: {built_in: [text.echo]}")
	f.look(ctx)
	f.look(ctx)
	if !has("text.echo") || has("clock.now") {
		t.Fatal("the mended file was not applied")
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g, err := Open(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.Background())
	g.Follow(ctx, "nothing.yaml")
}

func TestRetriesSlowDown(t *testing.T) {
	for failures, longest := range map[int]time.Duration{1: firstRetry, 2: 2 * firstRetry, 5: 16 * firstRetry, 50: longestRetry, 5000: longestRetry} {
		for range 100 {
			if got := retryAfter(failures); got > longest || got < longest*3/4-1 {
				t.Errorf("after %d failures: %v, want at most %v and at least three quarters of it", failures, got, longest)
			}
		}
	}
}
