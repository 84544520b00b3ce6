package peertest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// Patience bounds what must happen at some time; it decides only how long a failure takes.
const Patience = 30 * time.Second

// Bounded returns a context that ends after Patience, or with the test.
func Bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Receive returns what comes from a channel. The test fails when nothing does within Patience.
func Receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("peertest: nothing came within %s", Patience)
		panic("unreachable")
	}
}

// Log is a log that a test can read while it is written. The zero value is empty. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Logger returns a logger that writes to the log from a level on, as text.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}
