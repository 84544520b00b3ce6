package mcptool

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

const (
	// stderrRate and stderrBurst bound how many lines of a child's standard
	// error reach the log, in a second and at once.
	stderrRate  = 20
	stderrBurst = 200
	// maxStderrLine bounds one of them, in bytes.
	maxStderrLine = 2 << 10
	// lastWords is how many lines are kept for the error that says why a child
	// ended.
	lastWords = 6
)

// A stderrLog passes a child's standard error on to the log, bounded and
// labelled, without the secrets that the child was given.
type stderrLog struct {
	log     *slog.Logger
	secrets secrets
	limit   *rate.Limiter

	mu      sync.Mutex
	last    []string // lines that were not blank
	skipped int
}

func newStderrLog(log *slog.Logger, s secrets) *stderrLog {
	return &stderrLog{log: log, secrets: s, limit: rate.NewLimiter(stderrRate, stderrBurst)}
}

// line takes one line.
func (l *stderrLog) line(text string) {
	text = bound(l.secrets.clean(strings.TrimRight(text, " \t\r")), maxStderrLine)
	if strings.TrimSpace(text) == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, text)
	l.last = l.last[max(0, len(l.last)-lastWords):]
	if !l.limit.Allow() {
		l.skipped++
		return
	}
	if l.skipped > 0 {
		l.log.Warn("lines of the server's stderr left out of the log", "lines", l.skipped)
		l.skipped = 0
	}
	l.log.Log(context.Background(), slog.LevelInfo, "stderr of the server", "line", text)
}

// begin forgets the lines of the child before.
func (l *stderrLog) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = nil
}

// tail returns the last lines that the child printed, joined, or "".
func (l *stderrLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bound(strings.Join(l.last, " | "), 800)
}
