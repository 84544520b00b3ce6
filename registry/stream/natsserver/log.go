package natsserver

import (
	"fmt"
	"log/slog"
	"strings"
)

// log passes what the server reports to a slog.Logger. Its notices are about its
// own start and stop, and count as debugging.
type log struct {
	to    *slog.Logger
	fatal chan string         // what keeps the server from running
	heard func(report string) // gets errors
}

func newLog(to *slog.Logger, heard func(string)) *log {
	return &log{to: to, fatal: make(chan string, 1), heard: heard}
}

func text(format string, v []any) string { return strings.TrimSpace(fmt.Sprintf(format, v...)) }

func (l *log) Noticef(format string, v ...any) { l.to.Debug(text(format, v)) }
func (l *log) Debugf(string, ...any)           {}
func (l *log) Tracef(string, ...any)           {}

// Warnf reports a warning, but for the one about payloads that the package allows.
func (l *log) Warnf(format string, v ...any) {
	if report := text(format, v); !strings.HasPrefix(report, "Maximum payloads over") {
		l.to.Warn(report)
	}
}

// Errorf reports an error, and lets the keeper know.
func (l *log) Errorf(format string, v ...any) {
	report := text(format, v)
	l.to.Error(report)
	l.heard(report)
}

// Fatalf notes why the server cannot run. Unlike a server that is a process of
// its own it does not exit.
func (l *log) Fatalf(format string, v ...any) {
	why := text(format, v)
	l.to.Error(why)
	select {
	case l.fatal <- why:
	default:
	}
}
