package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/gateway"
)

// startTries is how often a worker tries to start a command that never served
// before it gives up. The pauses between them double from half a second.
const startTries = 5

// runnable returns an error for a command that cannot be found.
func runnable(command []string) error {
	if len(command) == 0 {
		return nil
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return usageError{fmt.Errorf("the command cannot be started: %w", err)}
	}
	return nil
}

// readable returns an error for a document that is a file of this machine and
// cannot be found. One at a URL may come later.
func readable(document string) error {
	if strings.Contains(document, "://") {
		return nil
	}
	if _, err := os.Stat(document); err != nil {
		return usageError{fmt.Errorf("--openapi: %w", err)}
	}
	return nil
}

// neverUpError says that a worker's command never served.
type neverUpError struct {
	name, why string
	tries     int
}

// Error names the command, and why the last start failed.
func (e *neverUpError) Error() string {
	return fmt.Sprintf("%s never served, and was started %d times: %s", e.name, e.tries, e.why)
}

// upstart watches the starts of a worker's command. Once it has served, it is
// started again for ever.
type upstart struct {
	name   string
	logger *slog.Logger
	give   context.CancelCauseFunc // gives the worker up

	mu sync.Mutex
	up bool // it has served
}

// attempted is told how the command's source is after each start.
func (u *upstart) attempted(s gateway.SourceState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.up = u.up || s.State == gateway.SourceReady
	switch {
	case s.Failures == 0:
	case !u.up && s.Failures >= startTries:
		u.give(&neverUpError{name: u.name, why: s.Error, tries: s.Failures})
	default:
		u.logger.Warn("the command does not serve and will be started again", "command", u.name, "starts", s.Failures, "error", s.Error)
	}
}
