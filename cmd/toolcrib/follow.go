package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/toolcrib/toolcrib/gateway"
)

// lookAgain is how often the configuration is looked at for a change.
const lookAgain = time.Second

// follow applies what changes in the plan's configuration to a gateway that
// serves, until ctx ends. A changed file is read once it has stayed the same
// for a moment, so that one which is still being written is not taken for
// whole. SIGHUP makes it read the file at once. A file that is wrong, empty or
// gone changes nothing. The demonstration has no file and never changes.
func (p *plan) follow(ctx context.Context, g *gateway.Gateway, logger *slog.Logger) {
	if p.file == "" {
		return
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	w := fileWatch{file: p.file, applied: p.read}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			w.applied, _ = os.Stat(p.file)
		case <-tick.C:
			if !w.settled(logger) {
				continue
			}
		}
		if err := p.reload(ctx, g); err != nil {
			logger.Error("the changed configuration is not applied", "error", err)
			continue
		}
		logger.Info("the changed configuration is applied", "file", p.file)
	}
}

// fileWatch tells when a file has another state than the one that was applied.
type fileWatch struct {
	file    string
	applied fs.FileInfo // nil when there was no file
	seen    fs.FileInfo // the state at the last look
	gone    bool
}

// settled reports whether the file changed and was found in the same state
// twice; that state then counts as applied.
func (w *fileWatch) settled(logger *slog.Logger) bool {
	now, err := os.Stat(w.file)
	if err != nil {
		if !w.gone {
			logger.Warn("the configuration file cannot be read; what was read of it serves on", "error", err)
		}
		w.gone = true
		return false
	}
	w.gone = false
	before := w.seen
	w.seen = now
	if sameState(w.applied, now) || !sameState(before, now) {
		return false
	}
	w.applied = now
	return true
}

func (p *plan) reload(ctx context.Context, g *gateway.Gateway) error {
	raw, err := readStart(p.file)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return fmt.Errorf("%s is empty", p.file)
	}
	cfg, err := gateway.Parse(p.file, raw)
	if err != nil {
		return err
	}
	cfg.Listen = p.address(cfg)
	return g.Reload(ctx, cfg)
}

// configLimit is more than a configuration may hold: of a larger file no more is
// read, and what is wrong with it is said of that.
const configLimit = 2 << 20

// readStart reads a file up to configLimit.
func readStart(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, configLimit))
}

func sameState(a, b fs.FileInfo) bool {
	return a != nil && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}
