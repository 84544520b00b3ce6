// Package loglimit bounds how often the same line is written to a log, where others
// decide how often what it tells of happens: peers that send what cannot be read, or
// that are refused again and again.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Most lines of one message are written in each Window; what they say beside the
// message may differ. The last of them says that more are left out, and the first of
// a later window how many were.
const (
	Most   = 100
	Window = time.Minute
)

// most bounds the messages that are told apart. Programs have fewer.
const most = 1000

// New returns a logger that writes to another within the bounds. Loggers that are
// derived from it share them. Nil is silent.
func New(to *slog.Logger) *slog.Logger {
	if to == nil {
		return slog.New(slog.DiscardHandler)
	}
	if _, bounded := to.Handler().(*handler); bounded {
		return to
	}
	return slog.New(&handler{to.Handler(), &counts{of: map[string]*count{}}})
}

type handler struct {
	slog.Handler
	counts *counts
}

// Handle implements [slog.Handler].
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	goes, left := h.counts.take(r.Message, r.Time)
	switch {
	case goes == Most:
		r.AddAttrs(slog.Bool("more_left_out", true))
	case left > 0:
		r.AddAttrs(slog.Int("left_out", left))
	}
	if goes > Most {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.counts}
}

// WithGroup implements [slog.Handler].
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.counts}
}

// counts are the lines of now, by message.
type counts struct {
	mu sync.Mutex
	of map[string]*count
}

type count struct {
	since time.Time
	lines int
}

// take counts a line. It returns which one of its window it is, and, for the first,
// how many of the window before were left out.
func (c *counts) take(message string, now time.Time) (line, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[message]
	if n == nil {
		if len(c.of) >= most {
			clear(c.of)
		}
		n = &count{since: now}
		c.of[message] = n
	}
	if now.Sub(n.since) >= Window {
		left = max(n.lines-Most, 0)
		n.since, n.lines = now, 0
	}
	n.lines++
	return n.lines, left
}
