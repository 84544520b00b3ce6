package main

import (
	"context"
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
// serves, until ctx ends. SIGHUP makes it read the file at once. A file that is
// wrong changes nothing. The demonstration has no file and never changes.
func (p *plan) follow(ctx context.Context, g *gateway.Gateway, logger *slog.Logger) {
	if p.file == "" {
		return
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	last := p.read
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		case <-tick.C:
			if now, err := os.Stat(p.file); err != nil || sameState(last, now) {
				continue
			}
		}
		last, _ = os.Stat(p.file)
		if err := p.reload(ctx, g); err != nil {
			logger.Error("the changed configuration is not applied", "error", err)
			continue
		}
		logger.Info("the changed configuration is applied", "file", p.file)
	}
}

func (p *plan) reload(ctx context.Context, g *gateway.Gateway) error {
	cfg, err := gateway.Load(p.file)
	if err != nil {
		return err
	}
	cfg.Listen = p.address(cfg)
	return g.Reload(ctx, cfg)
}

func sameState(a, b fs.FileInfo) bool {
	return a != nil && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}
